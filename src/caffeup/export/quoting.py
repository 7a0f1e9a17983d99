"""Texts inside other texts: words for a shell, files in a here-document. Nothing in them ends what holds them."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Iterable

from caffeup.errors import CannotBuild

_END = "CAFFEUP_END"
_PLAIN = re.compile(r"[\t\n\x20-\x7e\xa0-\uffff]*")
_COLUMNS = 76


def word(text: str) -> str:
    """One word for a shell, whatever is in it; ``CannotBuild`` for what no argument can hold."""
    if "\0" in text:
        raise CannotBuild("A path or name with a NUL in it cannot be written.", details=repr(text))
    return shlex.quote(text)


def words(many: Iterable[str]) -> str:
    """Words for a shell."""
    return " ".join(word(one) for one in many)


def remark(text: str) -> str:
    """A text for one line of a comment."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def is_plain(data: bytes) -> bool:
    """Whether bytes can stand in a here-document as they are: text, whole lines, no signs that a terminal obeys."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return (not text or text.endswith("\n")) and _PLAIN.fullmatch(text) is not None and "\u2028" not in text


def ending(text: str) -> str:
    """A line that does not stand in the text, to end its here-document."""
    lines = set(text.splitlines())
    end, number = _END, 1
    while end in lines:
        number += 1
        end = f"{_END}_{number}"
    return end


def heredoc(command: str, data: bytes) -> str:
    """A command with these bytes as its standard input: readable where they are text, else in base64."""
    if is_plain(data):
        text = data.decode("utf-8")
        end = ending(text)
        return f"{command} <<'{end}'\n{text}{end}"
    return f"base64 -d <<'{_END}' | {command}\n{base64_lines(data)}{_END}"


def base64_lines(data: bytes) -> str:
    """Base64 in lines."""
    text = base64.b64encode(data).decode("ascii")
    return "".join(f"{text[at : at + _COLUMNS]}\n" for at in range(0, len(text), _COLUMNS))
