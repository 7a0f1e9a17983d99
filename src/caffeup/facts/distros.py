"""Rows of distros.toml: distributions, their package managers, and the packages that no installation may touch."""

from __future__ import annotations

import re
from typing import Optional

from caffeup.model.base import Value


class Distro(Value, kw_only=True):
    """A family of distributions that share package names."""

    id: str
    """``debian``, ``fedora``, ``arch``, ``suse``: the ``family`` of libraries.toml."""
    distros: tuple[str, ...]
    """``ID`` of os-release."""
    manager: str
    source: tuple[str, ...]


class Repository(Value, kw_only=True):
    """Repositories that must be switched on first, on some distributions of a family."""

    id: str
    distros: tuple[str, ...]
    releases: str = ""
    """Half-open range of ``VERSION_ID``."""
    why: str
    commands: tuple[str, ...]
    source: tuple[str, ...]


class Manager(Value, kw_only=True):
    """A package manager; package names follow each command."""

    id: str
    program: str
    update: tuple[str, ...] = ()
    """Fetches the package lists; empty where that must not be done alone."""
    simulate: tuple[str, ...]
    """Shows the transaction and changes nothing."""
    simulate_as_root: bool = False
    install: tuple[str, ...]
    env: tuple[str, ...] = ()
    """Assignments for ``env``."""
    unknown: str
    """Regular expression for a line that says that a package does not exist; its only group that matches is the name."""
    paste: tuple[str, ...]
    """What a person runs as root, joined with ``&&``; the packages follow the last."""
    refresh: tuple[str, ...] = ()
    """What a person runs when a package is not found."""
    unpack_with: tuple[str, ...] = ()
    """Packages with the tools that unpacked packages are made to work with; empty: caffeup unpacks none of this manager."""
    source: tuple[str, ...]


class Guard(Value, kw_only=True):
    """Packages that a transaction may not touch."""

    id: str
    pattern: str
    """Regular expression for the whole name."""
    why: str
    source: tuple[str, ...]

    def holds(self, package: str) -> bool:
        """Whether this package is one of them."""
        return re.fullmatch(self.pattern, package) is not None


class Trouble(Value, kw_only=True):
    """What a package manager says when it fails, and the way out."""

    id: str
    pattern: str
    """Regular expression for one line of its output."""
    advice: str
    commands: tuple[str, ...] = ()
    source: tuple[str, ...]


class DistroFile(Value, kw_only=True):
    """distros.toml."""

    distro: tuple[Distro, ...] = ()
    repository: tuple[Repository, ...] = ()
    manager: tuple[Manager, ...] = ()
    guard: tuple[Guard, ...] = ()
    keep_out: tuple[Guard, ...] = ()
    """What is never unpacked beside the system's own."""
    trouble: tuple[Trouble, ...] = ()

    def distro_of(self, distro: str, like: tuple[str, ...]) -> Optional[Distro]:
        """The family of a distribution, by its own name first and then by those it says it is like."""
        for name in (distro, *like):
            for row in self.distro:
                if name in row.distros:
                    return row
        return None

    def manager_named(self, name: str) -> Manager:
        """The manager's row; ``KeyError`` where there is none."""
        for row in self.manager:
            if row.id == name:
                return row
        raise KeyError(name)
