"""Which Python pycaffe is built for."""

from __future__ import annotations

from posixpath import basename
from typing import Optional

import msgspec
from packaging.version import InvalidVersion, Version

from caffeup.model.base import Value
from caffeup.model.finding import Severity
from caffeup.model.machine import Python, PythonKind
from caffeup.model.plan import Alternative, ConfigLine, Link
from caffeup.plan.case import Case
from caffeup.plan.part import Part, conflict, decision, line, note, remedy
from caffeup.plan.places import linked_anyway, loaded_anyway, placed, searched_anyway

_ROWS = {"headers": "python-dev", "library": "python-dev", "numpy": "numpy", "Boost.Python": "boost-python"}
_ORDER = (PythonKind.SYSTEM, PythonKind.LOCAL, PythonKind.VENV, PythonKind.PYENV, PythonKind.CONDA)


class Pycaffe(Value, kw_only=True):
    """The decision."""

    python: Optional[Python] = None
    """None: no pycaffe."""
    part: Part = Part()


def choose_python(case: Case) -> Pycaffe:
    """The one asked for; else a complete one, the system's first; else the best one with what has to be installed."""
    wanted = case.request.python
    if wanted == "none":
        return _none("asked for with --python none")
    candidates = [one for one in case.machine.pythons if not one.own]
    if wanted:
        candidates = [one for one in candidates if _is(one, wanted)]
        if not candidates:
            return _not_found(wanted, case)
    if not candidates:
        return _none("no Python was found but the one that runs caffeup")
    candidates = [_with_fitting_boost(one, case) for one in candidates]
    ranked = sorted(candidates, key=lambda one: (len(lacks(one)), *_preference(one, case)))
    complete = [one for one in ranked if not lacks(one)]
    best = complete[0] if complete else _to_complete(ranked, case)
    others = [one for one in (*ranked, *(one for one in case.machine.pythons if one.own)) if one is not best]
    rejected = tuple(Alternative(value=f"{one.version} ({one.executable})", because=_why_not(one, complete)) for one in others)
    if best is None:
        return _cannot(ranked[0], case, rejected)
    return _for(best, case, rejected)


def lacks(one: Python) -> tuple[str, ...]:
    """What this Python lacks to build pycaffe for it."""
    found = []
    if not one.include:
        found.append("headers")
    if not one.library:
        found.append("library")
    if one.numpy is None or not one.numpy_include:
        found.append("numpy")
    if not one.boost_python:
        found.append("Boost.Python")
    return tuple(found)


def _with_fitting_boost(one: Python, case: Case) -> Python:
    """Boost.Python of conda does not go with the system's Boost, which the rest is linked with."""
    if case.mixed(one.boost_python_dir):
        return msgspec.structs.replace(one, boost_python="", boost_python_dir="")
    return one


def _is(one: Python, wanted: str) -> bool:
    if wanted in (one.executable, basename(one.executable)):
        return True
    try:
        version = Version(wanted.removeprefix("python"))
    except InvalidVersion:
        return False
    return one.version.release[: len(version.release)] == version.release


def _preference(one: Python, case: Case) -> tuple[int, int, int]:
    in_prefix = any(one.executable.startswith(prefix.rstrip("/") + "/") for prefix in case.machine.prefixes)
    return (0 if in_prefix else 1, -one.version.major, _ORDER.index(one.kind))


def _to_complete(ranked: list[Python], case: Case) -> Optional[Python]:
    """The system's own can be completed with packages."""
    system = [one for one in ranked if one.kind is PythonKind.SYSTEM and one.version.major >= 3]
    if case.request.python:
        return ranked[0] if ranked[0].kind is PythonKind.SYSTEM else None
    return system[0] if system and case.may_install else None


def _why_not(one: Python, complete: list[Python]) -> str:
    if one.own:
        return "caffeup itself runs on it"
    lacking = lacks(one)
    if lacking:
        return f"it lacks {', '.join(lacking)}"
    return "the chosen one comes first" if complete else "not chosen"


def _for(best: Python, case: Case, rejected: tuple[Alternative, ...]) -> Pycaffe:
    lacking = lacks(best)
    packages = [_ROWS[what] for what in lacking]
    absent = _absent(best, case)
    if best.kind is PythonKind.SYSTEM:
        packages += [row for _, row in absent]
    packages = list(dict.fromkeys(packages))
    notes = [
        note(
            "missing-python-part",
            f"{best.executable} lacks {what}",
            "pycaffe cannot be built before.",
            severity=Severity.WARNING,
            affects=_ROWS[what],
        )
        for what in lacking
    ]
    notes += [
        note(
            "missing-python-part",
            f"{best.executable} has no {what}",
            "`import caffe` needs it.",
            severity=Severity.NOTE,
            affects=row,
        )
        for what, row in absent
    ]
    because = _because(best, case, lacking)
    name = f"{best.executable} (Python {best.version})"
    if lacking:
        part = Part(
            decisions=(decision("python", name, because, rejected=rejected),), packages=tuple(packages), notes=tuple(notes)
        )
        return Pycaffe(python=best, part=part)
    lines, links, runs = _settings(best, case)
    part = Part(
        decisions=(decision("python", name, because, rejected=rejected),),
        config=lines,
        links=links,
        run_paths=runs,
        notes=tuple(notes),
        packages=tuple(packages) if case.may_install else (),
    )
    return Pycaffe(python=best, part=part)


