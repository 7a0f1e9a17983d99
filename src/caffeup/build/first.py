"""Finds the first error of a build: in its log, or in the file that Caffe's Makefile keeps of each compiler's words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Optional

from caffeup.model.base import Value

# In the order of make's own work; "make: ***" stands only where nothing else explains it.
_ERROR = re.compile(
    r"(?P<file>[^\s:()]+)(?::(?P<line>\d+)(?::\d+)?|\((?P<cuda>\d+)\)): (?:fatal )?error\b"
    r"|^nvcc fatal|: undefined reference to |/ld: .*(?:cannot find|undefined|error|symbol)|^collect2: error"
    r"|^(?:\S*/)?(?:g\+\+|gcc|clang\+\+|clang|cc1plus|as|ar|protoc|python3?|bash|sh|cp|ln|mkdir)\S*: .*"
    r"(?:error|No such|not found|denied|No space|cannot|missing|[Kk]illed|invalid|unrecognized)"
    r"|\.proto:\d+:\d+: |: Import \"|No space left on device"
)
_MAKE = re.compile(r"^make(?:\[\d+\])?: \*\*\* (?:\[(?:\S+:\d+: )?(?P<target>[^\]]+)\] )?(?P<rest>.*)")


class FirstError(Value):
    """The first error of a build."""

    text: str
    place: str = ""
    """``file:line`` where the compiler names one."""
    line: int = 0
    """Line of the log, from 1; 0: it stands in the compiler's own file."""
    context: tuple[str, ...] = ()
    """The lines that follow it."""


def is_error(line: str) -> bool:
    """Whether a line of a build's output is an error of a tool (not of make, which only passes it on)."""
    return _ERROR.search(line) is not None


def first_error(lines: Iterable[str], context: int = 8) -> Optional[FirstError]:
    """The first error in the lines; make's own complaint where no tool said anything; None where there is none."""
    fallback: Optional[FirstError] = None
    found: Optional[FirstError] = None
    after: list[str] = []
    for number, line in enumerate(lines, 1):
        if found is not None:
            after.append(line)
            if len(after) == context:
                break
        elif is_error(line):
            match = _ERROR.search(line)
            place = ""
            if match is not None and match["file"]:
                place = f"{match['file']}:{match['line'] or match['cuda']}"
            found = FirstError(text=line.strip(), place=place, line=number)
        elif fallback is None and _MAKE.match(line):
            fallback = FirstError(text=line.strip(), line=number)
    if found is None:
        return fallback
    return FirstError(text=found.text, place=found.place, line=found.line, context=tuple(after))


def failed_targets(lines: Iterable[str]) -> tuple[str, ...]:
    """The targets whose recipes failed, each once, in order."""
    targets: dict[str, None] = {}
    for line in lines:
        match = _MAKE.match(line)
        if match is not None and match["target"] and match["rest"].startswith(("Error", "Killed", "Segmentation", "Terminated")):
            targets[match["target"].strip()] = None
    return tuple(targets)


def read_first_error(root: Path, log: Path) -> Optional[FirstError]:
    """The first error of a failed build.

    With many jobs two compilers' lines may interleave in the log; the object's own file of them never does.
    """
    try:
        with log.open(encoding="utf-8", errors="replace") as source:
            in_log = first_error(line.rstrip("\n") for line in source)
        with log.open(encoding="utf-8", errors="replace") as source:
            targets = failed_targets(source)
    except OSError:
        return None
    for target in targets[:1]:
        kept = root / f"{target}.warnings.txt"
        try:
            text = kept.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        alone = first_error(text.splitlines())
        if alone is not None and in_log is not None and alone.text == in_log.text:
            return FirstError(text=alone.text, place=alone.place, line=in_log.line, context=alone.context)
    return in_log
