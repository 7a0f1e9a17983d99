"""What nvcc compiles for: SASS for the GPUs that are there, and PTX of the newest for those to come."""

from __future__ import annotations

from typing import Optional

from caffeup.model.base import ComputeCapability, Value
from caffeup.model.finding import Finding
from caffeup.model.machine import GpuState, Toolkit
from caffeup.plan.case import Case
from caffeup.plan.fitness import ptx_of, sass_of
from caffeup.plan.part import Part, conflict, decision, line, note, remedy


class Arch(Value, kw_only=True):
    """The decision."""

    sass: tuple[ComputeCapability, ...] = ()
    ptx: Optional[ComputeCapability] = None
    part: Part = Part()


def choose_arch(case: Case, toolkit: Toolkit) -> Arch:
    """From --arch, else from the GPUs that are visible; without both it is asked for."""
    words = tuple(dict.fromkeys(word for text in case.request.arch for word in text.replace(",", " ").split()))
    if not words or words == ("native",):
        return _native(case, toolkit, asked=bool(words))
    if words == ("all",):
        return _all(case, toolkit, "asked for with --arch all")
    return _listed(words, case, toolkit)


def gencode(sass: tuple[ComputeCapability, ...], ptx: Optional[ComputeCapability]) -> tuple[str, ...]:
    """The words for CUDA_ARCH. There is no compute_21: 2.1 is compiled by way of compute_20."""
    words = []
    for cc in sass:
        virtual = "20" if str(cc) == "2.1" else cc.code
        words += ["-gencode", f"arch=compute_{virtual},code=sm_{cc.code}"]
    if ptx is not None:
        words += ["-gencode", f"arch=compute_{ptx.code},code=compute_{ptx.code}"]
    return tuple(words)


def _native(case: Case, toolkit: Toolkit, *, asked: bool) -> Arch:
    gpus = [(gpu.name, cc) for gpu in case.machine.graphics.gpus if (cc := _capability(gpu.name, gpu.compute_capability, case))]
    if not gpus:
        if case.request.yes and not asked:
            return _all(case, toolkit, "no GPU is visible, so for every GPU that this toolkit knows (--yes)")
        return _needed(case, toolkit)
    sass: set[ComputeCapability] = set()
    jit: set[ComputeCapability] = set()
    notes = []
    known, virtual = sass_of(toolkit, case), ptx_of(toolkit, case)
    for name, cc in dict.fromkeys(gpus):
        if cc in known:
            sass.add(cc)
            continue
        older = [one for one in virtual if one <= cc and (case.facts.desktop(one) or one == cc)]
        if known and cc < min(known):
            continue  # the toolkit's conflict says it
        if older:
            jit.add(max(older))
            sass |= _runs_natively(cc, known, case)
            notes.append(_newer(name, cc, max(older), toolkit, case))
    if not sass and not jit:
        return Arch()
    newest = max((cc for cc in sass if cc in virtual), default=None)
    ptx = min(jit) if jit else newest
    because = ", ".join(dict.fromkeys(f"{name} ({cc})" for name, cc in gpus))
    return _arch(tuple(sorted(sass)), ptx, f"the GPUs that are here: {because}", tuple(notes))


def _capability(name: str, told: Optional[ComputeCapability], case: Case) -> Optional[ComputeCapability]:
    return told or case.facts.gpu_by_name(name)


def _runs_natively(cc: ComputeCapability, known: tuple[ComputeCapability, ...], case: Case) -> set[ComputeCapability]:
    """SASS of the same major and a lower minor runs as it is, except from and to Jetson boards."""
    if not case.facts.desktop(cc):
        return set()
    same = [one for one in known if one.major == cc.major and one < cc and case.facts.desktop(one)]
    return {max(same)} if same else set()


def _newer(name: str, cc: ComputeCapability, ptx: ComputeCapability, toolkit: Toolkit, case: Case) -> Finding:
    wanted = case.facts.toolkits_for(cc)
    better = f"A toolkit that knows it: CUDA {wanted.words()}." if wanted else "A newer toolkit may know it."
    return note(
        "gpu-newer",
        f"{name} ({cc}) is newer than CUDA {toolkit.version}: it gets PTX of {ptx}",
        f"The driver compiles PTX for the card at the first start, which takes a minute or more. {better}",
        remedies=(remedy(f"install CUDA {wanted.low} or newer"),) if wanted and wanted.low else (),
    )


