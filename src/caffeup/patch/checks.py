"""Post-conditions: each touched file is compiled alone, with the flags that make would use.

A check that cannot be made (no compiler, a library that is not installed yet) is no failure; one that fails is.
"""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from caffeup.host import Host, Output
from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.plan import Plan
from caffeup.patch.images import HOME

_MARK = "caffeup-flags:"
_EVAL = f"caffeup-flags: ; @: $(info {_MARK} $(CXX) $(CXXFLAGS))"
_ABSENT = re.compile(r"fatal error: (\S+): No such file or directory|fatal error: '(\S+)' file not found")
_ERROR = re.compile(r"^(?P<file>[^\s:]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$")
_TIMEOUT = 120.0


Begins = Callable[[str, int, int], None]
"""What is compiled alone now, how many were begun before it, and how many there are; called from several threads."""


@dataclass(frozen=True)
class Target:
    """One file to compile, or the headers of a shim to include."""

    entry: str
    path: str = ""
    headers: tuple[str, ...] = ()
    was: bytes = b""
    """What stood there before: a Python file that did not compile then need not now."""


@dataclass(frozen=True)
class Checked:
    """What a check gave: ``ok`` None: it could not be made."""

    target: Target
    ok: Optional[bool]
    said: str = ""


class Checker:
    """Compiles files of one tree."""

    def __init__(self, host: Host, plan: Plan, root: str) -> None:
        self._host = host
        self._plan = plan
        self._root = str(Path(root).resolve())

    def check(self, targets: Iterable[Target], begins: Begins = lambda *_: None) -> tuple[Checked, ...]:
        """Check all, side by side; ``begins`` hears of each, with its number and how many there are."""
        wanted = tuple(targets)
        begun = itertools.count()

        def one(target: Target) -> Checked:
            begins(target.path or ", ".join(target.headers[:1]), next(begun), len(wanted))
            return self._one(target, flags)

        compiled = any(not target.path.endswith(".py") for target in wanted)
        with self._folder() as folder:
            flags = self._flags(folder) if compiled else ()
            with ThreadPoolExecutor(max_workers=max(1, min(8, self._plan.jobs))) as pool:
                return tuple(pool.map(one, wanted))

    @contextmanager
    def _folder(self) -> Iterator[str]:
        """In the tree and always the same: what a killed run leaves, the next one removes."""
        folder = Path(self._root, HOME, "tmp", "check")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            yield str(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):
                folder.parent.rmdir()

    def _run(self, *argv: str, stdin: str = "") -> Optional[Output]:
        """Run in the tree's root, in make's environment."""
        settings = tuple(f"{name}={value}" for name, value in self._plan.make_env)
        inside = ("sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", self._root)
        return self._host.run(("env", *settings, *inside, *argv), timeout=_TIMEOUT, stdin=stdin)

    def _flags(self, folder: str) -> tuple[str, ...]:
        """The compiler and its flags as make would use them; empty where make does not tell."""
        output = self._run("make", "--no-print-directory", "-s", "--eval", _EVAL, "caffeup-flags")
        line = next((line for line in output.stdout.splitlines() if line.startswith(_MARK)), "") if output else ""
        try:
            words = shlex.split(line[len(_MARK) :])
        except ValueError:
            return ()
        if not words:
            return ()
        kept = [word for word in words if word not in ("-MMD", "-MP", "-MD", "-M", "-MM")]
        return (*kept, *self._generated(folder))

    def _generated(self, folder: str) -> tuple[str, ...]:
        """Messages are generated into a folder of their own: before the first build the tree has none."""
        source = "src/caffe/proto"
        protos = sorted(str(path.relative_to(self._root)) for path in Path(self._root, source).glob("*.proto"))
        into = Path(folder, "caffe", "proto")
        into.mkdir(parents=True)
        if protos:
            self._run(self._plan.protoc or "protoc", f"--proto_path={source}", f"--cpp_out={into}", *protos)
        return ("-I", folder)

    def _one(self, target: Target, flags: tuple[str, ...]) -> Checked:
        if target.path.endswith(".py"):
            return self._python(target)
        if not flags or target.path.endswith((".cu", ".cuh")):
            return Checked(target, None, "not compiled here")
        if target.headers:
            lines = "".join(f"#include <{header}>\n" for header in target.headers)
            output = self._run(*flags, "-x", "c++", "-fsyntax-only", "-w", "-", stdin=lines)
        else:
            output = self._run(*flags, "-x", "c++", "-fsyntax-only", "-w", target.path)
        return _judge(target, output)

    def _python(self, target: Target) -> Checked:
        if not self._plan.python:
            return Checked(target, None, "no Python chosen")
        program = "import sys; compile(open(sys.argv[1], 'rb').read(), sys.argv[1], 'exec')"
        checked = _judge(target, self._run(self._plan.python, "-c", program, target.path))
        if checked.ok is False and target.was:
            earlier = "import sys; compile(getattr(sys.stdin, 'buffer', sys.stdin).read(), 'before', 'exec')"
            before = self._run(self._plan.python, "-c", earlier, stdin=target.was.decode("utf-8", "replace"))
            if before is not None and before.status:
                return Checked(target, None, "it did not compile before either")
        return checked


def _judge(target: Target, output: Optional[Output]) -> Checked:
    if output is None:
        return Checked(target, None, "no compiler")
    if output.status == 0:
        return Checked(target, ok=True)
    absent = _ABSENT.search(output.stderr)
    if absent or output.status in (124, 126, 127):
        return Checked(target, None, absent.group(0) if absent else output.stderr.strip())
    return Checked(target, ok=False, said=output.stderr)


def finding_of(checked: Checked) -> Finding:
    """A failed check as a finding, with the compiler's first error."""
    target = checked.target
    what = target.path or ", ".join(target.headers)
    first = next((match for match in map(_ERROR.match, checked.said.splitlines()) if match), None)
    lines = [line for line in checked.said.splitlines() if line.strip()]
    evidence = Evidence(where=what, text=lines[-1] if lines else "")
    if first:
        evidence = Evidence(where=first["file"], line=int(first["line"]), text=first["text"])
    return Finding(
        id="patch-postcondition",
        severity=Severity.PROBLEM,
        title=f"{what} does not compile with {target.entry} applied",
        why="Each touched file is compiled alone before anything is kept; everything was taken back.",
        affects=target.entry,
        evidence=(evidence,),
        remedies=(Remedy(text="See what would be changed, and what else is in this file.", commands=("caffeup patch preview",)),),
    )
