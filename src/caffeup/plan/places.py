"""How a folder is named in Makefile.config: as it is where it is the system's, else through a link in the tree."""

from __future__ import annotations

import re
from typing import Optional

from caffeup.model.base import Value
from caffeup.model.machine import System
from caffeup.model.plan import Link

LINKS = ".caffeup"
_PLAIN = re.compile(r"[A-Za-z0-9_./+@=-]+")
_DEFAULT_INCLUDES = ("/usr/include", "/usr/local/include")


class Placed(Value, kw_only=True):
    """A folder's name in Makefile.config, and the link that it needs."""

    name: str
    links: tuple[Link, ...] = ()


def placed(path: str, label: str, prefixes: tuple[str, ...] = ()) -> Placed:
    """Name a folder without blanks, ``$``, ``#``, quotes or the user's home in it; ``label`` names its link."""
    for at, prefix in enumerate(prefixes):
        rest = _below(path, prefix)
        if rest is not None and (not rest or _PLAIN.fullmatch(rest)):
            name = f"deps/prefix{at}"
            return Placed(name="/".join(part for part in (LINKS, name, rest) if part), links=(Link(name=name, target=prefix),))
    if path.startswith(("/usr/", "/lib/", "/lib64/")) and _PLAIN.fullmatch(path):
        return Placed(name=path)
    return Placed(name=f"{LINKS}/deps/{label}", links=(Link(name=f"deps/{label}", target=path),))


def under(path: str, root: str, name: str) -> Optional[str]:
    """The path as reached through the link ``name`` to ``root``; None where it is elsewhere."""
    rest = _below(path, root)
    if rest is None or (rest and not _PLAIN.fullmatch(rest)):
        return None
    return f"{LINKS}/{name}/{rest}" if rest else f"{LINKS}/{name}"


def searched_anyway(path: str, system: System) -> bool:
    """Whether the compiler looks there by itself; naming such a folder breaks ``#include_next``."""
    usual = (*_DEFAULT_INCLUDES, f"/usr/include/{system.triplet}") if system.triplet else _DEFAULT_INCLUDES
    return path.rstrip("/") in usual


def linked_anyway(path: str, system: System) -> bool:
    """Whether the linker looks there by itself."""
    usual = {"/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib"}
    if system.triplet:
        usual |= {f"/lib/{system.triplet}", f"/usr/lib/{system.triplet}", f"/usr/local/lib/{system.triplet}"}
    return path.rstrip("/") in usual


def loaded_anyway(path: str, system: System) -> bool:
    """Whether the loader finds libraries of that folder: it, or the folder that its links lead to, is the system's."""
    if path.startswith(("/usr/lib/", "/lib/", "/usr/lib64/", "/lib64/")) or path in ("/usr/lib", "/lib", "/usr/lib64", "/lib64"):
        return True
    debian = "debian" in (system.distro, *system.distro_like)
    return debian and path.rstrip("/") in ("/usr/local/lib", f"/usr/local/lib/{system.triplet}")


def _below(path: str, root: str) -> Optional[str]:
    base = root.rstrip("/")
    if path.rstrip("/") == base:
        return ""
    return path[len(base) + 1 :].rstrip("/") if path.startswith(base + "/") else None
