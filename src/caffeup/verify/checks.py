"""The checks of a finished build, each with what was seen."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Optional

import msgspec

from caffeup.build.makefile import Variables
from caffeup.build.run import Build
from caffeup.disk import write_atomically
from caffeup.errors import CaffeupError
from caffeup.model.base import Value
from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.outcome import Check
from caffeup.stream import Captured, run_capture
from caffeup.verify.libraries import parse_ldd
from caffeup.verify.smallnet import IMPORT, NET, RUN

_MARK = "caffeup:"
_ON_CPU = 1e-4
_ON_GPU = 2e-3
"""Relative; a GPU's convolutions may run in TF32."""
# What would make it work for this user in this shell only.
_NOT_OURS = ("LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "CONDA_PREFIX", "VIRTUAL_ENV")


class _Values(Value):
    """Texts, since JSON has no form for what is not finite."""

    forward: str
    backward: str


class _Imported(Value):
    file: str
    extension: str
    numpy: str
    python: str


class _Site:
    """One built tree under examination."""

    def __init__(self, build: Build) -> None:
        self.build = build
        self.root = build.path
        self.variables: Variables = build.ask()
        self.env = {key: value for key, value in build.maker.env.items() if key not in _NOT_OURS}
        paths = (str(self.root / "python"), *build.plan.python_paths)
        self.python_env = {**self.env, "PYTHONPATH": ":".join(paths), "PYTHONDONTWRITEBYTECODE": "1", "GLOG_minloglevel": "2"}

    def run(self, *argv: str, python: bool = False, timeout: float = 120.0) -> Captured:
        env = self.python_env if python else self.env
        folder = self.root / ".caffeup" / "tmp"
        folder.mkdir(parents=True, exist_ok=True)
        try:
            return run_capture(argv, cwd=str(self.root), env={**env, "GLOG_log_dir": str(folder)}, timeout=timeout)
        except CaffeupError as error:
            return Captured(status=127, output=error.brief)
        finally:
            for one in folder.glob("*.log.*"):
                one.unlink(missing_ok=True)

    @property
    def library(self) -> Path:
        return self.root / (self.variables.text("DYNAMIC_NAME") or "build/lib/libcaffe.so")

    @property
    def program(self) -> Path:
        wanted = [word for word in self.variables.words("TOOL_BINS") if Path(word).name in {"caffe.bin", "caffe"}]
        return self.root / (wanted[0] if wanted else f"{self.variables.build_dir}/tools/caffe.bin")

    @property
    def extension(self) -> Path:
        return self.root / "python" / "caffe" / "_caffe.so"


def verify(build: Build, *, gpu: bool = False) -> tuple[Check, ...]:
    """Check a finished build; ``gpu``: there is a GPU here that it can be tried on. Never raises for a failed check."""
    site = _Site(build)
    checks = [_libraries(site), _program(site)]
    if build.plan.python:
        imported = _import(site)
        checks.append(imported)
        if imported.ok:
            checks.append(_values(site, "cpu", "CAFFE"))
            if build.plan.gpu and gpu:
                checks.append(_values(site, "gpu", "CAFFE"))
                if build.plan.cudnn:
                    checks.append(_values(site, "gpu", "CUDNN"))
    else:
        checks.append(_time(site))
    if build.plan.gpu and not gpu:
        checks.append(Check(name="GPU", ok=True, result="not tried: there is no GPU here"))
    return tuple(checks)


def _failed(name: str, result: str, output: str, *, why: str, remedies: tuple[Remedy, ...] = ()) -> Check:
    lines = [line for line in output.splitlines() if line.strip()][-12:]
    evidence = tuple(Evidence(where=name, text=line) for line in lines)
    finding = Finding(
        id=f"verify-{name.lower().replace(' ', '-')}",
        severity=Severity.PROBLEM,
        title=f"{name}: {result}",
        why=why,
        evidence=evidence,
        affects="verify",
        remedies=remedies,
    )
    return Check(name=name, ok=False, result=result, evidence=evidence, finding=finding)


def _libraries(site: _Site) -> Check:
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
        return _failed(name, trouble[0], "\n".join(trouble), why=why, remedies=(remedy,))
    return Check(
        name=name,
        ok=True,
        result=f"{len(count)} resolve, without LD_LIBRARY_PATH",
        evidence=tuple(Evidence(where=f"ldd {product.relative_to(site.root).as_posix()}") for product in products),
    )


def _within(path: Path, root: Path) -> bool:
    return root.resolve() in path.resolve().parents


def _program(site: _Site) -> Check:
    name = "program"
    inside = site.program.relative_to(site.root).as_posix()
    got = site.run(str(site.program), "--version")
    if got.status != 0:
        why = "The command-line program of Caffe does not run."
        return _failed(name, f"{inside} --version: exit code {got.status}", got.output, why=why)
    said = got.output.splitlines()[0] if got.output.strip() else "runs"
    return Check(name=name, ok=True, result=said, evidence=(Evidence(where=f"{inside} --version", text=said),))


def _answer(got: Captured) -> Optional[str]:
    lines = [line.removeprefix(_MARK) for line in got.output.splitlines() if line.startswith(_MARK)]
    return lines[-1] if got.status == 0 and lines else None


def _why_not(got: Captured) -> str:
    """The line of a traceback or of a crash that says most."""
    lines = [line.strip() for line in got.output.splitlines() if line.strip()]
    for line in lines:
        if "Check failed" in line or "error while loading" in line:
            return line[:300]
    return lines[-1][:300] if lines else f"exit code {got.status}"


def _import(site: _Site) -> Check:
    name = "import caffe"
    python = site.build.plan.python
    got = site.run(python, "-c", IMPORT, python=True)
    answer = _answer(got)
    if answer is None:
        command = f"PYTHONPATH={shlex.quote(site.python_env['PYTHONPATH'])} {shlex.quote(python)} -c 'import caffe'"
        remedies = (Remedy(text="See it for yourself.", commands=(command,)),)
        return _failed(name, _why_not(got), got.output, why=f"{python} cannot import the module built for it.", remedies=remedies)
    seen = msgspec.json.decode(answer, type=_Imported)
    if not _within(Path(seen.file), site.root):
        why = "Another copy of caffe stands before this tree's on that Python's path."
        return _failed(name, f"imported {seen.file}, not this tree's", got.output, why=why)
    return Check(
        name=name,
        ok=True,
        result=f"Python {seen.python}, numpy {seen.numpy}",
        evidence=(Evidence(where=python, text=seen.extension),),
    )


def _net(site: _Site, engine: str) -> Path:
    path = site.root / ".caffeup" / "tmp" / f"small-{engine.lower()}.prototxt"
    write_atomically(path, NET.replace("ENGINE", engine))
    return path


def _values(site: _Site, mode: str, engine: str) -> Check:
    """Forward and backward of the small net against numpy: where CPU and GPU both agree with it, they agree."""
    name = f"{mode.upper()} forward and backward" + (" with cuDNN" if engine == "CUDNN" else "")
    net = _net(site, engine)
    try:
        got = site.run(site.build.plan.python, "-c", RUN, str(net), mode, "0", python=True)
    finally:
        net.unlink(missing_ok=True)
    answer = _answer(got)
    if answer is None:
        return _failed(name, _why_not(got), got.output, why="A net of three layers does not run.")
    values = msgspec.json.decode(answer, type=_Values)
    allowed = _ON_GPU if mode == "gpu" else _ON_CPU
    forward, backward = float(values.forward), float(values.backward)
    text = f"differs from numpy by {forward:.0e} forward, {backward:.0e} backward"
    if not (forward <= allowed and backward <= allowed):
        return _failed(name, text, got.output, why=f"More than {allowed:.0e} is no rounding: this build computes wrong.")
    return Check(name=name, ok=True, result=text, evidence=(Evidence(where="a small net", text=f"{mode}, engine {engine}"),))


def _time(site: _Site) -> Check:
    """Without pycaffe: the program itself runs the net; its values are not seen."""
    name = "CPU forward and backward"
    net = _net(site, "CAFFE")
    try:
        got = site.run(str(site.program), "time", f"-model={net}", "-iterations=1")
    finally:
        net.unlink(missing_ok=True)
    if got.status != 0:
        return _failed(name, _why_not(got), got.output, why="A net of three layers does not run.")
    return Check(
        name=name,
        ok=True,
        result="runs (values not checked: that takes pycaffe)",
        evidence=(Evidence(where="caffe time", text="a small net, 1 iteration"),),
    )
