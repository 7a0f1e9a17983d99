"""cuDNN: every header, every library, and whether they agree."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from typing import Optional

import msgspec
from packaging.version import Version

from caffeup.detect.parse.cudnn import parse_cudnn_version
from caffeup.detect.parse.versions import soname_version
from caffeup.detect.places import (
    conda_prefix,
    prefix_library_folders,
    site_folders,
    system_include_folders,
    system_library_folders,
    variable_folders,
)
from caffeup.host import Host
from caffeup.model.finding import Evidence, Finding, Severity
from caffeup.model.machine import Attempt, CudnnHeader, CudnnLibrary, Missing, System, Toolkit, ToolkitLayout

ROOT_VARIABLES = ("CUDNN_ROOT", "CUDNN_HOME", "CUDNN_PATH", "CUDNN_ROOT_DIR")
INCLUDE_VARIABLES = ("CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH")
LIBRARY_VARIABLES = ("LIBRARY_PATH", "LD_LIBRARY_PATH")
WHEELS = "pip wheels in"
HEADER_BYTES = 1 << 16
Folders = tuple[tuple[str, str], ...]
"""Folders, each with how one came to look there."""


class Cudnn(msgspec.Struct, frozen=True):
    """The probe's answer."""

    headers: tuple[CudnnHeader, ...] = ()
    libraries: tuple[CudnnLibrary, ...] = ()
    missing: tuple[Missing, ...] = ()
    findings: tuple[Finding, ...] = ()


def probe_cudnn(host: Host, system: System, toolkits: tuple[Toolkit, ...], prefixes: tuple[str, ...] = ()) -> Cudnn:
    """Headers and libraries, each real file once."""
    include_folders = _include_folders(host, system, toolkits, prefixes)
    library_folders = _library_folders(host, system, toolkits, prefixes)
    headers, spoilt = _headers(host, include_folders)
    libraries = _libraries(host, library_folders)
    missing: tuple[Missing, ...] = ()
    if not headers:
        missing += (Missing(what="cudnn.h", tried=spoilt or _attempts(include_folders)),)
    if not libraries:
        missing += (Missing(what="libcudnn", tried=_attempts(library_folders)),)
    findings = _findings(headers, libraries) + _other_headers(host, include_folders, headers)
    return Cudnn(headers=headers, libraries=libraries, missing=missing, findings=findings)


def _attempts(folders: Folders) -> tuple[Attempt, ...]:
    return tuple(Attempt(where=f"{folder} ({via})", outcome="not there") for folder, via in folders)


# --- folders ----------------------------------------------------------------------------------------------


def _roots(host: Host, prefixes: tuple[str, ...]) -> Folders:
    """Roots with include/ and lib/ below them: the user's own come first."""
    roots = [
        (f"{prefix.rstrip('/')}{below}", f"--prefix {prefix}")
        for prefix in prefixes
        if prefix.startswith("/")
        for below in ("", "/usr/local", "/usr")
    ]
    roots += [(host.env.get(name, "").rstrip("/"), f"env {name}") for name in ROOT_VARIABLES]
    return tuple((root, via) for root, via in roots if root.startswith("/"))


def _late_roots(host: Host) -> Folders:
    """Roots of other people's packages."""
    conda = conda_prefix(host)
    wheels = tuple((f"{folder}/nvidia/cudnn", f"{WHEELS} {folder}") for folder in site_folders(host))
    return (*(((conda, "env CONDA_PREFIX"),) if conda else ()), *wheels)


def _distinct(host: Host, folders: Iterable[tuple[str, str]]) -> Folders:
    kept: dict[str, tuple[str, str]] = {}
    for folder, via in folders:
        real = host.real_path(folder)
        if real is not None and host.is_dir(folder):
            kept.setdefault(real, (folder, via))
    return tuple(kept.values())


def _include_folders(host: Host, system: System, toolkits: tuple[Toolkit, ...], prefixes: tuple[str, ...]) -> Folders:
    multiarch = f"/{system.triplet or system.arch + '-linux-gnu'}"
    early = [(f"{root}/include{below}", via) for root, via in _roots(host, prefixes) for below in ("", multiarch)]
    variables = [(folder, f"env {name}") for folder, name in variable_folders(host, INCLUDE_VARIABLES)]
    of_toolkits = [
        (folder, f"toolkit {toolkit.root}")
        for toolkit in toolkits
        if toolkit.layout is not ToolkitLayout.SPLIT_WHEELS
        for folder in toolkit.include_dirs
    ]
    usual = [(folder, "the compiler's own folder") for folder in system_include_folders(host, system)]
    late = [(f"{root}/include", via) for root, via in _late_roots(host)]
    return _distinct(host, (*early, *variables, *of_toolkits, *usual, *late))


def _library_folders(host: Host, system: System, toolkits: tuple[Toolkit, ...], prefixes: tuple[str, ...]) -> Folders:
    early = [(folder, via) for root, via in _roots(host, prefixes) for folder in prefix_library_folders(root, system)]
    variables = [(folder, f"env {name}") for folder, name in variable_folders(host, LIBRARY_VARIABLES)]
    of_toolkits = [
        (folder, f"toolkit {toolkit.root}")
        for toolkit in toolkits
        if toolkit.layout is not ToolkitLayout.SPLIT_WHEELS
        for folder in _toolkit_library_folders(toolkit)
    ]
    usual = [(folder, "the linker's or loader's own folder") for folder in system_library_folders(host, system)]
    late = [(folder, via) for root, via in _late_roots(host) for folder in prefix_library_folders(root, system)]
    return _distinct(host, (*early, *variables, *of_toolkits, *usual, *late))


