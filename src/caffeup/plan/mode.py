"""Whether CUDA code is built. Never silently without: a GPU that would lie idle is a conflict with its ways out."""

from __future__ import annotations

from packaging.version import Version

from caffeup.model.base import Value
from caffeup.model.finding import Evidence, Finding, Remedy
from caffeup.model.machine import Attempt, GpuState
from caffeup.plan.case import Case
from caffeup.plan.part import Part, conflict, decision, line, note, remedy

_WHEELS_DRIVER = Version("580")


class Mode(Value, kw_only=True):
    """The decision."""

    gpu: bool
    part: Part


def choose_mode(case: Case) -> Mode:
    """Decide from the request, the GPUs and whether any toolkit can build."""
    if case.request.cpu:
        return _cpu(case, "asked for with --cpu")
    usable = [one for one in case.machine.toolkits if one.nvcc and not one.missing]
    some_nvcc = any(one.nvcc for one in case.machine.toolkits)
    state = case.machine.graphics.state
    if usable or (some_nvcc and state is GpuState.PRESENT) or case.request.cuda:
        because = f"there is a GPU ({_names(case)}) and a toolkit" if state is GpuState.PRESENT else "there is a CUDA toolkit"
        return _gpu(case, "asked for with --cuda" if case.request.cuda else because)
    if not case.tree.cpu_only:
        return Mode(gpu=True, part=Part(decisions=(decision("mode", "gpu", "this tree cannot be built without CUDA"),)))
    if state is GpuState.PRESENT:
        return Mode(gpu=True, part=Part(decisions=(decision("mode", "gpu", f"there is a GPU ({_names(case)})"),)))
    if state in (GpuState.NO_DRIVER, GpuState.DRIVER_SILENT):
        return _cpu(case, "the GPU cannot be used as things are", (_no_driver(case),))
    why = "no GPU and no CUDA toolkit" if state is GpuState.NONE else "no GPU is visible and there is no CUDA toolkit"
    if some_nvcc:
        lacking = sorted({part for one in case.machine.toolkits if one.nvcc for part in one.missing})
        why = f"no GPU is visible, and the CUDA toolkit lacks {', '.join(lacking)}"
    return _cpu(case, why, notes=_unseen(case))


def wheels_fit(case: Case) -> bool:
    """Whether CUDA 13 from NVIDIA's wheels can serve this machine: driver 580 or newer, every GPU Turing or newer."""
    graphics = case.machine.graphics
    release = graphics.driver.release if graphics.driver else None
    capabilities = [gpu.compute_capability for gpu in graphics.gpus]
    return (
        release is not None
        and release >= _WHEELS_DRIVER
        and bool(capabilities)
        and all(cc is not None and (cc.major, cc.minor) >= (7, 5) for cc in capabilities)
        and not case.machine.system.jetson
    )


def _gpu(case: Case, because: str) -> Mode:
    notes: tuple[Finding, ...] = ()
    state = case.machine.graphics.state
    if state in (GpuState.NO_DRIVER, GpuState.DRIVER_SILENT):
        notes = (_no_driver(case, stops=False),)
    elif state is not GpuState.PRESENT:
        notes = _unseen(case)
    return Mode(gpu=True, part=Part(decisions=(decision("mode", "gpu", because),), notes=notes))


def _cpu(case: Case, because: str, conflicts: tuple[Finding, ...] = (), notes: tuple[Finding, ...] = ()) -> Mode:
    if not case.tree.cpu_only or not case.reads("CPU_ONLY"):
        impossible = conflict(
            "cpu-not-possible",
            f"this tree ({case.tree.fork}) cannot be built without CUDA",
            "Its Makefile has no CPU_ONLY.",
            remedies=(remedy("build it with a CUDA toolkit, or take a tree that can: bvlc or ssd", "caffeup up ssd --cpu"),),
        )
        return Mode(gpu=False, part=Part(decisions=(decision("mode", "cpu", because),), conflicts=(*conflicts, impossible)))
    config = (line("CPU_ONLY", "1", because=f"CPU only: {because}"),)
    part = Part(decisions=(decision("mode", "cpu", because),), config=config, conflicts=conflicts, notes=notes)
    return Mode(gpu=False, part=part)


