"""The long story of an id: of a row of the catalogue, of another finding, or of a figure of the GPU table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Optional

from caffeup.diagnose.context import NAMES, VERSIONED, Context
from caffeup.diagnose.example import concrete, example
from caffeup.diagnose.remedies import here, remedies
from caffeup.facts.tables import Facts
from caffeup.model.explanation import Explained, Explanation
from caffeup.model.finding import Remedy
from caffeup.model.fix import Condition, Fix
from caffeup.model.gpus import Figure

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
MOST_PROPOSED = 5


def explain(name: str, facts: Facts, context: Context) -> Optional[Explanation]:
    """All that is known of this id; None where it is none."""
    fix = facts.fix(name)
    if fix is not None:
        return _of_fix(fix, facts, context)
    row = explained(name, facts.explained)
    if row is not None:
        return _of_row(name, row, context)
    figure = next((one for one in facts.figures if one.id == name), None)
    return _of_figure(figure) if figure is not None else None


def explained(name: str, rows: Iterable[Explained]) -> Optional[Explained]:
    """The row for an id, or for the ids that begin so."""
    return next((row for row in rows if row.id == name or (row.id.endswith("*") and name.startswith(row.id[:-1]))), None)


def titles(facts: Facts) -> tuple[tuple[str, str], ...]:
    """Every id with its title, by id."""
    found = {figure.id: f"a figure of the GPU table: {figure.title}" for figure in facts.figures}
    found.update({row.id: row.title for row in facts.explained})
    found.update({fix.id: _readable(fix.title) for fix in facts.fixes})
    return tuple(sorted(found.items()))


def proposed(name: str, facts: Facts) -> tuple[str, ...]:
    """Ids that are perhaps meant: those that read alike, then those that hold the word in their id or title."""
    known = titles(facts)
    wanted = name.strip().strip("[]").lower()
    alike = get_close_matches(wanted, [one for one, _ in known], MOST_PROPOSED, cutoff=0.75)
    holding = [one for one, title in known if len(wanted) > 2 and wanted in f"{one} {title}".lower()]
    return tuple(dict.fromkeys([*alike, *holding]))[:MOST_PROPOSED]


def _of_fix(fix: Fix, facts: Facts, context: Context) -> Explanation:
    mends = tuple(
        Remedy(
            text=_readable(one.text),
            commands=tuple(command for command in one.commands if not _PLACEHOLDER.search(command)),
            by_caffeup=one.by_caffeup,
        )
        for one in remedies(fix, facts, context)
    )
    alike = [other.id for other in facts.fixes if other.id != fix.id and _reads_alike(fix, other)]
    return Explanation(
        id=fix.id,
        title=_readable(fix.title),
        why=_readable(fix.cause),
        when=_when(fix.when),
        looks=tuple(dict.fromkeys(map(example, fix.symptoms))),
        near=tuple(dict.fromkeys(map(example, fix.also))),
        unsure=fix.unsure,
        decides=fix.decides,
        alike=tuple(alike),
        remedies=mends,
        sources=fix.source,
    )


def _reads_alike(fix: Fix, other: Fix) -> bool:
    if other.id in fix.follows or fix.id in other.follows:
        return True
    return any(_matches(other, line) for line in map(concrete, fix.symptoms)) or any(
        _matches(fix, line) for line in map(concrete, other.symptoms)
    )


def _matches(fix: Fix, line: str) -> bool:
    return any(re.search(symptom, line) for symptom in fix.symptoms)


def _readable(text: str) -> str:
    """With ``<name>`` where a log's own word would stand."""
    return _PLACEHOLDER.sub(r"<\1>", text)


def _when(when: Condition) -> str:
    parts = [f"{NAMES.get(name, name)} {getattr(when, name)}" for name in VERSIONED if getattr(when, name)]
    if when.mode:
        parts.append("builds for the GPU" if when.mode == "gpu" else "builds for the CPU")
    for words, values in (("fork", when.fork), ("on", when.distro), ("processor", when.arch)):
        if values:
            parts.append(f"{words} {', '.join(values)}")
    parts += [f"“{one.contains}” in {one.file}" if one.contains else one.file for one in when.tree]
    return "; ".join(parts)


def _of_row(name: str, row: Explained, context: Context) -> Explanation:
    commands = tuple(here(command, context) for command in row.commands)
    return Explanation(
        id=name,
        title=row.title,
        why=row.why,
        looks=(row.looks,) if row.looks else (),
        remedies=(Remedy(text=row.mend, commands=commands, by_caffeup=any(one.startswith("caffeup up") for one in commands)),),
        sources=row.source,
    )


def _of_figure(figure: Figure) -> Explanation:
    return Explanation(
        id=figure.id,
        title=f"{figure.title}, a figure of the GPU table",
        why=figure.meaning,
        when=f"range: {figure.range}; normal: {figure.normal}",
        remedies=(Remedy(text=figure.look),) if figure.look else (),
        sources=figure.source,
    )
