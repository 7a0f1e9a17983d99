"""A library's version from the text of its headers, its pkg-config or CMake file, or the name of its file."""

from __future__ import annotations

import re
from typing import Optional

from packaging.version import Version

from caffeup.detect.parse.versions import define, parse_version

_SO = re.compile(r"\.so\.([0-9]+(?:\.[0-9]+)*)$")
_EMBEDDED = re.compile(r"-r?([0-9]+(?:\.[0-9]+)+)\.so$")


def from_defines(text: str, names: tuple[str, ...], radix: tuple[int, ...] = ()) -> Optional[Version]:
    """One number a macro, or one macro whose number ``radix`` takes apart; None where one is absent."""
    numbers = [define(text, name) for name in names]
    known = [number for number in numbers if number is not None]
    if not known or len(known) != len(numbers):
        return None
    if radix:
        rest, known = known[0], []
        for weight in radix:
            known.append(rest // weight)
            rest %= weight
    return parse_version(".".join(map(str, known)))


def from_pattern(text: str, pattern: str) -> Optional[Version]:
    """The groups of the first match, joined with dots; groups that are not there are left out."""
    match = re.search(pattern, text, re.MULTILINE)
    return parse_version(".".join(group for group in match.groups() if group)) if match else None


def from_file_name(path: str) -> Optional[Version]:
    """``libboost_system.so.1.74.0``, ``libopenblasp-r0.3.21.so``; None for a plain ``.so`` or ``.a``."""
    match = _SO.search(path) or _EMBEDDED.search(path)
    return parse_version(match.group(1)) if match else None


def agrees(header: Version, library: Optional[Version], digits: int) -> bool:
    """Whether a header and a library file are of one version, as far as the file's name says: ``.so.406`` says nothing."""
    if library is None or len(library.release) < digits:
        return True
    return header.release[:digits] == library.release[:digits]
