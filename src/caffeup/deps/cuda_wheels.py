"""Lays out a CUDA toolkit with cuDNN from NVIDIA's wheels: whole or not at all; a run that was ended is gone on with.

The wheels fill ``.part-<root>/root``, one after the other; what is done is noted beside it. Only when all is in it, the mark
too, is it renamed. So what has the root's name is whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import zipfile
from pathlib import Path, PurePosixPath
from typing import Callable, Optional

from caffeup.deps.alone import PART, alone, disk_error
from caffeup.detect.laid_out import MARK
from caffeup.errors import DiskError
from caffeup.facts.cuda_wheels import CudaFromWheels, CudaWheel
from caffeup.source.progress import Progress, silent

Fetch = Callable[[CudaWheel, Path, Progress], Path]
"""Downloads a wheel into a folder, and checks its hash."""
MARGIN = 200 << 20
"""Bytes that must be left on the disk afterwards."""
_FOLDERS = ("bin", "include", "lib", "nvvm")
_CHUNK = 1 << 20


def lay_out(
    release: CudaFromWheels,
    root: Path,
    *,
    fetch: Fetch,
    free_bytes: Callable[[Path], int],
    progress: Progress = silent,
) -> None:
    """Make the root; nothing to do where it is there. Raises ``DiskError``, or what ``fetch`` raises."""
    try:
        with alone(root.parent, progress):
            if not is_whole(root):
                _make(release, root, fetch, free_bytes, progress)
    except OSError as error:
        raise disk_error(error, root.parent) from error


def is_whole(root: Path) -> bool:
    """Whether the toolkit was laid out to its end."""
    return (root / MARK).is_file()


# --- one root ---------------------------------------------------------------------------------------------


def _make(release: CudaFromWheels, root: Path, fetch: Fetch, free_bytes: Callable[[Path], int], progress: Progress) -> None:
    part = root.with_name(f"{PART}{root.name}")
    made = part / "root"
    made.mkdir(parents=True, exist_ok=True)
    ahead = [wheel for wheel in release.wheels if not _done(part, wheel).is_file()]
    _check_space(ahead, part, free_bytes)
    total = release.download_bytes
    behind = total - sum(wheel.bytes for wheel in ahead)
    for wheel in ahead:
        file = _already(part, wheel) or fetch(wheel, part, _within(wheel, behind, total, progress))
        behind += wheel.bytes
        progress(f"unpacking {wheel.name}", behind, total)
        _unpack(file, made)
        os.sync()  # a note that outlives a power cut while the files do not would lie
        _done(part, wheel).touch()
        file.unlink()
    _link(made)
    said = {"release": release.id, "wheels": {wheel.id: wheel.sha256 for wheel in release.wheels}}
    (made / MARK).write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    if root.exists():  # what a removal that was ended left
        shutil.rmtree(root)
    os.sync()
    made.rename(root)
    shutil.rmtree(part)


def _done(part: Path, wheel: CudaWheel) -> Path:
    """The note that a wheel was unpacked, by its hash: another release's wheel is another one."""
    return part / f"{wheel.sha256}.done"


def _already(part: Path, wheel: CudaWheel) -> Optional[Path]:
    """The wheel, where a run was ended between its download and its unpacking."""
    file = part / wheel.id
    if not file.is_file():
        return None
    digest = hashlib.sha256()
    with file.open("rb") as held:
        while piece := held.read(_CHUNK):
            digest.update(piece)
    return file if digest.hexdigest() == wheel.sha256 else None


def _within(wheel: CudaWheel, behind: int, total: int, progress: Progress) -> Progress:
    """One wheel's progress as part of the whole."""
    return lambda _what, done, _total: progress(f"downloading {wheel.name}", behind + min(done, wheel.bytes), total)


def _check_space(ahead: list[CudaWheel], part: Path, free_bytes: Callable[[Path], int]) -> None:
    needed = sum(wheel.unpacked for wheel in ahead) + max((wheel.bytes for wheel in ahead), default=0) + MARGIN
    free = free_bytes(part)
    if free < needed:
        raise DiskError(
            f"CUDA needs {needed >> 20} MiB in {part.parent}, and {free >> 20} MiB are free.",
            advice="Free some space, or let XDG_DATA_HOME name a folder on another disk.",
            commands=(f"df -h {shlex.quote(str(part.parent))}",),
        )


def _unpack(wheel: Path, root: Path) -> None:
    """What the wheel holds of a toolkit, and its licence; cuDNN's, which has a folder of its own, goes into the same root."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            name = _name_in_root(member.filename)
            if not name or member.is_dir():
                continue
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as held, path.open("wb") as out:
                shutil.copyfileobj(held, out, _CHUNK)
            if member.external_attr >> 16 & 0o100:
                path.chmod(0o755)


def _name_in_root(name: str) -> str:
    """``lib/libcudart.so.13`` for ``nvidia/cu13/lib/libcudart.so.13``; empty for what is not wanted."""
    parts = PurePosixPath(name).parts
    if ".." in parts or len(parts) < 3:
        return ""
    if parts[0] == "nvidia" and len(parts) > 3 and parts[2] in _FOLDERS:
        return "/".join(parts[2:])
    owner, info, _ = parts[0].partition(".dist-info")
    return f"licenses/{owner}/{parts[-1]}" if info and parts[1] == "licenses" else ""


def _link(root: Path) -> None:
    """What the wheels lack: lib64, in which nvcc looks, and the names that the linker looks for."""
    _point(root / "lib64", "lib")
    for library in sorted((root / "lib").glob("*.so.*")):
        _point(library.with_name(f"{library.name.partition('.so.')[0]}.so"), library.name)


def _point(link: Path, target: str) -> None:
    if not link.is_symlink():
        link.symlink_to(target)
