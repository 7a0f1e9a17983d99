"""The distribution's packages that caffeup unpacked without root: where they lie in the user's data folder, or would."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from hashlib import sha256

import msgspec

from caffeup.detect.places import data_folder
from caffeup.host import Host
from caffeup.model.base import Value, from_json
from caffeup.model.machine import System

FOLDER = "deps"
"""In caffeup's data folder; below it one root for each set of packages."""
MARK = "caffeup.json"
"""In a root that is whole: which packages were unpacked into it. It comes into being under its name with all else in it."""
VIA = "unpacked packages"
"""How a library in such a root was found."""


class Mark(Value, kw_only=True):
    """What a set was made for, and what is in it, by version."""

    asked: tuple[str, ...]
    packages: dict[str, str]


def unpacked_home(host: Host) -> str:
    """The folder with all sets; empty where the user has no home folder."""
    home = data_folder(host)
    return f"{home}/{FOLDER}" if home else ""


def unpacked_root(host: Host, system: System, packages: Iterable[str]) -> str:
    """The root for these packages, or where it would be: by the names that are asked for, so that no network is needed.

    A whole one that has more than these is as good.
    """
    home, wanted = unpacked_home(host), frozenset(packages)
    if not home:
        return ""
    release = re.sub(r"[^A-Za-z0-9.]+", "-", system.distro_version or system.distro_codename or "rolling")
    digest = sha256("\n".join(sorted(wanted)).encode()).hexdigest()[:12]
    family = f"{home}/{system.distro}-{release}-{system.arch}-"
    exact = f"{family}{digest}"
    if is_unpacked(host, exact):
        return exact
    marks = host.glob(f"{glob.escape(family)}*/{MARK}")
    larger = [(len(asked), mark) for mark in marks if wanted <= (asked := _asked(host, mark))]
    return min(larger)[1].removesuffix(f"/{MARK}") if larger else exact


def _asked(host: Host, mark: str) -> frozenset[str]:
    """The names that a set was made for; none where its mark cannot be read."""
    try:
        return frozenset(from_json(host.read_bytes(mark) or b"", Mark).asked)
    except (msgspec.MsgspecError, ValueError):
        return frozenset()


def is_unpacked(host: Host, root: str) -> bool:
    """Whether this root is one that caffeup made, and whole."""
    return bool(root) and host.exists(f"{root.rstrip('/')}/{MARK}")
