"""Logs from files, a pipe, or a failed stage, handed to the diagnosis."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Optional

import msgspec

from caffeup.app.explaining import distribution
from caffeup.app.planning import read_machine
from caffeup.app.session import Session, find_tree
from caffeup.diagnose.context import Context, context_of
from caffeup.diagnose.diagnose import diagnose
from caffeup.diagnose.read import read
from caffeup.diagnose.remedies import TREE
from caffeup.errors import CaffeupError, UsageError
from caffeup.model.finding import Finding
from caffeup.model.machine import Machine
from caffeup.model.tree import Tree

_CHUNK = 1 << 16


def diagnose_logs(session: Session, names: tuple[str, ...], machine_file: str) -> tuple[Finding, ...]:
    """Explain the logs, first cause first; on a machine told by a file, or by what the logs say.

    Where neither tells the distribution, packages are named as they are called here; commands name the tree that is here.
    """
    context = context_of(read_machine(machine_file)) if machine_file else distribution(session)
    context = msgspec.structs.replace(context, tree=_tree_here())
    found: list[Finding] = []
    for name in names:
        if name == "-":
            if sys.stdin is None:
                raise UsageError("There is no standard input to read from.", advice="Name a log file.")
            found += diagnose(read(_some(sys.stdin.buffer, "Standard input")), session.facts, context, log="standard input")
        else:
            found += _of_file(session, Path(name), context, empty=False)
    return tuple(found)


def diagnose_failure(session: Session, error: CaffeupError, machine: Machine, tree: Optional[Tree]) -> tuple[Finding, ...]:
    """What the log of a failed stage says."""
    if not error.log:
        return ()
    with suppress(UsageError):
        return _of_file(session, Path(error.log), context_of(machine, tree))
    return ()


def _tree_here() -> str:
    """The tree's folder for commands, as it is named from here; empty: the current folder; ``TREE`` where none is here."""
    try:
        root = find_tree("")
    except (CaffeupError, OSError):
        return TREE
    return "" if root == Path.cwd() else os.path.relpath(root)


def _of_file(session: Session, path: Path, context: Optional[Context], *, empty: bool = True) -> tuple[Finding, ...]:
    try:
        with path.open("rb") as file:
            return diagnose(read(_chunks(file) if empty else _some(file, str(path))), session.facts, context, log=path.name)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error


def _some(file: IO[bytes], name: str) -> Iterator[bytes]:
    """What is read; raise ``UsageError`` where that is nothing at all, of which nothing true can be said."""
    something = False
    for chunk in _chunks(file):
        something = True
        yield chunk
    if not something:
        raise UsageError(
            f"{name} is empty: there is nothing to explain.",
            advice="make writes its errors to standard error; take both:",
            commands=("make all 2>&1 | caffeup diagnose",),
        )


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk
