"""The distribution's packages that caffeup unpacked without root: where they lie in the user's data folder, or would."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256

from caffeup.detect.places import data_folder
from caffeup.host import Host
from caffeup.model.machine import System

FOLDER = "deps"
"""In caffeup's data folder; below it one root for each set of packages."""
MARK = "caffeup.json"
"""In a root that is whole: which packages were unpacked into it. It comes into being under its name with all else in it."""
VIA = "unpacked packages"
"""How a library in such a root was found."""


def unpacked_home(host: Host) -> str:
    """The folder with all sets; empty where the user has no home folder."""
    home = data_folder(host)
    return f"{home}/{FOLDER}" if home else ""


def unpacked_root(host: Host, system: System, packages: Iterable[str]) -> str:
    """The root for these packages, by the names that are asked for: it is found again without a network."""
    home = unpacked_home(host)
    release = re.sub(r"[^A-Za-z0-9.]+", "-", system.distro_version or system.distro_codename or "rolling")
    digest = sha256("\n".join(sorted(set(packages))).encode()).hexdigest()[:12]
    return f"{home}/{system.distro}-{release}-{system.arch}-{digest}" if home else ""


def is_unpacked(host: Host, root: str) -> bool:
    """Whether this root is one that caffeup made, and whole."""
    return bool(root) and host.exists(f"{root.rstrip('/')}/{MARK}")
