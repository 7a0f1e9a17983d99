"""A lossless reader of protobuf's text format: values with their places in the bytes, which are never changed."""

from __future__ import annotations

import bisect
import gc
import re
import shlex
from collections.abc import Iterable
from typing import NoReturn, Optional, Union

from caffeup.errors import UsageError
from caffeup.model.finding import Evidence, Finding, Remedy, Severity

DEEPEST = 100
"""Levels of nesting; no message of Caffe nests deeper than five, and protobuf's binary reader stops here as well."""
TAB = 8

# Each token with the blanks and comments before it. The alternatives exclude each other, so the time is linear.
_TOKEN = re.compile(
    r"""(?:[ \t\r\n\v\f]+|\#[^\n]*)*
    (?:(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fF]?)
    |(?P<string>"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\\\n]|\\[^\n])*')
    |(?P<sign>[][{}<>:;,.-])
    |(?P<slashes>//[^\n]*|/\*(?s:.*?)(?:\*/|\Z))
    |(?P<end>\Z)
    |(?P<bad>(?s:.)))""",
    re.VERBOSE,
)
# A whole line as nearly all are written; what follows it shows that it is complete. It only saves time: a third of the tokens'.
_LINE = re.compile(
    r"""(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*(?::[ \t]*
        (?:(?P<string>"[^"'\\\n]*")|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>-?(?:[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)))
        |(?P<opening>\{))|\})
    [ \t\r]*(?:\#[^\n]*)?\n[ \t\r\n]*(?=[A-Za-z_}])""",
    re.VERBOSE,
)
_OCTAL = re.compile(r"0[0-7]+\Z")
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_PLAIN_ESCAPES = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_CLOSER = {"{": "}", "<": ">"}


class Scalar:
    """A string, number or word (an enum's, a bool's), as it is written."""

    __slots__ = ("decode", "end", "kind", "start", "text")

    def __init__(self, kind: str, text: str, start: int, end: int, decode: str) -> None:
        self.kind = kind
        """``string``, ``number`` or ``word``."""
        self.text = text
        """As written, one character a byte; a minus stands at once before its number."""
        self.start = start
        self.end = end
        self.decode = decode

    def raw(self) -> bytes:
        """A string's bytes, with adjacent strings joined and escapes resolved; what is written, of anything else."""
        if self.kind != "string":
            return self.text.encode("latin-1")
        parts = (match.group("string") for match in _TOKEN.finditer(self.text) if match.group("string"))
        return b"".join(_ESCAPE.sub(_unescaped, part[1:-1].encode("latin-1")) for part in parts)

    @property
    def value(self) -> str:
        """A string in the encoding of its file; a number or word as it is written."""
        if self.kind != "string":
            return self.text
        if "\\" not in self.text and self.text.count(self.text[0]) == 2 and self.text.isascii():
            return self.text[1:-1]
        raw = self.raw()
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return raw.decode(self.decode, "replace")

    def number(self) -> Optional[Union[int, float]]:
        """Its number; nothing for what is none."""
        text = self.text
        if self.kind == "string":
            return None
        sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
        try:
            if digits[:2] in {"0x", "0X"}:
                return sign * int(digits, 16)
            if _OCTAL.match(digits):
                return sign * int(digits, 8)
            if digits.isdigit():
                return sign * int(digits)
            if self.kind == "word" and digits.lower() not in {"inf", "infinity", "nan"}:
                return None
            return sign * float(digits.rstrip("fF") if self.kind == "number" else digits)
        except ValueError:
            return None


class Field:
    """One ``name: value`` or ``name { … }``; of ``name: [a, b]`` there is one for each value."""

    __slots__ = ("end", "listed", "name", "start", "value")

    def __init__(self, name: str, start: int, value: Union[Scalar, Block], *, listed: bool = False) -> None:
        self.name = name
        self.start = start
        """Where its name begins."""
        self.value = value
        self.end = value.end
        self.listed = listed
        """Whether it stands in ``[…]`` together with others of its name."""


