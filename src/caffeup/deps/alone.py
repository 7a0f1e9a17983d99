"""One caffeup at a time works in a folder that all trees share; the others wait, and then find it done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
