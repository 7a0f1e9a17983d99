"""What was seen in a log so far; bounded, however long the log is."""

from __future__ import annotations

from typing import Optional

import msgspec

from caffeup.diagnose.catalogue import Catalogue, Words
from caffeup.diagnose.events import Event, Kind
from caffeup.diagnose.scan import Candidate
from caffeup.diagnose.wording import canonical, clean
from caffeup.model.base import Value

MOST_KNOWN = 64
MOST_UNKNOWN = 64
SHOWN_BEFORE = 3
SHOWN_AFTER = 4


class Seen(Value, kw_only=True):
    """A symptom, the first time it was seen."""

    fixes: tuple[str, ...]
    """All whose symptom it is."""
    event: Event
    words: dict[str, Words] = msgspec.field(default_factory=dict)
    """For each of them, what its symptom picked out of the line."""
    support: tuple[str, ...] = ()
    """Those of ``fixes`` for which lines nearby speak."""
    times: int = 1


class Stray(Value, kw_only=True):
    """An error that no fix knows, with the lines around it."""

    event: Event
    around: tuple[tuple[int, str], ...] = ()
    times: int = 1


class Notes:
    """Collects events. Each set of fixes and each kind and file of unknown errors is kept once, and counted."""

    def __init__(self, known: Catalogue) -> None:
        self._catalogue = known
        self.seen: dict[tuple[str, ...], Seen] = {}
        self.strays: dict[tuple[Kind, str], Stray] = {}
        self.noise: dict[str, tuple[int, str]] = {}
        self.echo: Optional[Stray] = None
        self.stems: set[str] = set()
        """Source files with an error of a known cause."""

    def harmless(self, fix: str, number: int, text: str) -> None:
        """A line that is noise."""
        self.noise.setdefault(fix, (number, text))

    def known(self, hits: dict[str, Words], event: Event, candidate: Candidate) -> None:
        """A line with a symptom of these fixes."""
        fixes = tuple(hits)
        if event.stem and len(self.stems) < 1000:
            self.stems.add(event.stem)
        old = self.seen.get(fixes)
        if old is not None:
            support = old.support if old.support or old.times > MOST_KNOWN else self._support(fixes, candidate)
            self.seen[fixes] = msgspec.structs.replace(old, times=old.times + 1, support=support)
        elif len(self.seen) < MOST_KNOWN:
            self.seen[fixes] = Seen(fixes=fixes, event=event, words=hits, support=self._support(fixes, candidate))

    def unknown(self, event: Event, candidate: Candidate) -> None:
        """An error that no fix knows."""
        if event.kind is Kind.ECHO:
            if self.echo is None:
                self.echo = Stray(event=event, around=_shown(candidate))
            return
        key = (event.kind, event.stem)
        old = self.strays.get(key)
        if old is not None:
            self.strays[key] = msgspec.structs.replace(old, times=old.times + 1)
        elif len(self.strays) < MOST_UNKNOWN:
            self.strays[key] = Stray(event=event, around=_shown(candidate))

    def _support(self, fixes: tuple[str, ...], candidate: Candidate) -> tuple[str, ...]:
        asked = [fix for fix in fixes if self._catalogue.has_support(fix)]
        if not asked:
            return ()
        lines = [canonical(clean(candidate.raw)), *(canonical(clean(line)) for _, line in candidate.around())]
        return tuple(fix for fix in asked if self._catalogue.supported(fix, lines))


def _shown(candidate: Candidate) -> tuple[tuple[int, str], ...]:
    around = candidate.around(SHOWN_BEFORE, SHOWN_AFTER)
    return tuple((number, clean(line)) for number, line in around if line.strip())
