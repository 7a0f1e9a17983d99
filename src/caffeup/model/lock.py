"""A lock: everything that a build depends on, and the hashes of what was built; one word or list a key."""

from __future__ import annotations

from typing import Union

import msgspec

from caffeup.model.base import SCHEMA, Value

FORMAT = 1
"""Number of the form of ``caffeup.lock``; raised when a reader of the old form would misread the new one."""

Setting = Union[bool, str, tuple[str, ...]]
NEEDS = "needs"
"""The table that is checked as constraints, not as equality."""
BUILT = "built"
"""The table of what came of it; known only after a build."""


class Lock(Value, kw_only=True):
    """One lock. Tables hold text by key, so that a difference is a key with two values."""

    format: int = FORMAT
    caffeup: str = ""
    """The release that wrote it."""
    digest: str = ""
    """Hash of all the rest: an edited lock is told from a written one."""
    tree: dict[str, str] = msgspec.field(default_factory=dict)
    """``fork``, ``source``, ``commit``, and ``content``: the hash of the sources as they came."""
    request: dict[str, Setting] = msgspec.field(default_factory=dict)
    """What was asked for, beyond the defaults."""
    needs: dict[str, str] = msgspec.field(default_factory=dict)
    """``arch`` (equal), ``driver`` and ``glibc`` (at least), ``gpus``: the compute capabilities that the GPU code is for."""
    tools: dict[str, str] = msgspec.field(default_factory=dict)
    """``compiler``, ``cuda``, ``cudnn``, ``protoc``, ``python``, ``numpy`` …, with their versions."""
    libraries: dict[str, str] = msgspec.field(default_factory=dict)
    packages: dict[str, str] = msgspec.field(default_factory=dict)
    """The distribution's packages that hold them, with its own version numbers."""
    settings: dict[str, str] = msgspec.field(default_factory=dict)
    """Makefile.config: flags, folders and switches."""
    patches: dict[str, str] = msgspec.field(default_factory=dict)
    """Hash of every patch, shim and file that caffeup puts into the tree."""
    built: dict[str, str] = msgspec.field(default_factory=dict)
    """Hash of every product, by its path in the tree."""


TABLES = ("tree", "request", NEEDS, "tools", "libraries", "packages", "settings", "patches", BUILT)
"""In the order of the file."""


class Difference(Value, kw_only=True):
    """One key that two locks do not share."""

    key: str
    """``libraries.opencv``."""
    locked: str = ""
    """Empty: not in the lock."""
    here: str = ""
    means: str = ""
    """What follows from it, where something does."""


class Compared(Value, kw_only=True):
    """All differences of two locks."""

    schema: int = SCHEMA
    first: str
    """What was compared: a file, or ``here``."""
    second: str
    differences: tuple[Difference, ...] = ()
