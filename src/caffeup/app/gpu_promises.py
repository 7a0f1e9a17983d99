"""Where promises of room are kept: the user's own runtime folder, changed only under a lock."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Optional

import msgspec

from caffeup.disk import read_plain, write_atomically
from caffeup.errors import Busy, DiskError
from caffeup.gpu.promises import Promise
from caffeup.live import Live
from caffeup.model.base import from_json, to_json

LOCK_SECONDS = 60.0
"""A look at the GPUs takes a few seconds at most, unless the driver hangs."""


def folder(env: Mapping[str, str]) -> Path:
    """The folder, made where it is not there; raise ``DiskError`` where it is not this user's alone.

    Where the system makes no runtime folder it lies in one that all may write to, so that somebody else may have made it.
    """
    uid = os.geteuid()
    given = env.get("XDG_RUNTIME_DIR", "")
    usual = [Path(one) for one in (given, f"/run/user/{uid}") if one.startswith("/") and Path(one).is_dir()]
    home = usual[0] / "caffeup" if usual else Path(env.get("TMPDIR") or "/tmp") / f"caffeup-{uid}"  # noqa: S108 - checked below
    with suppress(FileExistsError):
        home.mkdir(mode=0o700)
    status = home.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != uid or status.st_mode & 0o022:
        raise DiskError(
            f"{home} is not this user's own folder.",
            advice="Look at it; name another place with XDG_RUNTIME_DIR.",
            commands=(f"ls -ld {home}",),
        )
    return home


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Hold the choice for this process; raise ``Busy`` where another holds it for long."""
    from filelock import FileLock, Timeout  # noqa: PLC0415

    lock = FileLock(str(home / "gpu.lock"), timeout=LOCK_SECONDS)
    try:
        lock.acquire()
    except Timeout:
        raise Busy("Another caffeup is choosing a GPU and does not come to an end.", commands=("caffeup gpu",)) from None
    try:
        yield
    finally:
        lock.release()


def load(home: Path, live: Live) -> tuple[Promise, ...]:
    """Those whose program still runs; the files of the others are removed."""
    kept = []
    for path in sorted(home.glob("gpu-*.json")):
        promise = _read(path)
        process = live.process(promise.pid) if promise is not None else None
        if promise is not None and process is not None and process.started == promise.started and not process.ended:
            kept.append(promise)
        else:
            path.unlink(missing_ok=True)
    return tuple(kept)


def _read(path: Path) -> Optional[Promise]:
    try:
        return from_json(read_plain(path), Promise)
    except (OSError, msgspec.MsgspecError, ValueError):
        return None


def keep(home: Path, promise: Promise) -> None:
    """Write one down."""
    write_atomically(home / f"gpu-{promise.pid}.json", to_json(promise))
