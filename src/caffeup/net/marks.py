"""Edits that can be taken back: each leaves a comment that says what stood there.

``new # caffeup: was old``     a value that was replaced; a comment of the user's may follow
``# caffeup: engine: CAFFE``   a field that was commented out
``new # caffeup: added``       a line that was put in
``# caffeup: tuned …``         on a line of its own: why the layer behind it is as it is
``…, joined``                  behind these: the line ends here only for the comment's sake
``# caffeup: layers``          on a line of its own: all layers were of the old form
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from caffeup.net.text import Document, Field, printable

Edit = tuple[int, int, bytes]

MARK = "# caffeup: "
LAYERS = f"{MARK}layers"
"""On a line of its own: all layers were of the old form."""
TUNED = f"{MARK}tuned "
"""On a line of its own: what was measured."""
_JOINED = ", joined"
# Comments, and the strings in which a # begins none.
_COMMENT = re.compile(r"\"(?:[^\"\\\n]|\\[^\n])*\"|'(?:[^'\\\n]|\\[^\n])*'|(?P<comment>#[^\n]*)")
_VALUE = r"(?:\"[^\"\n]*\"|'[^'\n]*'|blobs_lr:[ \t]*[\w.+-]+|[\w.]+)"
_WAS = re.compile(rf"{MARK}was (?P<old>{_VALUE})(?P<joined>{_JOINED}(?=\r?\Z))?")
_NEW = re.compile(r"(?:param \{[^{}\n]*\}|\"[^\"\n]*\"|'[^'\n]*'|[\w.]+) \Z")
_ADDED = re.compile(rf"{MARK}added(?P<joined>{_JOINED})?\r?\Z")
_OUT = re.compile(rf"{MARK}(?P<field>\w+[ \t]*[:{{].*?)(?P<joined>{_JOINED})?\r?\Z")


def replaced(document: Document, start: int, end: int, new: str) -> Edit:
    """Another value in the place of a word or string."""
    old = document.data[start:end]
    return start, end, f"{new} {MARK}was ".encode() + old + _line_end(document, end)


def commented_out(document: Document, field: Field) -> Edit:
    """A field on one line, with its separator, as a comment."""
    end = field.end
    while document.text[end : end + 1] in {" ", "\t"}:
        end += 1
    end = end + 1 if document.text[end : end + 1] in {";", ","} else field.end
    return field.start, end, MARK.encode() + document.data[field.start : end] + _line_end(document, end)


def added_behind(document: Document, field: Field, line: str) -> Edit:
    """A new line behind the one on which a field ends, as far in as the field."""
    _, end = document.line(field.end)
    newline = newline_of(document)
    start, _ = document.line(field.start)
    indent = document.text[start : field.start]
    indent = indent if not indent.strip() else ""
    if _rest_is_free(document, field.end):
        return end, end, f"{newline}{indent}{line} {MARK}added".encode()
    return field.end, field.end, f"{newline}{line} {MARK}added{_JOINED}{newline}".encode()


def takes_edit(document: Document, start: int, end: int) -> bool:
    """Whether a piece of the file stands on one line, as these edits need it."""
    return "\n" not in document.text[start:end] and "\r" not in document.text[start:end]


def newline_of(document: Document) -> str:
    """The line end of the file."""
    return "\r\n" if "\r\n" in document.text else "\n"


def _rest_is_free(document: Document, place: int) -> bool:
    """Whether nothing but blanks or a comment follows on the line."""
    _, end = document.line(place)
    rest = document.text[place:end].lstrip(" \t\r")
    return not rest or rest.startswith("#")


def _line_end(document: Document, place: int) -> bytes:
    return b"" if _rest_is_free(document, place) else f"{_JOINED}{newline_of(document)}".encode()


class Undo(NamedTuple):
    """What a mark says, and how to take it back."""

    start: int
    """Where the mark begins."""
    what: str
    """For people."""
    edits: tuple[Edit, ...]
    """None: the mark says nothing known."""


def undoing(document: Document) -> Iterator[Undo]:
    """How to take back each edit that is marked."""
    for match in _COMMENT.finditer(document.text):
        comment = match.group("comment")
        if comment and comment.startswith(MARK):
            yield _undo(document, match.start(), comment)


def _undo(document: Document, start: int, comment: str) -> Undo:
    line, end = document.line(start)
    if comment.rstrip("\r") == LAYERS:
        return Undo(start, "layer { } → layers { }", ((start, end + _newline_at(document, end), b""),))
    if comment.startswith(TUNED) and not document.text[line:start].strip():
        return Undo(start, "what was measured taken out", ((line, end + _newline_at(document, end), b""),))
    if was := _WAS.match(comment):
        return _undo_was(document, start, was)
    if added := _ADDED.match(comment):
        before = 2 if document.text[line - 2 : line] == "\r\n" else 1
        after = _newline_at(document, end) if added.group("joined") else 0
        return Undo(start, f"{document.shown(line, start)} taken out", ((max(line - before, 0), end + after, b""),))
    if out := _OUT.match(comment):
        edits = [(start, start + len(MARK), b"")]
        if out.group("joined"):
            edits.append((start + out.start("joined"), end + _newline_at(document, end), b""))
        return Undo(start, f"{printable(out.group('field'))} put back", tuple(edits))
    return Undo(start, f"{printable(comment)} says nothing known", ())


def _undo_was(document: Document, start: int, was: re.Match[str]) -> Undo:
    line, _ = document.line(start)
    new = _NEW.search(document.text[line:start])
    if new is None:
        return Undo(start, f"nothing stands before {printable(was.group())}", ())
    end = start + was.end("old")
    if was.group("joined"):
        end += len(_JOINED) + _newline_at(document, end + len(_JOINED))
    what = f"{printable(new.group().strip())} → {printable(was.group('old'))}"
    return Undo(start, what, ((line + new.start(), end, was.group("old").encode("latin-1")),))


def _newline_at(document: Document, place: int) -> int:
    """Length of the line end at a place."""
    return 2 if document.text[place : place + 2] == "\r\n" else len(document.text[place : place + 1])
