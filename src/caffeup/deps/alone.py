"""One caffeup at a time works in a folder that all trees share; the others wait, and then find it done."""

from __future__ import annotations

import errno
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from caffeup.errors import DiskError
from caffeup.source.progress import Progress

LOCK = ".lock"
"""Stays when all else in the folder is removed, since somebody may wait for it."""

PART = ".part-"
"""How the name of a folder begins in which something is being made."""


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


def begun(home: Path) -> tuple[Path, ...]:
    """Folders of runs that were ended before all was made."""
    return tuple(sorted(home.glob(f"{PART}*")))


def is_empty(home: Path) -> bool:
    """Whether nothing was made or begun; the lock stays, since somebody may wait for it."""
    return not home.is_dir() or all(path.name == LOCK for path in home.iterdir())


def remove_all(home: Path, mark: str, progress: Progress) -> None:
    """Remove everything below the folder; what is no longer whole loses its mark first, and is not taken for whole."""
    try:
        with alone(home, progress):
            for one in home.glob(f"*/{mark}"):
                one.unlink()
            for path in home.iterdir():
                if path.name != LOCK:
                    shutil.rmtree(path)
    except OSError as error:
        raise disk_error(error, home) from error
