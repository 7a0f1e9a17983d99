"""Bytes to lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caffeup.diagnose.read import KEEP, read

TEXT = "CXX src/caffe/blob.cpp\n错误：‘X’在此作用域中尚未声明\n\nlast line without its end"


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "gb18030"])
@pytest.mark.parametrize("size", [1, 3, 7, 4096])
def test_lines_are_the_same_in_any_encoding_and_any_chunks(codec: str, size: int) -> None:
    lines = list(read(pieces(TEXT.encode(codec), size)))
    assert [line.strip("‘’") for line in lines] == TEXT.split("\n")


def test_nothing_gives_nothing() -> None:
    assert list(read([])) == []
    assert list(read([b""])) == []


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_any_bytes_are_accepted(chunks: list[bytes]) -> None:
    assert all("\n" not in line for line in read(chunks))


def test_a_huge_line_keeps_its_two_ends() -> None:
    data = b"start" + b"." * 5_000_000 + b"end\nnext\n"
    first, second = read(pieces(data, 65536))
    assert first.startswith("start")
    assert first.endswith("end")
    assert len(first) < 2 * KEEP + 10
    assert second == "next"


def test_a_huge_line_in_one_chunk_is_cut_too() -> None:
    first, second = read([b"a\n" + b"x" * 3_000_000 + b"\n"])
    assert (first, len(second) < 2 * KEEP + 10) == ("a", True)


def test_a_carriage_return_does_not_count_as_a_line() -> None:
    assert list(read([b"10%\r20%\rdone\r\nnext\n"])) == ["10%\r20%\rdone\r", "next"]


def test_bytes_that_are_no_utf8_are_not_taken_for_chinese() -> None:
    assert next(read(["Größe: 5 · café".encode("latin-1")])).startswith("Gr")
    assert "错" not in "".join(read([bytes(range(1, 256))]))
