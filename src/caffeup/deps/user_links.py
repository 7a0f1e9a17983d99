"""Links of unpacked packages: what maintainer scripts would have made, and targets that lie elsewhere than the packages think."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from caffeup.model.base import Value

_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "libo32")
"""Folders that are links to those of their name in /usr wherever Debian's packages are installed today."""


class Choice(Value, kw_only=True):
    """One name that update-alternatives would make a link of."""

    link: str
    path: str
    priority: int


def in_usr(path: str) -> str:
    """``usr/lib/x`` for ``/lib/x``: the place of a package's file in the root, without a slash before it."""
    inside = os.path.normpath("/" + path).lstrip("/")
    return f"usr/{inside}" if inside.partition("/")[0] in _MERGED else inside


def choices(script: str) -> Iterator[Choice]:
    """What a maintainer script gives to ``update-alternatives --install``, read and not run; with variables in it, nothing."""
    plain = re.sub(r"\\\n", " ", script)
    for call in re.findall(r"^[ \t]*update-alternatives[ \t]+([^\n;&|#]*--install[^\n;&|#]*)", plain, re.MULTILINE):
        try:
            words = shlex.split(call)
        except ValueError:
            continue
        at = words.index("--install") if "--install" in words else len(words)
        master = words[at + 1 : at + 5]
        if len(master) < 4 or not master[3].isdigit():
            continue
        priority = int(master[3])
        found = [(master[0], master[2])]
        found += [(words[i + 1], words[i + 3]) for i, word in enumerate(words) if word == "--slave" and i + 3 < len(words)]
        for link, path in found:
            if link.startswith("/") and path.startswith("/") and "$" not in link + path:
                yield Choice(link=link, path=path, priority=priority)


def make_choices(root: Path, found: Iterable[Choice]) -> None:
    """Link each name to the file with the highest priority that is here; a file of that name stays."""
    for one in sorted(found, key=lambda one: (-one.priority, one.link, one.path)):
        link, target = root / in_usr(one.link), root / in_usr(one.path)
        if target.exists() and not os.path.lexists(link) and _inside(root, link.parent):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(os.path.relpath(target, link.parent))


def place_link(root: Path, inside: str, target: str) -> None:
    """Put a package's link into the root: it leads to the same file, as far as that is in the root."""
    link = root / in_usr(inside)
    if link.is_dir() and not link.is_symlink():  # another package has a folder there; dpkg leaves it too
        return
    world = target if target.startswith("/") else str(PurePosixPath("/", inside).parent / target)
    fresh = link.with_name(f".{link.name}.new"[:250])
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(os.path.relpath(root / in_usr(world), link.parent))
    fresh.replace(link)


def gather(folders: tuple[Path, ...]) -> None:
    """Link the libraries of the later folders into the first: linker and run paths need to know only that one."""
    for folder in folders[1:]:
        for file in sorted(folder.glob("*.so*")):
            link = folders[0] / file.name
            if file.exists() and not os.path.lexists(link):
                link.symlink_to(os.path.relpath(file, folders[0]))


def mend_links(root: Path) -> int:
    """Lead links to what is installed in the system there where it is not in the root; how many were changed."""
    changed = 0
    for folder, names, files in os.walk(root):
        for name in (*names, *files):
            link = Path(folder, name)
            if not link.is_symlink() or link.exists():
                continue
            inside = os.path.relpath(os.path.normpath(Path(folder, os.readlink(link))), root)  # noqa: PTH115
            world = f"/{inside}"
            if not inside.startswith("..") and Path(world).exists():
                link.unlink()
                link.symlink_to(world)
                changed += 1
    return changed


def _inside(root: Path, folder: Path) -> bool:
    return Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(root))
