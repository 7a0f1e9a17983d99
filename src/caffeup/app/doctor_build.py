"""What the doctor says of a tree that was built: the code in its library against the GPUs, and grouped convolutions."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

from caffeup.app.planning import Planned
from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.machine import Gpu


def build_findings(planned: Planned) -> Iterator[Finding]:
    """Both, where they can be told."""
    library = built_library(planned)
    if library is not None:
        yield from _code(planned, library)
    yield from _groups(planned)


def built_library(planned: Planned) -> Optional[Path]:
    """The shared library of the tree, where one was built."""
    folders = dict.fromkeys((planned.plan.build_dir, "build", ".build_release", "temp"))
    paths = (planned.root / folder / "lib" / "libcaffe.so" for folder in folders)
    return next((path for path in paths if path.is_file()), None)


def _code(planned: Planned, library: Path) -> Iterator[Finding]:
    """Code for each GPU here."""
    from caffeup.verify.fatbin import read_fatbins  # noqa: PLC0415  # pyelftools takes its time

    held = sorted({code for file in read_fatbins(library) for code in file}, key=str)
    where, words = str(library), ", ".join(str(code) for code in held) or "no GPU code"
    seen = (Evidence(where=where, text=words),)
    gpus = planned.machine.graphics.gpus
    again = (Remedy(text="Build it again.", commands=(f"caffeup up {shlex.quote(str(planned.root))}",), by_caffeup=True),)
    if not held:
        if gpus and planned.plan.gpu:
            title = "this tree was built without CUDA, and there is a GPU here"
            yield Finding(id="built-without-cuda", severity=Severity.WARNING, title=title, evidence=seen, remedies=again)
        return
    lacking = [gpu for gpu in gpus if gpu.compute_capability and not any(code.runs_on(gpu.compute_capability) for code in held)]
    for gpu in lacking:
        yield Finding(
            id="code-for-gpu",
            severity=Severity.PROBLEM,
            title=f"libcaffe.so has no code that runs on {_named(gpu)}",
            why="Its kernels fail when they are called: no kernel image is available, or invalid device function.",
            evidence=seen,
            remedies=again,
        )
    if gpus and not lacking:
        title = f"libcaffe.so has code for {', '.join(_named(gpu) for gpu in gpus)}"
        yield Finding(id="code-for-gpu", severity=Severity.OK, title=title, evidence=seen)


def _named(gpu: Gpu) -> str:
    return f"{gpu.name} ({gpu.compute_capability})"


def _groups(planned: Planned) -> Iterator[Finding]:
    """Caffe's own cuDNN layer makes three handles for each group of a convolution."""
    plan = planned.plan
    if not plan.cudnn or not any(one.key == "depthwise" for one in plan.decisions):
        return
    decision = plan.decision("depthwise")
    seen = (Evidence(where="plan, depthwise", text=f"{decision.value}: {decision.because}"),)
    if decision.value.startswith("caffeup's") and "by its name alone" not in decision.value:
        title = "convolutions with a group for each channel do not go to cuDNN's layer"
        yield Finding(id="groups-on-cudnn", severity=Severity.OK, title=title, evidence=seen)
        return
    yield Finding(
        id="groups-on-cudnn",
        severity=Severity.WARNING,
        title="a depthwise Convolution goes to cuDNN's layer, with three handles a group",
        why="MobileNet-SSD asks for 14,880 of them, and ends in cudnn_conv_layer.cpp:53 with CUDNN_STATUS_INTERNAL_ERROR.",
        evidence=seen,
        remedies=(
            Remedy(text="In the prototxt, `engine: CAFFE` in each Convolution with groups, or type DepthwiseConvolution."),
        ),
    )