class Block:
    """A message: its fields, in the order of the file. The readers take the last of several, as protobuf does in merging."""

    __slots__ = ("_by_name", "end", "fields", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        """Of its opening bracket."""
        self.end = start
        """Behind its closing bracket."""
        self.fields: list[Field] = []
        self._by_name: Optional[dict[str, list[Field]]] = None

    def all(self, name: str) -> list[Field]:
        """All fields of this name."""
        if self._by_name is None:
            self._by_name = {}
            for field in self.fields:
                self._by_name.setdefault(field.name, []).append(field)
        return self._by_name.get(name, [])

    def field(self, name: str) -> Optional[Field]:
        """The last field of this name."""
        found = self.all(name)
        return found[-1] if found else None

    def has(self, name: str) -> bool:
        """Whether there is a field of this name."""
        return bool(self.all(name))

    def block(self, name: str) -> Block:
        """The message of this name; an empty one where there is none, so that defaults can be asked for."""
        field = self.field(name)
        return field.value if field and isinstance(field.value, Block) else Block(self.start)

    def blocks(self, name: str) -> list[Block]:
        """All messages of this name."""
        return [field.value for field in self.all(name) if isinstance(field.value, Block)]

    def scalar(self, name: str) -> Optional[Scalar]:
        """The value of this name, where it is no message."""
        field = self.field(name)
        return field.value if field and isinstance(field.value, Scalar) else None

    def string(self, name: str, default: str = "") -> str:
        """A string, or an enum's or bool's word."""
        found = self.scalar(name)
        return default if found is None else found.value

    def strings(self, name: str) -> list[str]:
        """All strings or words of this name."""
        return [field.value.value for field in self.all(name) if isinstance(field.value, Scalar)]

    def number(self, name: str, default: float = 0.0) -> float:
        """A number."""
        found = self.scalar(name)
        value = None if found is None else found.number()
        return default if value is None else value

    def integer(self, name: str, default: int = 0) -> int:
        """A whole number; the default also where something else stands there."""
        value = self.number(name, default)
        return value if isinstance(value, int) else default

    def numbers(self, name: str) -> list[float]:
        """All numbers of this name."""
        values = (field.value.number() for field in self.all(name) if isinstance(field.value, Scalar))
        return [value for value in values if value is not None]

    def integers(self, name: str) -> list[int]:
        """All whole numbers of this name."""
        return [value for value in self.numbers(name) if isinstance(value, int)]

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A bool, in any of the ways in which protobuf takes one."""
        found = self.scalar(name)
        return default if found is None else found.text in {"true", "True", "t", "1"}


class Slip:
    """Something that a lenient reader understands and Caffe rejects."""

    __slots__ = ("end", "start", "what")

    def __init__(self, what: str, start: int, end: int) -> None:
        self.what = what
        self.start = start
        self.end = end


class Document:
    """A prototxt: its bytes, and the tree of what they say."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data = data
        self.name = name
        self.text = data.decode("latin-1")
        """One character a byte: places in it are places in the file."""
        self.encoding = _encoding(data)
        self.root = Block(0)
        self.slips: list[Slip] = []
        self._lines: Optional[list[int]] = None

    def position(self, place: int) -> tuple[int, int]:
        """Line and column from 1, counted as protobuf's own messages do: bytes, and tabs up to the next eighth column."""
        if self._lines is None:
            self._lines = [0, *(match.end() for match in re.finditer("\n", self.text))]
        line = bisect.bisect_right(self._lines, place)
        column = 0
        for char in self.text[self._lines[line - 1] : place]:
            column += TAB - column % TAB if char == "\t" else 1
        return line, column + 1

    def line(self, place: int) -> tuple[int, int]:
        """Where the line of a place starts, and where it ends without its line end."""
        start = self.text.rfind("\n", 0, place) + 1
        end = self.text.find("\n", place)
        end = len(self.text) if end < 0 else end
        return start, end - 1 if self.text[start:end].endswith("\r") else end

    def shown(self, start: int, end: int, most: int = 100) -> str:
        """A piece of the file for people's eyes: decoded, on one line, without control characters."""
        text = self.data[start:end].decode(self.encoding, "replace")
        return printable(text.strip(), most)

    def evidence(self, place: int) -> Evidence:
        """A place, with its line as it is written."""
        line, column = self.position(place)
        return Evidence(where=self.name, line=line, text=f"column {column}: {self.shown(*self.line(place))}")

    def edited(self, edits: Iterable[tuple[int, int, bytes]]) -> bytes:
        """The bytes with pieces replaced, (start, end, new); all others stay. ``ValueError`` where two of them overlap."""
        parts, at = [], 0
        for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
            if start < at:
                raise ValueError("edits overlap")
            parts += [self.data[at:start], new]
            at = end
        return b"".join((*parts, self.data[at:]))


def printable(text: str, most: int = 100) -> str:
    """Text that a terminal takes as text."""
    plain = "".join(char if char.isprintable() else " " if char in "\t\r\n" else "?" for char in text)
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"


def parse(data: bytes, name: str = "the prototxt") -> Document:
    """Read a prototxt; ``UsageError`` with the place where it is none. Of what is not Caffe's, slashes are taken as comments."""
    _refuse_other_files(data, name)
    document = Document(data, printable(name, 400))
    collects = gc.isenabled()
    gc.disable()  # every object that is made is kept: looking for garbage again and again takes longer than the reading
    try:
        _Reader(document).read()
    finally:
        if collects:
            gc.enable()
    return document


class _Reader:
    """Goes through the tokens once, with a stack of its own: a deep file costs no Python frames."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._at = 3 if document.data.startswith(b"\xef\xbb\xbf") else 0
        self._open: list[tuple[Block, str, bool]] = [(document.root, "", False)]
        """The blocks around the current place, each with its closing bracket and whether it stands in a list."""
        self._kind, self._text, self._start, self._end = "", "", 0, 0
        self._next()

    def read(self) -> None:
        """Fill the document's root."""
        while True:
            block, closer, listed = self._open[-1]
            if self._text == closer and self._kind == "sign":
                self._close(block, listed=listed)
            elif self._kind == "end":
                if closer:
                    self._fail(f"the {closer} is missing that closes this block", block.start)
                block.end = self._end
                return
            elif not self._lines():
                self._field(block)

    def _lines(self) -> bool:
        """Read on as long as the lines are plain ones; whether any was."""
        text, encoding, open_, match_line = self._document.text, self._document.encoding, self._open, _LINE.match
        first = at = self._start
        while match := match_line(text, at):
            block, closer, listed = open_[-1]
            name, kind = match["name"], match.lastgroup or ""
            if name is None:
                if closer != "}" or listed:
                    break
                block.end = at + 1
                open_.pop()
                open_[-1][0].fields[-1].end = at + 1
            elif kind == "opening":
                if len(open_) > DEEPEST:
                    break
                inner = Block(match.start(kind))
                block.fields.append(Field(name, at, inner))
                open_.append((inner, "}", False))
            else:
                start, end = match.span(kind)
                block.fields.append(Field(name, at, Scalar(kind, match[kind], start, end, encoding)))
            at = match.end()
        if at == first:
            return False
        self._at = at
        self._next()
        return True

    def _next(self) -> None:
        while match := _TOKEN.match(self._document.text, self._at):
            kind = match.lastgroup or ""
            self._at = match.end()
            self._start, self._end = match.span(kind)
            self._kind, self._text = kind, match.group(kind)
            if kind != "slashes":
                return
            what = "a comment begins with # in a prototxt; Caffe rejects // and /* */"
            self._document.slips.append(Slip(what, self._start, self._end))

    def _is(self, signs: str) -> bool:
        return self._kind == "sign" and self._text in signs

    def _field(self, block: Block) -> None:
        start, name = self._start, self._name()
        colon = self._is(":")
        if colon:
            self._next()
        if self._is("{<"):
            self._enter(block, name, start, listed=False)
        elif not colon:
            self._fail(f"expected a colon or a block behind {printable(name)}", self._start)
        elif self._is("["):
            self._list(block, name, start)
        else:
            block.fields.append(Field(name, start, self._scalar()))
            self._separator()

    def _name(self) -> str:
        if self._kind == "word":
            name = self._text
            self._next()
            return name
        if not self._is("["):
            self._fail("expected the name of a field", self._start)
        start = self._start
        while not self._is("]"):
            self._next()
            if self._is("{}<>:;,") or not (self._kind in {"word", "sign"} or self._text == "/"):
                self._fail("expected the name of a field", self._start)
        self._next()
        return self._document.text[start : self._document.text.index("]", start) + 1]

    def _enter(self, block: Block, name: str, start: int, *, listed: bool) -> None:
        if len(self._open) > DEEPEST:
            self._fail(f"blocks are nested deeper than {DEEPEST} levels; no net needs more than five", self._start)
        inner = Block(self._start)
        block.fields.append(Field(name, start, inner, listed=listed))
        self._open.append((inner, _CLOSER[self._text], listed))
        self._next()

    def _close(self, block: Block, *, listed: bool) -> None:
        block.end = self._end
        self._open.pop()
        around = self._open[-1][0]
        field = around.fields[-1]
        field.end = self._end
        self._next()
        if listed and self._is(","):
            self._next()
            if not self._is("{<"):
                self._fail("expected another block in this list", self._start)
            self._enter(around, field.name, field.start, listed=True)
            return
        if listed:
            self._end_list()
        self._separator()

    def _list(self, block: Block, name: str, start: int) -> None:
        self._next()
        if self._is("{<"):
            self._enter(block, name, start, listed=True)
            return
        while not self._is("]"):
            block.fields.append(Field(name, start, self._scalar(), listed=True))
            if not self._is(","):
                break
            self._next()
        self._end_list()
        self._separator()

    def _end_list(self) -> None:
        if not self._is("]"):
            self._fail("expected a comma or the ] that closes this list", self._start)
        self._next()

    def _separator(self) -> None:
        if self._is(";,"):
            self._next()

    def _scalar(self) -> Scalar:
        start, minus = self._start, self._is("-")
        if minus:
            self._next()
        kind, text, end = self._kind, self._text, self._end
        if kind not in {"word", "number", "string"} or (minus and kind == "string"):
            self._fail("expected a value", self._start)
        self._next()
        if kind == "number" and self._start == end and self._kind in {"word", "number"}:
            self._fail("expected a blank between the number and what follows", self._start)
        while kind == "string" and self._kind == "string":
            end = self._end
            self._next()
        if kind == "string":
            text = self._document.text[start:end]
        return Scalar(kind, f"-{text}" if minus else text, start, end, self._document.encoding)

    def _fail(self, what: str, place: int) -> NoReturn:
        hint = _hint(self._document, self._kind, self._start) if place == self._start else ""
        raise syntax_error(self._document, f"{what}{hint}", place)


def syntax_error(document: Document, what: str, place: int) -> UsageError:
    """What is wrong with the file itself, and where."""
    line, column = document.position(place)
    finding = Finding(
        id="prototxt-syntax",
        severity=Severity.PROBLEM,
        title=f"line {line}, column {column}: {what}",
        evidence=(document.evidence(place),),
        remedies=(Remedy(text="open the file at that line; what is wrong stands there or just before"),),
    )
    return UsageError(f"{document.name} cannot be read as a prototxt.", findings=(finding,))


def _hint(document: Document, kind: str, place: int) -> str:
    """More about a character that begins nothing."""
    if kind == "end":
        return ", but the file ends here"
    if kind != "bad":
        return ""
    char = document.text[place]
    if char in "\"'":
        return "; the quote that opens here is not closed on its line"
    piece = document.data[place : place + 4].decode(document.encoding, "replace")[:1]
    if piece in "“”‘’„«»":
        return f"; {piece} is not a quote that protobuf knows, write a straight one"
    if piece in "：｛｝，；＃（）":
        return f"; {piece} is a full-width character, write the ASCII one"
    return f"; there stands {piece}" if piece.isprintable() else f"; there stands the byte 0x{ord(char):02x}"


def _refuse_other_files(data: bytes, name: str) -> None:
    shown = printable(name, 400)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        brief = f"{shown} is encoded as UTF-16, which Caffe does not read."
        raise UsageError(
            brief, advice="Save it as UTF-8:", commands=(f"iconv -f UTF-16 -t UTF-8 {shlex.quote(shown)} > utf8.prototxt",)
        )
    if data.startswith(b"\x89HDF"):
        raise UsageError(f"{shown} is an HDF5 file and no prototxt.")
    if b"\0" in data:
        raise UsageError(f"{shown} is a binary file (a caffemodel?) and no prototxt.")


def _encoding(data: bytes) -> str:
    for name in ("utf-8", "gb18030"):
        try:
            data.decode(name)
        except UnicodeDecodeError:
            continue
        return name
    return "latin-1"


def _unescaped(match: re.Match[bytes]) -> bytes:
    octal, two, four, eight, other = match.groups()
    if octal:
        return bytes([int(octal, 8) & 255])
    if two:
        return bytes([int(two, 16)])
    if four or eight:
        point = int(four or eight, 16)
        return chr(point).encode("utf-8", "replace") if point < 0x110000 else b"?"
    return _PLAIN_ESCAPES.get(other, other)


def quoted(text: str) -> str:
    """A string as a value in a prototxt."""
    pieces = []
    for byte in text.encode("utf-8", "surrogateescape"):
        char = chr(byte)
        if char in '"\\':
            pieces.append(f"\\{char}")
        elif byte < 32 or byte == 127:
            pieces.append(f"\\{byte:03o}")
        else:
            pieces.append(char)
    return '"' + "".join(pieces).encode("latin-1").decode("utf-8", "surrogateescape") + '"'
