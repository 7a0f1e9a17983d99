"""A machine, a plan, and what tests gave, in one line each."""

from __future__ import annotations

from collections.abc import Sequence

from caffeup.model.machine import Driver, GpuState, Machine
from caffeup.model.outcome import TestCase, TestReport
from caffeup.model.plan import Plan
from caffeup.model.tree import Tree

_NO_GPU = {
    GpuState.NONE: "no NVIDIA GPU",
    GpuState.NO_DRIVER: "an NVIDIA GPU without a driver",
    GpuState.DRIVER_SILENT: "an NVIDIA driver that does not answer",
    GpuState.HIDDEN: "GPUs hidden from this process",
    GpuState.PRESENT: "a GPU of unknown kind",
}


def size(many: int) -> str:
    """``1.2 GiB``, ``34.5 MiB``, ``812 B``."""
    for unit, step in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if many >= step:
            return f"{many / step:.1f} {unit}"
    return f"{many} B"


def system_line(machine: Machine) -> str:
    """``debian 12 (bookworm) x86_64, 2 cores, 23.5 GiB, in docker``."""
    s = machine.system
    name = " ".join(word for word in (s.distro, s.distro_version, f"({s.distro_codename})" if s.distro_codename else "") if word)
    around = (f"WSL{s.wsl}" if s.wsl else "", s.jetson, "" if s.container == "none" else f"in {s.container}")
    cores = "1 core" if s.cores == 1 else f"{s.cores} cores"
    return ", ".join([f"{name} {s.arch}", cores, f"{s.memory_bytes / (1 << 30):.1f} GiB", *(word for word in around if word)])


def graphics_line(machine: Machine) -> str:
    """``NVIDIA H200 (compute capability 9.0, 139.8 GiB); driver 580.65.06, CUDA up to 13.0``, or why there is none."""
    g = machine.graphics
    if not g.gpus:
        return _NO_GPU[g.state]
    cards = []
    for gpu in g.gpus:
        words = [f"compute capability {gpu.compute_capability or 'unknown'}"]
        words += [f"{gpu.memory_bytes / (1 << 30):.1f} GiB"] if gpu.memory_bytes else []
        words += ["MIG"] if gpu.mig else []
        cards.append(f"{gpu.name} ({', '.join(words)})")
    return ", ".join(cards) + (f"; driver {_spelling(g.driver)}, CUDA up to {g.driver.cuda}" if g.driver else "")


def _spelling(driver: Driver) -> str:
    """NVIDIA writes 580.65.06 where a version is 580.65.6; people look for NVIDIA's."""
    text = driver.evidence.rpartition(": ")[2]
    return text if text[:1].isdigit() else str(driver.release)


def in_short(machine: Machine) -> str:
    """System, GPUs, toolkits."""
    toolkits = ", ".join(f"CUDA {t.version}" for t in machine.toolkits) or "no CUDA toolkit"
    return f"{system_line(machine)}; {graphics_line(machine)}; {toolkits}"


def plan_in_short(plan: Plan, tree: Tree) -> str:
    """``brocolli tree, CPU-only, 10 fixes``."""
    words = [f"{tree.fork} tree", "CUDA" if plan.gpu else "CPU-only"]
    if plan.gpu:
        words.append("with cuDNN" if plan.cudnn else "without cuDNN")
        words += [f"for {', '.join(str(cc) for cc in plan.sass)}"] if plan.sass else []
    many = len(plan.fixes)
    words.append(f"{many} {_plural(many, 'fix', 'fixes')}" + ("" if tree.seen else ", others may come when its sources are here"))
    if plan.conflicts:
        many = len(plan.conflicts)
        words.append(f"but {many} {_plural(many, 'thing stands', 'things stand')} in the way")
    return ", ".join(words)


def tests_in_short(report: TestReport) -> str:
    """``1196 of 1246 passed (26 are caffeup's); 50 fail and 1 file does not compile, all known of this tree; …``."""
    added = f" ({report.added} {_plural(report.added, 'is', 'are')} caffeup's)" if report.added else ""
    words = [f"{report.passed} of {report.total} passed{added}"]
    words += [f"{_failures(report.unknown_failures)}, NOT known of this tree"] if report.unknown_failures else []
    known = tuple(case for case in report.failures if case.known)
    every = "all " if len(known) > 1 else ""
    words += [f"{_failures(known)}, {every}known of this tree"] if known else []
    words += [f"{report.skipped} left out: {_plural(report.skipped, 'it needs', 'they need')} a GPU"] if report.skipped else []
    return "; ".join(words)


def _failures(cases: Sequence[TestCase]) -> str:
    """``50 fail and 1 file does not compile``: what was never compiled is no test that ran, and is not in the total."""
    files = sum(case.state == "not-compiled" for case in cases)
    ran = len(cases) - files
    words = [f"{ran} {_plural(ran, 'fails', 'fail')}"] if ran else []
    words += [f"{files} {_plural(files, 'file does', 'files do')} not compile"] if files else []
    return " and ".join(words)


def _plural(many: int, one: str, more: str) -> str:
    return one if many == 1 else more
