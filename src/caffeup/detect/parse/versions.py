"""Version numbers out of the text that programs and headers give."""

from __future__ import annotations

import re
from typing import Optional

from packaging.version import InvalidVersion, Version

_NUMBER = re.compile(r"(?<![\w.])v?([0-9]{1,9}(?:\.[0-9]{1,9}){0,5})")
_DOTTED = re.compile(r"(?<![\w.])v?([0-9]{1,9}(?:\.[0-9]{1,9}){1,5})")
_DEFINE = r"^[ \t]*#[ \t]*define[ \t]+{name}[ \t]+\(?[ \t]*([0-9]{{1,9}})\b"


def parse_version(text: str) -> Optional[Version]:
    """A whole text that is a version; None for any other."""
    try:
        return Version(text.strip()) if len(text) < 80 else None
    except InvalidVersion:
        return None


def first_version(text: str) -> Optional[Version]:
    """The first dotted number in the text (``GNU Make 4.3``, ``libprotoc 3.21.12``), else the first plain one."""
    found = _DOTTED.search(text) or _NUMBER.search(text)
    return Version(found[1]) if found else None


def define(text: str, name: str) -> Optional[int]:
    """The number that a header gives to a macro."""
    found = re.search(_DEFINE.format(name=re.escape(name)), text, re.MULTILINE)
    return int(found[1]) if found else None


def soname_version(file_name: str) -> Optional[Version]:
    """``9.14.0`` of ``libcudnn.so.9.14.0``; None where there is no number."""
    _, so, number = file_name.partition(".so.")
    return parse_version(number) if so and re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9}){0,5}", number) else None