def _toolkit_library_folders(toolkit: Toolkit) -> tuple[str, ...]:
    """Also those that hold cuDNN alone: its archive is unpacked into lib64 of the toolkit."""
    beside = () if toolkit.layout is ToolkitLayout.DISTRO else (f"{toolkit.root}/lib64", f"{toolkit.root}/lib")
    return (*toolkit.library_dirs, *beside)


# --- headers ----------------------------------------------------------------------------------------------


def _headers(host: Host, folders: Folders) -> tuple[tuple[CudnnHeader, ...], tuple[Attempt, ...]]:
    found: dict[str, CudnnHeader] = {}
    spoilt: list[Attempt] = []
    for folder, via in folders:
        path = f"{folder}/cudnn.h"
        real = host.real_path(path)
        if real is None or real in found:
            continue
        version, evidence = _header_version(host, path, real)
        if version is None:
            spoilt.append(Attempt(where=path, outcome="unreadable" if host.read_bytes(path, 1) is None else "no version in it"))
        else:
            found[real] = CudnnHeader(via=via, evidence=evidence, directory=folder, version=version)
    return tuple(found.values()), tuple(spoilt)


def _header_version(host: Host, path: str, real: str) -> tuple[Optional[Version], str]:
    """From cudnn_version.h beside the header or beside the file that Debian's alternatives link to, else from itself."""
    suffix = real.rpartition("/")[2].removeprefix("cudnn").removesuffix(".h")  # "_v8" of Debian's cudnn_v8.h
    beside_real = f"{real.rpartition('/')[0]}/cudnn_version{suffix}.h"
    for candidate in (beside_real, f"{path.rpartition('/')[0]}/cudnn_version.h", path):
        text = (host.read_bytes(candidate, HEADER_BYTES) or b"").decode("utf-8", "replace")
        version = parse_cudnn_version(text)
        if version is not None:
            return version, candidate
    return None, path


def _other_headers(host: Host, folders: Folders, headers: tuple[CudnnHeader, ...]) -> tuple[Finding, ...]:
    """Debian keeps several majors as cudnn_vN.h; only the one that the alternatives choose is cudnn.h."""
    chosen = {str(header.version.major) for header in headers}
    others = [path for folder, _ in folders for path in host.glob(f"{glob.escape(folder)}/cudnn_v[0-9]*.h")]
    others = sorted({path for path in others if path.rpartition("_v")[2].removesuffix(".h") not in chosen})
    if not others:
        return ()
    return (
        Finding(
            id="cudnn-not-chosen",
            severity=Severity.NOTE,
            title="Another cuDNN is installed and not the one that cudnn.h stands for",
            why="Debian's alternatives choose one: update-alternatives --display libcudnn",
            evidence=tuple(Evidence(where=path) for path in others),
        ),
    )


# --- libraries --------------------------------------------------------------------------------------------


def _libraries(host: Host, folders: Folders) -> tuple[CudnnLibrary, ...]:
    found: dict[str, CudnnLibrary] = {}
    for folder, via in folders:
        linked = host.real_path(f"{folder}/libcudnn.so")
        paths = host.glob(f"{glob.escape(folder)}/libcudnn.so*")
        for real in dict.fromkeys(host.real_path(path) or path for path in paths):
            if real in found:
                continue
            version = soname_version(real.rpartition("/")[2]) or _version_of_links(host, real, paths)
            found[real] = CudnnLibrary(
                via=via, evidence=real, directory=folder, file=real, version=version, linkable=real == linked
            )
    return tuple(found.values())


def _version_of_links(host: Host, real: str, paths: tuple[str, ...]) -> Optional[Version]:
    versions = [soname_version(path.rpartition("/")[2]) for path in paths if host.real_path(path) == real]
    return max((version for version in versions if version is not None), key=lambda version: len(version.release), default=None)


# --- whether they agree -----------------------------------------------------------------------------------


def agree(header: Version, library: Optional[Version]) -> bool:
    """Whether header and library are of one release, as far as the library's name tells its version."""
    if library is None:
        return False
    count = len(library.release)
    return header.release[:count] == library.release


def _findings(headers: tuple[CudnnHeader, ...], libraries: tuple[CudnnLibrary, ...]) -> tuple[Finding, ...]:
    """Wheels are left out: what some Python environment brings for itself is no fault of the machine."""
    headers = tuple(one for one in headers if not one.via.startswith(WHEELS))
    libraries = tuple(one for one in libraries if not one.via.startswith(WHEELS))
    evidence = tuple(Evidence(where=f"{one.directory}/cudnn.h", text=str(one.version)) for one in headers)
    evidence += tuple(
        Evidence(where=one.file, text=f"{one.version or 'unknown'}{'' if one.linkable else ', not linkable'}")
        for one in libraries
    )
    found = []
    if headers and not any(agree(header.version, one.version) for header in headers for one in libraries if one.linkable):
        title = (
            "No cuDNN library that can be linked has the version of a cudnn.h"
            if libraries
            else "There is a cudnn.h and no libcudnn"
        )
        why = "Code compiled with one release's header and run with another's library fails at the first layer."
        found.append(
            Finding(id="cudnn-disagree", severity=Severity.WARNING, title=title, why=why if libraries else "", evidence=evidence)
        )
    elif len({header.version for header in headers}) > 1:
        title = "There are several cudnn.h of different versions"
        why = "The compiler takes the first on its way; a library of another version may follow."
        found.append(Finding(id="cudnn-several", severity=Severity.NOTE, title=title, why=why, evidence=evidence))
    return tuple(found)
