"""What gcc and clang say of themselves."""

from __future__ import annotations

import re
from typing import Optional

from packaging.version import Version

from caffeup.model.base import Value


class CompilerSays(Value):
    """The answer to ``-v``."""

    kind: str
    """``gcc`` or ``clang``: what it is, whatever it is called."""
    version: Version
    target: str = ""


def parse_compiler(text: str) -> Optional[CompilerSays]:
    """The output of ``g++ -v`` or ``clang++ -v``; None where neither speaks."""
    found = re.search(r"^(?:[\w.-]+ )*?(clang|gcc) version ([0-9]{1,4}(?:\.[0-9]{1,4}){0,3})", text, re.MULTILINE)
    if not found:
        return None
    target = re.search(r"^Target: (\S+)", text, re.MULTILINE)
    return CompilerSays(kind=found[1], version=Version(found[2]), target=target[1] if target else "")


def first_error(text: str) -> str:
    """The first line that is an error, else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\berror\b", line)]
    return (errors or lines[-1:] or [""])[0]
