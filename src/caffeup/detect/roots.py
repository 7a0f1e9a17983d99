"""Where libraries are looked for: the user's own roots first, then what compiler and linker know, then the usual other places."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Optional

from caffeup.detect.unpacked import VIA, is_unpacked
from caffeup.host import Host
from caffeup.model.machine import System

COMPILERS_OWN = "the compiler's own folders"
CONDA = "env CONDA_PREFIX"


class Root(NamedTuple):
    """One root with its include and library folders, in the order in which they are searched."""

    path: str
    via: str
    includes: tuple[str, ...]
    libs: tuple[str, ...]


def triplet_of(system: System) -> str:
    """Debian's multiarch folder; elsewhere the same name, for unpacked Debian packages."""
    return system.triplet or f"{system.arch}-linux-gnu"


def default_includes(triplet: str) -> tuple[str, ...]:
    """Folders that the compiler looks through anyway, in its order."""
    return ("/usr/local/include", f"/usr/include/{triplet}", "/usr/include")


def default_libs(triplet: str) -> frozenset[str]:
    """Folders that both linker and loader look through anyway."""
    own = (f"/usr/local/lib/{triplet}", "/usr/local/lib", f"/usr/lib/{triplet}", f"/lib/{triplet}")
    return frozenset((*own, "/usr/lib64", "/lib64", "/usr/lib", "/lib"))


def user_roots(host: Host, prefixes: Iterable[str], triplet: str) -> tuple[Root, ...]:
    """Roots given with --prefix; an unpacked package of a distribution has its files in ``usr/`` below it."""
    below = ("", "/usr/local", "/usr")
    absolute = [prefix for prefix in prefixes if prefix.startswith("/")]
    said = {prefix: VIA if is_unpacked(host, prefix) else f"--prefix {prefix}" for prefix in absolute}
    return _distinct(
        host, (_root(host, prefix.rstrip("/") + path, said[prefix], triplet) for prefix in absolute for path in below)
    )


def system_roots(host: Host, triplet: str) -> tuple[Root, ...]:
    """/usr/local and /usr, then every installation in /opt; a conda there counts only while it is active."""
    found = [_root(host, path, COMPILERS_OWN, triplet) for path in ("/usr/local", "/usr")]
    for include in host.glob("/opt/*/include"):
        path = include.rpartition("/")[0]
        if not host.is_dir(f"{path}/conda-meta"):
            found.append(_root(host, path, "glob /opt/*/include", triplet))
    return _distinct(host, found)


def extra_roots(host: Host, patterns: Iterable[str], triplet: str) -> tuple[Root, ...]:
    """Where one library is installed beside the usual folders, by its row."""
    found: list[Optional[Root]] = []
    for pattern in patterns:
        if "*" in pattern:
            found += [_root(host, path, f"glob {pattern}", triplet) for path in host.glob(pattern)]
        else:
            found.append(_root(host, pattern, f"usual folder {pattern}", triplet))
    return _distinct(host, found)


def conda_root(host: Host, triplet: str) -> tuple[Root, ...]:
    """The active conda environment: recorded, never preferred to the system's libraries."""
    path = host.env.get("CONDA_PREFIX", "").rstrip("/")
    return _distinct(host, [_root(host, path, CONDA, triplet)]) if path.startswith("/") else ()


def _root(host: Host, path: str, via: str, triplet: str) -> Optional[Root]:
    base = path.rstrip("/")
    includes = tuple(folder for folder in (f"{base}/include/{triplet}", f"{base}/include") if host.is_dir(folder))
    libs = tuple(folder for folder in (f"{base}/lib/{triplet}", f"{base}/lib64", f"{base}/lib") if host.is_dir(folder))
    return Root(path=base or "/", via=via, includes=includes, libs=libs) if includes or libs else None


def _distinct(host: Host, roots: Iterable[Optional[Root]]) -> tuple[Root, ...]:
    kept: dict[str, Root] = {}
    for root in roots:
        if root is not None:
            kept.setdefault(host.real_path(root.path) or root.path, root)
    return tuple(kept.values())


def merged(host: Host, *groups: tuple[Root, ...]) -> tuple[Root, ...]:
    """All groups in order, each root once."""
    return _distinct(host, (root for group in groups for root in group))
