"""Which protoc generates caffe.pb: the one that belongs to the headers. Caffe's Makefile takes the first on PATH."""

from __future__ import annotations

from posixpath import dirname
from typing import Optional

from packaging.version import Version

from caffeup.model.base import Value
from caffeup.model.finding import Evidence, Finding, Severity
from caffeup.model.machine import Library, Program
from caffeup.model.plan import Alternative, Link
from caffeup.plan.case import Case
from caffeup.plan.libraries import folders
from caffeup.plan.part import Part, conflict, decision, line, note, remedy
from caffeup.plan.places import LINKS


class Protoc(Value, kw_only=True):
    """The decision."""

    program: Optional[Program] = None
    part: Part = Part()


def choose_protoc(case: Case, protobuf: Optional[Library]) -> Protoc:
    """The first on PATH whose version is that of the headers; put in front of PATH where it is not the first there."""
    every = _ordered(case, protobuf)
    if not every:
        absent = note(
            "missing-library",
            "protoc is missing",
            "caffe.proto is compiled with it.",
            severity=Severity.PROBLEM,
            affects="protoc",
        )
        return Protoc(part=Part(packages=("protoc",), notes=(absent,)))
    version = protobuf.version if protobuf is not None else None
    fitting = [one for one in every if version is None or one.version is None or same_release(one.version, version)]
    if not fitting:
        return Protoc(part=Part(conflicts=(_mismatch(every, protobuf, case),)))
    best = fitting[0]
    rejected = tuple(
        Alternative(
            value=f"{one.path} {one.version or ''}".strip(),
            because="the chosen one comes first" if one in fitting else f"the headers are {version}",
        )
        for one in every
        if one is not best
    )
    because = (
        f"it is {best.version}, as the headers are" if version is not None else "the first on PATH; the headers tell no version"
    )
    first = case.programs("protoc")[:1]
    part = Part(decisions=(decision("protoc", f"{best.path} {best.version or ''}".strip(), because, rejected=rejected),))
    if first and first[0] is best and not _in_prefix(best, case):
        return Protoc(program=best, part=part)
    return Protoc(program=best, part=_put_first(best, protobuf, case, part))


def same_release(protoc: Version, headers: Version) -> bool:
    """Whether they belong together. From 22 on, protoc and C++ differ in the first number only: 25.1 goes with 4.25.1."""
    if protoc.release[:1] == headers.release[:1] and protoc.major < 4:
        return protoc.release[:3] == headers.release[:3] or (
            len(protoc.release) < 3 and protoc.release == headers.release[: len(protoc.release)]
        )
    short = headers.release[1:] if headers.major in (4, 5, 6, 7) and protoc.major > headers.major else headers.release
    shared = min(len(short), len(protoc.release))
    return protoc.release[:shared] == short[:shared]


def _ordered(case: Case, protobuf: Optional[Library]) -> list[Program]:
    every = list(case.programs("protoc"))
    if protobuf is not None and protobuf.prefix:
        near = [one for one in every if one.path.startswith(protobuf.prefix.rstrip("/") + "/")]
        if protobuf.prefix in case.machine.prefixes:
            every = near + [one for one in every if one not in near]
    return every


def _in_prefix(one: Program, case: Case) -> bool:
    return any(one.path.startswith(prefix.rstrip("/") + "/") for prefix in case.machine.prefixes)


def _put_first(best: Program, protobuf: Optional[Library], case: Case, part: Part) -> Part:
    """Make itself gives the PATH to its recipes, so that a plain make finds it too."""
    because = f"{best.path} goes before other protoc on PATH"
    config = [line("export PATH", f"$(CURDIR)/{LINKS}/bin:$(PATH)", because=because, raw=True)]
    unpacked = case.machine.unpacked and best.path.startswith(f"{case.machine.unpacked}/")  # has a run path
    if protobuf is not None and _in_prefix(best, case) and not unpacked:
        runs = folders(protobuf, case).run_paths
        if runs:
            words = ":".join(f"$(CURDIR)/{one}" if not one.startswith("/") else one for one in runs)
            lib = f"{words}$(if $(LD_LIBRARY_PATH),:$(LD_LIBRARY_PATH))"
            config.append(
                line("export LD_LIBRARY_PATH", lib, because=f"for {best.path}, whose libraries are beside it", raw=True)
            )
    return Part(decisions=part.decisions, config=tuple(config), links=(Link(name="bin/protoc", target=best.path),))


def _mismatch(every: list[Program], protobuf: Optional[Library], case: Case) -> Finding:
    headers = protobuf.version if protobuf is not None else None
    seen = [Evidence(where=one.path, text=f"libprotoc {one.version}") for one in every]
    if protobuf is not None:
        seen.insert(0, Evidence(where=protobuf.evidence or protobuf.prefix, text=f"headers {headers}"))
    debian = "debian" in (case.machine.system.distro, *case.machine.system.distro_like)
    system = protobuf is not None and protobuf.prefix in ("", "/usr")
    commands = ("sudo apt-get install protobuf-compiler",) if debian and system else ()
    ways = (remedy(f"install the protoc {headers} that belongs to the headers, beside {dirname(every[0].path)}", *commands),)
    title = f"no protoc fits protobuf's headers, which are {headers}"
    why = "Files made by another protoc stop with #error in caffe.pb.h."
    return conflict("protoc-mismatch", title, why, evidence=seen, remedies=ways)
