"""The few lines of a log that can matter, found at the speed of a plain text search, each with its neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from caffeup.diagnose.read import shorten

BLOCK = 2048
BEFORE = 60
AFTER = 12

KEYWORDS = (
    *(
        "rror",
        "RROR",
        "atal",
        "ailed",
        "FAILED",
        "FATAL",
        "Failure",
        "undefined",
        "cannot find",
        "ot found",
        "No such",
        "No rule",
    ),
    *("No space", "No module", "Killed", "died due", "Segmentation", "terminate called", "*** ", "xception", "cannot open"),
    *("xhausted", "not allocate", "multiple definition", "hidden symbol", "Unsupported", "Could NOT", "Could not", "Illegal"),
    *("Permission denied", "quota", "\nF0", "\nF1", "\nF2"),
    *("错误", "未定义", "找不到", "未找到", "没有", "设备", "杀死", "段错误", "无法", "隐藏"),
)
"""Any line that is an event holds one of these, in the words it has in the log."""


class Candidate:
    """A line to look at closely: ``number`` from 1, its raw text, and the lines around it on demand."""

    __slots__ = ("_at", "_lines", "number", "raw")

    def __init__(self, number: int, lines: list[str], at: int) -> None:
        self.number = number
        self.raw = lines[at]
        self._lines = lines
        self._at = at

    def around(self, before: int = BEFORE, after: int = AFTER) -> list[tuple[int, str]]:
        """Numbered raw lines around this one, itself left out."""
        first, at = max(0, self._at - before), self._at
        last = min(len(self._lines), at + 1 + after)
        return [(self.number + i - at, self._lines[i]) for i in range(first, last) if i != at]


def candidates(lines: Iterable[str], keywords: tuple[str, ...], blocks: list[str]) -> Iterator[Candidate]:
    """All lines that hold a keyword, in order. ``blocks`` holds, at any time, the text that is being looked at."""
    source = iter(lines)
    held: list[str] = []  # BEFORE lines already looked at, then those that wait for their AFTER lines
    start, base, more = 0, 1, True
    while more:
        fresh = [line.rstrip("\r\n") for line in islice(source, BLOCK)]
        more = bool(fresh)
        if fresh and max(map(len, fresh)) > 1 << 15:
            fresh = [shorten(line) for line in fresh]
        held += fresh
        stop = len(held) - AFTER if more else len(held)
        if stop > start:
            block = "\n" + "\n".join(held[start:stop])
            blocks[:] = [block]
            for at in _hits(block, keywords):
                yield Candidate(base + start + at, held, start + at)
            start = stop
        drop = max(0, start - BEFORE)
        held = held[drop:]
        start, base = start - drop, base + drop


def _hits(block: str, keywords: tuple[str, ...]) -> list[int]:
    """Indexes of the block's lines that hold a keyword."""
    places: list[int] = []
    for word in keywords:
        at = block.find(word)
        while at >= 0:
            at += word[0] == "\n"
            places.append(at)
            end = block.find("\n", at)
            at = block.find(word, end) if end >= 0 else -1
    found: list[int] = []
    seen = index = 0
    for place in sorted(places):
        index += block.count("\n", seen, place)
        seen = place
        if not found or found[-1] != index - 1:
            found.append(index - 1)
    return found
