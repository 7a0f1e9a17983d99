"""Which CUDA toolkit compiles, and why not the others."""

from __future__ import annotations

from typing import Optional

from packaging.version import InvalidVersion, Version

from caffeup.model.base import ComputeCapability, Value
from caffeup.model.finding import Evidence, Finding, Remedy
from caffeup.model.machine import Toolkit, ToolkitLayout
from caffeup.model.plan import Alternative
from caffeup.plan.case import Case
from caffeup.plan.cuda_links import reach
from caffeup.plan.fitness import Problem, driver_too_old, problems, sass_of
from caffeup.plan.mode import no_toolkit, toolkit_to_install
from caffeup.plan.part import Part, conflict, decision, line, note, remedy
from caffeup.plan.places import LINKS
from caffeup.plan.wheels import WHEELS, wheels_fit, wheels_release


class Choice(Value, kw_only=True):
    """The toolkit, how it is reached from the tree, and what it contributes."""

    toolkit: Optional[Toolkit] = None
    include_dirs: tuple[str, ...] = ()
    library_dirs: tuple[str, ...] = ()
    part: Part = Part()


def choose_toolkit(case: Case) -> Choice:
    """The one with the fewest problems; then the environment's own, then one that was installed, then the newest."""
    asked, candidates = _asked_for(case)
    if asked is not None:
        return Choice(part=Part(conflicts=(asked,)))
    if not case.request.cuda:
        candidates = tuple(one for one in candidates if one.nvcc)  # wheels for CUDA 11 and 12 hold no compiler: not a toolkit
    if not candidates:
        return Choice(part=Part(conflicts=(no_toolkit(case),)))
    judged = [(one, problems(one, case)) for one in candidates]
    judged.sort(key=lambda pair: (sum(p.weight for p in pair[1]), *_rank(pair[0])))
    best, faults = judged[0]
    rejected = [
        Alternative(value=f"CUDA {one.version} in {one.root}", because="; ".join(p.words for p in bad) or _lesser(one, best))
        for one, bad in judged[1:]
    ]
    because = _because(best, case, alone=len(judged) == 1)
    place = reach(best, case)
    return Choice(
        toolkit=best,
        include_dirs=place.include_dirs,
        library_dirs=place.library_dirs,
        part=Part(
            decisions=(decision("toolkit", f"CUDA {best.version} in {best.root}", because, rejected=rejected),),
            config=(line("CUDA_DIR", f"{LINKS}/cuda", because=f"CUDA {best.version}, reached through a link in the tree"),)
            if case.reads("CUDA_DIR")
            else (),
            links=place.links,
            conflicts=tuple(finding for fault in faults if (finding := _conflict(fault, best, case)) is not None),
            notes=_notes(best, case),
            run_paths=place.run_paths,
        ),
    )


def _asked_for(case: Case) -> tuple[Optional[Finding], tuple[Toolkit, ...]]:
    wanted = case.request.cuda.rstrip("/")
    every = case.machine.toolkits
    if not wanted:
        return None, every
    if wanted == WHEELS:
        fitting = tuple(one for one in every if one.layout is ToolkitLayout.LAID_OUT)
    else:
        fitting = tuple(
            one for one in every if wanted in (one.root.rstrip("/"), one.evidence.rstrip("/")) or _is_version(one, wanted)
        )
    if fitting:
        return None, fitting
    if wanted == WHEELS:
        why = "They are made for x86_64 and aarch64 with a recent glibc, not for Jetson boards, and need a home folder."
        ways = (remedy(f"install a CUDA toolkit: {toolkit_to_install(case)}"),)
        return conflict("wheels-not-for-here", "NVIDIA's wheels are not made for this machine", why, remedies=ways), ()
    there = tuple(Evidence(where=one.root, text=f"CUDA {one.version}, {one.via}") for one in every)
    return conflict("toolkit-not-found", f"no CUDA toolkit {wanted!r}", evidence=there, remedies=_instead(wanted, case)), ()


