"""Development libraries: headers and link-time libraries that belong together, by reading files alone.

A header without its library, or the reverse, is no hit: it is recorded among what was tried.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Optional

from packaging.version import Version

from caffeup.detect.library_findings import Half, copies, mixed, prefix_findings, shadowed
from caffeup.detect.parse.library_version import agrees, from_defines, from_file_name, from_pattern
from caffeup.detect.parse.pkg_config import parse_package_file
from caffeup.detect.parse.versions import parse_version
from caffeup.detect.roots import (
    Root,
    conda_root,
    default_includes,
    default_libs,
    extra_roots,
    merged,
    system_roots,
    triplet_of,
    user_roots,
)
from caffeup.facts.libraries import Kind, LibraryRow, Need, Place, VersionRule
from caffeup.facts.ranges import Range
from caffeup.host import Host
from caffeup.model.finding import Finding
from caffeup.model.machine import Attempt, Library, Missing, System

MOST_REQUIRED = 400
"""abseil has some 180 pkg-config files; a cycle or a hostile folder ends here."""


class Libraries(NamedTuple):
    """What the probe found."""

    libraries: tuple[Library, ...]
    missing: tuple[Missing, ...]
    findings: tuple[Finding, ...]


class _Row(NamedTuple):
    hits: list[Library]
    halves: list[Half]
    tried: list[Attempt]


def probe_libraries(host: Host, system: System, rows: Sequence[LibraryRow], prefixes: Sequence[str] = ()) -> Libraries:
    """Look for every library row; all candidates are kept, in the order in which they should be preferred."""
    triplet = triplet_of(system)
    users = user_roots(host, prefixes, triplet)
    systems = system_roots(host, triplet)
    condas = conda_root(host, triplet)
    libraries: list[Library] = []
    missing: list[Missing] = []
    findings: list[Finding] = [*prefix_findings(host, prefixes)]
    for row in rows:
        if row.kind is not Kind.LIBRARY:
            continue
        roots = merged(host, users, systems, extra_roots(host, row.roots, triplet), condas)
        seen = _probe_row(host, row, roots, triplet)
        libraries += seen.hits
        if not seen.hits:
            missing.append(Missing(what=row.id, tried=tuple(seen.tried)))
        findings += mixed(row, seen.halves)
        findings += shadowed(row, seen.hits, seen.halves, default_includes(triplet))
        findings += copies(row, seen.hits)
    return Libraries(tuple(libraries), tuple(missing), tuple(findings))


def _probe_row(host: Host, row: LibraryRow, roots: Sequence[Root], triplet: str) -> _Row:
    seen = _Row([], [], [])
    known: set[str] = set()
    for root in roots:
        tried, hits, headers = len(seen.tried), len(seen.hits), False
        for number, place in enumerate(row.places):
            if "*" in place.include + place.lib and len(seen.hits) > hits:
                continue  # it would list whole folders, to find again what stands there under a plain name
            for folder in _header_folders(host, row, root, place):
                headers = True
                hit = _pair(host, row, root, number, folder, triplet, seen)
                header = host.real_path(f"{folder}/{row.headers[0]}") or folder
                if hit is not None and header not in known:
                    known.add(header)
                    seen.hits.append(hit)
        if (len(seen.tried), len(seen.hits)) == (tried, hits):
            seen.tried.append(Attempt(where=root.path, outcome=_absent(host, row, root, headers=headers)))
    return seen


def _pair(host: Host, row: LibraryRow, root: Root, place: int, folder: str, triplet: str, seen: _Row) -> Optional[Library]:
    """The first library in the folders of this place that goes with the headers of ``folder``."""
    header = f"{folder}/{row.headers[0]}"
    other: tuple[str, Optional[Version]] = ("", None)
    version = None
    for lib in _library_folders(host, row, root, place):
        names = _linked(host, row, lib)
        if not names:
            continue
        version = _version(host, row, folder, lib)
        file = host.real_path(_library_file(host, lib, names[0]) or "") or ""
        if any(word in file for word in row.others):
            seen.tried.append(Attempt(where=f"{lib}/lib{names[0]}", outcome=f"is another one behind a common name: {file}"))
            continue
        if version is not None and row.so_digits and not agrees(version, from_file_name(file), row.so_digits):
            other = (file, from_file_name(file))
            seen.tried.append(Attempt(where=header, outcome=f"headers of {version}, but {file} beside them"))
            continue
        parts = tuple(part.name for part in row.parts if _library_file(host, lib, part.name))
        lacking = _lacking(row, version, parts)
        if lacking:
            seen.tried.append(
                Attempt(where=lib, outcome=f"no lib{lacking}, which {row.title} {version or ''} has".replace("  ", " "))
            )
            continue
        return _library(host, row, root, folder, lib, (*names, *parts), version, triplet)
    if other[0] or not any(half.folder == folder for half in seen.halves):
        seen.halves.append(Half(folder, header, version or _version(host, row, folder, ""), other[0], other[1]))
    return None


def _library(
    host: Host,
    row: LibraryRow,
    root: Root,
    folder: str,
    lib: str,
    names: tuple[str, ...],
    version: Optional[Version],
    triplet: str,
) -> Library:
    if row.pkg_config and version is not None and version in Range.parse(row.pkg_config_from):
        names = tuple(dict.fromkeys((*names, *_required(host, root, lib, row.pkg_config))))
    return Library(
        via=root.via,
        evidence=f"{folder}/{row.headers[0]}",
        name=row.id,
        version=version,
        include_dirs=() if folder in default_includes(triplet) else (folder,),
        library_dirs=() if lib in default_libs(triplet) else (lib,),
        libraries=names,
        prefix=root.path,
    )


def _lacking(row: LibraryRow, version: Optional[Version], there: tuple[str, ...]) -> str:
    for part in row.parts:
        if part.needed and version is not None and version in Range.parse(part.needed) and part.name not in there:
            return part.name
    return ""


def _folders(host: Host, bases: Sequence[str], below: str) -> Iterator[str]:
    for base in bases:
        path = f"{base}/{below}" if below else base
        yield from host.glob(f"{glob.escape(base)}/{below}") if "*" in below else (path,)


def _header_folders(host: Host, row: LibraryRow, root: Root, place: Place) -> Iterator[str]:
    for folder in _folders(host, root.includes, place.include):
        if all(host.exists(f"{folder}/{header}") for header in row.headers):
            yield folder


def _library_folders(host: Host, row: LibraryRow, root: Root, place: int) -> Iterator[str]:
    return _folders(host, root.libs, row.places[place].lib)


def _library_file(host: Host, folder: str, name: str) -> str:
    for ending in (".so", ".a"):
        path = f"{folder}/lib{name}{ending}"
        if host.exists(path):
            return path
    return ""


def _linked(host: Host, row: LibraryRow, folder: str) -> tuple[str, ...]:
    for names in row.link:
        if all(_library_file(host, folder, name) for name in names):
            return names
    return ()


def _version(host: Host, row: LibraryRow, include: str, lib: str) -> Optional[Version]:
    for rule in row.versions:
        version = _by_rule(host, rule, include, lib)
        if version is not None:
            return version
    return None


def _by_rule(host: Host, rule: VersionRule, include: str, lib: str) -> Optional[Version]:
    if rule.so:
        return from_file_name(host.real_path(f"{lib}/lib{rule.so}.so") or "") if lib else None
    if rule.means:
        return parse_version(rule.means) if host.exists(f"{include}/{rule.header}") else None
    if rule.file and not lib:
        return None
    text = host.read_text(f"{lib}/{rule.file}" if rule.file else f"{include}/{rule.header}")
    if text is None:
        return None
    return from_pattern(text, rule.pattern) if rule.pattern else from_defines(text, rule.defines, rule.radix)


def _required(host: Host, root: Root, lib: str, package: str) -> tuple[str, ...]:
    """Names to link for a pkg-config package and all it requires, dependents before what they depend on."""
    folders = tuple(
        dict.fromkeys((f"{lib}/pkgconfig", *(f"{one}/pkgconfig" for one in root.libs), f"{root.path}/share/pkgconfig"))
    )
    found: dict[str, None] = {}
    waiting = [package]
    read: set[str] = set()
    while waiting and len(read) < MOST_REQUIRED:
        name = waiting.pop(0)
        if name in read:
            continue
        read.add(name)
        text = next((text for text in (host.read_text(f"{folder}/{name}.pc") for folder in folders) if text is not None), None)
        if text is None:
            continue
        parsed = parse_package_file(text)
        for library in parsed.libraries:
            if _library_file(host, lib, library):
                found.pop(library, None)
                found[library] = None
        waiting += parsed.requires
    return tuple(found)


def _absent(host: Host, row: LibraryRow, root: Root, *, headers: bool) -> str:
    """What one root lacks, in words."""
    wanted = " and ".join(f"lib{name}" for name in row.link[0])
    if headers:
        return f"{row.headers[0]} without {wanted}"
    for place in row.places:
        for folder in _folders(host, root.libs, place.lib):
            names = _linked(host, row, folder)
            if names:
                return f"{_library_file(host, folder, names[0])} without {row.headers[0]}"
    if row.need in (Need.ALWAYS, Need.SWITCH):
        for folder in root.libs:
            for path in host.glob(f"{glob.escape(folder)}/lib{row.link[0][0]}.so.*"):
                return f"{path} alone: the development package is not installed"
    return f"no {row.headers[0]}"
