"""Protobuf's wire format: fields found in bytes, and written."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Union

Buffer = Union[bytes, bytearray, memoryview]


VARINT, EIGHT, LENGTH, FOUR = 0, 1, 2, 5
"""Wire types. Groups (3 and 4) are in no message of Caffe."""
MOST_FIELDS = 1 << 20
"""Of one message: a large file of nothing but small fields must not take minutes."""
_SIZES = {EIGHT: 8, FOUR: 4}


class Torn(ValueError):  # what is torn is the file
    """The bytes are no message, or end in the middle of one."""

    def __init__(self, what: str, place: int) -> None:
        super().__init__(what)
        self.what = what
        self.place = place


class Record(NamedTuple):
    """One field of a message, as places in the bytes."""

    number: int
    kind: int
    """Its wire type."""
    start: int
    """Where its tag begins."""
    body: int
    """Where its value begins, behind a length."""
    end: int
    value: int
    """Of a varint."""


def records(data: Buffer, start: int, end: int) -> Iterator[Record]:
    """The fields of the message between two places; ``Torn`` where there is none."""
    at, many = start, 0
    while at < end:
        many += 1
        if many > MOST_FIELDS:
            raise Torn("it has more fields than any message of Caffe", at)
        tag, body = varint(data, at, end)
        number, kind, value = tag >> 3, tag & 7, 0
        if kind == VARINT:
            value, after = varint(data, body, end)
        elif kind == LENGTH:
            length, body = varint(data, body, end)
            after = body + length
        elif kind in _SIZES:
            after = body + _SIZES[kind]
        else:
            raise Torn("this is no message of protobuf", at)
        if not number or number >= 1 << 29:
            raise Torn("this is no message of protobuf", at)
        if after > end:
            raise Torn("the file ends in the middle of a value", at)
        yield Record(number, kind, at, body, after, value)
        at = after


def varint(data: Buffer, at: int, end: int) -> tuple[int, int]:
    """A number in seven bits a byte, and the place behind it."""
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise Torn("the file ends in the middle of a value" if at >= end else "this is no message of protobuf", at)


def varints(data: Buffer, record: Record) -> list[int]:
    """The numbers of a repeated field, packed or not."""
    if record.kind == VARINT:
        return [record.value]
    found, at = [], record.body
    while at < record.end:
        value, at = varint(data, at, record.end)
        found.append(value)
    return found


def as_varint(value: int) -> bytes:
    """A number as it is written; a negative one in ten bytes, as protobuf does."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag(number: int, kind: int) -> bytes:
    """What stands before a value."""
    return as_varint(number << 3 | kind)


def head(number: int, length: int) -> bytes:
    """What stands before a value of so many bytes."""
    return tag(number, LENGTH) + as_varint(length)


def message(number: int, pieces: Iterable[Buffer]) -> list[Buffer]:
    """A field whose value is made of pieces, which are not copied."""
    parts = list(pieces)
    return [head(number, sum(len(part) for part in parts)), *parts]


def floats(code: str, values: Union[Iterable[float], bytes] = ()) -> array[float]:
    """Numbers as protobuf packs them: ``f`` of four bytes, ``d`` of eight."""
    return array("f" if code == "f" else "d", values)
