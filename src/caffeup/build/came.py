"""Keeps what make overwrites: some trees come with Python modules that protoc makes, and must have them again in the end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

KEPT = "came"
"""The folder in caffeup's own; that it is there says that the tree was looked at before its first build."""
_WRITTEN = ("python/*/proto/*_pb2.py", "python/*/proto/__init__.py", "python/*/_caffe.so")


def keep_what_came(root: Path, ours: Path) -> None:
    """Before the first build: copy what make may overwrite. Killed in between, the next run copies again."""
    if (ours / KEPT).is_dir() or (ours / "fingerprint.json").is_file():
        return
    new = ours / f"{KEPT}.new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    for path in (found for pattern in _WRITTEN for found in sorted(root.glob(pattern))):
        if path.is_symlink() or path.is_file():
            copy = new / path.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy, follow_symlinks=False)
    new.rename(ours / KEPT)


def kept(root: Path, ours: Path) -> tuple[Path, ...]:
    """The places in the tree of what was kept; nothing outside the tree, whatever became of its folders."""
    inside = os.path.realpath(root)
    return tuple(path for path in _kept(root, ours / KEPT) if Path(os.path.realpath(path.parent)).is_relative_to(inside))


def put_back(root: Path, ours: Path, leave: Collection[Path] = ()) -> None:
    """Everything that was kept, as it came, but for what is to be left; where nothing was built since, only what is gone."""
    built = (ours / "fingerprint.json").is_file()
    for path in kept(root, ours):
        copy = ours / KEPT / path.relative_to(root)
        if path in leave or (path.exists() and not built):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        shutil.copy2(copy, path, follow_symlinks=False)


def forget(ours: Path) -> None:
    """After all is put back: what is in the tree from now on is looked at anew before the next build."""
    if (ours / KEPT).is_dir():
        shutil.rmtree(ours / f"{KEPT}.new", ignore_errors=True)
        (ours / KEPT).rename(ours / f"{KEPT}.new")
    shutil.rmtree(ours / f"{KEPT}.new", ignore_errors=True)


def _kept(root: Path, folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        yield from (root / Path(place, name).relative_to(folder) for name in sorted(names))
