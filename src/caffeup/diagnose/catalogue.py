"""The symptoms of all fixes, ready to be matched against millions of lines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from caffeup.diagnose.literals import required
from caffeup.diagnose.scan import KEYWORDS
from caffeup.model.fix import Fix

SHORTEST = 4
"""A symptom must need a literal at least this long, or it would be tried on every line."""


Words = tuple[tuple[str, str], ...]
"""Named groups of a symptom and what they matched: a fix's texts may hold ``{name}``."""

_PLAIN = re.compile(r"[\w./+][\w./+-]{0,127}", re.ASCII)
"""What may pass from a log into a command that somebody pastes."""


class BadSymptom(ValueError):
    """A row of the catalogue whose symptom cannot be used."""


class Catalogue:
    """All symptoms, indexed by a literal that each needs."""

    def __init__(self, fixes: Iterable[Fix]) -> None:
        self.fixes = {fix.id: fix for fix in fixes}
        self._also = {fix.id: tuple(_compile(fix.id, pattern) for pattern in fix.also) for fix in self.fixes.values()}
        self._index: dict[str, list[tuple[re.Pattern[str], str]]] = {}
        keywords = list(KEYWORDS)
        for fix in self.fixes.values():
            for symptom in fix.symptoms:
                needs = _needs(fix.id, symptom)
                for literal in needs[0]:
                    self._index.setdefault(literal, []).append((_compile(fix.id, symptom), fix.id))
                if not any(all(_covered(text, keywords) for text in texts) for texts in needs):
                    keywords += [_unquoted(text) for text in needs[0]]
        self.keywords = tuple(keywords)

    def match(self, said: str) -> dict[str, Words]:
        """Ids of the fixes with a symptom in this line, each with the words that the symptom picked out of it."""
        found: dict[str, Words] = {}
        for literal, entries in self._index.items():
            if literal in said:
                for pattern, fix in entries:
                    match = None if fix in found else pattern.search(said)
                    if match:
                        found[fix] = tuple(
                            (name, word) for name, word in match.groupdict().items() if word and _PLAIN.fullmatch(word)
                        )
        return dict(sorted(found.items()))

    def supported(self, fix: str, lines: Iterable[str]) -> bool:
        """Whether one of the lines near the symptom speaks for this fix."""
        patterns = self._also[fix]
        return bool(patterns) and any(pattern.search(line) for line in lines for pattern in patterns)

    def has_support(self, fix: str) -> bool:
        """Whether there are lines that would speak for this fix."""
        return bool(self._also[fix])


@lru_cache(maxsize=4)
def catalogue(fixes: tuple[Fix, ...]) -> Catalogue:
    """The catalogue of these fixes; made once."""
    return Catalogue(fixes)


def _plain(word: str) -> str:
    return word if _PLAIN.fullmatch(word) else "…"


def _unquoted(text: str) -> str:
    """The part that stands in a raw line whatever quotes it uses."""
    return max(re.split("['\"]", text), key=len)


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
