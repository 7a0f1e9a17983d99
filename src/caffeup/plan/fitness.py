"""What speaks against a toolkit on one machine. Fitting means that nothing does, so the answer cannot differ from the reasons."""

from __future__ import annotations

from typing import Optional

from packaging.version import Version

from caffeup.model.base import ComputeCapability, Value
from caffeup.model.machine import Toolkit, ToolkitLayout
from caffeup.plan.case import Case


class Problem(Value, kw_only=True):
    """What is wrong with one toolkit for this machine."""

    id: str
    words: str
    weight: int
    """How bad; the sum decides between toolkits."""


def sass_of(toolkit: Toolkit, case: Case) -> tuple[ComputeCapability, ...]:
    """What it makes SASS for: as it says itself, else by the table."""
    return toolkit.sass or case.facts.compute_capabilities(toolkit.version)


def ptx_of(toolkit: Toolkit, case: Case) -> tuple[ComputeCapability, ...]:
    """What it makes PTX for."""
    return toolkit.ptx or tuple(cc for cc in sass_of(toolkit, case) if str(cc) != "2.1")


def problems(toolkit: Toolkit, case: Case) -> tuple[Problem, ...]:
    """Everything that speaks against a toolkit on this machine; empty: nothing."""
    found = []
    if not toolkit.nvcc:
        found.append(Problem(id="no-nvcc", words="it has no nvcc", weight=1000))
    lacking = [part for part in toolkit.missing if part != "nvcc"]
    if lacking:
        found.append(Problem(id="toolkit-incomplete", words=f"it lacks {', '.join(lacking)}", weight=500))
    needed = driver_too_old(toolkit, case)
    if needed:
        found.append(Problem(id="driver-too-old", words=f"it needs driver {needed} or newer", weight=200))
    known = sass_of(toolkit, case)
    for gpu in case.machine.graphics.gpus:
        cc = gpu.compute_capability
        if cc is None or cc in known or not known:
            continue
        if cc < min(known):
            words = f"it no longer compiles for {gpu.name} ({cc}): it begins at {min(known)}"
            found.append(Problem(id="gpu-dropped", words=words, weight=100))
        else:
            words = f"it is older than {gpu.name} ({cc}) and can only give it PTX"
            found.append(Problem(id="gpu-newer", words=words, weight=10))
    if toolkit.layout is ToolkitLayout.CONDA:
        words = "it lies in an environment of conda, whose other libraries do not go with the system's"
        found.append(Problem(id="conda", words=words, weight=3))
    if not _has_compiler(toolkit, case):
        found.append(Problem(id="compiler-too-new", words="no installed compiler is old enough for its nvcc", weight=5))
    return tuple(dict.fromkeys(found))


def driver_too_old(toolkit: Toolkit, case: Case) -> str:
    """The driver that this toolkit needs, where the installed one is older; empty where it will do."""
    driver = case.machine.graphics.driver
    if driver is None or case.machine.system.jetson:
        return ""
    needed = case.facts.minimum_driver(toolkit.version)
    if driver.release is not None and needed:
        return needed if driver.release < Version(needed) else ""
    if driver.cuda is not None:
        compatible = driver.cuda >= toolkit.version or (
            toolkit.version.major >= 11 and driver.cuda.major >= toolkit.version.major
        )
        same = driver.cuda.release[:2] == toolkit.version.release[:2]
        return "" if compatible or same else (needed or f"for CUDA {toolkit.version}")
    return ""


def newest_gcc(toolkit: Toolkit, case: Case) -> Optional[int]:
    """The newest gcc major that its nvcc accepts: by its own header, else by the table."""
    return toolkit.max_gcc if toolkit.max_gcc is not None else case.facts.max_gcc(toolkit.version)


def newest_clang(toolkit: Toolkit, case: Case) -> Optional[int]:
    """The same for clang."""
    return toolkit.max_clang if toolkit.max_clang is not None else case.facts.max_clang(toolkit.version)


def _has_compiler(toolkit: Toolkit, case: Case) -> bool:
    limit, clang = newest_gcc(toolkit, case), newest_clang(toolkit, case)
    return any(
        one.works and (limit is None or one.version.major <= limit)
        if one.kind == "gcc"
        else clang is not None and one.version.major <= clang
        for one in case.machine.compilers
    )
