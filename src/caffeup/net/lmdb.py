"""The first value of an LMDB, found through its B+ tree without the library: a few pages are read, whatever its size."""

from __future__ import annotations

import struct
from typing import Callable, Optional

Read = Callable[[int, int], bytes]
"""So many bytes from a place of ``data.mdb``."""

_MAGIC = 0xBEEFC0DE
_BRANCH, _LEAF = 1, 2
_BIG = 1
_DEEPEST = 64
LARGEST = 64 << 20
"""A value that is larger is no image that anybody trains with."""


def first_value(read: Read) -> Optional[bytes]:
    """The value of the smallest key; nothing where there is none. ``ValueError`` for what is no LMDB of this machine's kind."""
    size, root = _root(read)
    if root == 2**64 - 1:
        return None
    for _ in range(_DEEPEST):
        page = _whole(read, root * size, size)
        flags, lower = struct.unpack_from("<HH", page, 10)
        if lower <= 16:
            return None
        (node,) = struct.unpack_from("<H", page, 16)
        if node + 8 > size:
            raise ValueError("a page is damaged")
        low, high, bits, key = struct.unpack_from("<HHHH", page, node)
        if flags & _LEAF:
            return _value(read, size, page, node + 8 + key, low | high << 16, big=bool(bits & _BIG))
        if not flags & _BRANCH:
            raise ValueError("a page is neither branch nor leaf")
        root = low | high << 16 | bits << 32
    raise ValueError("its tree has no leaves")


def _root(read: Read) -> tuple[int, int]:
    """Size of a page, and the root page of the newer of the two states in the file."""
    first = _meta(read, 0)
    if first is None:
        raise ValueError("it does not begin as an LMDB does")
    second = _meta(read, first[0])
    size, root, _ = second if second and second[2] > first[2] else first
    return size, root


def _meta(read: Read, place: int) -> Optional[tuple[int, int, int]]:
    page = read(place, 152)
    if len(page) < 152 or struct.unpack_from("<I", page, 16)[0] != _MAGIC:
        return None
    (size,) = struct.unpack_from("<I", page, 40)
    root, _, number = struct.unpack_from("<QQQ", page, 128)
    if size < 512 or size > 1 << 16 or size & (size - 1):
        raise ValueError("its page size makes no sense")
    return size, root, number


def _value(read: Read, size: int, page: bytes, start: int, length: int, *, big: bool) -> bytes:
    if length > LARGEST:
        raise ValueError("its first value is larger than any image")
    if not big:
        if start + length > size:
            raise ValueError("a page is damaged")
        return page[start : start + length]
    if start + 8 > size:
        raise ValueError("a page is damaged")
    (overflow,) = struct.unpack_from("<Q", page, start)
    return _whole(read, overflow * size + 16, length)


def _whole(read: Read, place: int, length: int) -> bytes:
    if place + length >= 1 << 62:
        raise ValueError("a page is damaged")
    data = read(place, length)
    if len(data) != length:
        raise ValueError("it is shorter than it says")
    return data
