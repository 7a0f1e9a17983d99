"""What an examination of a tree looks at, and how it shows names."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Optional

from caffeup.model.base import Value
from caffeup.model.finding import Evidence
from caffeup.model.tree import ConfigState, Origin
from caffeup.source.checkout import Checkout
from caffeup.source.makefile import Makefile
from caffeup.source.survey import Survey

SHOWN = 5


class Look(Value, kw_only=True):
    """Everything that an examination reads."""

    survey: Survey
    makefile: Optional[Makefile]
    checkout: Optional[Checkout]
    config: ConfigState
    origin: Origin


def evidence_of(names: list[str], text: str = "") -> tuple[Evidence, ...]:
    """The first few names."""
    shown = [Evidence(where=printable(name), text=text) for name in names[:SHOWN]]
    if len(names) > SHOWN:
        shown.append(Evidence(where=f"and {len(names) - SHOWN} more"))
    return tuple(shown)


def printable(name: str) -> str:
    """A file's name for people: what cannot be printed is escaped."""
    shown = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown)


def quoted(root: Path) -> str:
    """A path for a command that is pasted."""
    return shlex.quote(str(root))
