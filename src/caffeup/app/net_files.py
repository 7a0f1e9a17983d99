"""Files of models: mapped for reading, and written piece by piece as a whole or not at all."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from caffeup.disk import as_path
from caffeup.errors import DiskError, UsageError
from caffeup.net.caffemodel import Model, read_model
from caffeup.net.text import printable
from caffeup.net.wire import Buffer


@contextmanager
def open_model(name: str) -> Iterator[Model]:
    """A caffemodel for as long as it is needed; ``UsageError`` where it cannot be read."""
    try:
        handle = os.open(as_path(name), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "there is no such path"
        raise UsageError(f"{printable(name, 400)} cannot be read: {why}.") from error
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(f"{printable(name, 400)} cannot be read: it is no plain file.")
        if not status.st_size:
            raise UsageError(f"{printable(name, 400)} cannot be read: it is empty.")
        mapped = mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
    finally:
        os.close(handle)
    try:
        yield read_model(memoryview(mapped), name)
    finally:
        with suppress(BufferError):  # where an error holds on to a piece, it is unmapped with that
            mapped.close()


def require_free(*paths: Path) -> None:
    """``UsageError`` where a file is there already, or two of them are one: asked before long work."""
    for number, path in enumerate(paths):
        if os.path.lexists(path):
            shown = printable(str(path), 400)
            raise UsageError(
                f"{shown} is there already, and is not overwritten.", advice="Give another file with -o, or remove it."
            )
        if path in paths[:number]:
            raise UsageError(f"{printable(str(path), 400)} is named twice.")


def write_pieces(path: Path, pieces: Iterable[Buffer]) -> None:
    """Write a new file; what stops it leaves none behind."""
    shown = printable(str(path), 400)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError as error:
        brief = f"{shown} is there already, and is not overwritten."
        raise UsageError(brief, advice="Give another file with -o, or remove it.") from error
    except OSError as error:
        raise DiskError(f"{shown} cannot be written: {error.strerror}.") from error
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(handle)
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise DiskError(f"{shown} cannot be written: {error.strerror}.") from error
        raise
