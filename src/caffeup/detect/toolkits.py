"""CUDA toolkits, all of them: where they lie, and what each can do."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from typing import Optional

import msgspec
from packaging.version import Version

from caffeup.detect.parse.toolkit import (
    parse_code_list,
    parse_cuda_h,
    parse_help,
    parse_max_clang,
    parse_max_gcc,
    parse_nvcc_version,
    parse_version_json,
    parse_version_txt,
)
from caffeup.detect.places import existing
from caffeup.detect.side_by_side import each
from caffeup.detect.toolkit_places import ENVIRONMENT, Place, find_places, target_folders
from caffeup.facts.tables import Facts
from caffeup.host import Host
from caffeup.model.base import ComputeCapability
from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.machine import Attempt, Missing, System, Toolkit, ToolkitLayout

PARTS = {"cublas": ("cublas_v2.h", "libcublas"), "curand": ("curand.h", "libcurand"), "cudart": ("cuda_runtime.h", "libcudart")}
HEADER_BYTES = 1 << 17
"""As much of cuda.h as is read: the version stands in its first part, the whole is a megabyte."""
WHEELS = (ToolkitLayout.WHEELS, ToolkitLayout.SPLIT_WHEELS)
Codes = tuple[ComputeCapability, ...]


class Toolkits(msgspec.Struct, frozen=True):
    """The probe's answer."""

    toolkits: tuple[Toolkit, ...] = ()
    missing: tuple[Missing, ...] = ()
    findings: tuple[Finding, ...] = ()


def probe_toolkits(host: Host, facts: Facts, system: System, prefixes: tuple[str, ...] = (), asked_for: str = "") -> Toolkits:
    """Each toolkit once, in the order in which they would be met, with every way that led to it."""
    places, tried = find_places(host, system, prefixes, asked_for)
    described = each(lambda place: _describe(host, facts, system, place), places)
    toolkits = (
        tuple(one for one in described if isinstance(one, Toolkit)) or ()
    )  # Python 3.9 has other empty tuples, which JSON shows
    tried += tuple(one for one in described if isinstance(one, Attempt))
    missing = () if toolkits else (Missing(what="CUDA toolkit", tried=tried),)
    return Toolkits(toolkits=toolkits, missing=missing, findings=_environment_findings(host, toolkits))


def _describe(host: Host, facts: Facts, system: System, place: Place) -> Toolkit | Attempt:
    include_dirs = _include_dirs(host, system, place)
    library_dirs = _library_dirs(host, system, place)
    nvcc = _nvcc(host, place)
    version, evidence = _version(host, place, include_dirs, nvcc)
    if version is None:
        return Attempt(where=place.root, outcome="no version in it")
    sass, ptx = _codes(host, nvcc) if nvcc else ((), ())
    gcc, clang = _accepted(host, include_dirs)
    asked = bool(sass) and gcc is not None
    known = facts.compute_capabilities(version) if nvcc and not sass else ()
    distro = place.layout is ToolkitLayout.DISTRO
    return Toolkit(
        via=place.via,
        evidence=evidence,
        root=place.root,
        version=version,
        layout=place.layout,
        nvcc=nvcc,
        include_dirs=() if distro else include_dirs,  # given again, /usr/include breaks gcc's own #include_next
        library_dirs=() if distro else library_dirs,
        sass=sass or known,
        ptx=ptx or sass or known,
        max_gcc=facts.max_gcc(version) if gcc is None else gcc,
        max_clang=facts.max_clang(version) if clang is None else clang,
        missing=_missing(host, system, place, version, include_dirs, library_dirs, nvcc),
        asked=asked,
    )


# --- folders ----------------------------------------------------------------------------------------------


def _include_dirs(host: Host, system: System, place: Place) -> tuple[str, ...]:
    if place.layout is ToolkitLayout.DISTRO:
        return existing(host, ("/usr/include",))
    if place.layout is ToolkitLayout.SPLIT_WHEELS:
        return existing(
            host, (f"{place.root}/{part}/include" for part in ("cuda_runtime", "cublas", "curand", "cuda_nvcc", "cuda_cccl"))
        )
    folders = existing(host, (f"{place.root}/include", *(f"{folder}/include" for folder in target_folders(place.root, system))))
    own = tuple(folder for folder in folders if host.exists(f"{folder}/cuda_runtime.h") or host.exists(f"{folder}/cuda.h"))
    folders = own or folders
    return (*folders, *existing(host, (f"{folder}/cccl" for folder in folders)))


def _library_dirs(host: Host, system: System, place: Place) -> tuple[str, ...]:
    if place.layout is ToolkitLayout.DISTRO:
        multiarch = (f"/usr/lib/{system.triplet}",) if system.triplet else ()
        folders = existing(host, (*multiarch, "/usr/lib64", "/usr/lib"))
    elif place.layout is ToolkitLayout.SPLIT_WHEELS:
        folders = existing(host, (f"{place.root}/{part}/lib" for part in ("cuda_runtime", "cublas", "curand")))
    else:
        targets = tuple(f"{folder}/lib" for folder in target_folders(place.root, system))
        shared = (
            ()
            if place.layout is ToolkitLayout.CONDA and existing(host, targets)
            else (f"{place.root}/lib64", f"{place.root}/lib")
        )
        folders = existing(host, (*shared, *targets))  # conda's lib holds a copy of everything else, too
    return tuple(folder for folder in folders if any(host.glob(f"{glob.escape(folder)}/{lib}[._]*") for _, lib in PARTS.values()))


