"""What a tree's ``.caffeup`` folder remembers of earlier runs, and who works in the tree now."""

from __future__ import annotations

import fcntl
import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Optional

import msgspec

from caffeup.disk import read_plain, write_atomically
from caffeup.errors import Busy, DiskError
from caffeup.model.base import SCHEMA, Value, from_json, to_json
from caffeup.model.outcome import Check, StageOutcome, TestReport
from caffeup.model.plan import Request

FOLDER = ".caffeup"
LOCK = "caffeup.lock"
"""In the tree's root, to be kept with the sources: it says what was built of them."""
_BUILT = {".git", ".caffeup", "build", ".build_release", ".build_debug", "distribute", "temp", "__pycache__"}


_WRITTEN = (
    *("came", "came.new", "ccache", "holder", "include", "lib", "lock", "logs"),
    *("previous", "previous.new", "previous.old", "tmp", "undo"),
)
"""What is written in place; the rest is written beside and renamed, which never follows a link."""


class StageRecord(Value):
    """A stage that was completed, and for what inputs."""

    name: str
    key: str
    """Digest of everything the stage depends on."""
    outcome: StageOutcome
    parts: dict[str, str] = msgspec.field(default_factory=dict)
    """What the key was made of, by names for people: what differs is why the stage runs again."""


class State(Value):
    """All that is remembered of one tree."""

    schema: int = SCHEMA
    request: Optional[Request] = None
    stages: tuple[StageRecord, ...] = ()
    tests: Optional[TestReport] = None
    checks: tuple[Check, ...] = ()
    driver: str = ""
    """The NVIDIA driver's release at the last run."""


def load_state(root: Path) -> State:
    """What is remembered; an empty state where there is none, or where it is damaged or of another version."""
    try:
        state = from_json(read_plain(root / FOLDER / "state.json"), State)
    except (OSError, msgspec.MsgspecError, ValueError):
        return State()
    return state if state.schema == SCHEMA else State()


def save_state(root: Path, state: State) -> None:
    """Remember."""
    write_atomically(root / FOLDER / "state.json", to_json(state))


def source_stamp(root: Path) -> str:
    """A digest of name, size and time of every file that is not a product: tells a touched tree from an untouched one."""
    digest = sha256()
    for path, status in _sources(root):
        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def newer_than(root: Path, product: Path) -> tuple[str, ...]:
    """The files of the tree that were written after a product of it, and so make it stale."""
    try:
        made = product.stat().st_mtime_ns
    except OSError:
        return ()
    return tuple(path for path, status in _sources(root) if status.st_mtime_ns > made and stat.S_ISREG(status.st_mode))


def _sources(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in _BUILT and not name.endswith(("_release", "_debug", ".egg-info")))
        for name in sorted(files):
            if name.endswith((".so", ".pyc", "_pb2.py", ".o", ".testbin")):
                continue
            if name == LOCK and folder == str(root):
                continue
            path = os.path.join(folder, name)  # noqa: PTH118  # thousands of files: Path objects take longer than the stat
            with suppress(OSError):
                yield os.path.relpath(path, root), os.lstat(path)


def require_own_folder(root: Path) -> None:
    """Raise ``DiskError`` where a link in ``.caffeup`` would lead what caffeup writes or removes out of the tree.

    caffeup makes links only to toolkits and libraries, and writes through none of them.
    """
    home = root / FOLDER
    written = [home, *(home / name for name in _WRITTEN), *sorted((home / "logs").glob("*"))]
    for path in written:
        if path.is_symlink():
            raise DiskError(
                f"{path} is a link, to {os.readlink(path)}: caffeup writes through none that it did not make.",  # noqa: PTH115
                advice="Look where it leads, and remove it.",
                commands=(f"ls -ld {shlex.quote(str(path))}", f"rm {shlex.quote(str(path))}"),
            )
    if home.exists() and not home.is_dir():
        raise DiskError(
            f"{home} is no folder.",
            advice="Move it away.",
            commands=(f"mv {shlex.quote(str(home))} {shlex.quote(str(home))}.mine",),
        )


def at_work(root: Path) -> str:
    """Who works in the tree now: ``process 4711``; empty: nobody. Nothing is written."""
    try:
        lock = os.open(root / FOLDER / "lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _holder(root)
    finally:
        os.close(lock)
    return ""


def busy(root: Path, who: str) -> Busy:
    """What to raise where another caffeup works in the tree."""
    return Busy(f"Another caffeup works in {root} ({who}).", advice="Wait until it has ended, or end it; then run this again.")


def _holder(root: Path) -> str:
    try:
        return read_plain(root / FOLDER / "holder").decode("utf-8", "replace").strip() or "another process"
    except OSError:
        return "another process"


@contextmanager
def exclusive(root: Path) -> Iterator[None]:
    """Hold the tree for this process; raise ``Busy`` naming the process that holds it."""
    from filelock import FileLock, Timeout  # noqa: PLC0415  # only commands that write need it

    require_own_folder(root)
    holder = root / FOLDER / "holder"
    try:
        (root / FOLDER).mkdir(parents=True, exist_ok=True)
        lock = FileLock(str(root / FOLDER / "lock"), timeout=0)
        lock.acquire()
    except Timeout:
        raise busy(root, _holder(root)) from None
    except OSError as error:
        raise DiskError(
            f"{root} cannot be written: {error.strerror}.", advice="Make the folder writable, or copy the tree."
        ) from error
    try:
        with suppress(OSError):  # on a full disk clean must still work; the name is only for words
            holder.write_text(f"process {os.getpid()}", encoding="utf-8")
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()