def _instead(wanted: str, case: Case) -> tuple[Remedy, ...]:
    """What can be had in place of a toolkit that is not here."""
    ways = [remedy(f"take CUDA {one.version}, which is here", case.again("--cuda", one.root)) for one in case.machine.toolkits]
    release = wheels_release(case)
    if release is not None and (not case.machine.graphics.gpus or wheels_fit(case)):
        arch = () if case.machine.graphics.gpus or not case.request.arch else ("--arch", ",".join(case.request.arch))
        text = f"let caffeup lay out CUDA {release.cuda} from NVIDIA's wheels in your folder"
        ways.append(remedy(text, case.again("--cuda", WHEELS, *arch), by_caffeup=True))
    if wanted[:1].isdigit():
        ways.append(remedy(f"install CUDA {wanted} from NVIDIA"))
    if case.tree.cpu_only:
        ways.append(remedy("build without the GPU", case.again("--cpu")))
    return tuple(ways)


def _is_version(toolkit: Toolkit, text: str) -> bool:
    try:
        wanted = Version(text)
    except InvalidVersion:
        return False
    return toolkit.version.release[: len(wanted.release)] == wanted.release


def _by_environment(toolkit: Toolkit) -> bool:
    return toolkit.via.startswith("env ")


def _rank(one: Toolkit) -> tuple[bool, bool, tuple[int, ...]]:
    """The lowest first; what caffeup laid out gives way to what somebody installed."""
    return not _by_environment(one), one.layout is ToolkitLayout.LAID_OUT, tuple(-part for part in one.version.release)


def _lesser(one: Toolkit, best: Toolkit) -> str:
    if _by_environment(best) and not _by_environment(one):
        return f"the environment names the other one ({best.via})"
    if one.layout is ToolkitLayout.LAID_OUT and best.layout is not ToolkitLayout.LAID_OUT:
        return "caffeup's own gives way to one that was installed; --cuda wheels takes it"
    return "the chosen one is newer" if one.version < best.version else "found after the chosen one"


def _because(best: Toolkit, case: Case, *, alone: bool) -> str:
    if case.request.cuda:
        return f"asked for with --cuda {case.request.cuda}"
    if case.lay_out:
        return "no toolkit is installed, and driver and GPU can use this one"
    if alone:
        return f"the only one ({best.via})"
    if _by_environment(best):
        return f"named by the environment ({best.via}) and fit for this machine"
    gpus = [gpu for gpu in case.machine.graphics.gpus if gpu.compute_capability is not None]
    return f"the newest that fits the GPU and driver ({best.via})" if gpus else f"the newest that is complete ({best.via})"


def _conflict(fault: Problem, best: Toolkit, case: Case) -> Optional[Finding]:
    root = Evidence(where=best.root, text=f"CUDA {best.version}")
    cpu = (remedy("build without the GPU", case.again("--cpu")),) if case.tree.cpu_only else ()
    if fault.id in ("no-nvcc", "toolkit-incomplete"):
        why = "Caffe needs nvcc, cudart, cuBLAS and cuRAND to build for a GPU."
        title = f"the CUDA toolkit in {best.root}: {fault.words}"
        return conflict("toolkit-incomplete", title, why, evidence=(root,), remedies=(*_fill(best, case), *cpu))
    if fault.id == "driver-too-old":
        return _old_driver(best, case)
    if fault.id == "gpu-dropped" and not case.request.arch:
        return _dropped(fault, best, case)
    return None  # gpu-newer is a note of the arch decision, the compiler's of its own


def _fill(best: Toolkit, case: Case) -> tuple[Remedy, ...]:
    version = f"{best.version.major}-{best.version.minor}"
    ways = []
    if wheels_fit(case):
        ways.append(remedy("use a complete CUDA 13 from NVIDIA's own wheels", case.again("--cuda", WHEELS), by_caffeup=True))
    ways.append(
        remedy(f"install the rest of CUDA {best.version.major}.{best.version.minor} (NVIDIA's package cuda-toolkit-{version})")
    )
    return tuple(ways)