def _needed(case: Case, toolkit: Toolkit) -> Arch:
    unnamed = [gpu.name for gpu in case.machine.graphics.gpus]
    seen = f"the compute capability of {', '.join(unnamed)} is not known" if unnamed else "no GPU is visible"
    known = sass_of(toolkit, case)
    example = str(max((cc for cc in known if case.facts.desktop(cc)), default="8.6"))
    ways = [remedy("name the compute capability of the GPU that it will run on", case.again("--arch", example))]
    ways.append(remedy("or build for every GPU that this toolkit knows; it takes longer", case.again("--arch", "all")))
    if case.machine.graphics.state is GpuState.HIDDEN:
        ways.append(remedy("or start the container with its GPUs (docker run --gpus all …)"))
    if case.tree.cpu_only:
        ways.append(remedy("or build without the GPU", case.again("--cpu")))
    title = f"for which GPU? There is CUDA {toolkit.version}, but {seen}"
    return Arch(part=Part(conflicts=(conflict("arch-needed", title, remedies=ways),)))


def _all(case: Case, toolkit: Toolkit, because: str) -> Arch:
    jetson = bool(case.machine.system.jetson)
    every = tuple(cc for cc in sass_of(toolkit, case) if jetson or case.facts.desktop(cc))
    newest = max((cc for cc in every if cc in ptx_of(toolkit, case)), default=None)
    return _arch(tuple(sorted(every)), newest, because, ())


def _listed(words: tuple[str, ...], case: Case, toolkit: Toolkit) -> Arch:
    here = _native(case, toolkit, asked=True) if "native" in words else Arch()
    sass = set(here.sass)
    conflicts = list(here.part.conflicts)
    known = sass_of(toolkit, case)
    for word in words:
        if word == "native":
            continue
        try:
            cc = ComputeCapability.parse(word)
        except ValueError:
            ways = (remedy("write compute capabilities, native, or all", case.again("--arch", "8.6,8.9")),)
            conflicts.append(conflict("arch-unknown", f"not a compute capability: {word!r}", remedies=ways))
            continue
        if known and cc not in known:
            conflicts.append(_not_supported(cc, known, toolkit, case))
        else:
            sass.add(cc)
    newest = max((cc for cc in sass if cc in ptx_of(toolkit, case)), default=None)
    if here.ptx is not None and here.ptx not in sass:
        newest = here.ptx  # a GPU that is here runs on nothing else
    notes = (*here.part.notes, *_idle(case, sass))
    arch = _arch(tuple(sorted(sass)), newest, f"asked for with --arch {','.join(words)}", notes)
    return Arch(
        sass=arch.sass,
        ptx=arch.ptx,
        part=Part(decisions=arch.part.decisions, config=arch.part.config, notes=arch.part.notes, conflicts=tuple(conflicts)),
    )


def _not_supported(cc: ComputeCapability, known: tuple[ComputeCapability, ...], toolkit: Toolkit, case: Case) -> Finding:
    wanted = case.facts.toolkits_for(cc)
    why = f"It compiles for {', '.join(str(one) for one in known)}."
    ways = [remedy(f"use CUDA {wanted.words()}")] if wanted else []
    fitting = [str(one) for one in known if one <= cc]
    if fitting:
        ways.append(remedy("or build for an older one, whose PTX a newer card can use", case.again("--arch", fitting[-1])))
    return conflict("arch-not-supported", f"CUDA {toolkit.version} does not compile for {cc}", why, remedies=ways)


def _idle(case: Case, sass: set[ComputeCapability]) -> tuple[Finding, ...]:
    if not sass:
        return ()
    newest = max(sass)
    idle = []
    for gpu in case.machine.graphics.gpus:
        cc = gpu.compute_capability
        if cc is None or cc in sass or cc > newest or any(one.major == cc.major and one < cc for one in sass):
            continue
        title = f"no code for {gpu.name} ({cc}), which is in this machine"
        idle.append(note("gpu-left-out", title, f"--arch asks for {', '.join(map(str, sorted(sass)))} only."))
    return tuple(dict.fromkeys(idle))


def _arch(
    sass: tuple[ComputeCapability, ...], ptx: Optional[ComputeCapability], because: str, notes: tuple[Finding, ...]
) -> Arch:
    words = ", ".join([*(str(cc) for cc in sass), *([f"PTX of {ptx}"] if ptx else [])])
    config = (line("CUDA_ARCH", *gencode(sass, ptx), because=because),) if words else ()
    rows = f"gpus.toml#{max(sass)}" if sass else ""
    part = Part(decisions=(decision("arch", words, because, fact=rows),), config=config, notes=notes)
    return Arch(sass=sass, ptx=ptx, part=part)
