"""caffeup for scripts: the values that the commands print with ``--json``, as typed, frozen values.

Nothing here prints or ends the process; what goes wrong is raised as one of ``caffeup.errors``. docs/api.md shows each.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Optional, Union

import msgspec

from caffeup.disk import as_path
from caffeup.errors import CaffeupError, DiskError, UsageError
from caffeup.model.base import ComputeCapability, from_json, schema_of, to_json
from caffeup.model.explanation import Explanation
from caffeup.model.finding import Finding
from caffeup.model.machine import Machine
from caffeup.model.outcome import Report, StageOutcome
from caffeup.model.plan import Plan, Request, Switch

if TYPE_CHECKING:
    from caffeup.app.session import Session
    from caffeup.build.progress import Progress
    from caffeup.facts.tables import Facts

__all__ = [
    "CaffeupError",
    "Explanation",
    "Finding",
    "Machine",
    "Plan",
    "Report",
    "Request",
    "Switch",
    "build",
    "detect",
    "diagnose",
    "diagnose_text",
    "explain",
    "export",
    "from_json",
    "plan",
    "schema_of",
    "to_json",
]

PathLike = Union[str, "os.PathLike[str]"]
Say = Callable[[str], None]


def detect(*, request: Optional[Request] = None) -> Machine:
    """Everything that is here, as ``caffeup detect --json``. Of a request only prefixes, Python and toolkit count."""
    with _ours():
        asked = _checked(request or Request())
        return _session().machine(asked.prefixes, asked.python, asked.cuda)


def plan(tree: PathLike = "", *, request: Optional[Request] = None, machine: Optional[Machine] = None) -> Plan:
    """Every decision for a tree that is here, as ``caffeup plan --json``; for this machine, or for another one.

    A plan with conflicts is returned, not raised: look at ``conflicts``. Touches nothing.
    """
    from caffeup.app.planning import merged, plan_for  # noqa: PLC0415
    from caffeup.app.session import find_tree, remembered_request  # noqa: PLC0415

    with _ours():
        session, asked = _session(), _checked(request or Request())
        if machine is None:
            return plan_for(session, os.fspath(tree), asked).plan
        root = find_tree(os.fspath(tree))
        return session.plan(machine, session.tree(root), merged(remembered_request(root), asked))


def build(
    tree: PathLike = "",
    *,
    request: Optional[Request] = None,
    plan: Optional[Plan] = None,
    say: Optional[Say] = None,
) -> Report:
    """Configure, build, test and verify a tree that is here, as ``caffeup build --json``; by a plan made earlier, or a new one.

    ``request.yes`` answers every question with yes; without it each is answered with no. ``say`` hears the lines that a
    person would read. Tests that fail without being known to stand in ``report.tests.unknown_failures``.
    """
    from caffeup.app.planning import merged  # noqa: PLC0415
    from caffeup.app.session import find_tree, remembered_request  # noqa: PLC0415
    from caffeup.app.up import Up  # noqa: PLC0415

    with _ours(), tempfile.TemporaryDirectory(prefix="caffeup-") as scratch:
        root = find_tree(os.fspath(tree))
        asked = merged(remembered_request(root), _checked(request or Request()))
        written = Path(scratch, "plan.json")
        if plan is not None:
            written.write_text(to_json(plan), encoding="utf-8")
        run = Up(_session(), _Quiet(say, yes=asked.yes), asked)
        return run.run_in(root, plan_file=str(written) if plan is not None else "")


def diagnose(log: PathLike, *, machine: Optional[Machine] = None) -> tuple[Finding, ...]:
    """The causes that a log file shows, first cause first, as ``caffeup diagnose --json``; empty: no error is in it.

    ``machine`` is the one that it happened on, where its versions are known.
    """
    from caffeup.app.diagnosing import diagnose_logs  # noqa: PLC0415

    name = "." + os.sep + "-" if os.fspath(log) == "-" else os.fspath(log)  # standard input is not meant
    if "\0" in name:
        raise UsageError(f"No file has such a name: {name!r}.")
    with _ours(), tempfile.TemporaryDirectory(prefix="caffeup-") as scratch:
        told = Path(scratch, "machine.json")
        if machine is not None:
            told.write_text(to_json(machine), encoding="utf-8")
        return diagnose_logs(_session(), (name,), str(told) if machine is not None else "")


def diagnose_text(text: Union[str, bytes, Iterable[bytes]], *, machine: Optional[Machine] = None) -> tuple[Finding, ...]:
    """The same for text that is in memory, or that comes in pieces."""
    if isinstance(text, str):
        text = text.encode("utf-8", "surrogateescape")
    with _ours(), tempfile.TemporaryDirectory(prefix="caffeup-") as scratch:
        held = Path(scratch, "text")
        with held.open("wb") as file:
            file.writelines((text,) if isinstance(text, bytes) else text)
        return diagnose(held, machine=machine)


def explain(name: str) -> Explanation:
    """The long story of a finding's id, as ``caffeup explain ID --json``; ``UsageError`` names those that are perhaps meant."""
    from caffeup.app.explaining import story  # noqa: PLC0415

    with _ours():
        return story(_session(), name)