def _old_driver(best: Toolkit, case: Case) -> Finding:
    driver = case.machine.graphics.driver
    has = f"{driver.release or 'of unknown number'}" if driver else "none"
    supports = f" and supports CUDA up to {driver.cuda}" if driver and driver.cuda else ""
    needed = driver_too_old(best, case)
    ways = [remedy(f"install driver {needed} or newer, and restart")]
    ways.append(remedy(f"or a toolkit that this driver supports: {toolkit_to_install(case)}"))
    return conflict(
        "driver-too-old",
        f"the driver is too old for CUDA {best.version}",
        f"The driver is {has}{supports}; CUDA {best.version} needs {needed} or newer.",
        evidence=(Evidence(where=driver.evidence or driver.via, text=has),) if driver else (),
        remedies=ways,
    )


def _dropped(fault: Problem, best: Toolkit, case: Case) -> Finding:
    ways = []
    for gpu in case.machine.graphics.gpus:
        cc = gpu.compute_capability
        known = sass_of(best, case)
        if cc is None or not known or cc >= min(known):
            continue
        wanted, branch = case.facts.toolkits_for(cc), case.facts.last_driver_for(cc)
        last = _last_release(cc, case)
        toolkit = f"CUDA {last} or older" if last else (f"CUDA {wanted.words()}" if wanted else "an older CUDA")
        text = f"install {toolkit} beside it, for {gpu.name} ({cc})"
        text += f", with a driver of branch {branch}, the last one for {case.facts.family(cc)}" if branch else ""
        ways.append(remedy(text, case.again("--cuda", str(last))) if last else remedy(text))
    left = [str(g.compute_capability) for g in case.machine.graphics.gpus if g.compute_capability in sass_of(best, case)]
    if left:
        ways.append(remedy("build for the other GPUs only", case.again("--arch", ",".join(dict.fromkeys(left)))))
    if case.tree.cpu_only:
        ways.append(remedy("build without the GPU", case.again("--cpu")))
    return conflict(
        "gpu-dropped", f"CUDA {best.version}: {fault.words}", "Neither SASS nor PTX of it runs on an older card.", remedies=ways
    )


def _last_release(cc: ComputeCapability, case: Case) -> Optional[Version]:
    wanted = case.facts.toolkits_for(cc)
    releases = case.facts.releases_in(wanted) if wanted is not None and wanted.high is not None else ()
    return releases[-1] if releases else None


def _notes(best: Toolkit, case: Case) -> tuple[Finding, ...]:
    return (*_older_driver(best, case), *_differing_facts(best, case))


def _older_driver(best: Toolkit, case: Case) -> tuple[Finding, ...]:
    """Within one major an older driver runs SASS, but cannot compile the PTX of a newer toolkit."""
    driver = case.machine.graphics.driver
    if driver is None or driver.cuda is None or driver.cuda.release[:2] >= best.version.release[:2] or driver_too_old(best, case):
        return ()
    title = f"the driver supports CUDA {driver.cuda}, the toolkit is {best.version}: code for the GPUs here runs, PTX does not"
    ways = (remedy(f"for PTX, install driver {case.facts.driver_of(best.version) or 'of the same CUDA'} or newer"),)
    return (note("driver-without-ptx", title, "What was built runs on the GPUs it was built for only.", remedies=ways),)


def _differing_facts(best: Toolkit, case: Case) -> tuple[Finding, ...]:
    if not best.asked or not best.sass:
        return ()
    table = case.facts.compute_capabilities(best.version)
    fresh = [str(cc) for cc in best.sass if cc not in table and case.facts.known(cc)]
    if not fresh:
        return ()
    title = f"nvcc {best.version} compiles for {', '.join(fresh)}, which the table of facts does not say"
    return (note("facts-differ", title, "The toolkit's own answer is used.", evidence=(Evidence(where=best.nvcc),)),)
