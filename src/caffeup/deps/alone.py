"""One caffeup at a time works in a folder that all trees share; the others wait, and then find it done."""

from __future__ import annotations

import errno
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from caffeup.errors import DiskError
from caffeup.source.progress import Progress

LOCK = ".lock"
"""Stays when all else in the folder is removed, since somebody may wait for it."""


@contextmanager
def alone(home: Path, progress: Progress) -> Iterator[None]:
    """Hold the folder, which is made where it is not there; raise ``OSError`` where it cannot be."""
    from filelock import FileLock, Timeout  # noqa: PLC0415  # only what writes needs it

    home.mkdir(parents=True, exist_ok=True)
    lock = FileLock(str(home / LOCK))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress("waiting for another caffeup that does the same", 0, 0)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def disk_error(error: OSError, home: Path) -> DiskError:
    """What to raise where the folder cannot be written."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    shown = shlex.quote(str(home))
    return DiskError(
        f"the disk is full: {home}" if full else f"cannot write in {home}",
        details=str(error),
        advice="Let XDG_DATA_HOME name a folder that can be written. What was done is kept, and gone on with.",
        commands=(f"df -h {shown}" if full else f"ls -ld {shown}",),
    )
