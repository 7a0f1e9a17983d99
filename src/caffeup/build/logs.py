"""One full log a stage, in the tree; a few older ones are kept."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from caffeup.errors import DiskError

KEPT = 3
NO_SPACE = "No space left on device"
_FULL = 1 << 20
"""Bytes: with less, tools fail that do not say why."""


def is_full(root: Path) -> bool:
    """Whether the tree's disk has no room left."""
    try:
        return shutil.disk_usage(root).free < _FULL
    except OSError:
        return False


def full_disk(what: str, root: Path, log: str = "") -> DiskError:
    """The error for a disk without room."""
    return DiskError(
        f"{what} stopped: no space left on the disk.",
        advice="Make room, then run the same command again: it goes on where it stopped.",
        commands=(f"df -h {shlex.quote(str(root))} /tmp",),
        log=log,
    )


def log_path(root: Path, stage: str) -> Path:
    """Where the newest log of a stage lies."""
    return root / ".caffeup" / "logs" / f"{stage}.log"


def _rotate(path: Path) -> None:
    for number in range(KEPT - 1, 0, -1):
        older = path.with_name(f"{path.name}.{number}")
        newer = path.with_name(f"{path.name}.{number - 1}") if number > 1 else path
        if newer.exists():
            newer.replace(older)


@contextmanager
def open_log(root: Path, stage: str, *, append: bool = False) -> Iterator[IO[bytes]]:
    """Begin a stage's log, or go on with it; the one before becomes ``<stage>.log.1``.

    Raises ``DiskError`` in a tree that cannot be written.
    """
    path = log_path(root, stage)
    with disk_errors(root):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not append:
            _rotate(path)
        with path.open("ab" if append else "wb", buffering=0) as log:
            yield log


@contextmanager
def disk_errors(root: Path) -> Iterator[None]:
    """Turn what the file system refuses into a ``DiskError``."""
    try:
        yield
    except OSError as error:
        raise DiskError(
            f"{root} cannot be written: {error.strerror or error}.",
            details=str(error),
            advice="Make the folder writable for you, make room on its disk, or copy the tree to where you can write.",
            commands=(f"ls -ld {shlex.quote(str(root))}", f"df -h {shlex.quote(str(root))}"),
        ) from error
