"""Which compiler compiles the host code: one that nvcc accepts; the system's default is never touched."""

from __future__ import annotations

from posixpath import basename
from typing import Optional

from caffeup.facts.ranges import Range
from caffeup.model.base import Value
from caffeup.model.finding import Evidence, Finding, Severity
from caffeup.model.machine import Compiler, Toolkit
from caffeup.model.plan import Alternative, Link
from caffeup.plan.case import Case
from caffeup.plan.fitness import newest_clang, newest_gcc
from caffeup.plan.part import Part, conflict, decision, line, note, remedy
from caffeup.plan.places import LINKS

_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+-")


class Chosen(Value, kw_only=True):
    """The decision."""

    compiler: Optional[Compiler] = None
    part: Part = Part()


def choose_compiler(case: Case, toolkit: Optional[Toolkit]) -> Chosen:
    """The first that works and is accepted: system compilers before conda's, gcc before clang, PATH's order, then the newest."""
    judged = [(one, _fault(one, case, toolkit)) for one in case.machine.compilers]
    fit = [one for one, fault in judged if not fault]
    if not fit:
        return _none(case, toolkit, judged)
    default = next((one for one in fit if basename(one.path) in ("g++", "c++", "clang++")), None)
    best = min(fit, key=lambda one: (_foreign(one), one.kind != "gcc", one is not default, -one.version.major))
    rejected = tuple(
        Alternative(value=f"{one.kind} {one.version} ({one.path})", because=fault or "the chosen one comes first")
        for one, fault in judged
        if one is not best
    )
    refused = [fault for one, fault in judged if fault and basename(one.path) == "g++"]
    because = f"the default one is not used: {refused[0]}" if refused and best.kind == "gcc" else "it compiles a C++ program"
    if toolkit is not None and not refused:
        because = f"it compiles a C++ program, and nvcc of CUDA {toolkit.version} accepts it"
    word, links = _word(best)
    config = (line("CUSTOM_CXX", word, because=f"{best.kind} {best.version}: {because}"),) if case.reads("CUSTOM_CXX") else ()
    part = Part(
        decisions=(decision("compiler", f"{best.path} ({best.kind} {best.version})", because, rejected=rejected),),
        config=config,
        links=links,
    )
    return Chosen(compiler=best, part=part)


def _fault(one: Compiler, case: Case, toolkit: Optional[Toolkit]) -> str:
    if not one.works:
        return "it cannot compile an empty C++ program"
    if "g++" not in basename(one.path) and "clang++" not in basename(one.path):
        return "Caffe's Makefile links only with a compiler named g++ or clang++"
    if one.target and not one.target.startswith((case.machine.system.arch, _other_name(case.machine.system.arch))):
        return f"it compiles for {one.target}"
    if toolkit is None:
        return ""
    limit = newest_gcc(toolkit, case) if one.kind == "gcc" else newest_clang(toolkit, case)
    if one.kind != "gcc" and limit is None:
        return f"which clang CUDA {toolkit.version} accepts is not known"
    if limit is not None and one.version.major > limit:
        return f"nvcc of CUDA {toolkit.version} accepts {one.kind} up to {limit}, this is {one.version}"
    return ""


def _other_name(arch: str) -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(arch, arch)


def _foreign(one: Compiler) -> bool:
    return "conda" in one.path or "conda" in one.target


def _word(best: Compiler) -> tuple[str, tuple[Link, ...]]:
    if set(best.path) <= _SAFE and best.path.startswith(("/usr/", "/bin/", "/opt/")):
        return best.path, ()
    name = f"bin/{'clang++' if 'clang++' in basename(best.path) else 'g++'}"
    return f"{LINKS}/{name}", (Link(name=name, target=best.path),)


def _none(case: Case, toolkit: Optional[Toolkit], judged: list[tuple[Compiler, str]]) -> Chosen:
    seen = tuple(Evidence(where=one.path, text=fault) for one, fault in judged)
    limit = newest_gcc(toolkit, case) if toolkit is not None else None
    working = [one for one, _ in judged if one.works and one.kind == "gcc"]
    if toolkit is not None and limit is not None and working:
        return Chosen(part=Part(conflicts=(_too_new(case, toolkit, limit, seen),)))
    if not judged:
        return Chosen(part=_to_install(case, toolkit, limit))
    return Chosen(part=Part(packages=("g++",), conflicts=(_missing(seen),)))


def _to_install(case: Case, toolkit: Optional[Toolkit], limit: Optional[int]) -> Part:
    """No compiler at all: the distribution's own comes, unless it is known that nvcc would refuse it."""
    system = case.machine.system
    default = case.facts.default_gcc(system.distro, system.distro_version)
    if toolkit is not None and limit is not None and default is not None and default > limit:
        own = Evidence(where=f"{system.distro} {system.distro_version}", text=f"its g++ is {default}")
        return Part(conflicts=(_too_new(case, toolkit, limit, (own,)),))
    absent = note("missing-library", "g++ is missing", "every build calls it", severity=Severity.PROBLEM, affects="g++")
    return Part(packages=("g++",), notes=(absent,))


def _missing(seen: tuple[Evidence, ...]) -> Finding:
    ways = (remedy("install g++ from your distribution, or reinstall it: its standard library may be missing"),)
    return conflict("no-compiler", "no C++ compiler works", evidence=seen, remedies=ways)


def _too_new(case: Case, toolkit: Toolkit, limit: int, seen: tuple[Evidence, ...]) -> Finding:
    system = case.machine.system
    debian = "debian" in (system.distro, *system.distro_like)
    commands = (f"sudo apt-get install g++-{limit}",) if debian else ()
    ways = [remedy(f"install g++ {limit} beside the default one, which stays as it is", *commands)]
    newer = _accepting(case)
    if newer:
        ways.append(remedy(f"or use a newer toolkit: CUDA {newer[0]} accepts this compiler"))
    if case.tree.cpu_only:
        ways.append(remedy("or build without the GPU", case.again("--cpu")))
    title = f"every compiler is too new for CUDA {toolkit.version}: it accepts gcc up to {limit}"
    return conflict("compiler-too-new", title, "nvcc refuses a newer one.", evidence=seen, remedies=ways)


def _accepting(case: Case) -> tuple[str, ...]:
    oldest = min((one.version.major for one in case.machine.compilers if one.works and one.kind == "gcc"), default=None)
    if oldest is None:
        return ()
    found = []
    for release in case.facts.releases_in(Range()):
        limit = case.facts.max_gcc(release)
        if limit is not None and limit >= oldest:
            found.append(str(release))
    return tuple(found)
