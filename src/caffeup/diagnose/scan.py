"""The few lines of a log that can matter, found at the speed of a plain text search, each with its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Optional

from caffeup.diagnose.kinds import Kinds
from caffeup.diagnose.languages import KEYWORDS as FOREIGN_KEYWORDS
from caffeup.diagnose.languages import OTHER_SCRIPTS
from caffeup.diagnose.read import shorten

BLOCK = 2048
BEFORE = 60
AFTER = 12
BANNER = 4 * BLOCK
"""So many lines from the start are always searched for versions; later ones only around an error."""

KEYWORDS = (
    *(
        "rror",
        "ailed",
        "atal",
        "annot ",
        "No ",
        "ot found",
        "undefined",
        "FAILED",
        "RROR",
        "FATAL",
        "ailure",
        "Killed",
        "died due",
    ),
    *(
        "ould not",
        "xception",
        "xhausted",
        "Segmentation",
        "terminate called",
        "*** SIG",
        "Stop.",
        "nsupported",
        "multiple definition",
    ),
    *FOREIGN_KEYWORDS,
    *("hidden symbol", "Illegal", "enied", "quota", "recompile with", "\nF"),
)
"""Any line that is an event holds one of these, in the words it has in the log."""

ALIKE = 64
"""Lines that differ only in their digits are looked at so many times; the next one tells nothing new."""

KIND = 1024
"""Lines that differ only in names and numbers which nobody asks for are looked at so many times."""

FLOOD = 20_000
"""Lines that differ only in small letters and digits, of kinds that were seen often enough, are read so many times."""

SHAPES = 8192
"""Shapes that are remembered, and how wide they may be: what bounds the memory."""
WIDEST = 1024

_DIGITS = b"0123456789"
_SMALL = b"abcdefghijklmnopqrstuvwxyz_" + _DIGITS

CHINESE = ("错误", "未定义", "找不到", "未找到", "没有", "设备", "杀死", "段错误", "无法", "隐藏")
"""The same for logs that are not plain ASCII."""


class Candidate:
    """A line to look at closely: ``number`` from 1, its raw text, and the lines around it on demand."""

    __slots__ = ("_at", "_lines", "block", "number", "raw")

    def __init__(self, number: int, lines: list[str], at: int, block: str) -> None:
        self.number = number
        self.block = block
        self.raw = lines[at]
        self._lines = lines
        self._at = at

    @property
    def ends(self) -> bool:
        """Whether the log ends with this line."""
        return not any(line.strip() for line in self._lines[self._at + 1 :])

    def around(self, before: int = BEFORE, after: int = AFTER) -> list[tuple[int, str]]:
        """Numbered raw lines around this one, itself left out."""
        first, at = max(0, self._at - before), self._at
        last = min(len(self._lines), at + 1 + after)
        return [(self.number + i - at, self._lines[i]) for i in range(first, last) if i != at]


class Flood:
    """What was no longer read line by line, because there was too much of it."""

    def __init__(self) -> None:
        self.lines = 0
        self.first = 0
        """The number of the first such line."""
        self.text = ""

    def add(self, number: int, text: str, many: int) -> None:
        """So many lines, of which this is the first."""
        if not self.lines:
            self.first, self.text = number, text
        self.lines += many


def candidates(
    lines: Iterable[str], keywords: tuple[str, ...], kinds: Kinds, look: Callable[[str], None], flood: Optional[Flood] = None
) -> Iterator[Candidate]:
    """Lines that hold a keyword, in order, of many alike the first ones only.

    ``look`` is shown the first blocks of lines, where logs say what they run on; ``flood`` is told what is passed over.
    """
    source = iter(lines)
    sieve = _Sieve(keywords, kinds, flood or Flood())
    held: list[str] = []  # BEFORE lines already looked at, then those that wait for their AFTER lines
    start, base, more = 0, 1, True
    while more:
        fresh = list(islice(source, BLOCK))
        more = bool(fresh)
        held += _plain(fresh)
        stop = len(held) - AFTER if more else len(held)
        if stop > start:
            block = "\n" + "\n".join(held[start:stop])
            if base + start <= BANNER:
                look(block)
            hits = sieve.hits(block, base + start)
            if not more:
                hits = _with_last(hits, held[start:stop])
            for at in hits:
                yield Candidate(base + start + at, held, start + at, block)
            start = stop
        drop = max(0, start - BEFORE)
        held = held[drop:]
        start, base = start - drop, base + drop


def _with_last(hits: list[int], lines: list[str]) -> list[int]:
    """The line that a log ends with is always looked at: where a program hangs, it is the one that tells."""
    last = next((at for at in range(len(lines) - 1, -1, -1) if lines[at].strip()), -1)
    return hits if last < 0 or last in hits else [*hits, last]


class _Sieve:
    """Finds the lines that hold a keyword, and spares itself those whose like was seen often enough."""

    def __init__(self, keywords: tuple[str, ...], kinds: Kinds, flood: Flood) -> None:
        self._flood = flood
        self._keywords = keywords
        self._kinds = kinds
        self._of_kind: dict[bytes, int] = {}
        """How often a kind was seen."""
        self._dull: set[bytes] = set()
        """Shapes (a line without its digits) that are not looked at again."""
        self._times: dict[bytes, int] = {}
        """How often a shape with a keyword was seen."""
        self._outlines: dict[bytes, int] = {}
        """How often lines of well-known kinds with this outline (a line without its small letters too) were seen."""
        self._flooded: set[bytes] = set()

    def hits(self, block: str, number: int) -> list[int]:
        """Indexes of the lines to look at. The block starts with a newline; ``number`` is that of its first line."""
        lines = block.split("\n")[1:]
        raw = block.encode("utf-8", "surrogatepass")
        left = list(range(len(lines)))
        if self._flooded:
            left = self._dry(raw, lines, number)
            if not left:
                return []
        shapes = raw.translate(None, _DIGITS).split(b"\n")[1:]
        dull = self._dull
        left = [at for at in left if shapes[at] not in dull]
        if not left:
            return []
        text = block if len(left) == len(lines) else "\n" + "\n".join([lines[at] for at in left])
        found = [left[index] for index in _hits(text, self._keywords)]
        self._remember(shapes, left, found)
        return [at for at in found if self._is_rare(shapes[at])]

    def _is_rare(self, shape: bytes) -> bool:
        if len(shape) > WIDEST:
            return True
        kind = self._kinds.of(shape)
        if len(self._of_kind) > SHAPES:
            self._of_kind.clear()
        times = self._of_kind[kind] = self._of_kind.get(kind, 0) + 1
        if times > KIND:
            self._count(shape.translate(None, _SMALL))
        return times <= KIND

    def _count(self, outline: bytes) -> None:
        if len(self._outlines) > SHAPES:
            self._outlines.clear()
        times = self._outlines[outline] = self._outlines.get(outline, 0) + 1
        if times > FLOOD and len(self._flooded) < SHAPES:
            self._flooded.add(outline)

    def _dry(self, raw: bytes, lines: list[str], number: int) -> list[int]:
        """Without the lines whose outline has been seen too often to read more of them."""
        outlines = raw.translate(None, _SMALL).split(b"\n")[1:]
        flooded = self._flooded
        left = [at for at, outline in enumerate(outlines) if outline not in flooded]
        if len(left) < len(lines):
            first = next(at for at, outline in enumerate(outlines) if outline in flooded)
            self._flood.add(number + first, lines[first], len(lines) - len(left))
        return left

    def _remember(self, shapes: list[bytes], left: list[int], found: list[int]) -> None:
        if len(self._dull) + len(self._times) > SHAPES:
            self._dull.clear()
            self._times.clear()
        hit = set(found)
        self._dull.update([shapes[at] for at in left if at not in hit and len(shapes[at]) <= WIDEST])
        for at in found:
            shape = shapes[at]
            if len(shape) <= WIDEST:
                times = self._times[shape] = self._times.get(shape, 0) + 1
                if times >= ALIKE:
                    self._dull.add(shape)


def _plain(lines: list[str]) -> list[str]:
    """The lines without their ends, and none too long."""
    if lines and max(map(len, lines)) > 1 << 15:
        lines = [shorten(line) for line in lines]
    text = "\n".join(lines)
    if "\r" in text or text.count("\n") >= len(lines):
        return [line.rstrip("\r\n").replace("\n", " ") for line in lines]
    return lines


def _hits(block: str, keywords: tuple[str, ...]) -> list[int]:
    """Indexes of the block's lines that hold a keyword."""
    if not block.isascii():  # gcc's curly quotes alone must not make every search slow
        block = block.replace("‘", "'").replace("’", "'")
    places: list[int] = []
    for word in keywords if block.isascii() else (*keywords, *CHINESE, *OTHER_SCRIPTS):
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
