"""One of several possible causes of an error, and what was found about it on this machine."""

from __future__ import annotations

from caffeup.model.base import Value, Word
from caffeup.model.finding import Remedy


class Verdict(Word):
    """What a look at the machine says of a possible cause."""

    FOUND = "found"
    """It is so here."""
    OPEN = "open"
    """It cannot be told."""
    RULED_OUT = "ruled out"


class Suspect(Value, kw_only=True):
    """A possible cause."""

    id: str
    title: str
    verdict: Verdict
    seen: str
    """What was looked at, and found."""
    remedies: tuple[Remedy, ...] = ()
