"""Removes what a killed or failed build left half-written: make would take it for finished."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from caffeup.build import products

_ELF = b"\x7fELF"


def whole_elf(path: Path) -> bool:
    """Whether the file is an ELF file whose section table lies within it; a cut one has none, or it lies beyond the end."""
    try:
        with path.open("rb") as source:
            head = source.read(64)
            size = os.fstat(source.fileno()).st_size
    except OSError:
        return False
    if len(head) < 64 or head[:4] != _ELF:
        return False
    order = "<" if head[5] == 1 else ">"
    if head[4] != 2:
        return True  # 32 bits: not built by caffeup, not judged
    (table,) = struct.unpack_from(f"{order}Q", head, 0x28)
    entry, count = struct.unpack_from(f"{order}HH", head, 0x3A)
    return bool(table) and int(table) + int(entry) * int(count) <= size


def whole_dependencies(path: Path) -> bool:
    """Whether a ``.d`` file ends as compilers end it; a cut one stops every later make."""
    try:
        raw = path.read_bytes()
    except OSError:
        return False
    return raw.endswith(b"\n") and b"\0" not in raw


def _damaged(path: Path, kind: str) -> bool:
    if kind == "left":
        return True
    if path.suffix == ".d":
        return not whole_dependencies(path)
    if path.name.endswith((".pb.cc", ".pb.h")):
        try:
            return path.read_bytes()[-1:] != b"\n"
        except OSError:
            return True
    return not whole_elf(path)


def remove_debris(root: Path) -> tuple[str, ...]:
    """Remove half-written files of earlier builds; what was removed, relative to the tree.

    With a broken ``.d`` its object goes too: what that object depends on is no longer known.
    """
    removed: list[str] = []
    for folder in sorted(root.glob(".*_release")) + sorted(root.glob(".*_debug")):
        for path, kind in products.files(folder):
            if kind == "told" or path.suffix == ".a" or not _damaged(path, kind):
                continue
            victims = [path, path.with_suffix(".o")] if path.suffix == ".d" else [path]
            for victim in victims:
                if victim.exists():
                    victim.unlink()
                    removed.append(victim.relative_to(root).as_posix())
    for extension in products.modules(root):
        if not whole_elf(extension):
            extension.unlink()
            removed.append(extension.relative_to(root).as_posix())
    return tuple(removed)
