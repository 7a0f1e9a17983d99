"""From the lines of a log to its causes: the first cause first, consequences folded under it, nothing guessed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional

from caffeup.diagnose.catalogue import Catalogue, catalogue
from caffeup.diagnose.context import Context, Tells
from caffeup.diagnose.events import Event, classify, is_aside
from caffeup.diagnose.findings import findings
from caffeup.diagnose.notes import Notes
from caffeup.diagnose.scan import Candidate, candidates
from caffeup.diagnose.wording import canonical, clean
from caffeup.facts.tables import Facts
from caffeup.model.finding import Finding

SEGMENTS = 64
"""Of a line that was drawn over again and again with carriage returns, the last so many states are looked at."""


def diagnose(lines: Iterable[str], facts: Facts, context: Optional[Context] = None, *, log: str = "log") -> tuple[Finding, ...]:
    """The causes that this log shows, each with evidence, remedy and how sure it is; empty where no error is in it.

    Any text is accepted, of any length; memory stays bounded. What the log tells of its own machine is added to ``context``.
    """
    known = catalogue(facts.fixes)
    notes = Notes(known)
    tells = Tells()
    for candidate in candidates(lines, known.keywords, known.kinds, tells.look, notes.flood):
        for segment in candidate.raw.split("\r")[-SEGMENTS:]:
            if _take(segment, candidate, known, notes):
                tells.look(candidate.block)
    return findings(notes, tells.merged(context or Context()), facts, log)


def _take(segment: str, candidate: Candidate, known: Catalogue, notes: Notes) -> bool:
    """Note what this line is; whether it is an error."""
    text = clean(segment)
    said = canonical(text)
    if not said:
        return False
    noise = known.noise(said)
    if noise and (candidate.ends or not known.fixes[noise].normal):
        notes.harmless(noise, candidate.number, text)
    told = {} if noise else known.told(said)
    if told:
        notes.known(told, Event.other(candidate.number, text, said), candidate)
    if noise or told or is_aside(said):
        return False
    hits = known.match(said)
    event = classify(candidate.number, text, said)
    if hits and notes.known(hits, event or Event.other(candidate.number, text, said), candidate):
        return True
    if event is not None:
        notes.unknown(event, candidate)
    return event is not None
