"""Which CUDA toolkit compiles, and why not the others."""

from __future__ import annotations

from posixpath import dirname
from typing import Optional

from packaging.version import InvalidVersion, Version

from caffeup.model.base import ComputeCapability, Value
from caffeup.model.finding import Evidence, Finding, Remedy
from caffeup.model.machine import Toolkit, ToolkitLayout
from caffeup.model.plan import Alternative, Link
from caffeup.plan.case import Case
from caffeup.plan.mode import no_toolkit, toolkit_to_install, wheels_fit
from caffeup.plan.part import Part, conflict, decision, line, note, remedy
from caffeup.plan.places import LINKS, Placed, linked_anyway, loaded_anyway, placed, searched_anyway, under


class Problem(Value, kw_only=True):
    """What is wrong with one toolkit for this machine."""

    id: str
    words: str
    weight: int
    """How bad; the sum decides between toolkits."""


class Choice(Value, kw_only=True):
    """The toolkit, how it is reached from the tree, and what it contributes."""

    toolkit: Optional[Toolkit] = None
    include_dirs: tuple[str, ...] = ()
    library_dirs: tuple[str, ...] = ()
    part: Part = Part()


def choose_toolkit(case: Case) -> Choice:
    """The one with the fewest problems; then the environment's own, then the newest."""
    asked, candidates = _asked_for(case)
    if asked is not None:
        return Choice(part=Part(conflicts=(asked,)))
    if not case.request.cuda:
        candidates = tuple(one for one in candidates if one.nvcc)  # wheels for CUDA 11 and 12 hold no compiler: not a toolkit
    if not candidates:
        return Choice(part=Part(conflicts=(no_toolkit(case),)))
    judged = [(one, problems(one, case)) for one in candidates]
    judged.sort(key=lambda pair: (sum(p.weight for p in pair[1]), not _by_environment(pair[0]), _descending(pair[0].version)))
    best, faults = judged[0]
    rejected = [
        Alternative(value=f"CUDA {one.version} in {one.root}", because="; ".join(p.words for p in bad) or _lesser(one, best))
        for one, bad in judged[1:]
    ]
    because = _because(best, case, alone=len(judged) == 1)
    place = _reach(best, case)
    return Choice(
        toolkit=best,
        include_dirs=place.include_dirs,
        library_dirs=place.library_dirs,
        part=Part(
            decisions=(decision("toolkit", f"CUDA {best.version} in {best.root}", because, rejected=rejected),),
            config=(line("CUDA_DIR", f"{LINKS}/cuda", because=f"CUDA {best.version}, reached through a link in the tree"),)
            if case.reads("CUDA_DIR")
            else (),
            links=place.part.links,
            conflicts=tuple(finding for fault in faults if (finding := _conflict(fault, best, case)) is not None),
            notes=_notes(best, case),
            run_paths=place.part.run_paths,
        ),
    )


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


def _asked_for(case: Case) -> tuple[Optional[Finding], tuple[Toolkit, ...]]:
    wanted = case.request.cuda.rstrip("/")
    every = case.machine.toolkits
    if not wanted:
        return None, every
    if wanted == "wheels":
        fitting = tuple(one for one in every if one.layout is ToolkitLayout.WHEELS and one.nvcc)
    else:
        fitting = tuple(
            one for one in every if wanted in (one.root.rstrip("/"), one.evidence.rstrip("/")) or _is_version(one, wanted)
        )
    if fitting:
        return None, fitting
    there = tuple(Evidence(where=one.root, text=f"CUDA {one.version}, {one.via}") for one in every)
    title = "CUDA from wheels is not laid out yet" if wanted == "wheels" else f"no CUDA toolkit {wanted!r}"
    ways = (remedy("name a root or a version of a toolkit that is installed", case.again()),)
    return conflict("toolkit-not-found", title, evidence=there, remedies=ways), ()


def _is_version(toolkit: Toolkit, text: str) -> bool:
    try:
        wanted = Version(text)
    except InvalidVersion:
        return False
    return toolkit.version.release[: len(wanted.release)] == wanted.release


def _by_environment(toolkit: Toolkit) -> bool:
    return toolkit.via.startswith("env ")


def _descending(version: Version) -> tuple[int, ...]:
    return tuple(-part for part in version.release)


