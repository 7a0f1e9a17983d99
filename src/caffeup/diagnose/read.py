"""Bytes of a log, in chunks of any size, to lines: any encoding that logs come in, and memory that stays bounded."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from typing import Optional

KEEP = 1 << 14
"""Characters kept of each end of a line that is longer than both together."""

_SAMPLE = 4096


def read(chunks: Iterable[bytes]) -> Iterator[str]:
    """Lines without their newline. Nothing in the bytes makes it raise; a lone carriage return does not end a line."""
    line = _Line()
    for text in _decoded(iter(chunks)):
        whole, newline, rest = text.rpartition("\n")
        if not newline:
            line.add(rest)
            continue
        first, *others = whole.split("\n")
        line.add(first)
        yield line.take()
        if max(map(len, others), default=0) > 2 * KEEP:
            others = [shorten(each) for each in others]
        yield from others
        line.add(rest)
    if line:
        yield line.take()


def shorten(line: str) -> str:
    """The line, or its two ends where it is longer than anything a person reads."""
    return line if len(line) <= 2 * KEEP else f"{line[:KEEP]} … {line[-KEEP:]}"


class _Line:
    """A line that arrives in pieces."""

    def __init__(self) -> None:
        self._head = ""
        self._tail = ""

    def __bool__(self) -> bool:
        return bool(self._head)

    def add(self, piece: str) -> None:
        room = KEEP - len(self._head)
        self._head += piece[:room]
        self._tail = (self._tail + piece[room:])[-KEEP:]

    def take(self) -> str:
        text = self._head + (f" … {self._tail}" if len(self._tail) == KEEP else self._tail)
        self._head = self._tail = ""
        return text


def _decoded(chunks: Iterator[bytes]) -> Iterator[str]:
    sample = b""
    for chunk in chunks:
        sample += chunk
        if len(sample) >= _SAMPLE:
            break
    decoder = codecs.getincrementaldecoder(encoding(sample))(errors="replace")
    yield decoder.decode(sample)
    for chunk in chunks:
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)


def encoding(sample: bytes) -> str:
    """The codec for a log that starts with these bytes."""
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if sample.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    start = sample[:_SAMPLE]
    if len(start) >= 8:  # text in UTF-16 without a mark: every second byte of ASCII is zero
        even, odd = start[0::2].count(0), start[1::2].count(0)
        if max(even, odd) > len(start) // 8 and max(even, odd) > 8 * min(even, odd):
            return "utf-16-le" if odd > even else "utf-16-be"
    if _decodes(sample, "utf-8") is None:
        chinese = _decodes(sample, "gb18030") or ""
        foreign = [char for char in chinese if not char.isascii()]
        if sum("\u4e00" <= char <= "\u9fff" for char in foreign) * 2 > len(foreign):
            return "gb18030"
    return "utf-8"


def _decodes(sample: bytes, codec: str) -> Optional[str]:
    """The text, where the bytes are valid in that codec; a character cut at the end does not matter."""
    try:
        return codecs.getincrementaldecoder(codec)().decode(sample)
    except UnicodeDecodeError:
        return None
