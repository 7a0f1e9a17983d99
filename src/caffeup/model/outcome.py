"""What came of it: stages, patches, tests, checks."""

from __future__ import annotations

from typing import Optional

from caffeup.model.base import SCHEMA, Value, Word
from caffeup.model.finding import Evidence, Finding


class PatchState(Word):
    """State of one entry of the patch list in one tree."""

    NEEDED = "needed"
    DONE = "done"
    """Applied by caffeup, or the tree has it by itself (``by`` says which)."""
    NOT_APPLICABLE = "not-applicable"
    CONFLICTING = "conflicting"
    EDITED = "edited"
    """caffeup applied it and somebody changed the file since."""
    OBSOLETE = "obsolete"
    """caffeup applied it and the plan no longer calls for it: the next apply takes it back."""
    REVERTED = "reverted"
    """It was taken back just now: the tree holds what it held before."""


class PatchEntry(Value, kw_only=True):
    """One entry: a shim, shim library, new file or anchored edit."""

    id: str
    fix: str
    kind: str
    """``shim``, ``library``, ``file``, ``edit`` or ``config``."""
    files: tuple[str, ...]
    """Relative to the tree."""
    state: PatchState
    because: str = ""
    by: str = ""
    """``caffeup`` or ``tree`` where the state is done."""


class StageOutcome(Value, kw_only=True):
    """One stage of a run."""

    name: str
    state: str
    """``done``, ``unchanged``, ``skipped`` or ``failed``."""
    seconds: float = 0.0
    summary: str = ""
    log: str = ""


class TestCase(Value, kw_only=True):
    """One test that did not pass."""

    __test__ = False
    """Not a test of ours, whatever pytest thinks of the name."""

    name: str
    state: str
    """``failed``, ``aborted``, ``timeout`` or ``not-compiled``."""
    text: str = ""
    known: str = ""
    """Reason from the facts, where this tree is known to fail it."""


class TestReport(Value, kw_only=True):
    """What runtest gave."""

    __test__ = False

    total: int
    passed: int
    added: int = 0
    """How many of ``total`` caffeup put into the tree."""
    failures: tuple[TestCase, ...] = ()
    skipped: int = 0
    """Left out by the filter."""
    seconds: float = 0.0

    @property
    def unknown_failures(self) -> tuple[TestCase, ...]:
        """Failures that are not known of this tree."""
        return tuple(case for case in self.failures if not case.known)


class Check(Value, kw_only=True):
    """One row of verify's table."""

    name: str
    ok: bool
    result: str
    evidence: tuple[Evidence, ...] = ()
    finding: Optional[Finding] = None


class Report(Value, kw_only=True):
    """The end of ``up``."""

    schema: int = SCHEMA
    tree: str
    stages: tuple[StageOutcome, ...]
    tests: Optional[TestReport] = None
    checks: tuple[Check, ...] = ()
    binaries: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
