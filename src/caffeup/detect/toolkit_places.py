"""Where CUDA toolkits lie: one step a kind of place, in the order in which they are looked at."""

from __future__ import annotations

import glob
import os
from typing import Callable

from caffeup.detect.laid_out import laid_out_roots
from caffeup.detect.parse.toolkit import parse_dryrun
from caffeup.detect.places import conda_prefix, site_folders
from caffeup.host import Host
from caffeup.model.base import Value
from caffeup.model.machine import Attempt, System, ToolkitLayout

ENVIRONMENT = ("CUDA_HOME", "CUDA_PATH")
USUAL = ("/usr/local/cuda*", "/opt/cuda*")
DISTRO_ROOT = "/usr"
DEBIAN_FOLDER = "/usr/lib/nvidia-cuda-toolkit"
SHARED_ROOTS = ("/", "/usr", "/usr/local")
"""Roots of everything: a program found there tells nothing about where its toolkit is."""
SIGNS = ("include/cuda_runtime.h", "include/cuda_runtime_api.h", "include/cuda.h", "version.json", "version.txt", "nvvm/bin/cicc")
TARGETS = {"x86_64": ("x86_64-linux",), "aarch64": ("sbsa-linux", "aarch64-linux"), "ppc64le": ("ppc64le-linux",)}


class Place(Value):
    """One place that looks like a toolkit."""

    root: str
    via: str
    layout: ToolkitLayout = ToolkitLayout.CLASSIC
    nvcc: str = ""
    """The real nvcc, where it is not ``bin/nvcc``."""


Step = Callable[[Host, System], tuple[tuple[Place, ...], tuple[Attempt, ...]]]


def find_places(
    host: Host, system: System, prefixes: tuple[str, ...], asked_for: str = ""
) -> tuple[tuple[Place, ...], tuple[Attempt, ...]]:
    """Each real folder once, with all the ways that led there; and where nothing was."""
    places: list[Place] = []
    tried: list[Attempt] = []
    for prefix in prefixes:
        found, missed = _checked(host, system, prefix.rstrip("/") or "/", f"--prefix {prefix}")
        places += found
        tried += missed
    for step in STEPS:
        found, missed = step(host, system)
        places += found
        tried += missed
    if asked_for.startswith("/"):
        found, missed = _checked(host, system, asked_for.rstrip("/") or "/", f"--cuda {asked_for}")
        places += found
        tried += missed
    return _merged(host, places), tuple(tried)


def _merged(host: Host, places: list[Place]) -> tuple[Place, ...]:
    merged: dict[str, Place] = {}
    for place in places:
        real = host.real_path(place.root) or place.root
        known = merged.get(real)
        if known is None:
            merged[real] = place
        elif place.via not in known.via.split("; "):
            merged[real] = Place(
                root=known.root,
                via=f"{known.via}; {place.via}",
                layout=ToolkitLayout.LAID_OUT if ToolkitLayout.LAID_OUT in (known.layout, place.layout) else known.layout,
                nvcc=known.nvcc or place.nvcc,
            )
    return tuple(merged.values())


def target_folders(root: str, system: System) -> tuple[str, ...]:
    """NVIDIA's folders for one architecture inside a toolkit."""
    return tuple(f"{root}/targets/{name}" for name in TARGETS.get(system.arch, ()))


def _is_toolkit(host: Host, system: System, root: str) -> bool:
    below = (root.rstrip("/"), *target_folders(root.rstrip("/"), system))
    return any(host.exists(f"{folder}/{sign}") for folder in below for sign in SIGNS)


def _checked(host: Host, system: System, root: str, via: str) -> tuple[tuple[Place, ...], tuple[Attempt, ...]]:
    """The place, if it is a toolkit; otherwise what it is instead."""
    if not root.startswith("/") or not host.exists(root):
        return (), (Attempt(where=f"{via}: {root}", outcome="not there" if root.startswith("/") else "not an absolute path"),)
    if not _is_toolkit(host, system, root):
        return (), (Attempt(where=f"{via}: {root}", outcome="no CUDA toolkit in it"),)
    if host.real_path(root) == DISTRO_ROOT:
        return (Place(root=DISTRO_ROOT, via=via, layout=ToolkitLayout.DISTRO, nvcc=_distro_nvcc(host)),), ()
    layout = ToolkitLayout.CONDA if host.is_dir(f"{root}/conda-meta") else ToolkitLayout.CLASSIC
    return (Place(root=os.path.normpath(root), via=via, layout=layout),), ()


def _distro_nvcc(host: Host) -> str:
    """Debian's and Ubuntu's /usr/bin/nvcc is a script that calls this one."""
    real = f"{DEBIAN_FOLDER}/bin/nvcc"
    return real if host.which(real) else "/usr/bin/nvcc"


# --- steps ------------------------------------------------------------------------------------------------


def _from_environment(host: Host, system: System) -> tuple[tuple[Place, ...], tuple[Attempt, ...]]:
    answers = [_checked(host, system, host.env[name], f"env {name}") for name in ENVIRONMENT if host.env.get(name)]
    return tuple(one for found, _ in answers for one in found), tuple(one for _, missed in answers for one in missed)


