"""CUDA from NVIDIA's wheels, where it is not laid out yet: whether it is wanted, and the machine as it will be with it."""

from __future__ import annotations

from typing import Optional

import msgspec
from packaging.version import Version

from caffeup.facts.cuda_wheels import CudaFromWheels
from caffeup.model.machine import CudnnHeader, CudnnLibrary, GpuState, Machine, Toolkit, ToolkitLayout
from caffeup.plan.case import Case
from caffeup.plan.part import Part, note

WHEELS = "wheels"
"""What --cuda says to mean them."""
_VIA = "NVIDIA's wheels, which will be laid out"


def wheels_release(case: Case) -> Optional[CudaFromWheels]:
    """What can be laid out here; None where no wheels are made for this machine."""
    system = case.machine.system
    return case.facts.cuda_from_wheels(system.arch, system.glibc) if case.machine.wheels_root else None


def wheels_fit(case: Case) -> bool:
    """Whether the wheels serve this machine's driver and every one of its GPUs."""
    release, graphics = wheels_release(case), case.machine.graphics
    if release is None or not graphics.gpus or graphics.driver is None or graphics.driver.release is None:
        return False
    known = case.facts.compute_capabilities(release.cuda)
    new_enough = graphics.driver.release >= Version(case.facts.minimum_driver(release.cuda) or "0")
    return new_enough and all(gpu.compute_capability in known for gpu in graphics.gpus)


def packaged_toolkit(case: Case) -> Optional[Version]:
    """The distribution's own toolkit, where it knows every GPU and the driver is new enough for it."""
    system, graphics = case.machine.system, case.machine.graphics
    packaged = case.facts.packaged_toolkit(system.distro, system.distro_version)
    driver = graphics.driver.release if graphics.driver is not None else None
    if packaged is None or driver is None or driver < Version(case.facts.minimum_driver(packaged) or "0"):
        return None
    known = case.facts.compute_capabilities(packaged)
    every = bool(graphics.gpus) and all(gpu.compute_capability in known for gpu in graphics.gpus)
    return packaged if every else None


def to_lay_out(case: Case) -> Optional[CudaFromWheels]:
    """What must be laid out first: asked for by name, or the only way to use a GPU that is here."""
    if case.request.cpu or any(one.layout is ToolkitLayout.LAID_OUT for one in case.machine.toolkits):
        return None
    if case.request.cuda == WHEELS:
        return wheels_release(case)
    unasked = not case.request.cuda and case.machine.graphics.state is GpuState.PRESENT
    if unasked and not any(one.nvcc for one in case.machine.toolkits) and packaged_toolkit(case) is None and wheels_fit(case):
        return wheels_release(case)
    return None


def machine_with(release: CudaFromWheels, case: Case) -> Machine:
    """The machine as detection will find it afterwards: so a plan made before is the plan that is carried out."""
    machine, facts, root = case.machine, case.facts, case.machine.wheels_root
    include, lib = f"{root}/include", f"{root}/lib64"
    codes = facts.compute_capabilities(release.cuda)
    toolkit = Toolkit(
        via=_VIA,
        root=root,
        version=release.cuda,
        layout=ToolkitLayout.LAID_OUT,
        nvcc=f"{root}/bin/nvcc",
        include_dirs=(include, f"{include}/cccl"),
        library_dirs=(lib,),
        sass=codes,
        ptx=codes,
        max_gcc=facts.max_gcc(release.cuda),
        max_clang=facts.max_clang(release.cuda),
        asked=False,
    )
    header = CudnnHeader(via=_VIA, directory=include, version=release.cudnn)
    library = CudnnLibrary(
        via=_VIA, directory=lib, file=f"{lib}/libcudnn.so.{release.cudnn.major}", version=Version(str(release.cudnn.major))
    )
    return msgspec.structs.replace(
        machine,
        toolkits=(*machine.toolkits, toolkit),
        cudnn_headers=(*machine.cudnn_headers, header),
        cudnn_libraries=(*machine.cudnn_libraries, library),
    )


def told_before(release: CudaFromWheels, case: Case) -> Part:
    """What will be downloaded, how much, and how to be rid of it."""
    title = f"CUDA {release.cuda} with cuDNN {release.cudnn} will be laid out in {case.machine.wheels_root}"
    why = (
        f"{size(release.download_bytes)} are downloaded with pip and checked; {size(release.disk_bytes)} stay on the disk, "
        "once for all trees. To remove it: caffeup clean --cuda"
    )
    return Part(notes=(note("cuda-wheels", title, why),))


def size(count: int) -> str:
    """``1.6 GiB``, ``980 MiB``."""
    return f"{count / (1 << 30):.1f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.0f} MiB"
