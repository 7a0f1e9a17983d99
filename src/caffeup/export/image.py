"""The machine inside a container: the distribution's packages, and a toolkit where NVIDIA's image has it."""

from __future__ import annotations

import re
from typing import Optional

import msgspec
from packaging.version import Version

from caffeup.errors import CannotBuild
from caffeup.facts.images import Base, CudaImage, ImageFile
from caffeup.model.base import Value
from caffeup.model.machine import (
    CudnnHeader,
    CudnnLibrary,
    Machine,
    PythonKind,
    Toolkit,
    ToolkitLayout,
)
from caffeup.model.plan import Plan

ROOT = "/usr/local/cuda"
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_VIA = "NVIDIA's image"


class Images(Value, kw_only=True):
    """What the two stages of a container begin with."""

    build: str
    run: str


def packaged(machine: Machine) -> Machine:
    """The machine as far as the distribution's packages make it up: all that a container can have."""
    return msgspec.structs.replace(
        machine,
        libraries=tuple(one for one in machine.libraries if one.prefix in ("", "/usr")),
        compilers=tuple(one for one in machine.compilers if one.path.startswith("/usr/bin/")),
        programs=tuple(one for one in machine.programs if one.path.startswith(("/usr/bin/", "/bin/"))),
        pythons=tuple(one for one in machine.pythons if one.kind is PythonKind.SYSTEM and not one.paths),
        prefixes=(),
    )


def with_image(machine: Machine, toolkit: Toolkit, row: CudaImage, *, cudnn: Optional[Version]) -> Machine:
    """That machine with the toolkit where the image has it, and with the image's cuDNN where one is wanted."""
    inside = msgspec.structs.replace(
        toolkit,
        via=_VIA,
        evidence="",
        root=ROOT,
        layout=ToolkitLayout.CLASSIC,
        nvcc=f"{ROOT}/bin/nvcc",
        include_dirs=(f"{ROOT}/include", *((f"{ROOT}/include/cccl",) if toolkit.version.major >= 13 else ())),
        library_dirs=(f"{ROOT}/lib64",),
        missing=(),
    )
    held = machine
    if cudnn is not None:
        version = cudnn if cudnn.major == row.cudnn else Version(str(row.cudnn))
        places = _cudnn_places(machine)
        header = CudnnHeader(via=_VIA, directory=places[0], version=version)
        library = CudnnLibrary(
            via=_VIA,
            directory=places[1],
            file=f"{places[1]}/libcudnn.so.{version.major}",
            version=Version(str(version.major)),
        )
        held = msgspec.structs.replace(machine, cudnn_headers=(header,), cudnn_libraries=(library,))
    return msgspec.structs.replace(held, toolkits=(inside,))


def _cudnn_places(machine: Machine) -> tuple[str, str]:
    triplet = machine.system.triplet
    return ("/usr/include", f"/usr/lib/{triplet}" if triplet else "/usr/lib64")


def images_for(machine: Machine, plan: Plan, facts: ImageFile, row: Optional[CudaImage]) -> Images:
    """The images that fit the system and the toolkit of a plan; ``CannotBuild`` where there are none."""
    system = machine.system
    base = facts.base_of(system.distro)
    if base is None:
        raise CannotBuild(f"No image is known for {system.distro} {system.distro_version}.".replace(" .", "."), advice=_SCRIPT)
    if not plan.gpu or row is None:
        return Images(build=_named(base.build, system.distro_version), run=_named(base.run, system.distro_version))
    word = _named(base.cuda, system.distro_version)
    return Images(build=_tag(row, plan, "devel", word), run=_tag(row, plan, "runtime", word))


def image_row(machine: Machine, toolkit: Toolkit, facts: ImageFile) -> CudaImage:
    """The row of nvidia/cuda for this toolkit and system; ``CannotBuild`` with what there is."""
    system = machine.system
    row = facts.cuda_of(toolkit.version)
    if system.jetson or system.l4t:
        raise CannotBuild("NVIDIA's images of CUDA are not for Jetson boards.", advice=_SCRIPT)
    if row is None:
        known = ", ".join(one.id for one in facts.cuda)
        raise CannotBuild(f"No image of nvidia/cuda is known for CUDA {toolkit.version}.", advice=f"{_SCRIPT} Known: {known}.")
    base: Optional[Base] = facts.base_of(system.distro)
    word = _named(base.cuda, system.distro_version) if base is not None else ""
    if word not in row.systems:
        raise CannotBuild(
            f"nvidia/cuda has no image of CUDA {row.release} for {system.distro} {system.distro_version}; "
            f"it has them for {', '.join(row.systems)}.",
            advice=f"{_SCRIPT} Or plan the container on a machine with one of these systems, or without the GPU (--cpu).",
        )
    return row


def require_packaged(plan: Plan) -> None:
    """Raise ``CannotBuild`` for a plan that reaches for something that no image has."""
    if not _PLAIN.fullmatch(plan.build_dir.lstrip(".")):
        raise CannotBuild(f"The tree builds in {plan.build_dir!r}, which no path of an image can hold.", advice=_SCRIPT)
    strange = [one for one in (plan.compiler, plan.protoc, plan.python, *(link.target for link in plan.links)) if one]
    outside = [one for one in strange if not one.startswith(("/usr/", "/lib/", "/bin/"))]
    if outside or plan.python_paths:
        named = ", ".join((*outside, *plan.python_paths))
        raise CannotBuild(f"The plan takes what no image has: {named}.", advice=_SCRIPT)


_SCRIPT = "A script for machines like this one can be had all the same: caffeup export sh."


def _named(pattern: str, release: str) -> str:
    if not _PLAIN.fullmatch(release or "latest"):
        raise CannotBuild("The release of this system is no part of an image's name.", details=repr(release), advice=_SCRIPT)
    return pattern.format(release=release or "latest", major=release.partition(".")[0] or "latest")


def _tag(row: CudaImage, plan: Plan, flavour: str, word: str) -> str:
    cudnn = f"{row.cudnn_word}-" if plan.cudnn else ""
    return f"nvidia/cuda:{row.release}-{cudnn}{flavour}-{word}"
