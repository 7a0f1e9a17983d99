"""Whether cuDNN is used, and which header with which library."""

from __future__ import annotations

from typing import Optional

from packaging.version import Version

from caffeup.model.base import ComputeCapability, Value
from caffeup.model.finding import Evidence, Finding
from caffeup.model.machine import CudnnHeader, CudnnLibrary, Toolkit
from caffeup.model.plan import Alternative, ConfigLine, Link, Switch
from caffeup.plan.case import Case
from caffeup.plan.part import Part, conflict, decision, line, note, remedy
from caffeup.plan.places import linked_anyway, loaded_anyway, placed, searched_anyway, under

_OLDEST, _BEYOND = 5, 10
_COST = "Layers that cuDNN runs need a GPU: without one, a net needs `engine: CAFFE` in every layer."


class Cudnn(Value, kw_only=True):
    """The decision."""

    version: Optional[Version] = None
    """None: off."""
    include_dirs: tuple[str, ...] = ()
    library_dirs: tuple[str, ...] = ()
    part: Part = Part()


class Pair(Value, kw_only=True):
    """A header and the library that would go with it."""

    header: CudnnHeader
    library: Optional[CudnnLibrary]
    fault: str = ""


def choose_cudnn(case: Case, toolkit: Optional[Toolkit], sass: tuple[ComputeCapability, ...]) -> Cudnn:
    """On where a header and a library agree and fit toolkit, GPU and tree; off with the reason otherwise."""
    if toolkit is None:
        wanted = case.request.cudnn is Switch.ON
        clash = conflict(
            "cudnn-without-cuda", "cuDNN was asked for, but this is a build without CUDA", remedies=(remedy("leave out --cudnn"),)
        )
        return Cudnn(
            part=Part(decisions=(decision("cudnn", "off", "no CUDA in this build"),), conflicts=(clash,) if wanted else ())
        )
    if case.request.cudnn is Switch.OFF:
        return _off(case, "asked for with --no-cudnn: less GPU memory, slower convolutions", ())
    if not case.reads("USE_CUDNN"):
        return _off(case, "this tree's Makefile has no USE_CUDNN", ())
    if "cudnn-before-4" in case.tree.features:
        return _off(case, "this tree's cuDNN layers are written for cuDNN 1 to 3, whose functions are gone", ())
    targets = _targets(case, sass)
    pairs = [_pair(header, case, toolkit, targets) for header in case.machine.cudnn_headers]
    good = [pair for pair in pairs if not pair.fault]
    if not good:
        because = pairs[0].fault if pairs else "no cudnn.h"
        return _off(case, because, tuple(_alternative(pair) for pair in pairs))
    best = min(good, key=lambda pair: (_rank(pair.header, case, toolkit), tuple(-part for part in pair.header.version.release)))
    rejected = tuple(_alternative(pair) for pair in pairs if pair is not best)
    return _on(case, toolkit, best, rejected)


def _targets(case: Case, sass: tuple[ComputeCapability, ...]) -> tuple[ComputeCapability, ...]:
    """GPUs that cuDNN must serve: those that are here; else those asked for by number. `all` asks for no certain one."""
    here = tuple(gpu.compute_capability for gpu in case.machine.graphics.gpus if gpu.compute_capability is not None)
    by_number = [word for word in case.request.arch if word not in ("all", "native")]
    if by_number:
        return sass
    return tuple(dict.fromkeys(here))


def _pair(header: CudnnHeader, case: Case, toolkit: Toolkit, targets: tuple[ComputeCapability, ...]) -> Pair:
    fault = _unfit(header, case, toolkit, targets)
    if fault:
        return Pair(header=header, library=None, fault=fault)
    shadow = _shadowed_by(header, case, toolkit)
    if shadow:
        return Pair(header=header, library=None, fault=f"the compiler sees {shadow} first")
    linkable = _linkable(case, toolkit)
    agreeing = [one for one in linkable if one.version is None or _agree(header.version, one.version)]
    if agreeing:
        near = sorted(agreeing, key=lambda one: (one.version is None, _distance(header.directory, one.directory)))
        return Pair(header=header, library=near[0])
    others = [
        one for one in case.machine.cudnn_libraries if one not in linkable and one.version and _agree(header.version, one.version)
    ]
    if others:
        return Pair(header=header, library=None, fault=f"{others[0].file} has no libcudnn.so beside it to link with")
    have = ", ".join(f"{one.version or 'of unknown version'} in {one.directory}" for one in case.machine.cudnn_libraries)
    because = (
        f"cudnn.h is {header.version} ({header.directory}), but the library is {have}"
        if have
        else "there is a cudnn.h and no libcudnn"
    )
    return Pair(header=header, library=None, fault=because)


def _linkable(case: Case, toolkit: Toolkit) -> list[CudnnLibrary]:
    """Libraries that -lcudnn can come to: not those of another toolkit or of conda, nor what the toolkit's own hides."""
    found = [one for one in case.machine.cudnn_libraries if one.linkable and not case.mixed(one.directory)]
    found = [one for one in found if not _of_other_toolkit(one.directory, case, toolkit)]
    own = [one for one in found if under(one.directory, toolkit.root, "cuda") is not None and toolkit.root != "/usr"]
    hidden = [one for one in found if own and linked_anyway(one.directory, case.machine.system)]
    return [one for one in found if one not in hidden]