def _missing(
    host: Host, system: System, place: Place, version: Version, includes: Iterable[str], libraries: Iterable[str], nvcc: str
) -> tuple[str, ...]:
    """Parts without header or library; of wheels also a ``libX.so.N`` counts, since they have no ``libX.so``."""
    if Version("10.1") <= version < Version("11"):  # cuBLAS went to the system's folders in these releases
        includes = (*includes, "/usr/include")
        libraries = (*libraries, "/usr/lib64", f"/usr/lib/{system.triplet}" if system.triplet else "/usr/lib")
    endings = (".so", ".so.*", "_static.a") if place.layout in WHEELS else (".so", "_static.a")
    lacking = []
    for part, (header, library) in PARTS.items():
        has_header = any(host.exists(f"{folder}/{header}") for folder in includes)
        has_library = any(host.glob(f"{glob.escape(folder)}/{library}{ending}") for folder in libraries for ending in endings)
        if not (has_header and has_library):
            lacking.append(part)
    return (*lacking, *(() if nvcc else ("nvcc",)))


# --- what it says of itself -------------------------------------------------------------------------------


def _nvcc(host: Host, place: Place) -> str:
    candidates = (place.nvcc,) if place.nvcc else (f"{place.root}/bin/nvcc",)
    return next((path for path in candidates if host.which(path)), "")


def _version(host: Host, place: Place, include_dirs: tuple[str, ...], nvcc: str) -> tuple[Optional[Version], str]:
    """The version and the file or command that gave it; what is cheap to read is read first."""
    if place.layout is not ToolkitLayout.DISTRO:
        for name, parse in (("version.json", parse_version_json), ("version.txt", parse_version_txt)):
            version = parse(host.read_text(f"{place.root}/{name}") or "")
            if version is not None:
                return version, f"{place.root}/{name}"
    for folder in include_dirs:
        for name in ("cuda.h", "cuda_runtime_api.h"):
            text = (host.read_bytes(f"{folder}/{name}", HEADER_BYTES) or b"").decode("utf-8", "replace")
            version = parse_cuda_h(text)
            if version is not None:
                return version, f"{folder}/{name}"
    output = host.run((nvcc, "--version")) if nvcc else None
    return (parse_nvcc_version(output.stdout) if output is not None else None), f"{nvcc} --version"


def _codes(host: Host, nvcc: str) -> tuple[Codes, Codes]:
    """What nvcc compiles for, as SASS and as PTX, in its own words; both empty where it does not run."""
    lists = each(lambda option: host.run((nvcc, option)), ("--list-gpu-code", "--list-gpu-arch"))
    if all(output is not None and output.status == 0 for output in lists):
        sass, ptx = (parse_code_list(output.stdout) if output is not None else () for output in lists)
        return sass, ptx
    output = host.run((nvcc, "--help"))
    return parse_help(output.stdout) if output is not None and output.status == 0 else ((), ())


def _accepted(host: Host, include_dirs: tuple[str, ...]) -> tuple[Optional[int], Optional[int]]:
    """Newest gcc and clang of host_config.h; from CUDA 9 on the outer one only includes crt/'s."""
    for name in ("crt/host_config.h", "host_config.h"):
        for folder in include_dirs:
            text = host.read_text(f"{folder}/{name}") or ""
            gcc = parse_max_gcc(text)
            if gcc is not None:
                return gcc, parse_max_clang(text)
    return None, None


# --- findings ---------------------------------------------------------------------------------------------


def _environment_findings(host: Host, toolkits: tuple[Toolkit, ...]) -> tuple[Finding, ...]:
    roots = {toolkit.root for toolkit in toolkits}
    named = {name: host.env.get(name, "") for name in ENVIRONMENT}
    found = []
    for name, value in named.items():
        if value and (host.real_path(value) or value) not in {host.real_path(root) for root in roots}:
            found.append(
                Finding(
                    id="cuda-home-stale",
                    severity=Severity.WARNING,
                    title=f"{name} names a folder that holds no CUDA toolkit",
                    why="Left from a toolkit that was removed, most often in a shell's start-up file.",
                    evidence=(Evidence(where=f"env {name}", text=value),),
                    remedies=(Remedy(text="Unset it, or let it name a toolkit.", commands=(f"unset {name}",)),),
                )
            )
    reals = {host.real_path(value) for value in named.values() if value} - {None}
    if len(reals) > 1:
        evidence = tuple(Evidence(where=f"env {name}", text=value) for name, value in named.items())
        remedy = Remedy(text="Keep one of them.", commands=(f"unset {ENVIRONMENT[1]}",))
        title = f"{' and '.join(ENVIRONMENT)} name different toolkits"
        found.append(
            Finding(id="cuda-home-conflict", severity=Severity.WARNING, title=title, evidence=evidence, remedies=(remedy,))
        )
    return tuple(found) + _path_finding(toolkits)


def _path_finding(toolkits: tuple[Toolkit, ...]) -> tuple[Finding, ...]:
    """The toolkit of the environment is another one than the first nvcc on PATH belongs to."""
    home = next((one for one in toolkits if one.via.startswith("env ")), None)
    first = next((one for one in toolkits if " on PATH" in one.via), None)
    if home is None or first is None or os.path.normpath(home.root) == os.path.normpath(first.root):
        return ()
    evidence = (
        Evidence(where=home.via, text=f"{home.version} in {home.root}"),
        Evidence(where=first.via, text=f"{first.version} in {first.root}"),
    )
    title = f"The environment names CUDA {home.version} and nvcc on PATH is CUDA {first.version}"
    return (Finding(id="cuda-home-other-than-path", severity=Severity.NOTE, title=title, evidence=evidence),)