def _has_compiler(toolkit: Toolkit, case: Case) -> bool:
    limit, clang = newest_gcc(toolkit, case), newest_clang(toolkit, case)
    return any(
        one.works and (limit is None or one.version.major <= limit)
        if one.kind == "gcc"
        else clang is not None and one.version.major <= clang
        for one in case.machine.compilers
    )


def _lesser(one: Toolkit, best: Toolkit) -> str:
    if _by_environment(best) and not _by_environment(one):
        return f"the environment names the other one ({best.via})"
    return "the chosen one is newer" if one.version < best.version else "found after the chosen one"


def _because(best: Toolkit, case: Case, *, alone: bool) -> str:
    if case.request.cuda:
        return f"asked for with --cuda {case.request.cuda}"
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
        ways.append(remedy("use a complete CUDA 13 from NVIDIA's own wheels", case.again("--cuda", "wheels"), by_caffeup=True))
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
    if not best.asked or not best.sass:
        return ()
    table = case.facts.compute_capabilities(best.version)
    fresh = [str(cc) for cc in best.sass if cc not in table and case.facts.known(cc)]
    if not fresh:
        return ()
    title = f"nvcc {best.version} compiles for {', '.join(fresh)}, which the table of facts does not say"
    return (note("facts-differ", title, "The toolkit's own answer is used.", evidence=(Evidence(where=best.nvcc),)),)


def _reach(best: Toolkit, case: Case) -> Choice:
    """Links to it, and the folders that Caffe's Makefile does not add by itself."""
    system = case.machine.system
    includes = [path for path in best.include_dirs if not searched_anyway(path, system) and not case.mixed(path)]
    libraries = [path for path in best.library_dirs if not linked_anyway(path, system) and not path.endswith("/stubs")]
    libraries = [path for path in libraries if not case.mixed(path)]
    if (
        best.nvcc == f"{best.root}/bin/nvcc"
        and best.layout is not ToolkitLayout.CONDA
        and best.root not in ("/usr", "/usr/local")
    ):
        return _whole(best, includes, libraries, case)
    links = [Link(name="cuda/bin", target=dirname(best.nvcc) or best.root)]
    links += [Link(name="cuda/include", target=includes[0])] if includes else []
    links += [Link(name="cuda/lib64", target=libraries[0])] if libraries else []
    more_includes = _placed(includes[1:], "cuda-include", case)
    more_libraries = _placed(libraries[1:], "cuda-lib", case)
    runs = (f"{LINKS}/cuda/lib64",) if libraries and not loaded_anyway(libraries[0], system) else ()
    return Choice(
        include_dirs=tuple(one.name for one in more_includes),
        library_dirs=tuple(one.name for one in more_libraries),
        part=Part(links=(*links, *(link for one in (*more_includes, *more_libraries) for link in one.links)), run_paths=runs),
    )


def _whole(best: Toolkit, includes: list[str], libraries: list[str], case: Case) -> Choice:
    """The root as one link; its include, lib64 and lib are added by the Makefile."""
    own_includes = [(under(path, best.root, "cuda"), path) for path in includes]
    own_libraries = [(under(path, best.root, "cuda"), path) for path in libraries]
    other_includes = _placed([path for name, path in own_includes if name is None], "cuda-include", case)
    other_libraries = _placed([path for name, path in own_libraries if name is None], "cuda-lib", case)
    usual = (f"{LINKS}/cuda/lib64", f"{LINKS}/cuda/lib")
    inner_includes = [name for name, _ in own_includes if name is not None and name != f"{LINKS}/cuda/include"]
    inner_libraries = [name for name, _ in own_libraries if name is not None]
    runs = inner_libraries or list(usual[:1])
    return Choice(
        include_dirs=(*inner_includes, *(one.name for one in other_includes)),
        library_dirs=(*(name for name in inner_libraries if name not in usual), *(one.name for one in other_libraries)),
        part=Part(
            links=(
                Link(name="cuda", target=best.root),
                *(link for one in (*other_includes, *other_libraries) for link in one.links),
            ),
            run_paths=(*runs, *(one.name for one in other_libraries)),
        ),
    )


def _placed(paths: list[str], label: str, case: Case) -> list[Placed]:
    return [placed(path, f"{label}-{at}", case.machine.prefixes) for at, path in enumerate(paths)]