def _unfit(header: CudnnHeader, case: Case, toolkit: Toolkit, targets: tuple[ComputeCapability, ...]) -> str:
    version = header.version
    if not _OLDEST <= version.major < _BEYOND:
        return f"cuDNN {version} is not one of 5 to 9, which Caffe can be made to compile with"
    if case.mixed(header.directory):
        return f"{header.directory} holds conda's other headers too; name it with --prefix to build with conda's"
    if _of_other_toolkit(header.directory, case, toolkit):
        return f"{header.directory} belongs to another toolkit than the chosen one"
    if case.facts.cudnn_supports(version, toolkit.version) is False:
        return f"cuDNN {version} is made for CUDA {case.facts.cudnn_needs(version).removeprefix('CUDA ')}, not {toolkit.version}"
    for cc in targets:
        if case.facts.cudnn_supports(version, toolkit.version, cc) is False:
            coded = case.facts.cudnn_for(cc)
            if coded is not None and version not in coded:
                return f"cuDNN {version} holds no code for compute capability {cc}: that takes {coded.words()}"
            return f"cuDNN {version} does not support compute capability {cc}: it needs {case.facts.cudnn_needs(version)}"
    return ""


def _agree(header: Version, library: Version) -> bool:
    """A library of the same major serves older headers too; a library older than its header lacks functions."""
    told = min(len(library.release), 2)  # a library's name may tell its major alone
    return header.major == library.major and library.release[:told] >= header.release[:told]


def _of_other_toolkit(directory: str, case: Case, toolkit: Toolkit) -> bool:
    if under(directory, toolkit.root, "cuda") is not None:
        return False
    roots = [one.root for one in case.machine.toolkits if one.root not in ("/usr", toolkit.root)]
    return any(under(directory, root, "cuda") is not None for root in roots)


def _shadowed_by(header: CudnnHeader, case: Case, toolkit: Toolkit) -> str:
    """A toolkit's own cudnn.h is found before one in a folder that the compiler searches by itself."""
    if not searched_anyway(header.directory, case.machine.system):
        return ""
    for other in case.machine.cudnn_headers:
        if other.version != header.version and other.directory in (f"{toolkit.root}/include", *toolkit.include_dirs):
            return f"{other.directory}/cudnn.h ({other.version})"
    return ""


def _rank(header: CudnnHeader, case: Case, toolkit: Toolkit) -> int:
    if any(under(header.directory, prefix, "x") is not None for prefix in case.machine.prefixes):
        return 0
    if under(header.directory, toolkit.root, "cuda") is not None and toolkit.root != "/usr":
        return 1
    return 2


def _distance(header: str, library: str) -> tuple[int, str]:
    common = 0
    for one, two in zip(header.split("/"), library.split("/")):
        if one != two:
            break
        common += 1
    return -common, library


def _alternative(pair: Pair) -> Alternative:
    return Alternative(
        value=f"cuDNN {pair.header.version} in {pair.header.directory}", because=pair.fault or "the chosen one comes first"
    )


def _on(case: Case, toolkit: Toolkit, best: Pair, rejected: tuple[Alternative, ...]) -> Cudnn:
    header, library = best.header, best.library
    assert library is not None  # noqa: S101 - a pair without a library has a fault
    system, prefixes = case.machine.system, case.machine.prefixes
    links: list[Link] = []
    includes: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    if under(header.directory, f"{toolkit.root}/include", "x") is None and not searched_anyway(header.directory, system):
        place = placed(header.directory, "cudnn-include", prefixes)
        links += place.links
        includes = (place.name,)
    runs: tuple[str, ...] = ()
    own = (f"{toolkit.root}/lib64", f"{toolkit.root}/lib")
    if library.directory not in own and not linked_anyway(library.directory, system):
        place = placed(library.directory, "cudnn-lib", prefixes)
        links += place.links
        libraries = (place.name,)
        runs = () if loaded_anyway(library.directory, system) else libraries
    because = (
        f"header and library of one release: {header.directory} ({header.via}), {library.file} {library.version or ''}".rstrip()
    )
    notes = [note("cudnn-needs-gpu", "a net that uses cuDNN does not run without a GPU", _COST)]
    if (
        library.version is not None
        and len(library.version.release) > 1
        and library.version.release[:2] != header.version.release[:2]
    ):
        title = f"cudnn.h is {header.version}, the library {library.version}: newer, which is allowed"
        notes.append(note("cudnn-differ", title, evidence=(Evidence(where=header.directory), Evidence(where=library.file))))
    return Cudnn(
        version=header.version,
        include_dirs=includes,
        library_dirs=libraries,
        part=Part(
            decisions=(decision("cudnn", str(header.version), because, rejected=rejected),),
            config=(
                line("USE_CUDNN", "1", because=f"cuDNN {header.version}: header and library of one release"),
                *_tf32(case, header.version),
            ),
            links=tuple(links),
            notes=tuple(notes),
            run_paths=runs,
        ),
    )


def _tf32(case: Case, version: Version) -> tuple[ConfigLine, ...]:
    """From cuDNN 8 on convolutions may round to TF32 by themselves; the shim keeps them from it unless this is defined."""
    if not case.request.tf32 or version.major < 8:
        return ()
    return (line("COMMON_FLAGS", "-DCAFFEUP_TF32=1", because="asked for with --tf32: faster, and less exact", operator="+="),)


def _off(case: Case, because: str, rejected: tuple[Alternative, ...]) -> Cudnn:
    conflicts: tuple[Finding, ...] = ()
    if case.request.cudnn is Switch.ON:
        ways = (remedy("install a cuDNN that fits"), remedy("or build without it", case.again("--no-cudnn")))
        conflicts = (conflict("cudnn-unusable", f"cuDNN was asked for and cannot be used: {because}", remedies=ways),)
    return Cudnn(part=Part(decisions=(decision("cudnn", "off", because, rejected=rejected),), conflicts=conflicts))
