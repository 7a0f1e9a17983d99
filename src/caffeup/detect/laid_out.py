"""The toolkit that caffeup lays out from NVIDIA's wheels: where it lies in the user's data folder, or would."""

from __future__ import annotations

import glob

from caffeup.detect.places import data_folder
from caffeup.facts.tables import Facts
from caffeup.host import Host
from caffeup.model.machine import System

FOLDER = "cuda"
"""In caffeup's data folder; below it one root a release and architecture, since machines may share a home folder."""
MARK = "caffeup.json"
"""In a root that is whole: which wheels it was made from. It comes into being under its name with all else in it."""


def laid_out_roots(host: Host, system: System) -> tuple[str, ...]:
    """Every root for this architecture that is whole."""
    home = data_folder(host)
    marks = host.glob(f"{glob.escape(home)}/{FOLDER}/[0-9]*-{system.arch}/{MARK}") if home else ()
    return tuple(mark.removesuffix(f"/{MARK}") for mark in marks)


def wheels_root(host: Host, facts: Facts, system: System) -> str:
    """The root of the release of the facts; empty where no wheels are made for such a machine, or it has no home folder.

    A Jetson has a driver and libraries of its own, whatever its architecture.
    """
    home = data_folder(host)
    release = None if system.jetson else facts.cuda_from_wheels(system.arch, system.glibc)
    return f"{home}/{FOLDER}/{release.id}-{system.arch}" if home and release is not None else ""
