"""Which shared libraries a product asks for, and which file the loader gives it. Pure: text in, values out."""

from __future__ import annotations

import re
from collections.abc import Iterable

from caffeup.model.base import Value

_LINE = re.compile(r"^\s+(\S+) => (not found|\S+)")
_VERSION = re.compile(r"^(\S+): (\S+): version `([^']+)' not found \(required by (\S+)\)")
_OTHER = re.compile(r"^(?:ldd: )?(.*(?:not a dynamic executable|No such file|not regular file|cannot read).*)")


class Resolved(Value):
    """What the loader says of one file."""

    found: dict[str, str]
    """Library to file."""
    missing: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    """Libraries that are found but too old: ``libstdc++.so.6 lacks GLIBCXX_3.4.30``."""
    trouble: str = ""
    """Why the loader could say nothing."""


def parse_ldd(lines: Iterable[str]) -> Resolved:
    """Read what ldd prints in the C locale."""
    found: dict[str, str] = {}
    missing: dict[str, None] = {}
    wrong: dict[str, None] = {}
    trouble = ""
    for line in lines:
        match = _LINE.match(line)
        if match and match[2] == "not found":
            missing[match[1]] = None
        elif match:
            found[match[1]] = match[2]
        elif version := _VERSION.match(line):
            wrong[f"{version[2].rpartition('/')[2]} lacks {version[3]}"] = None
        elif not trouble and (other := _OTHER.match(line.strip())):
            trouble = other[1]
    return Resolved(found=found, missing=tuple(missing), wrong=tuple(wrong), trouble=trouble)
