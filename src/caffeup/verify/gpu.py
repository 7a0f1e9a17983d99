"""The checks that a build with CUDA gets: what the library holds, and what a GPU makes of it."""

from __future__ import annotations

import re
import shlex
from typing import Optional

import msgspec

from caffeup.model.base import ComputeCapability, Value
from caffeup.model.finding import Evidence, Remedy
from caffeup.model.machine import Gpu
from caffeup.model.outcome import Check
from caffeup.model.plan import Plan
from caffeup.verify.fatbin import Code, Kind, read_fatbins
from caffeup.verify.largenet import BATCHES, RUN, net
from caffeup.verify.site import Begins, Site, answer, failed, quietly, why_not

_FLOAT = 3e-4
_TF32 = 1e-2
"""Of the norm: rounding of float differs by some 1e-6; TF32 keeps ten bits."""
_PATIENCE = 900.0
"""Seconds: a driver that has only PTX compiles for minutes."""


class _Row(Value):
    batch: int
    memory: int
    """Bytes that the net holds."""
    forward: str
    backward: str
    """Texts, since JSON has no form for what is not finite."""


class _Compared(Value):
    before: int
    """Bytes in use before the net was made: the context, cuBLAS, and whatever else runs there."""
    rows: tuple[_Row, ...]
    left: int
    """Bytes more than before, after the net is gone."""


def gpu_checks(site: Site, gpus: tuple[Gpu, ...], python: str, begins: Begins = quietly) -> list[Check]:
    """What can be said without a GPU, and with one; ``python``: that which can import caffe, or empty."""
    begins("GPU code")
    checks = [_code(site, gpus)]
    if not gpus:
        return [*checks, Check(name="GPU", ok=True, result=_not_tried(site))]
    begins("device_query")
    asked = _device_query(site)
    checks.append(asked)
    if not asked.ok:
        return checks
    engines = ("CAFFE", "CUDNN") if site.build.plan.cudnn else ("CAFFE",)
    for engine in engines:
        begins(f"GPU, {engine}")
        checks.append(_compare(site, engine, python) if python else _time(site, engine))
    return checks


def _not_tried(site: Site) -> str:
    told = "not tried: there is no GPU here"
    return f"{told}; with cuDNN, a net runs here only with `engine: CAFFE` in every layer" if site.build.plan.cudnn else told


def _code(site: Site, gpus: tuple[Gpu, ...]) -> Check:
    """Every compiled file must hold code for every GPU: one that was left from other settings fails when it is called."""
    name = "GPU code"
    inside = site.library.relative_to(site.root).as_posix()
    files = [file for file in read_fatbins(site.library) if file]
    held = sorted({code for file in files for code in file}, key=str)
    words = ", ".join(str(code) for code in held)
    if not held:
        return failed(name, f"{inside} holds none", "", why="Nothing of it can run on a GPU.")
    targets = _targets(site.build.plan, gpus)
    for capability, title in targets.items():
        lacking = sum(1 for file in files if not any(code.runs_on(capability) for code in file))
        if lacking:
            remedy = Remedy(text="Build it again for this one.", commands=(f"caffeup up {shlex.quote(str(site.root))}",))
            result = f"{lacking} of {len(files)} compiled files have nothing for {title}; they hold {words}"
            why = "A kernel without code for the GPU fails when it is called: no kernel image is available."
            return failed(name, result, "", why=why, remedies=(remedy,))
    slow = [title for one, title in targets.items() if not any(code.kind is Kind.SASS and code.runs_on(one) for code in held)]
    return Check(
        name=name,
        ok=True,
        result=f"{words}; the driver compiles it for {slow[0]} at the first start" if slow else words,
        evidence=(Evidence(where=inside, text=f"{len(files)} compiled files"),),
    )


