"""The reader of prototxt files: what it understands, what it refuses and where, and that no byte is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caffeup.errors import UsageError
from caffeup.net.text import Block, Document, Scalar, parse, printable, quoted


def fields(document: Document) -> list[tuple[str, object]]:
    return [(field.name, plain(field.value)) for field in document.root.fields]


def plain(value: object) -> object:
    if isinstance(value, Block):
        return [(field.name, plain(field.value)) for field in value.fields]
    assert isinstance(value, Scalar)
    return value.value


def test_all_forms_of_fields_are_read() -> None:
    text = b"""name: "a" 'b'
        "c" ; n: [1, - 2 ,0x1F] m <x: 1 > m: {y:.5f,z:1e-3;}k: [{q: A}, < q: B >]# end
        [a.b.c]: 7 empty: [] [type.googleapis.com/x.Y] { z: true }"""
    assert fields(parse(text)) == [
        ("name", "abc"),
        ("n", "1"),
        ("n", "-2"),
        ("n", "0x1F"),
        ("m", [("x", "1")]),
        ("m", [("y", ".5f"), ("z", "1e-3")]),
        ("k", [("q", "A")]),
        ("k", [("q", "B")]),
        ("[a.b.c]", "7"),
        ("[type.googleapis.com/x.Y]", [("z", "true")]),
    ]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("7", 7), ("-7", -7), ("- 7", -7), ("0x1f", 31), ("010", 8), ("1.", 1.0), (".5", 0.5), ("1e3", 1000.0), ("2f", 2.0)),
        *(("-inf", float("-inf")), ("MAX", None), ('"7"', None), ("08", 8)),
    ],
)
def test_numbers(text: str, number: object) -> None:
    value = parse(f"a: {text}\n".encode()).root.scalar("a")
    assert value is not None
    assert value.number() == number
    assert type(value.number()) is type(number)


def test_strings_are_unescaped_and_keep_their_encoding() -> None:
    root = parse(b'a: "x\\n\\"\\x41\\101\\t\\u4e2d" b: \'it"s\' c: "\xd6\xd0"').root
    assert root.string("a") == 'x\n"AA\t中'
    assert root.string("b") == 'it"s'
    assert root.string("c") == "中", "GBK is what Chinese Windows writes"


def test_the_last_of_several_wins_and_defaults_stand_in() -> None:
    root = parse(b"a: 1 a: 2 b { c: true } f: 2.5 w: word").root
    assert root.integer("a") == 2
    assert root.integers("a") == [1, 2]
    assert root.block("b").flag("c")
    assert root.block("nothing").integer("x", 9) == 9
    assert root.integer("f", 4) == 4, "2.5 is no whole number"
    assert root.number("f") == 2.5
    assert root.number("w", 8) == 8
    assert root.string("b") == "", "a block is no string"


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        (b"a: 1\nb {\n  c: 2\n", 2, 3, "the } is missing"),
        (b"a: 1 }", 1, 6, "expected the name"),
        (b"a 1", 1, 3, "expected a colon"),
        (b"a: \n", 2, 1, "the file ends here"),
        (b'a: "x\ny: 1', 1, 4, "not closed on its line"),
        (b"a: [1, 2", 1, 9, "closes this list"),
        (b"a: [{} 2]", 1, 8, "closes this list"),
        (b"a: 5x", 1, 5, "blank between"),
        (b"\ta: \xe2\x80\x9cx\xe2\x80\x9d", 1, 12, "not a quote that protobuf knows"),
        ("a： 1".encode(), 1, 2, "full-width"),
        (b"a: \x07", 1, 4, "byte 0x07"),
        (b'a: -"x"', 1, 5, "expected a value"),
        (b"[a", 1, 3, "expected the name"),
        (b"a < b: 1 }", 1, 10, "expected the name"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: bytes, line: int, column: int, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, "x.prototxt")
    finding = caught.value.findings[0]
    assert finding.title.startswith(f"line {line}, column {column}: ")
    assert words in finding.title
    assert finding.id == "prototxt-syntax"
    assert finding.evidence[0].line == line


@pytest.mark.parametrize("opening", [b"a{", b"a: [{", b"a<"])
def test_a_file_nested_ten_thousand_deep_is_refused(opening: bytes) -> None:
    with pytest.raises(UsageError) as caught:
        parse(opening * 10_000)
    assert "deeper than 100 levels" in caught.value.findings[0].title
    hundred = opening * 100 + (b"}]" if b"[" in opening else b"}" if b"{" in opening else b">") * 100
    assert parse(hundred).root.fields


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff\xfea\0:\0", "UTF-16"),
        (b"\x0a\x04\0\0abc", "binary file"),
        (b"\x89HDF\r\n\x1a\n", "HDF5"),
    ],
)
def test_other_files_are_named(data: bytes, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse(data)


def test_comments_of_c_are_understood_and_reported() -> None:
    document = parse(b"a: 1 // one\n# // fine\n/* two\n */ b: 2 // at the end")
    assert fields(document) == [("a", "1"), ("b", "2")]
    assert [document.position(slip.start) for slip in document.slips] == [(1, 6), (3, 1), (4, 10)]


def test_places_are_those_that_caffe_prints() -> None:
    document = parse(b"\xef\xbb\xbfa: 1\r\n\t b: 2\n")
    assert document.position(document.root.fields[1].start) == (2, 10), "a tab goes to the next eighth column"
    assert document.shown(*document.line(document.root.fields[1].start)) == "b: 2"


def test_edits_touch_nothing_else() -> None:
    document = parse(b"a: 1 # \xd6\xd0\r\nb: 2\r\n")
    value = document.root.scalar("b")
    assert value is not None
    assert document.edited([(value.start, value.end, b"33")]) == b"a: 1 # \xd6\xd0\r\nb: 33\r\n"
    with pytest.raises(ValueError, match="overlap"):
        document.edited([(0, 3, b""), (2, 4, b"")])


def test_control_characters_are_not_shown() -> None:
    assert printable("a\x1b[31m\tb\n") == "a?[31m b "
    assert printable("x" * 200).endswith("…")


NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True)
GAPS = st.sampled_from([" ", "\n", "\t", "\r\n", " # x\n", "\n# 中文 {\n", "  \n\n"])
SCALARS = st.one_of(
    st.integers(-(2**40), 2**40).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["MAX", "true", "inf"]),
    st.text(st.characters(codec="utf-8"), max_size=8).map(quoted),
)
TREES = st.recursive(
    st.lists(st.tuples(NAMES, SCALARS), max_size=4),
    lambda inner: st.lists(st.tuples(NAMES, st.one_of(SCALARS, inner)), max_size=4),
    max_leaves=12,
)


def written(tree: object, gap: str, brackets: str) -> str:
    if isinstance(tree, str):
        return tree
    assert isinstance(tree, list)
    pieces = []
    for name, value in tree:
        if isinstance(value, str):
            pieces.append(f"{name}:{gap}{value}")
        else:
            pieces.append(f"{name}{gap}{brackets[0]}{gap}{written(value, gap, brackets)}{gap}{brackets[1]}")
    return gap.join(pieces)


def canonical(block: Block) -> list[tuple[str, object]]:
    return [(f.name, canonical(f.value) if isinstance(f.value, Block) else f.value.text) for f in block.fields]


@given(TREES, GAPS, st.sampled_from(["{}", "<>"]))
def test_what_is_printed_is_read_again(tree: list[tuple[str, object]], gap: str, brackets: str) -> None:
    text = written(tree, gap, brackets)
    document = parse(text.encode())
    again = written([list(pair) for pair in canonical(document.root)], "\n", "{}")
    assert canonical(parse(again.encode("latin-1")).root) == canonical(document.root)
    assert document.edited(()) == text.encode()
    assert [name for name, _ in canonical(document.root)] == [name for name, _ in tree]


@given(st.text(max_size=60))
def test_quoted_text_comes_back(text: str) -> None:
    encoded = text.encode("utf-8", "surrogatepass")
    if "\0" in text or b"\xed" in encoded:
        return
    assert parse(f"a: {quoted(text)}".encode()).root.scalar("a").raw() == encoded  # type: ignore[union-attr]


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        kept = parse(data).edited(())
    except UsageError:
        return
    assert kept == data