def no_toolkit(case: Case) -> Finding:
    """A GPU and no toolkit: the ways out, the one that caffeup can go itself first."""
    ways: list[Remedy] = []
    if wheels_fit(case):
        ways.append(
            remedy("use CUDA 13 from NVIDIA's own wheels, in your folder", case.again("--cuda", "wheels"), by_caffeup=True)
        )
    ways += _packaged(case)
    ways.append(remedy(f"install a CUDA toolkit: {toolkit_to_install(case)}"))
    if case.tree.cpu_only:
        ways.append(remedy("build without the GPU", case.again("--cpu")))
    return conflict(
        "no-toolkit",
        f"no CUDA toolkit, though there is a GPU: {_names(case)}" if case.machine.graphics.gpus else "no CUDA toolkit",
        "A build without CUDA would leave the GPU idle, so it is not done unasked.",
        evidence=_looked("CUDA toolkit", case),
        remedies=ways,
    )


def _packaged(case: Case) -> list[Remedy]:
    """The distribution's own toolkit, where it knows the GPUs and the driver is new enough for it."""
    system, graphics = case.machine.system, case.machine.graphics
    packaged = case.facts.packaged_toolkit(system.distro, system.distro_version)
    known = case.facts.compute_capabilities(packaged) if packaged is not None else ()
    driver = graphics.driver.release if graphics.driver is not None else None
    if packaged is None or driver is None or driver < Version(case.facts.minimum_driver(packaged) or "0"):
        return []
    if not graphics.gpus or any(gpu.compute_capability not in known for gpu in graphics.gpus):
        return []
    text = f"install the distribution's own CUDA {packaged}, which knows this GPU"
    return [remedy(text, "sudo apt-get install nvidia-cuda-toolkit")]


def toolkit_to_install(case: Case) -> str:
    """Which toolkit serves the GPUs and the driver of this machine, in words."""
    graphics = case.machine.graphics
    ranges = []
    for gpu in graphics.gpus:
        if gpu.compute_capability is not None:
            wanted = case.facts.toolkits_for(gpu.compute_capability)
            if wanted is not None:
                ranges.append(wanted)
    supported = graphics.driver.cuda if graphics.driver else None
    lows = [one.low for one in ranges if one.low]
    highs = [one.high for one in ranges if one.high]
    words = []
    if lows:
        words.append(f"{max(lows)} or newer")
    if highs:
        words.append(f"older than {min(highs)}")
    if supported:
        words.append(f"not newer than {supported.major}.{supported.minor}, which is what the driver supports")
    return "CUDA " + (", ".join(words) if words else "of any release that knows the GPU")


def _no_driver(case: Case, *, stops: bool = True) -> Finding:
    silent = case.machine.graphics.state is GpuState.DRIVER_SILENT
    title = "the NVIDIA driver does not answer" if silent else "there is an NVIDIA GPU and no driver for it"
    why = "After an update of the driver the old one stays loaded until a restart." if silent else ""
    ways = [remedy("restart the machine") if silent else remedy("install NVIDIA's driver from your distribution, and restart")]
    if stops:
        ways.append(remedy("build without the GPU", case.again("--cpu")))
        return conflict(
            "driver-silent" if silent else "no-driver", title, why, evidence=_tried(case.machine.graphics.tried), remedies=ways
        )
    return note(
        "driver-silent" if silent else "no-driver", title, why, evidence=_tried(case.machine.graphics.tried), remedies=ways
    )


def _unseen(case: Case) -> tuple[Finding, ...]:
    if case.machine.graphics.state is not GpuState.HIDDEN:
        return ()
    return (
        note(
            "gpu-hidden",
            "a GPU may be there, but this process cannot see it",
            "A container must be started with its GPUs, and CUDA_VISIBLE_DEVICES must not hide them.",
            evidence=_tried(case.machine.graphics.tried),
            remedies=(remedy("start the container with its GPUs, for example: docker run --gpus all …"),),
        ),
    )


def _names(case: Case) -> str:
    return ", ".join(dict.fromkeys(gpu.name for gpu in case.machine.graphics.gpus)) or "not named"


def _tried(tried: tuple[Attempt, ...]) -> tuple[Evidence, ...]:
    return tuple(Evidence(where=one.where, text=one.outcome) for one in tried)


def _looked(what: str, case: Case) -> tuple[Evidence, ...]:
    words = what.lower().split()
    for one in case.machine.missing:
        if any(word in one.what.lower() for word in words):
            return _tried(one.tried)
    return ()
