"""From what was seen in a log to findings: ranked by what is known of the machine, consequences left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from caffeup.diagnose.catalogue import WITHHELD, Words
from caffeup.diagnose.context import Context, Weight, weigh, without_failed
from caffeup.diagnose.events import Event, Kind
from caffeup.diagnose.notes import Notes, Seen, Stray
from caffeup.diagnose.remedies import remedies
from caffeup.diagnose.wording import clean
from caffeup.facts.tables import Facts
from caffeup.model.finding import Confidence, Evidence, Finding, Remedy, Severity
from caffeup.model.fix import Advice, Fix

MOST_STRAYS = 3
"""Unknown errors that are shown; the first is the one to ask about."""
SHOWN_WIDTH = 400

SAME_DEATH = 5
"""A failed check so few lines after a known one belongs to the same dying process."""

UNKNOWN = "log.unknown"
STOPPED = "log.stopped"
FLOODED = "log.flooded"

_LATE = (Kind.CRASH, Kind.TEST)
"""Kinds that are what another error looks like from outside."""


class _Cause:
    """One fix that one line of the log points to."""

    def __init__(self, fix: Fix, weight: Weight, seen: Seen) -> None:
        self.fix = _filled(fix, seen.words.get(fix.id, ()))
        self.weight = weight
        self.seen = seen
        self.supported = fix.id in seen.support

    def rank(self) -> tuple[int, int, int, int]:
        """Smaller is likelier."""
        return (len(self.weight.fails), -self.supported, -len(self.weight.holds), self.fix.unsure)


def findings(notes: Notes, context: Context, facts: Facts, log: str) -> tuple[Finding, ...]:
    """Known causes in the order of the log, then unknown errors that none of them explains, then harmless noise."""
    by_id = {fix.id: fix for fix in facts.fixes}
    found: dict[str, Finding] = {}
    for seen in _without_aftermath(notes):
        causes = _causes(seen, by_id, context)
        for cause in causes:
            if cause.fix.id not in found:
                found[cause.fix.id] = _known(cause, causes, facts, context, log)
    for name in [name for name in found if set(by_id[name].follows) & set(found)]:
        del found[name]
    strays = list(_strays(notes, found=any(not by_id[name].told for name in found), log=log))
    noise = [_noise(by_id[name], number, text, log) for name, (number, text) in notes.noise.items()]
    return (*found.values(), *strays, *noise, *_flooded(notes, log))


def _flooded(notes: Notes, log: str) -> Iterator[Finding]:
    """What was passed over, told once."""
    flood = notes.flood
    if flood.lines:
        yield Finding(
            id=FLOODED,
            severity=Severity.NOTE,
            title=f"{flood.lines} lines much like others were not read one by one",
            why="There are too many errors of one form; a known one among those lines may have been missed.",
            evidence=(Evidence(where=log, line=flood.first, text=_short(clean(flood.text))),),
            remedies=(Remedy(text="see the first errors; where one is not in them, give that part of the log alone"),),
        )


def _without_aftermath(notes: Notes) -> list[Seen]:
    """In the order of the log; a crash only where nothing else tells of an error."""
    seen = sorted(notes.seen.values(), key=lambda one: one.event.number)
    before = [one for one in seen if one.event.kind is not Kind.CRASH]
    if any(not one.informs for one in before) or _early(notes):
        return before
    return seen


def _early(notes: Notes) -> list[Stray]:
    """Unknown errors that are more than what another error looks like from outside."""
    return [one for one in notes.strays.values() if one.event.kind not in _LATE and not _explained(one.event, notes)]


def _causes(seen: Seen, by_id: dict[str, Fix], context: Context) -> list[_Cause]:
    weights = without_failed((name, weigh(by_id[name], context)) for name in seen.fixes)
    left = {name for name, _ in weights}  # a general row stands back where a special one fits the same line
    weights = [(name, weight) for name, weight in weights if not set(by_id[name].follows) & left]
    return sorted((_Cause(by_id[name], weight, seen) for name, weight in weights), key=_Cause.rank)


def _filled(fix: Fix, words: Words) -> Fix:
    """The fix with ``{name}`` in its texts replaced by what the symptom found."""

    def fill(text: str) -> str:
        for name, word in words:
            text = text.replace(f"{{{name}}}", word)
        return text

    lacking = [f"{{{name}}}" for name, word in words if not word]
    remedy = tuple(
        Advice(text=fill(one.text), commands=_whole(fill(command) for command in one.commands))
        if isinstance(one, Advice)
        else one
        for one in fix.remedy
        if not (isinstance(one, Advice) and any(name in one.text for name in lacking))  # it is about what was not found
    )
    return msgspec.structs.replace(fix, title=fill(fix.title), cause=fill(fix.cause), remedy=remedy) if words else fix


def _whole(commands: Iterable[str]) -> tuple[str, ...]:
    """Those in which no word was kept back because it could not be pasted."""
    return tuple(command for command in commands if WITHHELD not in command)


def _known(cause: _Cause, causes: list[_Cause], facts: Facts, context: Context, log: str) -> Finding:
    confidence, because = _confidence(cause, causes)
    return Finding(
        id=cause.fix.id,
        severity=Severity.WARNING if cause.fix.told else Severity.PROBLEM,
        title=cause.fix.title,
        why=cause.fix.cause,
        evidence=(_evidence(cause.seen.event, log), *(_evidence(event, log) for event in cause.seen.others)),
        affects=cause.seen.event.file,
        remedies=remedies(cause.fix, facts, context),
        confidence=confidence,
        confidence_because=because,
    )


def _confidence(cause: _Cause, causes: list[_Cause]) -> tuple[Confidence, str]:
    holds, fails, unknown = cause.weight.holds, cause.weight.fails, cause.weight.open
    if fails:
        return Confidence.UNSURE, f"the line reads so, but here is {_list(fails)}, with which it is not known to happen"
    if len(causes) > 1:
        return _among(cause, causes)
    if cause.fix.unsure:
        return Confidence.UNSURE, "the line is known, but the reports of it do not settle the cause"
    if holds:
        return Confidence.CERTAIN, f"the line says so, and it fits: {_list(holds)}"
    if unknown:
        return Confidence.LIKELY, f"the line says so; not known here: {_list(unknown)}"
    return Confidence.CERTAIN, "the line says so"


def _among(cause: _Cause, causes: list[_Cause]) -> tuple[Confidence, str]:
    """Several fixes look like this line."""
    others = len(causes) - 1
    count = "another cause reads" if others == 1 else f"{others} other causes read"
    alone = cause is causes[0] and cause.rank() < causes[1].rank()
    if alone and not cause.fix.unsure:
        reasons = [*(["lines near it speak for this one"] if cause.supported else []), *cause.weight.holds]
        if reasons:
            return Confidence.LIKELY, f"{count} the same, but {_list(tuple(reasons))}"
    decides = f"; what decides: {cause.fix.decides}" if cause.fix.decides else ""
    return Confidence.UNSURE, f"{count} the same{decides}"


def _list(words: tuple[str, ...]) -> str:
    return ", ".join(words)


def _evidence(event: Event, log: str) -> Evidence:
    return Evidence(where=log, line=event.number, text=_short(event.text))


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_WIDTH else text[: SHOWN_WIDTH - 1] + "…"


def _strays(notes: Notes, *, found: bool, log: str) -> Iterator[Finding]:
    left = [stray for stray in notes.strays.values() if not _explained(stray.event, notes)]
    # A crash or a failed test is what an error looks like from outside: it comes after the errors themselves.
    early = [stray for stray in left if stray.event.kind not in _LATE]
    if early:
        left = early
    elif found:
        left = []
    for index, stray in enumerate(sorted(left, key=lambda one: one.event.number)[:MOST_STRAYS]):
        yield _unknown(stray, first=not found and index == 0, log=log)
    if not left and not found and notes.echo is not None:
        yield _stopped(notes.echo, log)


def _explained(event: Event, notes: Notes) -> bool:
    """Whether a known cause in the same source file, the same link or just before it explains it."""
    if event.kind is Kind.CONFIGURE and notes.seen:
        return True
    if event.kind in {Kind.CHECK, Kind.PYTHON} and any(
        0 <= event.number - seen.event.number <= SAME_DEATH for seen in notes.seen.values() if not seen.informs
    ):
        return True
    if event.stem:
        return event.stem in notes.stems
    return any(seen.event.kind is event.kind for seen in notes.seen.values())


def _unknown(stray: Stray, *, first: bool, log: str) -> Finding:
    event = stray.event
    around = tuple(Evidence(where=log, line=number, text=_short(text)) for number, text in stray.around)
    title = "an error that caffeup does not know" if first else "a further error, perhaps a consequence of the first"
    return Finding(
        id=UNKNOWN,
        severity=Severity.PROBLEM if first else Severity.WARNING,
        title=f"{title}: {_short(event.what or event.said)[:160]}",
        why="Nothing is known of this line, so no cause is given." if first else "",
        evidence=(_evidence(event, log), *around),
        affects=event.file,
        remedies=(_COLLECT,) if first else (),
        confidence=Confidence.UNSURE,
        confidence_because="no row of the catalogue has this symptom",
    )


_COLLECT = Remedy(
    text="what helps to find it: the whole log from its first command on (one job at a time keeps the lines together), "
    "the machine as caffeup sees it, and the tree's commit",
    commands=("caffeup detect --json > machine.json", "git log -1 --format=%H"),
)


def _stopped(stray: Stray, log: str) -> Finding:
    around = tuple(Evidence(where=log, line=number, text=_short(text)) for number, text in stray.around)
    return Finding(
        id=STOPPED,
        severity=Severity.PROBLEM,
        title=f"it stopped, but the reason is not in this log: {_short(stray.event.said)[:160]}",
        why="The line only says that something before it failed.",
        evidence=(_evidence(stray.event, log), *around),
        remedies=(
            Remedy(
                text="take the whole log, errors included", commands=("make all > build.log 2>&1", "caffeup diagnose build.log")
            ),
        ),
        confidence=Confidence.UNSURE,
        confidence_because="the error itself was not seen",
    )


def _noise(fix: Fix, number: int, text: str, log: str) -> Finding:
    return msgspec.structs.replace(
        Finding(id=fix.id, severity=Severity.NOTE, title=fix.title, why=fix.cause),
        evidence=(Evidence(where=log, line=number, text=_short(text)),),
        confidence_because="the line says so; it is not an error",
    )