def _absent(best: Python, case: Case) -> tuple[tuple[str, str], ...]:
    """Packages that `import caffe` needs and this Python lacks, by name and row of the facts; the build does without."""
    needed = [("protobuf", best.protobuf, "python-protobuf"), ("scikit-image", best.skimage, "skimage")]
    if "pycaffe-six" in case.tree.features:
        needed.append(("six", best.six, "six"))
    return tuple((name, row) for name, there, row in needed if there is None)


def _because(best: Python, case: Case, lacking: tuple[str, ...]) -> str:
    if case.request.python:
        return f"asked for with --python {case.request.python}"
    if lacking:
        return f"the system's own, which lacks {', '.join(lacking)}: packages bring that"
    return f"it has headers, library, numpy {best.numpy} and {best.boost_python} ({best.via})"


def _settings(best: Python, case: Case) -> tuple[tuple[ConfigLine, ...], tuple[Link, ...], tuple[str, ...]]:
    """Headers, numpy and libraries. Of a foreign Python only its own library is linked to, never the rest of its folder."""
    system, prefixes = case.machine.system, case.machine.prefixes
    links: list[Link] = []
    includes, libraries, runs = [], [], []
    for path, label in ((best.include, "python-include"), (best.numpy_include, "numpy-include")):
        if not searched_anyway(path, system):
            place = placed(path, label, prefixes)
            includes.append(place.name)
            links += place.links
    if best.library_dir and not linked_anyway(best.library_dir, system):
        foreign = placed(best.library_dir, "python-lib", prefixes)
        if foreign.links and foreign.links[0].name == "deps/python-lib":
            for file in (f"lib{best.library}.so", f"lib{best.library}.so.1.0"):
                links.append(Link(name=f"deps/python-lib/{file}", target=f"{best.library_dir.rstrip('/')}/{file}"))
        else:
            links += foreign.links
        libraries.append(foreign.name)
        runs += [] if loaded_anyway(best.library_dir, system) else [foreign.name]
    if best.boost_python_dir and not linked_anyway(best.boost_python_dir, system):
        place = placed(best.boost_python_dir, "boost-python-lib", prefixes)
        libraries.append(place.name)
        links += place.links
        runs += [] if loaded_anyway(best.boost_python_dir, system) else [place.name]
    return _lines(best, case, tuple(includes), tuple(libraries)), tuple(links), tuple(runs)


def _lines(best: Python, case: Case, includes: tuple[str, ...], libraries: tuple[str, ...]) -> tuple[ConfigLine, ...]:
    because = f"Python {best.version} and its numpy {best.numpy}"
    lines = []
    if case.reads("PYTHON_LIBRARIES"):
        lines.append(
            line(
                "PYTHON_LIBRARIES",
                best.boost_python,
                best.library,
                because=f"Boost.Python and libpython of Python {best.version}",
            )
        )
    if case.reads("WITH_PYTHON_LAYER"):
        lines.append(line("WITH_PYTHON_LAYER", "1", because="layers written in Python"))
    for key, words in (("PYTHON_INCLUDE", includes), ("PYTHON_LIB", libraries)):
        if words and case.reads(key):
            lines.append(line(key, *words, because=because))
    if includes:
        lines.append(line("INCLUDE_DIRS", *includes, because=because, operator="+="))
    if libraries:
        lines.append(line("LIBRARY_DIRS", *libraries, because=because, operator="+="))
    return tuple(lines)


def _none(because: str) -> Pycaffe:
    return Pycaffe(part=Part(decisions=(decision("python", "none", because),)))


def _cannot(nearest: Python, case: Case, rejected: tuple[Alternative, ...]) -> Pycaffe:
    lacking = lacks(nearest)
    because = f"no Python has all that pycaffe needs; the nearest is {nearest.executable}, which lacks {', '.join(lacking)}"
    if case.request.python:
        ways = (remedy("install what it lacks, or choose another", case.again("--python", "none")),)
        clash = conflict(
            "python-incomplete",
            f"{nearest.executable} lacks {', '.join(lacking)}",
            "pycaffe cannot be built for it.",
            remedies=ways,
        )
        return Pycaffe(part=Part(decisions=(decision("python", "none", because, rejected=rejected),), conflicts=(clash,)))
    rows = tuple(dict.fromkeys(_ROWS[what] for what in lacking))
    notes = (note("no-pycaffe", "pycaffe is not built", because, severity=Severity.WARNING, affects=",".join(rows)),)
    return Pycaffe(part=Part(decisions=(decision("python", "none", because, rejected=rejected),), notes=notes))


def _not_found(wanted: str, case: Case) -> Pycaffe:
    own = [one for one in case.machine.pythons if one.own and _is(one, wanted)]
    why = "caffeup itself runs on it." if own else ""
    ways = (remedy("name the executable of a Python, or none", case.again("--python", "none")),)
    return Pycaffe(
        part=Part(conflicts=(conflict("python-not-found", f"no Python {wanted!r} to build pycaffe for", why, remedies=ways),))
    )
