"""What was seen in a log so far; bounded, however long the log is."""

from __future__ import annotations

from typing import Optional

import msgspec

from caffeup.diagnose.catalogue import Catalogue, Words
from caffeup.diagnose.events import Event, Kind
from caffeup.diagnose.scan import Candidate, Flood
from caffeup.diagnose.wording import canonical, clean
from caffeup.model.base import Value

MOST_KNOWN = 64
MOST_UNKNOWN = 64
MOST_OTHERS = 4
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
    others: tuple[Event, ...] = ()
    """Further lines in which the symptom picked out other words: a second library that is missing."""
    informs: bool = False
    """Whether the line is mere information."""


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
        self.flood = Flood()
        self.stems: set[str] = set()
        """Source files with an error of a known cause."""

    def harmless(self, fix: str, number: int, text: str) -> None:
        """A line that is noise."""
        self.noise.setdefault(fix, (number, text))

    def known(self, hits: dict[str, Words], event: Event, candidate: Candidate) -> bool:
        """A line with a symptom of these fixes; False where all of them need a line nearby that is not there."""
        support: Optional[tuple[str, ...]] = None
        if any(map(self._catalogue.needs_support, hits)):
            support = self._support(tuple(hits), candidate)
            hits = {fix: words for fix, words in hits.items() if fix in support or not self._catalogue.needs_support(fix)}
        if not hits:
            return False
        fixes = tuple(hits)
        if event.stem and len(self.stems) < 1000:
            self.stems.add(event.stem)
        old = self.seen.get(fixes)
        if old is not None:
            if support is None:
                support = old.support if old.support or old.times > MOST_KNOWN else self._support(fixes, candidate)
            others = (*old.others, event) if len(old.others) < MOST_OTHERS and _tells_more(old, hits, event) else old.others
            self.seen[fixes] = msgspec.structs.replace(old, times=old.times + 1, support=old.support or support, others=others)
        elif len(self.seen) < MOST_KNOWN:
            support = self._support(fixes, candidate) if support is None else support
            self.seen[fixes] = Seen(fixes=fixes, event=event, words=hits, support=support, informs=self._catalogue.informs(fixes))
        return True

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
        lines = [canonical(clean(candidate.raw)), *(canonical(clean(line.rpartition("\r")[2])) for _, line in candidate.around())]
        return tuple(fix for fix in asked if self._catalogue.supported(fix, lines))


def _tells_more(old: Seen, hits: dict[str, Words], event: Event) -> bool:
    """Whether the symptom picked out words that it had not yet, or the linker misses another library."""
    new = hits != old.words or (event.what.startswith("cannot find -l") and event.what != old.event.what)
    return new and all(event.what != one.what for one in old.others)


def _shown(candidate: Candidate) -> tuple[tuple[int, str], ...]:
    around = candidate.around(SHOWN_BEFORE, SHOWN_AFTER)
    return tuple((number, clean(line)) for number, line in around if line.strip())
