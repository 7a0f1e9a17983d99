"""The checks of a finished build, each with what was seen."""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec

from caffeup.build.run import Build
from caffeup.model.base import Value
from caffeup.model.finding import Evidence, Remedy
from caffeup.model.machine import Gpu
from caffeup.model.outcome import Check
from caffeup.model.plan import Plan
from caffeup.verify.gpu import gpu_checks
from caffeup.verify.images import images
from caffeup.verify.libraries import parse_ldd
from caffeup.verify.site import Begins, Site, answer, failed, quietly, why_not
from caffeup.verify.smallnet import IMPORT, NET, RUN

_ALLOWED = 1e-4
"""Of the largest value: more is no rounding."""


class _Values(Value):
    """Texts, since JSON has no form for what is not finite."""

    forward: str
    backward: str


class _Imported(Value):
    file: str
    extension: str
    numpy: str
    python: str


def verify(build: Build, *, gpus: tuple[Gpu, ...] = (), begins: Begins = quietly) -> tuple[Check, ...]:
    """Check a finished build; ``gpus``: those here that it can be tried on. Never raises for a failed check.

    ``begins`` hears the name of each check before it is made.
    """
    site = Site(build)
    begins("shared libraries")
    checks = [_libraries(site)]
    begins("program")
    checks.append(_program(site))
    python = ""
    if build.plan.python:
        begins("import caffe")
        imported = _import(site)
        checks.append(imported)
        if imported.ok:
            python = build.plan.python
            begins("CPU forward and backward")
            checks.append(_values(site))
            begins("caffe.io")
            checks.append(images(site))
    else:
        begins("CPU forward and backward")
        checks.append(_time(site))
    if build.plan.gpu:
        checks += gpu_checks(site, gpus, python, begins)
    return tuple(checks)


def number_of_checks(plan: Plan, gpus: tuple[Gpu, ...]) -> int:
    """How many there are where none of them fails."""
    many = 5 if plan.python else 3
    on_gpu = 1 + (2 if plan.cudnn else 1) if gpus else 0
    return many + 1 + on_gpu if plan.gpu else many


def _libraries(site: Site) -> Check:
    name = "shared libraries"
    products = [site.library, site.program]
    if site.build.plan.python:
        products.append(site.extension)
    count: set[str] = set()
    trouble: list[str] = []
    for product in products:
        inside = product.relative_to(site.root).as_posix()
        if not product.exists():
            trouble.append(f"{inside} was not built")
            continue
        got = parse_ldd(site.run("ldd", str(product)).output.splitlines())
        count |= got.found.keys()
        trouble += [f"{inside} needs {library}, which is not found" for library in got.missing]
        trouble += [f"{inside}: {one}" for one in got.wrong]
        trouble += [f"{inside}: {got.trouble}"] if got.trouble and not got.found else []
        trouble += [
            f"{inside} would load {file}, which is not this tree's"
            for library, file in got.found.items()
            if library.startswith("libcaffe.so") and not _within(Path(file), site.root)
        ]
    if trouble:
        first = shlex.quote(str(products[0]))
        remedy = Remedy(
            text="See what the loader says; a library in a folder that it does not know needs a run path.",
            commands=(f"ldd {first}",),
        )
        why = "A program whose libraries are not found does not start."
        return failed(name, trouble[0], "\n".join(trouble), why=why, remedies=(remedy,))
    return Check(
        name=name,
        ok=True,
        result=f"{len(count)} resolve, without LD_LIBRARY_PATH",
        evidence=tuple(Evidence(where=f"ldd {product.relative_to(site.root).as_posix()}") for product in products),
    )


def _within(path: Path, root: Path) -> bool:
    return root.resolve() in path.resolve().parents


def _program(site: Site) -> Check:
    name = "program"
    inside = site.program.relative_to(site.root).as_posix()
    got = site.run(str(site.program), "--version")
    if got.status != 0:
        why = "The command-line program of Caffe does not run."
        return failed(name, f"{inside} --version: exit code {got.status}", got.output, why=why)
    said = got.output.splitlines()[0] if got.output.strip() else "runs"
    return Check(name=name, ok=True, result=said, evidence=(Evidence(where=f"{inside} --version", text=said),))


def _import(site: Site) -> Check:
    name = "import caffe"
    python = site.build.plan.python
    got = site.run(python, "-c", IMPORT, python=True)
    said = answer(got)
    if said is None:
        command = f"PYTHONPATH={shlex.quote(site.python_env['PYTHONPATH'])} {shlex.quote(python)} -c 'import caffe'"
        remedies = (Remedy(text="See it for yourself.", commands=(command,)),)
        return failed(name, why_not(got), got.output, why=f"{python} cannot import the module built for it.", remedies=remedies)
    seen = msgspec.json.decode(said, type=_Imported)
    if not _within(Path(seen.file), site.root):
        why = "Another copy of caffe stands before this tree's on that Python's path."
        return failed(name, f"imported {seen.file}, not this tree's", got.output, why=why)
    return Check(
        name=name,
        ok=True,
        result=f"Python {seen.python}, numpy {seen.numpy}",
        evidence=(Evidence(where=python, text=seen.extension),),
    )


def _values(site: Site) -> Check:
    """Forward and backward of the small net against numpy."""
    name = "CPU forward and backward"
    with site.file("small.prototxt", NET) as net:
        got = site.run(site.build.plan.python, "-c", RUN, net, python=True)
    said = answer(got)
    if said is None:
        return failed(name, why_not(got), got.output, why="A net of three layers does not run.")
    values = msgspec.json.decode(said, type=_Values)
    forward, backward = float(values.forward), float(values.backward)
    text = f"differs from numpy by {forward:.0e} forward, {backward:.0e} backward"
    if not (forward <= _ALLOWED and backward <= _ALLOWED):
        return failed(name, text, got.output, why=f"More than {_ALLOWED:.0e} is no rounding: this build computes wrong.")
    return Check(name=name, ok=True, result=text, evidence=(Evidence(where="a small net"),))


def _time(site: Site) -> Check:
    """Without pycaffe: the program itself runs the net; its values are not seen."""
    name = "CPU forward and backward"
    with site.file("small.prototxt", NET) as net:
        got = site.run(str(site.program), "time", f"-model={net}", "-iterations=1")
    if got.status != 0:
        return failed(name, why_not(got), got.output, why="A net of three layers does not run.")
    return Check(
        name=name,
        ok=True,
        result="runs (values not checked: that takes pycaffe)",
        evidence=(Evidence(where="caffe time", text="a small net, 1 iteration"),),
    )
