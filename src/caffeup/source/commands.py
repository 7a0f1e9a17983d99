"""Which commands a Makefile runs when make merely reads it, beyond the questions that every Caffe's asks. Pure.

No guard: a Makefile is a program, and building a tree runs it. This tells a person what stands in it before that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from caffeup.model.base import Value
from caffeup.source.makefile import Line, logical_lines

_ASKING = """
[ arch awk basename bc cat command cut date dirname dpkg-architecture echo egrep expr false fgrep find getconf gawk git grep
head hostname ls lsb_release mexext mktemp nproc pkg-config pkgutil printf pwd readlink realpath sed sort sw_vers tail test
tr true type uname uniq wc which xargs xcode-select
"""
ASKS = frozenset(_ASKING.split())
"""Programs that answer a question and leave everything as it is."""
COMPILER = re.compile(
    r"\$[({](?:CXX|CC|NVCC|CUSTOM_CXX|PYTHON)[)}]|(?:.*/)?(?:g\+\+|gcc|cc|c\+\+|clang(?:\+\+)?|nvcc|python)[\d.-]*"
)
VERSION = frozenset({"-dumpversion", "-dumpfullversion", "-dumpmachine", "--version", "-V", "-v"})
GIT = frozenset({"describe", "log", "rev-parse", "rev-list", "show", "status", "branch"})
WORD = re.compile(r"""(?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s"'\\])+""")
SEPARATOR = re.compile(r"\|\||&&|[|;&\n]")
PASSES_ON = re.compile(r"(?:^|\s)-(?:exec|execdir|ok|okdir)\s+(.*)$", re.DOTALL)
WRITES = re.compile(r"(?<![0-9&])[0-9]?>>?\s*(?!/dev/null(?:\s|$))(?!&)[^\s>]|[<>]\(")
OPTIONS = {
    "awk": re.compile(r"-f|-i"),
    "gawk": re.compile(r"-f|-i"),
    "find": re.compile(r"-delete|-fprint.*|-fls"),
    "sed": re.compile(r"-[a-zA-Z]*i.*|--in-place.*|-f"),
    "sort": re.compile(r"-o.*|--output.*"),
}
"""Options with which a program that asks does more."""
QUESTION = re.compile(
    r"-c\s+[\"'](?:(?:import|from)\s+(?:numpy|sys|sysconfig|platform|distutils)\b[\w., ]*;\s*)*print\b[\w\s.()%,]*[\"']"
)
"""What Python is asked for with ``-c`` when it is asked for a folder or a version."""
BANG = re.compile(r"^\s*[A-Za-z_][\w.]*\s*!=\s*(.*)$", re.DOTALL)
FILE = re.compile(r"\$[({]file\s*(>[^,)}]*)")
LOAD = re.compile(r"^\s*-?load\s+(\S.*)$")


class Command(Value, kw_only=True):
    """One command that is run when the file is read."""

    line: int
    text: str
    condition: str = ""
    """The innermost conditional around it."""


def commands_when_read(text: str) -> Iterator[Command]:
    """Every command that does more than ask; recipes are passed over, since they run only when something is built."""
    for line in logical_lines(text):
        if line.recipe or not line.for_linux:
            continue
        for command in _commands(line):
            if not only_asks(command):
                condition = line.conditions[-1] if line.conditions else ""
                yield Command(line=line.number, text=" ".join(command.split()), condition=condition)


def _commands(line: Line) -> Iterator[str]:
    bang, load, file = BANG.match(line.text), LOAD.match(line.text), FILE.search(line.text)
    if bang:
        yield bang.group(1)
    if load:
        yield f"load {load.group(1)}"
    if file:
        yield file.group(1)
    for found in re.finditer(r"\$([({])shell\s", line.text):
        yield _balanced(line.text, found.end(), found.group(1))


def _balanced(text: str, start: int, opening: str) -> str:
    """What stands up to the parenthesis that closes this one; make counts those of the same kind."""
    closing, depth = {"(": ")", "{": "}"}[opening], 1
    for place in range(start, len(text)):
        if text[place] == opening:
            depth += 1
        elif text[place] == closing:
            depth -= 1
            if depth == 0:
                return text[start:place]
    return text[start:]


def only_asks(command: str) -> bool:
    """Whether every program in it is one that answers a question, and nothing is written."""
    if "`" in command or "$$(" in command or WRITES.search(_without_quoted(command)):
        return False
    return all(_asks(part) for part in _parts(command) if part.strip())


def _without_quoted(command: str) -> str:
    return re.sub(r"\"(?:\\.|[^\"\\])*\"|'[^']*'", "Q", command)


def _parts(command: str) -> Iterator[str]:
    """The commands of a line, split where no quotes are."""
    hidden = re.sub(r"\\.|\"(?:\\.|[^\"\\])*\"|'[^']*'|\$[({][^(){}]*[)}]", lambda found: "Q" * len(found.group()), command)
    start = 0
    for found in SEPARATOR.finditer(re.sub(r"\d?>&\d", lambda found: "Q" * len(found.group()), hidden)):
        yield command[start : found.start()]
        start = found.end()
    yield command[start:]


def _asks(part: str) -> bool:
    words = WORD.findall(part)
    if not words:
        return False
    program, rest = words[0], words[1:]
    name = program.rpartition("/")[2]
    if COMPILER.fullmatch(program):
        return any(word in VERSION for word in rest) or bool(QUESTION.search(part))
    if name in {"sh", "bash"}:
        return len(rest) == 2 and rest[0] == "-c" and only_asks(rest[1].strip("\"'"))
    if name not in ASKS or (name != program and not program.startswith(("/bin/", "/usr/bin/", "$("))):
        return False
    if name in OPTIONS and any(OPTIONS[name].fullmatch(word) for word in rest):
        return False
    if name == "git":
        return any(word in GIT for word in rest)
    if name == "find":
        passed = PASSES_ON.search(part)
        return passed is None or _asks(re.split(r"\\;|\s\+\s|';'", passed.group(1))[0])
    if name == "xargs":
        return not rest or _asks(" ".join(word for word in rest if not word.startswith("-")) or "echo")
    return not (name in {"awk", "gawk"} and re.search(r"system\s*\(|\|\s*\"|getline", part))
