"""The language standard: what the libraries need, against what compiler and tree would take by themselves."""

from __future__ import annotations

from typing import Optional

from packaging.version import Version

from caffeup.model.base import Value
from caffeup.model.finding import Finding
from caffeup.model.machine import Compiler, Library, Toolkit
from caffeup.model.plan import ConfigLine
from caffeup.plan.case import Case
from caffeup.plan.part import Part, conflict, decision, line, remedy

# Library, from which version on, the C++ standard that its headers need, and why.
_NEEDS: tuple[tuple[str, str, int, str], ...] = (
    ("opencv", "4.0", 11, "OpenCV 4 needs C++11"),
    ("opencv", "5.0", 17, "OpenCV 5 needs C++17"),
    ("protobuf", "3.6", 11, "protobuf needs C++11 from 3.6 on"),
    ("protobuf", "4.22", 17, "protobuf with abseil needs C++17"),
    ("glog", "0.7", 14, "glog needs C++14 from 0.7 on"),
    ("boost", "1.82", 14, "Boost needs C++14 from 1.82 on in parts that Caffe uses"),
)
_CUDA_13 = Version("13.0")
_OLDEST = 3


class Standard(Value, kw_only=True):
    """The decision."""

    cxx: str = ""
    """What is set (``c++17``); empty: left to compiler and tree."""
    part: Part = Part()


def choose_standard(
    case: Case, compiler: Optional[Compiler], toolkit: Optional[Toolkit], libraries: tuple[Library, ...]
) -> Standard:
    """Set one only where what would be taken is too old. The tree's own flag comes after Makefile.config and must be beaten."""
    needed, reasons = _needed(libraries, toolkit)
    own = case.tree.standard
    taken = year(own) if own else default_standard(compiler)
    source = _source(own, taken, compiler)
    if not needed or taken >= needed:
        because = f"{source}, which is enough" + (f": {'; '.join(reasons)}" if reasons else "")
        return Standard(part=Part(decisions=(decision("standard", own or "default", because),)))
    flag = f"-std=c++{needed}"
    because = f"{'; '.join(reasons)}; {source}"
    beyond = toolkit is not None and needed > nvcc_newest(toolkit.version)
    part = Part(
        decisions=(decision("standard", f"c++{needed}", because),),
        config=_lines(flag, because, own, gpu=toolkit is not None),
        conflicts=(_beyond_nvcc(needed, toolkit, reasons, case),) if beyond and toolkit is not None else (),
    )
    return Standard(cxx=f"c++{needed}", part=part)


def year(standard: str) -> int:
    """``c++11`` → 11, ``gnu++1z`` → 17, ``c++0x`` → 11; 98 and 03 count as 3. 0 for what is no C++ standard."""
    names = {"0x": 11, "1y": 14, "1z": 17, "2a": 20, "2b": 23, "98": 3, "03": 3}
    tail = standard.rpartition("++")[2]
    return names.get(tail, int(tail) if tail.isascii() and tail.isdigit() else 0)


def default_standard(compiler: Optional[Compiler]) -> int:
    """What a compiler takes without a flag."""
    if compiler is None:
        return 17
    steps = ((11, 17), (6, 14)) if compiler.kind == "gcc" else ((16, 17), (6, 14))
    return next((found for least, found in steps if compiler.version.major >= least), _OLDEST)


def _source(own: str, taken: int, compiler: Optional[Compiler]) -> str:
    if own:
        return f"the tree's Makefile sets -std={own}"
    year_said = "98" if taken == _OLDEST else str(taken)
    return f"{compiler.kind} {compiler.version} takes C++{year_said}" if compiler is not None else "the compiler's own"


def nvcc_newest(cuda: Version) -> int:
    """The newest standard that a CUDA release's nvcc knows."""
    for least, found in (("12.0", 20), ("11.0", 17), ("9.0", 14), ("7.0", 11)):
        if cuda >= Version(least):
            return found
    return 3


def _needed(libraries: tuple[Library, ...], toolkit: Optional[Toolkit]) -> tuple[int, list[str]]:
    found: dict[int, list[str]] = {}
    for one in libraries:
        for name, least, standard, why in _NEEDS:
            if one.name == name and one.version is not None and one.version >= Version(least):
                found.setdefault(standard, []).append(f"{why} (here {one.version})")
    if toolkit is not None and toolkit.version >= _CUDA_13:
        found.setdefault(17, []).append(f"Thrust of CUDA {toolkit.version} needs C++17")
    if not found:
        return 0, []
    newest = max(found)
    return newest, found[newest]


def _lines(flag: str, because: str, own: str, *, gpu: bool) -> tuple[ConfigLine, ...]:
    if not own:
        return (line("COMMON_FLAGS", flag, because=because, operator="+="),)
    beaten = f"{because}. The Makefile appends its own after this file; "
    lines = [
        line(
            "WARNINGS",
            "-Wall",
            "-Wno-sign-compare",
            "-Wno-uninitialized",
            flag,
            because=f"{beaten}WARNINGS stands last for g++",
            override=True,
        )
    ]
    if gpu:
        lines.append(line("CUDA_ARCH", flag, because=f"{beaten}CUDA_ARCH stands last for nvcc", operator="+="))
    return tuple(lines)


def _beyond_nvcc(needed: int, toolkit: Toolkit, reasons: list[str], case: Case) -> Finding:
    ways = (remedy("use a newer toolkit, or older libraries"), remedy("or build without the GPU", case.again("--cpu")))
    title = f"nvcc of CUDA {toolkit.version} does not know C++{needed}, which the libraries need"
    return conflict("standard-too-new", title, "; ".join(reasons), remedies=ways)
