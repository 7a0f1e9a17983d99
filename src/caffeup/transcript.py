"""Recorded commands as text that a person can read and write.

    $ /usr/local/cuda/bin/nvcc --list-gpu-code
    sm_75
    sm_80
    $ sudo -n true
    ? 1
    ! sudo: a password is required
    $ /usr/bin/python3 -I -c *
    3.11

``$`` starts a command, quoted as for a shell; an argument ``*`` stands for any argument. ``?`` gives its exit code, or
``absent`` for a program that is not there (without it: 0). ``!`` is a line on standard error, everything else one on
standard output. A leading backslash takes the meaning from the first character; a line with only a backslash says that
the output does not end with a newline. Lines before the first command are remarks.
"""

from __future__ import annotations

import shlex
from typing import Optional

from caffeup.host import Output
from caffeup.model.base import Value

ANY = "*"
ABSENT = "absent"
MARKS = ("$ ", "? ", "! ", "\\")


class TranscriptError(ValueError):
    """Text that is not a transcript, with the line's number."""


class Recorded(Value):
    """One command and what it gave; None: there is no such program."""

    argv: tuple[str, ...]
    output: Optional[Output]

    def answers(self, argv: tuple[str, ...]) -> bool:
        """Whether this is a recording of the command."""
        return len(argv) == len(self.argv) and all(own in (ANY, asked) for own, asked in zip(self.argv, argv))


def parse_transcript(text: str) -> tuple[Recorded, ...]:
    """Read commands; raise ``TranscriptError`` where one is not well-formed."""
    blocks: list[tuple[int, list[str]]] = []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        if line.startswith("$ "):
            blocks.append((number, [line[2:]]))
        elif blocks:
            blocks[-1][1].append(line)
    return tuple(_parse_block(number, block) for number, block in blocks)


def _parse_block(number: int, block: list[str]) -> Recorded:
    try:
        argv = tuple(shlex.split(block[0]))
    except ValueError as error:
        raise TranscriptError(f"line {number}: {error}: {block[0]!r}") from error
    if not argv:
        raise TranscriptError(f"line {number}: no command")
    status = "0"
    streams: dict[str, list[str]] = {"out": [], "err": []}
    for line in block[1:]:
        if line.startswith("? "):
            status = line[2:].strip()
        elif line.startswith("! "):
            streams["err"].append(line[2:])
        else:
            streams["out"].append(line)
    if status == ABSENT:
        return Recorded(argv=argv, output=None)
    if not status.lstrip("-").isdecimal():
        raise TranscriptError(f"line {number}: exit code {status!r} is neither a number nor {ABSENT!r}")
    return Recorded(argv=argv, output=Output(status=int(status), stdout=_join(streams["out"]), stderr=_join(streams["err"])))


def _join(lines: list[str]) -> str:
    if not lines:
        return ""
    end = "\n"
    if lines[-1] == "\\":
        lines, end = lines[:-1], ""
    return "\n".join(line.removeprefix("\\") for line in lines) + end


def format_recorded(recorded: Recorded) -> str:
    """The text that ``parse_transcript`` reads back as the same value; an argument of several lines becomes ``*``."""
    words = (ANY if word == ANY or "\n" in word else shlex.quote(word) for word in recorded.argv)
    lines = ["$ " + " ".join(words)]
    if recorded.output is None:
        lines.append(f"? {ABSENT}")
    else:
        if recorded.output.status:
            lines.append(f"? {recorded.output.status}")
        lines += _lines(recorded.output.stdout)
        lines += [f"! {line}" for line in _lines(recorded.output.stderr)]
    return "\n".join(lines) + "\n"


def _lines(text: str) -> list[str]:
    if not text:
        return []
    whole = text.endswith("\n")
    lines = (text[:-1] if whole else text).split("\n")
    escaped = ["\\" + line if line.startswith(MARKS) else line for line in lines]
    return escaped if whole else [*escaped, "\\"]
