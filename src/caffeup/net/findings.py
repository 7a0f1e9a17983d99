"""Findings about a net's file, gathered: what is wrong in the same way in several places is one finding."""

from __future__ import annotations

from collections.abc import Iterator

from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.net.text import Document

SHOWN = 5
"""Places that are shown of one finding."""
ENOUGH = 100
"""After so many findings names that are meant are no longer looked for: that takes its time, and nobody reads them."""


class Findings:
    """Collects findings by what is said; a further place of one that is there is only its evidence."""

    crowded = False
    """Whether so many are there already that no more work is worth doing for the next."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._by_title: dict[tuple[str, str], Finding] = {}
        self._places: dict[tuple[str, str], dict[int, None]] = {}

    def add(
        self,
        kind: str,
        title: str,
        place: int,
        *,
        why: str = "",
        remedy: str = "",
        commands: tuple[str, ...] = (),
        severity: Severity = Severity.PROBLEM,
    ) -> None:
        """Something found at a place of the file."""
        key = (kind, title)
        self._places.setdefault(key, {})[place] = None
        if key not in self._by_title:
            self.crowded = len(self._by_title) > ENOUGH
            remedies = (Remedy(text=remedy, commands=commands),) if remedy else ()
            self._by_title[key] = Finding(id=kind, severity=severity, title=title, why=why, remedies=remedies)

    def all(self) -> Iterator[Finding]:
        """The findings, in the order in which they were first met, each with its places."""
        for key, one in self._by_title.items():
            places = sorted(self._places[key])
            evidence = [self._document.evidence(place) for place in places[:SHOWN]]
            if len(places) > SHOWN:
                more = len(places) - SHOWN
                evidence.append(Evidence(where=self._document.name, text=f"and in {more} more place{'s' if more > 1 else ''}"))
            yield Finding(
                id=one.id, severity=one.severity, title=one.title, why=one.why, remedies=one.remedies, evidence=tuple(evidence)
            )