def _targets(plan: Plan, gpus: tuple[Gpu, ...]) -> dict[ComputeCapability, str]:
    """The GPUs here that the plan means to serve, else what it was to be built for."""
    planned = [Code(kind=Kind.SASS, made_for=one) for one in plan.sass]
    planned += [Code(kind=Kind.PTX, made_for=plan.ptx)] if plan.ptx is not None else []
    here = {gpu.compute_capability: f"{gpu.name} ({gpu.compute_capability})" for gpu in gpus if gpu.compute_capability}
    served = {one: title for one, title in here.items() if any(code.runs_on(one) for code in planned)}
    return served or {one: f"compute capability {one}" for one in plan.sass}


def _device_query(site: Site) -> Check:
    """Caffe's own look at the GPU."""
    name = "device_query"
    got = site.run(str(site.program), "device_query", "-gpu=0")
    found = re.search(r"\] Name: +(.+)", got.output)
    if got.status != 0 or found is None:
        return failed(name, why_not(got), got.output, why="Caffe does not find the GPU that the driver shows.")
    return Check(name=name, ok=True, result=found[1].strip(), evidence=(Evidence(where="caffe device_query -gpu=0"),))


def _title(engine: str) -> str:
    return "GPU against CPU, cuDNN" if engine == "CUDNN" else "GPU against CPU"


def _compare(site: Site, engine: str, python: str) -> Check:
    """Forward and backward on the GPU against the CPU, whose values were compared with numpy's."""
    name = _title(engine)
    batches = ",".join(str(one) for one in BATCHES)
    with site.file("large-cpu.prototxt", net("CAFFE", 1)) as reference, site.file("large-gpu.prototxt", net(engine, 1)) as tried:
        got = site.run(python, "-c", RUN, reference, tried, batches, python=True, timeout=_PATIENCE)
    said = answer(got)
    if said is None:
        return failed(name, why_not(got), got.output, why=f"A net of ordinary convolutions does not run with engine {engine}.")
    values = msgspec.json.decode(said, type=_Compared)
    forward = max(values.rows, key=lambda row: float(row.forward)).forward
    backward = max(values.rows, key=lambda row: float(row.backward)).backward
    text = f"differ by {float(forward):.0e} forward, {float(backward):.0e} backward; {_memory(values)}"
    evidence = tuple(
        Evidence(where=f"batch {row.batch}", text=f"forward {row.forward}, backward {row.backward}, {_mib(row.memory)}")
        for row in values.rows
    )
    allowed = _TF32 if engine == "CUDNN" and site.build.plan.request.tf32 else _FLOAT
    if not (float(forward) <= allowed and float(backward) <= allowed):
        why = f"More than {allowed:.0e} is no rounding: this build computes wrong on this GPU."
        return failed(name, text, "\n".join(str(one) for one in evidence), why=why)
    return Check(
        name=name, ok=True, result=text, evidence=(*evidence, Evidence(where="before the net", text=_mib(values.before)))
    )


def _memory(values: _Compared) -> str:
    return f"{_mib(values.rows[-1].memory)} at batch {values.rows[-1].batch}, {_mib(values.left)} left after it"


def _mib(size: int) -> str:
    return f"{round(size / 2**20)} MiB"


def _time(site: Site, engine: str) -> Check:
    """Without pycaffe: the program runs the nets; their values are not seen."""
    name = _title(engine)
    trouble: Optional[Check] = None
    for batch in BATCHES:
        with site.file("large-gpu.prototxt", net(engine, batch)) as path:
            got = site.run(str(site.program), "time", f"-model={path}", "-gpu=0", "-iterations=2", timeout=_PATIENCE)
        if got.status != 0:
            why = f"A net of ordinary convolutions does not run with engine {engine}."
            trouble = trouble or failed(name, f"batch {batch}: {why_not(got)}", got.output, why=why)
    batches = " and ".join(str(one) for one in BATCHES)
    return trouble or Check(name=name, ok=True, result=f"batch {batches} run (values not checked: that takes pycaffe)")
