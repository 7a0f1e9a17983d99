"""Whether CUDA code is built. Never silently without: a GPU that would lie idle is a conflict with its ways out."""

from __future__ import annotations

from caffeup.model.base import Value
from caffeup.model.finding import Evidence, Finding, Remedy
from caffeup.model.machine import Attempt, GpuState, ToolkitLayout
from caffeup.plan.case import Case
from caffeup.plan.part import Part, conflict, decision, line, note, remedy
from caffeup.plan.wheels import WHEELS, packaged_toolkit, wheels_fit, wheels_release


class Mode(Value, kw_only=True):
    """The decision."""

    gpu: bool
    part: Part


def choose_mode(case: Case) -> Mode:
    """Decide from the request, the GPUs and whether any toolkit can build."""
    if case.request.cpu:
        return _cpu(case, "asked for with --cpu")
    state = case.machine.graphics.state
    toolkits = [one for one in case.machine.toolkits if state is GpuState.PRESENT or one.layout is not ToolkitLayout.LAID_OUT]
    usable = [one for one in toolkits if one.nvcc and not one.missing]
    some_nvcc = any(one.nvcc for one in toolkits)
    if usable or (some_nvcc and state is GpuState.PRESENT) or case.request.cuda:
        because = _present(case) if state is GpuState.PRESENT else "there is a CUDA toolkit"
        return _gpu(case, "asked for with --cuda" if case.request.cuda else because)
    if not case.tree.cpu_only:
        return Mode(gpu=True, part=Part(decisions=(decision("mode", "gpu", "this tree cannot be built without CUDA"),)))
    if state is GpuState.PRESENT:
        return Mode(gpu=True, part=Part(decisions=(decision("mode", "gpu", f"there is a GPU ({_names(case)})"),)))
    if state in (GpuState.NO_DRIVER, GpuState.DRIVER_SILENT):
        return _cpu(case, "the GPU cannot be used as things are", (_no_driver(case),))
    why = "no GPU and no CUDA toolkit" if state is GpuState.NONE else "no GPU is visible and there is no CUDA toolkit"
    if some_nvcc:
        lacking = sorted({part for one in toolkits if one.nvcc for part in one.missing})
        why = f"no GPU is visible, and the CUDA toolkit lacks {', '.join(lacking)}"
    elif len(toolkits) < len(case.machine.toolkits):
        why = "no GPU is visible; the CUDA that caffeup laid out is for machines with one, and with --cuda wheels for this one"
    return _cpu(case, why, notes=_unseen(case))


def _present(case: Case) -> str:
    return f"there is a GPU ({_names(case)}) and a toolkit{' that can be laid out' if case.lay_out else ''}"


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
    part = Part(
        decisions=(decision("mode", "cpu", because),),
        config=config,
        conflicts=conflicts,
        notes=(*notes, *_arch_for_nothing(case)),
    )
    return Mode(gpu=False, part=part)


def _arch_for_nothing(case: Case) -> tuple[Finding, ...]:
    if not case.request.arch:
        return ()
    title = f"--arch {','.join(case.request.arch)} has no effect: this is a build without CUDA"
    why = "Only a CUDA toolkit compiles for a compute capability."
    release, arch = wheels_release(case), ",".join(case.request.arch)
    text = f"let caffeup lay out CUDA {release.cuda} from NVIDIA's wheels in your folder" if release is not None else ""
    ways = [remedy(text, case.again("--cuda", WHEELS, "--arch", arch), by_caffeup=True)] if text else []
    return (note("arch-not-used", title, why, remedies=(*ways, remedy(f"install a CUDA toolkit: {toolkit_to_install(case)}"))),)


def no_toolkit(case: Case) -> Finding:
    """A GPU and no toolkit: the ways out, the one that caffeup can go itself first."""
    ways: list[Remedy] = []
    packaged = packaged_toolkit(case)
    if packaged is not None:
        text = f"install the distribution's own CUDA {packaged}, which knows this GPU"
        ways.append(remedy(text, "sudo apt-get install nvidia-cuda-toolkit"))
    ways += _from_wheels(case)
    ways.append(remedy(f"install a CUDA toolkit: {toolkit_to_install(case)}"))
    ways += _newer_driver(case) if not wheels_fit(case) else []
    if case.tree.cpu_only:
        ways.append(remedy("build without the GPU", case.again("--cpu")))
    return conflict(
        "no-toolkit",
        f"no CUDA toolkit, though there is a GPU: {_names(case)}" if case.machine.graphics.gpus else "no CUDA toolkit",
        "A build without CUDA would leave the GPU idle, so it is not done unasked.",
        evidence=_looked("CUDA toolkit", case),
        remedies=ways,
    )


def _from_wheels(case: Case) -> list[Remedy]:
    release = wheels_release(case)
    if release is None or (case.machine.graphics.gpus and not wheels_fit(case)):
        return []
    options = ("--cuda", WHEELS) if case.machine.graphics.gpus else ("--cuda", WHEELS, "--arch", "8.6")
    text = f"let caffeup lay out CUDA {release.cuda} from NVIDIA's wheels in your folder"
    return [remedy(text, case.again(*options), by_caffeup=True)]


def _newer_driver(case: Case) -> list[Remedy]:
    """Where only the driver keeps caffeup from laying out a toolkit itself."""
    release, graphics = wheels_release(case), case.machine.graphics
    if release is None or not graphics.gpus:
        return []
    known = case.facts.compute_capabilities(release.cuda)
    if any(gpu.compute_capability not in known for gpu in graphics.gpus):
        return []
    driver = case.facts.minimum_driver(release.cuda)
    return [remedy(f"or install driver {driver} or newer, and restart: caffeup can then lay out CUDA {release.cuda} itself")]


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
