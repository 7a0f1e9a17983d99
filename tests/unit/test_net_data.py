"""The first entry of a data base, read without its library; and the shapes that follow from it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caffeup.app.netdata import data_of
from caffeup.net.datum import image_size, read_datum
from caffeup.net.lmdb import first_value
from caffeup.net.model import read_net
from caffeup.net.rules.base import Datum
from caffeup.net.text import parse

PAGE = 4096


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def datum(channels: int, height: int, width: int) -> bytes:
    pixels = bytes(channels * height * width)
    return field(1, channels) + field(2, height) + field(3, width) + field(4, pixels) + field(5, 1) + varint(6 << 3 | 5) + b"abcd"


def meta(root: int, number: int) -> bytes:
    head = struct.pack("<QHHI", 0, 0, 8, 0) + struct.pack("<IIQQ", 0xBEEFC0DE, 1, 0, 1 << 40)
    free = struct.pack("<IHHQQQQQ", PAGE, 0, 0, 0, 0, 0, 0, 2**64 - 1)
    main = struct.pack("<IHHQQQQQ", 0, 0, 1, 0, 1, 0, 1, root)
    return (head + free + main + struct.pack("<QQ", 9, number)).ljust(PAGE, b"\0")


def page(flags: int, node: bytes) -> bytes:
    head = struct.pack("<QHHHH", 0, 0, flags, 18, PAGE - len(node)) + struct.pack("<H", PAGE - len(node))
    return head.ljust(PAGE - len(node), b"\0") + node


def leaf(key: bytes, value: bytes, *, big: Optional[int] = None) -> bytes:
    length = struct.pack("<HHHH", len(value) & 0xFFFF, len(value) >> 16, int(big is not None), len(key))
    return page(2, length + key + (value if big is None else struct.pack("<Q", big)))


def branch(child: int) -> bytes:
    return page(1, struct.pack("<HHHH", child & 0xFFFF, child >> 16 & 0xFFFF, child >> 32, 0))


def value_of(data: bytes) -> Optional[bytes]:
    return first_value(lambda place, length: data[place : place + length])


def test_the_first_value_is_found_through_the_tree() -> None:
    small = datum(1, 4, 5)
    assert value_of(meta(2, 1) + meta(2, 0) + leaf(b"0001", small)) == small
    assert value_of(meta(2, 1) + meta(3, 2) + leaf(b"a", b"old") + leaf(b"a", b"new")) == b"new", "the later state counts"
    large = datum(3, 50, 60)
    overflow = (struct.pack("<QHHI", 4, 0, 4, 3) + large).ljust(3 * PAGE, b"\0")
    assert value_of(meta(2, 1) + meta(2, 0) + branch(3) + leaf(b"0001", large, big=4) + overflow) == large
    assert value_of(meta(2**64 - 1, 1) + meta(2**64 - 1, 0)) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x" * 10_000,
        meta(2, 1) + meta(2, 0),
        meta(2, 1) + meta(2, 0) + bytes(10) + b"\x04\x00\x12\x00" + bytes(PAGE - 14),
        meta(2, 1) + meta(2, 0) + branch(2),
        meta(2, 1) + meta(2, 0) + leaf(b"k", bytes(100_000), big=2**50),
        (meta(2, 1) + meta(2, 0)).replace(struct.pack("<IHH", PAGE, 0, 0), struct.pack("<IHH", 77, 0, 0)),
    ],
)
def test_a_damaged_data_base_is_told_as_such(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"LMDB|damaged|leaves|leaf|shorter|sense|larger"):
        value_of(data)


@given(st.binary(max_size=200), st.integers(0, PAGE * 3))
def test_any_bytes_end_in_a_value_or_an_error(noise: bytes, at: int) -> None:
    good = meta(2, 1) + meta(2, 0) + leaf(b"0001", datum(1, 4, 5))
    try:
        found = value_of(good[:at] + noise + good[at + len(noise) :])
        read_datum(found or b"", annotated=False)
    except ValueError:
        return


def png(colour: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBB", 13, b"IHDR", 70, 60, 8, colour) + bytes(7)


JPEG = (
    b"\xff\xd8\xff\xe0\x00\x04ab\xff\xff\xdb\x00\x03c\xff\xc4\x00\x03d\xff\xc2"
    + struct.pack(">HBHHB", 17, 8, 60, 70, 3)
    + bytes(12)
)
BMP = b"BM" + bytes(12) + struct.pack("<IiiHH", 40, 70, -60, 1, 24) + bytes(24)


@pytest.mark.parametrize(
    ("head", "size"),
    [
        (png(2), (3, 60, 70)),
        (png(0), (1, 60, 70)),
        (png(6), (4, 60, 70)),
        (JPEG, (3, 60, 70)),
        (BMP, (3, 60, 70)),
        (JPEG[:20], None),
        (b"GIF89a" + bytes(30), None),
        (b"", None),
        (b"\xff\xd8" + bytes(40), None),
    ],
)
def test_an_image_tells_its_size(head: bytes, size: Optional[tuple[int, int, int]]) -> None:
    assert image_size(head) == size


def test_a_datum_tells_its_size_and_boxes() -> None:
    assert read_datum(datum(3, 4, 5), annotated=False) == Datum(channels=3, height=4, width=5)
    encoded = field(4, JPEG) + field(5, 1) + field(7, 1)
    assert read_datum(encoded, annotated=False) == Datum(channels=3, height=60, width=70)
    group = field(1, 2) + field(2, b"") + field(2, b"")
    annotated = field(1, encoded) + field(2, 0) + field(3, group) + field(3, field(2, b""))
    assert read_datum(annotated, annotated=True) == Datum(channels=3, height=60, width=70, boxes=3)
    assert read_datum(field(4, b"abc"), annotated=False) is None
    with pytest.raises(ValueError, match="no datum"):
        read_datum(b"\x0a\xff", annotated=False)


def test_data_layers_are_looked_at_where_their_source_lies(tmp_path: Path) -> None:
    (tmp_path / "lmdb").mkdir()
    (tmp_path / "lmdb" / "data.mdb").write_bytes(meta(2, 1) + meta(2, 0) + leaf(b"0", datum(1, 4, 5)))
    (tmp_path / "a b.bmp").write_bytes(BMP)
    (tmp_path / "list.txt").write_text("a b.bmp 7\nother.bmp 1\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("no data base")
    layers = read_net(
        parse(
            "".join(
                f'layer {{ type: "{kind}" {param} {{ source: "{tmp_path}/{source}" root_folder: "{tmp_path}/" }} }}\n'
                for kind, param, source in (
                    ("Data", "data_param", "lmdb"),
                    ("Data", "data_param", "empty"),
                    ("Data", "data_param", "text"),
                    ("AnnotatedData", "data_param", "gone"),
                    ("ImageData", "image_data_param", "list.txt"),
                    ("ImageData", "image_data_param", "empty"),
                    ("HDF5Data", "hdf5_data_param", "text"),
                )
            ).encode()
        )
    ).layers
    assert data_of(layers) == {
        f"{tmp_path}/lmdb": Datum(channels=1, height=4, width=5),
        f"{tmp_path}/list.txt": Datum(channels=3, height=60, width=70),
    }
