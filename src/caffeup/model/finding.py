"""The one value for everything caffeup finds: a doctor's check, a patch's state, a plan's conflict, a diagnosis."""

from __future__ import annotations

from typing import Optional

from caffeup.model.base import Value, Word


class Severity(Word):
    """How bad it is; the order is that of an exit code."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"


class Confidence(Word):
    """How sure the cause is."""

    CERTAIN = "certain"
    LIKELY = "likely"
    UNSURE = "unsure"


class Evidence(Value, kw_only=True):
    """One thing that was seen: where, and what stood there."""

    where: str
    """A path, ``path:define``, a command, or a log's name."""
    text: str = ""
    line: Optional[int] = None
    """Line number in ``where``, from 1."""

    def __str__(self) -> str:
        place = self.where if self.line is None else f"{self.where}:{self.line}"
        return f"{place}: {self.text}" if self.text else place


class Remedy(Value, kw_only=True):
    """What mends it: words, and commands that can be pasted as they are."""

    text: str
    commands: tuple[str, ...] = ()
    by_caffeup: bool = False
    """Whether caffeup can do it itself (with the first command)."""


class Finding(Value, kw_only=True):
    """Something found, with a stable id; text and ``--json`` are two renderings of it."""

    id: str
    severity: Severity
    title: str
    """One line: what is the matter."""
    why: str = ""
    """One or two sentences: why that matters, or how it comes about."""
    evidence: tuple[Evidence, ...] = ()
    affects: str = ""
    """The tree, stage or fix concerned, where there is one."""
    remedies: tuple[Remedy, ...] = ()
    confidence: Confidence = Confidence.CERTAIN
    confidence_because: str = ""
    """Why it is no more and no less sure than that."""
