"""One built tree under examination: how its programs are run, and what a check says of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Optional

from caffeup.build.makefile import Variables
from caffeup.build.run import Build
from caffeup.disk import write_atomically
from caffeup.errors import CaffeupError
from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.outcome import Check
from caffeup.stream import Captured, run_capture

Begins = Callable[[str], None]
"""Hears the name of a check that begins."""
_MARK = "caffeup:"
# What would make it work for this user in this shell only.
_NOT_OURS = ("LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "CONDA_PREFIX", "VIRTUAL_ENV")


def quietly(_check: str) -> None:
    """Nobody hears it."""


class Site:
    """One built tree under examination."""

    def __init__(self, build: Build) -> None:
        self.build = build
        self.root = build.path
        self.variables: Variables = build.ask()
        self.env = {key: value for key, value in build.maker.env.items() if key not in _NOT_OURS}
        paths = (str(self.root / "python"), *build.plan.python_paths)
        self.python_env = {**self.env, "PYTHONPATH": ":".join(paths), "PYTHONDONTWRITEBYTECODE": "1", "GLOG_minloglevel": "2"}

    def run(self, *argv: str, python: bool = False, timeout: float = 120.0) -> Captured:
        """Run a program in the tree, without what only this shell knows; with ``python``, our module on its path."""
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

    @contextmanager
    def file(self, name: str, text: str) -> Iterator[str]:
        """A file that is there for as long as the programs need it; its path."""
        path = self.root / ".caffeup" / "tmp" / name
        write_atomically(path, text)
        try:
            yield str(path)
        finally:
            path.unlink(missing_ok=True)

    @property
    def library(self) -> Path:
        """The shared library."""
        return self.root / (self.variables.text("DYNAMIC_NAME") or "build/lib/libcaffe.so")

    @property
    def program(self) -> Path:
        """The command-line program."""
        wanted = [word for word in self.variables.words("TOOL_BINS") if Path(word).name in {"caffe.bin", "caffe"}]
        return self.root / (wanted[0] if wanted else f"{self.variables.build_dir}/tools/caffe.bin")

    @property
    def extension(self) -> Path:
        """The module that ``import caffe`` loads."""
        return self.root / "python" / "caffe" / "_caffe.so"


def failed(name: str, result: str, output: str, *, why: str, remedies: tuple[Remedy, ...] = ()) -> Check:
    """A check that did not pass, with the end of what was said."""
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


def answer(got: Captured) -> Optional[str]:
    """The JSON that one of our scripts printed among other lines; None where it did not come to its end."""
    lines = [line.removeprefix(_MARK) for line in got.output.splitlines() if line.startswith(_MARK)]
    return lines[-1] if got.status == 0 and lines else None


def why_not(got: Captured) -> str:
    """The line of a traceback or of a crash that says most."""
    lines = [line.strip() for line in got.output.splitlines() if line.strip()]
    for line in lines:
        if "Check failed" in line or "error while loading" in line:
            return line[:300]
    return lines[-1][:300] if lines else f"exit code {got.status}"