def _from_path(host: Host, system: System) -> tuple[tuple[Place, ...], tuple[Attempt, ...]]:
    programs = host.which("nvcc")
    if not programs:
        return (), (Attempt(where="nvcc on PATH", outcome="not there"),)
    places: tuple[Place, ...] = ()
    tried: tuple[Attempt, ...] = ()
    for real, program in _distinct(host, programs):
        root = os.path.dirname(os.path.dirname(real))  # noqa: PTH120 - paths of a Host are text
        plain = os.path.basename(real) == "nvcc" and root not in SHARED_ROOTS  # noqa: PTH119
        if plain and _is_toolkit(host, system, root):
            found, missed = _checked(host, system, _unresolved(host, program, root), f"{program} on PATH")
        else:
            found, missed = _behind_wrapper(host, system, program)
        places += found
        tried += missed
    return places, tried


def _distinct(host: Host, programs: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Real path and first name of each: /bin is often a link to /usr/bin."""
    found: dict[str, str] = {}
    for program in programs:
        found.setdefault(host.real_path(program) or program, program)
    return tuple(found.items())


def _unresolved(host: Host, program: str, root: str) -> str:
    """The root as PATH names it (``/usr/local/cuda``), where that is the same folder."""
    named = os.path.dirname(os.path.dirname(program))  # noqa: PTH120
    return named if host.real_path(named) == root else root


def _behind_wrapper(host: Host, system: System, program: str) -> tuple[tuple[Place, ...], tuple[Attempt, ...]]:
    """Ask nvcc where it is: what stands on PATH may be a script, or ccache."""
    argv = (program, "--dryrun", "-x", "cu", "/dev/null")
    output = host.run(argv, timeout=5.0)
    if output is None or output.status:
        lines = (output.stderr or output.stdout).strip().splitlines() if output is not None else []
        outcome = f"exit {output.status}: {lines[-1] if lines else ''}" if output is not None else "not there"
        return (), (Attempt(where=" ".join(argv), outcome=outcome.rstrip(": ")),)
    said = parse_dryrun(output.stderr + output.stdout)
    via = f"{program} on PATH, nvcc --dryrun {'TOP' if said.top else '_HERE_'}"
    if said.top:
        return _checked(host, system, os.path.normpath(said.top), via)
    if said.here == f"{DEBIAN_FOLDER}/bin":
        return _checked(host, system, DISTRO_ROOT, via)
    root = os.path.dirname(os.path.normpath(said.here)) if said.here else program  # noqa: PTH120
    return _checked(host, system, root, via)


def _from_usual_folders(host: Host, system: System) -> tuple[tuple[Place, ...], tuple[Attempt, ...]]:
    places: tuple[Place, ...] = ()
    tried: tuple[Attempt, ...] = ()
    for pattern in USUAL:
        roots = [root for root in host.glob(pattern) if host.is_dir(root)]
        for root in roots:
            found, missed = _checked(host, system, root, f"glob {pattern}")
            places += found
            tried += missed
        if not roots:
            tried += (Attempt(where=f"glob {pattern}", outcome="not there"),)
    return places, tried


def _from_distribution(host: Host, system: System) -> tuple[tuple[Place, ...], tuple[Attempt, ...]]:
    """Packages of the distribution put the headers among everybody's."""
    header = "/usr/include/cuda_runtime.h"
    if not host.exists(header):
        return (), (Attempt(where=header, outcome="not there"),)
    return _checked(host, system, DISTRO_ROOT, header)


def _from_conda(host: Host, system: System) -> tuple[tuple[Place, ...], tuple[Attempt, ...]]:
    prefix = conda_prefix(host)
    return _checked(host, system, prefix, "env CONDA_PREFIX") if prefix else ((), ())


def _from_wheels(host: Host, system: System) -> tuple[tuple[Place, ...], tuple[Attempt, ...]]:
    """NVIDIA's pip wheels: one root a CUDA major from 13 on, one folder a package before."""
    places: tuple[Place, ...] = ()
    folders = site_folders(host)
    for folder in folders:
        for root in host.glob(f"{glob.escape(folder)}/nvidia/cu[0-9]*"):
            if _is_toolkit(host, system, root):
                places += (Place(root=root, via=f"pip wheels in {folder}", layout=ToolkitLayout.WHEELS),)
        if host.exists(f"{folder}/nvidia/cuda_runtime/include/cuda_runtime.h"):
            places += (Place(root=f"{folder}/nvidia", via=f"pip wheels in {folder}", layout=ToolkitLayout.SPLIT_WHEELS),)
    return places, () if places else (Attempt(where=f"pip wheels in {len(folders)} package folders", outcome="not there"),)


def _laid_out(host: Host, system: System) -> tuple[tuple[Place, ...], tuple[Attempt, ...]]:
    """What caffeup laid out before."""
    roots = [root for root in laid_out_roots(host, system) if _is_toolkit(host, system, root)]
    via = "laid out by caffeup from NVIDIA's wheels"
    places = tuple(Place(root=root, via=via, layout=ToolkitLayout.LAID_OUT) for root in roots)
    return places, () if places else (Attempt(where="laid out by caffeup", outcome="not there"),)


STEPS: tuple[Step, ...] = (
    _from_environment,
    _from_path,
    _from_usual_folders,
    _from_distribution,
    _from_conda,
    _from_wheels,
    _laid_out,
)
