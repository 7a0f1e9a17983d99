"""What is odd about the libraries found: two copies, a header that hides another, halves that do not belong together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Optional

from packaging.version import Version

from caffeup.detect.roots import COMPILERS_OWN, CONDA
from caffeup.facts.libraries import LibraryRow
from caffeup.host import Host
from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.machine import Library


class Half(NamedTuple):
    """A header with no library that fits: it can still be what the compiler picks up."""

    folder: str
    header: str
    version: Optional[Version]
    library: str
    """A library beside it that is of another version; empty: there is none."""
    library_version: Optional[Version]


def prefix_findings(host: Host, prefixes: Sequence[str]) -> Iterator[Finding]:
    """Roots given with --prefix that are not there, or hold nothing of the kind."""
    for prefix in prefixes:
        base = prefix.rstrip("/")
        if prefix.startswith("/") and any(host.is_dir(f"{base}/{folder}") for folder in ("include", "lib", "lib64", "usr")):
            continue
        state = "is not an absolute path" if not prefix.startswith("/") else "does not exist"
        if prefix.startswith("/") and host.exists(prefix):
            state = "has neither include, lib, lib64 nor usr in it"
        yield Finding(
            id="prefix-empty",
            severity=Severity.WARNING,
            title=f"--prefix {prefix} {state}",
            why="Nothing is searched there.",
            evidence=(Evidence(where=prefix, text=state),),
        )


def mixed(row: LibraryRow, halves: Sequence[Half]) -> Iterator[Finding]:
    """Headers of one version beside a library of another."""
    for half in halves:
        if not half.library:
            continue
        yield Finding(
            id="library-mixed",
            severity=Severity.WARNING,
            title=f"{row.title}: headers of {half.version} beside a library of {half.library_version}",
            why="What is compiled with one and linked with the other fails to link, or crashes.",
            evidence=(_seen(half.header, half.version), Evidence(where=half.library)),
            affects=row.id,
            remedies=(Remedy(text="Install headers and library from one place, or remove the half that is left over."),),
        )


def shadowed(row: LibraryRow, hits: Sequence[Library], halves: Sequence[Half], order: Sequence[str]) -> Iterator[Finding]:
    """Headers without a library, in a folder that the compiler searches before the one whose library is linked."""
    own = [hit for hit in hits if hit.via == COMPILERS_OWN and not hit.include_dirs]
    if not own:
        return
    used = own[0]
    place = _rank(used.evidence, order)
    for half in halves:
        if half.library or _rank(half.header, order) >= place or half.version == used.version:
            continue
        yield Finding(
            id="library-shadowed",
            severity=Severity.WARNING,
            title=f"{row.title}: {half.header} hides the headers of the library that is linked",
            why="The compiler finds this header first; its library is not installed, so that another version is linked.",
            evidence=(_seen(half.header, half.version), _seen(used.evidence, used.version)),
            affects=row.id,
            remedies=(Remedy(text=f"Remove the left-over headers in {half.folder}, or install their library."),),
        )


def copies(row: LibraryRow, hits: Sequence[Library]) -> Iterator[Finding]:
    """Two complete copies of different versions; the first is preferred."""
    there = [hit for hit in hits if hit.via != CONDA and hit.version is not None]
    versions = {str(hit.version) for hit in there}
    if len(versions) < 2:
        return
    yield Finding(
        id="library-copies",
        severity=Severity.NOTE,
        title=f"{row.title} is here in {len(versions)} versions",
        why="A folder that is searched earlier than planned brings in the other copy, when compiling or when the program starts.",
        evidence=tuple(_seen(hit.evidence, hit.version) for hit in there),
        affects=row.id,
    )


def _seen(path: str, version: Optional[Version]) -> Evidence:
    return Evidence(where=path, text=str(version) if version is not None else "no version in it")


def _rank(path: str, order: Sequence[str]) -> int:
    for number, folder in enumerate(order):
        if path.startswith(folder + "/"):
            return number
    return len(order)
