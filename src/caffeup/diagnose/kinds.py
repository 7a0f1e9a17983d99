"""What kind of line a line is: what is left of it without the names that no symptom and no rule asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

_RUN = re.compile(r"[A-Za-z_]+")
_TOKEN = re.compile(rb"[A-Za-z_]+|[\x80-\xff]+")
_WHOLE = 4
"""A shorter piece of a word would stand in too many others: it counts as a word only."""
_REMEMBERED = 1 << 16


class Kinds:
    """Knows the words that matter from the literals that somebody looks for in a line."""

    def __init__(self, literals: Iterable[str]) -> None:
        self._words: set[bytes] = set()
        within: set[bytes] = set()
        starts: set[bytes] = set()
        ends: set[bytes] = set()
        for literal in literals:
            for run in _RUN.finditer(literal):
                word = run[0].encode()
                cut_before, cut_after = run.start() == 0, run.end() == len(literal)
                if len(word) < _WHOLE or not (cut_before or cut_after):
                    self._words.add(word)
                else:
                    (within if cut_before and cut_after else ends if cut_before else starts).add(word)
        self._starts, self._ends = tuple(starts), tuple(ends)
        self._within: dict[bytes, list[bytes]] = {}
        """By their first letters: a new name is asked for these, and not for hundreds of words."""
        for word in within:
            self._within.setdefault(word[:_WHOLE], []).append(word)
        self._matters = _Asked(self._ask)

    def of(self, line: bytes) -> bytes:
        """The words of the line that matter, in order; lines of one kind match the same symptoms, but for digits and signs."""
        matters = self._matters
        return b" ".join([word for word in _TOKEN.findall(line) if matters[word]])

    def _ask(self, word: bytes) -> bool:
        return (
            word in self._words
            or word[0] >= 0x80
            or word.startswith(self._starts)
            or word.endswith(self._ends)
            or self._holds(word)
        )

    def _holds(self, word: bytes) -> bool:
        pieces = {word[at : at + _WHOLE] for at in range(len(word) - _WHOLE + 1)}
        return any(part in word for piece in pieces & self._within.keys() for part in self._within[piece])


class _Asked(dict[bytes, bool]):
    """Answers that were given already; a bounded number of them."""

    def __init__(self, ask: Callable[[bytes], bool]) -> None:
        super().__init__()
        self._ask = ask

    def __missing__(self, word: bytes) -> bool:
        if len(self) >= _REMEMBERED:
            self.clear()
        answer = self[word] = self._ask(word)
        return answer
