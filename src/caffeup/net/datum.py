"""Size and channels of what a data layer reads first: a Datum, an AnnotatedDatum, or an image's head."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Optional, Union

from caffeup.net.rules.base import Datum

_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 4, 6: 4}
"""Of a PNG's colour type, as OpenCV reads them."""
_NO_SIZE = frozenset({0xC4, 0xC8, 0xCC})


def read_datum(data: bytes, *, annotated: bool) -> Optional[Datum]:
    """The datum in a data base's value; nothing where its size is not in it. ``ValueError`` for what is none."""
    boxes = 0
    if annotated:
        inner = b""
        for number, value in _fields(data):
            if number == 1 and isinstance(value, bytes):
                inner = value
            elif number == 3 and isinstance(value, bytes):
                boxes += sum(1 for group, _ in _fields(value) if group == 2)
        data = inner
    sizes: dict[int, int] = {}
    image = b""
    for number, value in _fields(data):
        if isinstance(value, int):
            sizes[number] = value
        elif number == 4:
            image = value
    if sizes.get(7):
        found = image_size(image)
        return None if found is None else Datum(channels=found[0], height=found[1], width=found[2], boxes=boxes)
    channels, height, width = (sizes.get(number, 0) for number in (1, 2, 3))
    return Datum(channels=channels, height=height, width=width, boxes=boxes) if min(channels, height, width) > 0 else None


def image_size(head: bytes) -> Optional[tuple[int, int, int]]:
    """Channels, height and width that the head of a JPEG, PNG or BMP says."""
    if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) >= 26:
        width, height, _, colour = struct.unpack_from(">IIBB", head, 16)
        return _PNG_CHANNELS.get(colour, 3), height, width
    if head.startswith(b"BM") and len(head) >= 30:
        width, height, _, bits = struct.unpack_from("<iiHH", head, 18)
        return (4 if bits == 32 else 3), abs(height), width
    return _jpeg_size(head) if head.startswith(b"\xff\xd8") else None


def _jpeg_size(head: bytes) -> Optional[tuple[int, int, int]]:
    at = 2
    while at + 9 < len(head):
        if head[at] != 0xFF:
            return None
        marker = head[at + 1]
        if marker == 0xFF or 0xD0 <= marker <= 0xD8:
            at += 1 if marker == 0xFF else 2
        elif 0xC0 <= marker <= 0xCF and marker not in _NO_SIZE:
            height, width, parts = struct.unpack_from(">HHB", head, at + 5)
            return parts, height, width
        else:
            at += 2 + int.from_bytes(head[at + 2 : at + 4], "big")
    return None


def _fields(data: bytes) -> Iterator[tuple[int, Union[int, bytes]]]:
    """Fields of a protobuf message: numbers and bytes; floats are passed over."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        length, at = (8 if kind == 1 else 4, at) if kind in {1, 5} else _varint(data, at)
        if kind not in {1, 2, 5} or at + length > len(data):
            raise ValueError("it is no datum")
        if kind == 2:
            yield key >> 3, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result, at
        shift += 7
    raise ValueError("it is no datum")
