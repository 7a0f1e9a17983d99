"""Logs from files, a pipe, or a failed stage, handed to the diagnosis."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Optional

from caffeup.app.explaining import distribution
from caffeup.app.planning import read_machine
from caffeup.app.session import Session
from caffeup.diagnose.context import Context, context_of
from caffeup.diagnose.diagnose import diagnose
from caffeup.diagnose.read import read
from caffeup.errors import CaffeupError, UsageError
from caffeup.model.finding import Finding
from caffeup.model.machine import Machine
from caffeup.model.tree import Tree

_CHUNK = 1 << 16


def diagnose_logs(session: Session, names: tuple[str, ...], machine_file: str) -> tuple[Finding, ...]:
    """Explain the logs, first cause first; on a machine told by a file, or by what the logs say.

    Where neither tells the distribution, packages are named as they are called here.
    """
    context = context_of(read_machine(machine_file)) if machine_file else distribution(session)
    found: list[Finding] = []
    for name in names:
        if name == "-":
            if sys.stdin is None:
                raise UsageError("There is no standard input to read from.", advice="Name a log file.")
            found += diagnose(read(_chunks(sys.stdin.buffer)), session.facts, context, log="standard input")
        else:
            found += _of_file(session, Path(name), context)
    return tuple(found)


def diagnose_failure(session: Session, error: CaffeupError, machine: Machine, tree: Optional[Tree]) -> tuple[Finding, ...]:
    """What the log of a failed stage says."""
    if not error.log:
        return ()
    with suppress(UsageError):
        return _of_file(session, Path(error.log), context_of(machine, tree))
    return ()


def _of_file(session: Session, path: Path, context: Optional[Context]) -> tuple[Finding, ...]:
    try:
        with path.open("rb") as file:
            return diagnose(read(_chunks(file)), session.facts, context, log=path.name)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk
