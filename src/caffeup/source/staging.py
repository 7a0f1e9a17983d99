"""A folder beside the target in which a tree is made, and renamed when it is whole. A kill leaves nothing half at the target."""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from caffeup.source.problems import MARK, Occupied, disk_error


@contextmanager
def staging(target: Path) -> Iterator[Path]:
    """Give an empty folder on the target's file system; it is removed at the end, with those of killed runs."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target)
        part = Path(tempfile.mkdtemp(prefix=f".{target.name}{MARK}", dir=target.parent))
    except OSError as error:
        raise disk_error(error, target.parent) from error
    lock = os.open(part, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield part
    finally:
        _remove(part)
        os.close(lock)


def put_in_place(made: Path, target: Path) -> None:
    """Rename the finished tree to its target, which must not exist (an empty folder may)."""
    try:
        made.rename(target)
    except OSError as error:
        if target.exists() or target.is_symlink():
            raise Occupied(
                f"{target} appeared while the tree was fetched, and is not empty",
                advice="Another program made it. Name another folder with --into.",
                commands=(f"ls -la {shlex.quote(str(target))}",),
            ) from error
        raise disk_error(error, target.parent) from error


def sweep(target: Path) -> None:
    """Remove what killed runs left beside the target: ours by name and owner, and locked by nobody."""
    for left in target.parent.glob(f".{_escaped(target.name)}{MARK}*"):
        if left.is_symlink() or not left.is_dir() or left.stat().st_uid != os.getuid():
            continue
        with suppress(OSError):
            lock = os.open(left, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(left)
            finally:
                os.close(lock)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():  # folders without write permission inside
        for path, _, _ in os.walk(folder):
            with suppress(OSError):
                os.chmod(path, 0o700)  # noqa: PTH101
        shutil.rmtree(folder, ignore_errors=True)


def _escaped(name: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)