def export(form: str, tree: PathLike = "", *, request: Optional[Request] = None) -> str:
    """A Dockerfile, an Apptainer definition or a shell script (``docker``, ``apptainer``, ``sh``), as ``caffeup export``."""
    from caffeup.app.exporting import export_tree  # noqa: PLC0415

    with _ours():
        return export_tree(_session(), form, os.fspath(tree), _checked(request or Request())).text


@lru_cache(maxsize=1)
def _facts() -> Facts:
    from caffeup.facts.load import load_facts  # noqa: PLC0415

    return load_facts()


def _session() -> Session:
    """A new look at the machine every time, as a script may run for long; the facts are read once."""
    from caffeup.app.session import Session  # noqa: PLC0415

    return Session(facts=_facts())


@contextmanager
def _ours() -> Iterator[None]:
    """What the file system refuses becomes an error of ours, as it does on the command line."""
    try:
        yield
    except OSError as error:
        raise DiskError(f"{error.filename or 'A file'}: {error.strerror or error}.") from error


def _checked(request: Request) -> Request:
    """A request as the command line would have made it; ``UsageError`` otherwise."""
    if request.blas not in ("", "open", "atlas", "mkl"):
        raise UsageError(f"blas {request.blas!r}: choose one of open, atlas, mkl.")
    if request.cpu and (request.cuda or request.arch or request.tf32):
        raise UsageError("cpu excludes cuda, arch and tf32.")
    for prefix in request.prefixes:
        if not as_path(prefix).is_dir():
            raise UsageError(f"prefix {prefix}: there is no such folder.")
    try:
        arch = tuple(one if one in {"native", "all"} else str(ComputeCapability.parse(one)) for one in request.arch)
    except ValueError as error:
        raise UsageError(f"arch: {error}.") from None
    prefixes = tuple(str(as_path(one).absolute()) for one in request.prefixes)
    return msgspec.structs.replace(request, arch=arch, prefixes=prefixes)


class _Quiet:
    """The ``Ui`` of a script: lines go to whoever listens, questions are answered beforehand."""

    def __init__(self, say: Optional[Say], *, yes: bool) -> None:
        self._say = say or (lambda _line: None)
        self._yes = yes

    def begin(self, stage: str, about: str = "") -> None:
        """Nothing is drawn."""

    def end(self, outcome: StageOutcome) -> None:
        """A line a stage."""
        self._say(f"{outcome.name}: {outcome.state}{f': {outcome.summary}' if outcome.summary else ''}")

    def say(self, text: str, commands: tuple[str, ...] = ()) -> None:
        """A line of news, and the commands that belong to it."""
        self._say(text)
        for command in commands:
            self._say(f"  $ {command}")

    def show_plan(self, plan: Plan) -> None:
        """A script has the plan as a value."""

    def ask(self, question: str) -> bool:
        """What the request says."""
        self._say(f"{question} {'yes' if self._yes else 'no'}")
        return self._yes

    def progress(self, title: str) -> Progress:  # noqa: ARG002
        """Nobody watches."""
        from caffeup.build.progress import Silent  # noqa: PLC0415

        return Silent()
