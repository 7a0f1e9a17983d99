"""The symptoms of all fixes, ready to be matched against millions of lines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache

from caffeup.diagnose.events import WORDS
from caffeup.diagnose.kinds import Kinds
from caffeup.diagnose.literals import required
from caffeup.diagnose.scan import KEYWORDS
from caffeup.model.fix import Fix

SHORTEST = 4
"""A symptom must need a literal at least this long, or it would be tried on every line."""


Words = tuple[tuple[str, str], ...]
"""Named groups of a symptom and what they matched: a fix's texts may hold ``{name}``."""

_SLIP = 0.86
"""How alike a misspelt name and the one that is meant are: one letter in five is another word."""

_PLAIN = re.compile(r"[\w./+][\w./+-]{0,127}", re.ASCII)
"""What may pass from a log into a command that somebody pastes."""


WITHHELD = "…"
"""Stands for a word that may not."""


class BadSymptom(ValueError):
    """A row of the catalogue whose symptom cannot be used."""


_GATES = (
    *(
        "fatal error: ",
        "error: ",
        "cannot find -l",
        "undefined reference to",
        "undefined symbol",
        "Check failed",
        "No module named",
    ),
    *("cudaSuccess", "Error: "),
)
"""Texts that many symptoms share; a line without one is not tried against any of those."""

_WORN = (
    "was not declared",
    "does not name a type",
    "has no member",
    "is not a member of",
    "no matching function",
    "No such file",
)
"""Texts that say nothing by themselves: a symptom is looked up by another one where it has one so long."""
_TELLING = 5

_Entries = dict[str, list[tuple[re.Pattern[str], str]]]
"""By a literal that the line must hold: the expression, and the fix."""


class Catalogue:
    """All symptoms, indexed by a literal that each needs."""

    def __init__(self, fixes: Iterable[Fix]) -> None:
        self.fixes = {fix.id: fix for fix in fixes}
        self._also = {fix.id: tuple(_compile(fix.id, pattern) for pattern in fix.also) for fix in self.fixes.values()}
        self._index: dict[str, _Entries] = {}
        self._noise: dict[str, _Entries] = {}
        self._told: dict[str, _Entries] = {}
        keywords = list(KEYWORDS)
        literals = [*KEYWORDS, *WORDS]
        for fix in self.fixes.values():
            for symptom in fix.symptoms:
                needs = _needs(fix.id, symptom)
                literals += [text for texts in needs for text in texts]
                entries = self._of(fix).setdefault(_gate(needs), {})
                for literal in _telling(needs):
                    entries.setdefault(literal, []).append((_compile(fix.id, symptom), fix.id))
                if not any(all(_covered(text, keywords) for text in texts) for texts in needs):
                    keywords += [_unquoted(text) for text in needs[0]]
        self.keywords = tuple(keywords)
        self.kinds = Kinds(literals)

    def _of(self, fix: Fix) -> dict[str, _Entries]:
        return self._noise if fix.harmless else self._told if fix.told else self._index

    def noise(self, said: str) -> str:
        """The harmless row that this line belongs to, or ""."""
        return next(iter(_matches(self._noise, said)), "")

    def match(self, said: str) -> dict[str, Words]:
        """Ids of the fixes with a symptom in this line, each with the words that the symptom picked out of it."""
        return dict(sorted(_matches(self._index, said).items()))

    def told(self, said: str) -> dict[str, Words]:
        """The same for lines of mere information."""
        return _matches(self._told, said)

    def informs(self, fixes: Iterable[str]) -> bool:
        """Whether lines of mere information tell these."""
        return all(self.fixes[fix].told for fix in fixes)

    def supported(self, fix: str, lines: Iterable[str]) -> bool:
        """Whether one of the lines near the symptom speaks for this fix."""
        patterns = self._also[fix]
        return bool(patterns) and any(pattern.search(line) for line in lines for pattern in patterns)

    def has_support(self, fix: str) -> bool:
        """Whether there are lines that would speak for this fix."""
        return bool(self._also[fix])

    def needs_support(self, fix: str) -> bool:
        """Whether the symptom says nothing without such a line."""
        return self.fixes[fix].near


@lru_cache(maxsize=4)
def catalogue(fixes: tuple[Fix, ...]) -> Catalogue:
    """The catalogue of these fixes; made once."""
    return Catalogue(fixes)


def _plain(word: str) -> str:
    return word if _PLAIN.fullmatch(word) else WITHHELD


def _unquoted(text: str) -> str:
    """The part that stands in a raw line whatever quotes it uses; without digits, in which lines of one shape differ."""
    return max(re.split("['\"0-9]", text), key=len)


def _gate(needs: list[tuple[str, ...]]) -> str:
    single = [texts[0] for texts in needs if len(texts) == 1]
    return next((gate for gate in _GATES if any(gate in text for text in single)), "")


def _telling(needs: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The texts by which a symptom is looked up."""
    common = (*_GATES, *_WORN)
    for texts in needs:
        if min(map(len, texts)) >= _TELLING and not any(word in text or text in word for word in common for text in texts):
            return texts
    return needs[0]


def _matches(index: dict[str, _Entries], said: str) -> dict[str, Words]:
    found: dict[str, Words] = {}
    for gate, entries in index.items():
        if gate not in said:
            continue
        for patterns in [patterns for literal, patterns in entries.items() if literal in said]:
            for pattern, fix in patterns:
                match = None if fix in found else pattern.search(said)
                if match:
                    found[fix] = _words(match)
    return found


def _words(match: re.Match[str]) -> Words:
    """What the named groups matched; where a list of known names goes with an unknown one, the name that is meant."""
    groups = match.groupdict(default="")
    known = groups.pop("known", None)
    if known is not None:
        names = re.findall(r"\w+", known)
        groups["close"] = next(iter(_close(groups["field"], names)), "")
    return tuple((name, _plain(word) if word else "") for name, word in groups.items())


def _close(name: str, names: list[str]) -> list[str]:
    """Those that differ by a slip: a letter or two, or the case."""
    return [one for one in names if one.lower() == name.lower()] or get_close_matches(name, names, 1, cutoff=_SLIP)


def _covered(text: str, keywords: list[str]) -> bool:
    return any(word in text for word in keywords)


def _compile(fix: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise BadSymptom(f"{fix}: {pattern!r}: {error}") from error


def _needs(fix: str, symptom: str) -> list[tuple[str, ...]]:
    _compile(fix, symptom)
    try:
        needs = required(symptom)
    except (ValueError, IndexError) as error:
        raise BadSymptom(f"{fix}: {symptom!r}: {error}") from error
    if not needs or min(map(len, needs[0])) < SHORTEST:
        raise BadSymptom(f"{fix}: {symptom!r} needs no text of {SHORTEST} letters or more")
    return needs
