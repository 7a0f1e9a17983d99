"""Run paths in unpacked files, so that they find their libraries beside themselves, in whatever process they are loaded.

A Python module is loaded by a Python that knows nothing of the root, and a library with a run path of its own does not look
where what loads it looks: both are given one. Other libraries are found by the run path of what is linked with them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

from caffeup.deps.user_links import in_usr
from caffeup.errors import DependencyError
from caffeup.host import Host
from caffeup.model.base import Value

SECONDS = 120.0
_RUN_PATHS = {"DT_RUNPATH": "runpath", "DT_RPATH": "rpath"}
_MAGIC = b"\x7fELF"


class Linked(Value, kw_only=True):
    """What the loader reads in a file."""

    needed: tuple[str, ...] = ()
    run_path: tuple[str, ...] = ()
    old_kind: bool = False
    """Whether it is DT_RPATH, which serves what is loaded by this file too."""


def library_folders(root: Path, triplet: str) -> tuple[Path, ...]:
    """The folders that the loader would search anyway, were the packages installed."""
    return tuple(folder for folder in (root / f"usr/lib/{triplet}", root / "usr/lib") if folder.is_dir())


def lead_home(host: Host, root: Path, folders: tuple[Path, ...], patchelf: tuple[str, ...]) -> int:
    """Give run paths to all that need one; how many were given. A run that was ended is gone on with."""
    here = {name for folder in folders for name in os.listdir(folder)}  # noqa: PTH208
    count = 0
    for file in _files(root):
        linked = read(file)
        if linked is None or not linked.needed:
            continue
        wanted = run_path(root, file, linked, folders, here)
        if wanted and not (linked.old_kind and wanted == linked.run_path):
            _set(host, file, ":".join(wanted), patchelf)
            count += 1
    return count


def run_path(root: Path, file: Path, linked: Linked, folders: tuple[Path, ...], here: set[str]) -> tuple[str, ...]:
    """The run path that a file should have, empty where it needs none: its own folders as they lie here, then all others'."""
    if not linked.run_path and (file.parent in folders or not here & set(linked.needed)):
        return ()
    own = [_here(root, file, one) for one in linked.run_path]
    every = (*(one for one in own if one), *(_from(file, folder) for folder in folders))
    return tuple(dict.fromkeys(every))


def read(file: Path) -> Optional[Linked]:
    """None for what is no ELF file, or a damaged one."""
    from elftools.common.exceptions import ELFError  # noqa: PLC0415  # only where packages are unpacked
    from elftools.elf.dynamic import DynamicSection  # noqa: PLC0415
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415

    try:
        with file.open("rb") as held:
            if held.read(4) != _MAGIC:
                return None
            section = ELFFile(held).get_section_by_name(".dynamic")
            if not isinstance(section, DynamicSection):
                return None
            needed, paths, old = [], [], False
            for tag in section.iter_tags():
                kind = tag.entry.d_tag
                if kind == "DT_NEEDED":
                    needed.append(str(getattr(tag, "needed", "")))
                elif kind in _RUN_PATHS:
                    paths += str(getattr(tag, _RUN_PATHS[kind], "")).split(":")
                    old = kind == "DT_RPATH"
    except (OSError, ELFError, ValueError, KeyError, AssertionError, UnicodeError):
        return None
    return Linked(needed=tuple(needed), run_path=tuple(one for one in paths if one), old_kind=old)


def _files(root: Path) -> Iterator[Path]:
    """Libraries, modules and programs; nothing of /usr/share or of the headers is one."""
    for top in ("usr/bin", "usr/lib", "usr/libexec", "usr/local"):
        for folder, names, files in os.walk(root / top):
            names.sort()
            for name in sorted(files):
                path = Path(folder, name)
                if (".so" in name or top == "usr/bin") and not path.is_symlink():
                    yield path


def _here(root: Path, file: Path, path: str) -> str:
    if path.startswith("$ORIGIN"):
        return path
    place = root / in_usr(path)
    return _from(file, place) if path.startswith("/") and place.is_dir() else ""


def _from(file: Path, folder: Path) -> str:
    way = os.path.relpath(folder, file.parent)
    return "$ORIGIN" if way == "." else f"$ORIGIN/{way}"


def _set(host: Host, file: Path, path: str, patchelf: tuple[str, ...]) -> None:
    fresh = file.with_name(f".{file.name}.new"[:250])
    output = host.run((*patchelf, "--force-rpath", "--set-rpath", path, "--output", str(fresh), str(file)), timeout=SECONDS)
    if output is None or output.status != 0 or not fresh.is_file():
        said = (output.stderr or output.stdout).strip() if output is not None else "there is no patchelf"
        fresh.unlink(missing_ok=True)
        raise DependencyError(f"{file} could not be given a run path", details=said)
    fresh.chmod(file.stat().st_mode)
    fresh.replace(file)
