"""Reads that never wait for ever, and writes that survive a kill."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

LARGEST = 64 << 20
"""Of caffeup's own notes none comes near it."""


def read_plain(path: Path, limit: int = LARGEST) -> bytes:
    """The bytes of a regular file; ``OSError`` for a larger one, and for a pipe or device: one could wait for it for ever."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        if status.st_size > limit:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        return file.read(limit)


def as_path(text: str) -> Path:
    """A path as a person writes it; ``~`` means the home folder where there is one, and itself otherwise."""
    return Path(os.path.expanduser(text))  # noqa: PTH111  # the method of Path raises where no home folder is known


def write_atomically(path: Path, text: str) -> None:
    """Replace a file as a whole: after a crash there is the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with beside.open("w", encoding="utf-8", errors="surrogateescape") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
