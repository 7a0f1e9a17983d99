"""What one line of a log is: an error and of which tool, the echo of an error, or neither."""

from __future__ import annotations

import re
from typing import Optional

from caffeup.model.base import Value, Word


class Kind(Word):
    """Whose error it is."""

    COMPILE = "compile"
    LINK = "link"
    TOOL = "tool"
    """nvcc, protoc, the shell or make could not even start the work."""
    CONFIGURE = "configure"
    CHECK = "check"
    """A fatal line of glog."""
    TEST = "test"
    PYTHON = "python"
    LOADER = "loader"
    RESOURCE = "resource"
    CRASH = "crash"
    OTHER = "other"
    """Known only by its symptom."""
    ECHO = "echo"
    """Says only that something before it failed."""


class Event(Value, kw_only=True):
    """One line that speaks of an error."""

    kind: Kind
    number: int
    """Of the line in its log, from 1."""
    text: str
    """As it stood there, made safe to show."""
    said: str
    """In canonical words."""
    file: str = ""
    what: str = ""
    """The message without its place."""

    @classmethod
    def other(cls, number: int, text: str, said: str) -> Event:
        """A line that is an error only because a symptom says so."""
        return cls(kind=Kind.OTHER, number=number, text=text, said=said, what=said)

    @property
    def stem(self) -> str:
        """The source file's name without folder and suffix; one fault often shows in x.hpp and x.cpp."""
        return self.file.rpartition("/")[2].partition(".")[0]


_ASIDE_WORDS = ("warning", "note", "remark", "#pragma message", "Warning", "(ignored)")
_ASIDE = re.compile(
    r"(?:[:)]|^[\w+./-]+ ?:|^) ?(?:warning|note)(?: #\d+(?:-D)?)?\s*:|\bremark(?: #\d+(?:-D)?)?:"
    r"|#pragma message|^CMake (?:Deprecation )?Warning|\(ignored\)$"
)
_INFO = re.compile(r"[IW]\d{4}(?:\d{4})? |\[ +(?:OK|RUN) ")
_ECHO = re.compile(
    r"^(?:g?make|gmake|ninja|mingw32-make)(?:\[\d+\])?: (?:\*\*\* (?:\[|Waiting for|Deleting)|Target |build stopped)"
    r"|collect2: |ld returned \d+ exit status|linker command failed|compilation terminated|final link failed"
    r"|\d+ (?:errors?|warnings?)(?: and \d+ \w+)? (?:generated|detected)|^Error limit reached|too many errors emitted"
    r"|\*\*\* (?:Check failure stack trace|Aborted at)|Aborted \(core dumped\)|^Aborted$|-- Configuring incomplete"
    r"|Failed to include caffe_pb2|error: command '[^']+' failed|\d+ FAILED TESTS?$|FAILED +\] \d+ tests?, listed below"
    r"|nvcc error +: '\w+' died with status|ptxas fatal +: Ptx assembly aborted due to errors"
    r"|Error \d+$|(?:recipe for target|目标) '?.* failed$"
)
_COMPILE = re.compile(
    r"^(?:\[[^\]]*\] ?)?(?P<file>[^\s:(][^:(]*?)(?::\d+|\(\d+\))(?::\d+)?: ?"
    r"(?:fatal |internal compiler )?error\b[^:]*: ?(?P<what>.*)"
)


class _Rule(Value, kw_only=True):
    """How to tell one kind."""

    kind: Kind
    literals: tuple[str, ...]
    """A line of this kind holds one of them; most lines are dismissed by that."""
    pattern: re.Pattern[str]


def _rules(kind: Kind, *rows: tuple[str, str]) -> list[_Rule]:
    """Rules from pairs: literals with bars between them, and the pattern."""
    return [_Rule(kind=kind, literals=tuple(words.split("|")), pattern=re.compile(pattern)) for words, pattern in rows]


_SHELL = r"^(?:-?(?:/\S*/)?(?:ba|da|z)?sh: (?:line )?(?:\d+: )?|\S+\.sh: (?:line )?\d+: )"
_MAKE = r"^g?make(?:\[\d+\])?: "
_NO_PROGRAM = r"(?:[Cc]ommand not found|not found|No such file or directory|Permission denied)"

_RULES = (
    *_rules(
        Kind.RESOURCE,
        ("No space left|Disk quota", r"No space left on device|Disk quota exceeded"),
        (
            "Cannot allocate|memory exhausted|out of memory",
            r"Cannot allocate memory|virtual memory exhausted|\bout of memory allocating",
        ),
        ("Killed|died due to signal", r"(?:^|: |\] )Killed\b|Killed \(program|Killed signal|died due to signal 9"),
    ),
    *_rules(
        Kind.LINK,
        (
            "undefined reference|multiple definition|hidden symbol",
            r"(?P<what>(?:undefined reference to|multiple definition of|hidden symbol).*)",
        ),
        ("cannot find ", r"(?P<what>cannot find (?:-l\S+|\S+\.(?:o|a|so)\b).*)"),
        ("relocation", r"(?P<what>relocation (?:truncated|R_).*)"),
        ("ld: |ld.", r"(?P<what>\b(?:ld(?:\.\w+)?|lld): (?:error: )?(?!warning|skipping|final link).*)"),
    ),
    *_rules(
        Kind.TOOL,
        (
            "nvcc|ptxas|fatbinary|nvlink|cicc",
            r"^(?:nvcc|ptxas|fatbinary|nvlink|cicc)\s+(?:fatal|error)\s*:\s*(?P<what>.*)",
        ),
        ("sh: ", rf"{_SHELL}(?P<what>.*{_NO_PROGRAM})$"),
        ("zsh: ", r"^zsh: (?P<what>(?:command not found|no such file or directory): .*)"),
        ("make", rf"{_MAKE}(?P<what>\S+: {_NO_PROGRAM})"),
        (
            "No rule to make|missing separator|Stop.",
            r"(?P<what>\*\*\* .*(?:No rule to make target .*|missing separator.*|Stop\.))",
        ),
    ),
    *_rules(
        Kind.CONFIGURE,
        ("CMake Error", r"^(?P<what>CMake Error.*)"),
    ),
    *_rules(
        Kind.CHECK,
        ("F", r"^F\d{4}(?:\d{4})? [\d:.]+ +\d+ (?P<file>[\w./-]+):\d+\] (?P<what>.*)"),
        ("Check failed", r"(?:(?P<file>[\w./-]+):\d+\] )?(?P<what>Check failed: .*)"),
        ("libprotobuf ", r"\[libprotobuf (?:FATAL|ERROR) [^\]]*\] (?P<what>.*)"),
    ),
    *_rules(
        Kind.TEST,
        ("FAILED  ]", r"^\[  FAILED  \] (?P<what>\S+)"),
        (": Failure", r"^(?P<file>[\w./-]+):\d+: (?P<what>Failure)"),
    ),
    *_rules(
        Kind.LOADER,
        ("shared librar", r"(?P<what>error while loading shared libraries: .*)"),
        ("cannot open shared", r"(?P<what>.*cannot open shared object file.*)"),
    ),
    *_rules(
        Kind.PYTHON,
        ("Error|Exception|Exit", r"^(?P<what>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit)(?:: .*|$))"),
        ("No module named|Fatal Python", r"(?P<what>: No module named \S+$|Fatal Python error.*)"),
    ),
    *_rules(
        Kind.CRASH,
        (
            "Segmentation|Illegal|Bus error|Floating",
            r"(?P<what>(?:Segmentation fault|Illegal instruction|Bus error|Floating point exc).*)",
        ),
        ("*** SIG|terminate called", r"(?P<what>\*\*\* SIG\w+ .*|terminate called .*)"),
    ),
    *_rules(
        Kind.COMPILE,
        ("error: |error : ", r"^(?:[\w./+-]+: )?(?:fatal |internal compiler )?error ?: (?P<what>.*)"),
    ),
)


WORDS = (*_ASIDE_WORDS, "I", "W", "RUN", "OK", *(literal for rule in _RULES for literal in rule.literals))
"""Texts by which the rules tell lines apart."""


def is_aside(said: str) -> bool:
    """Whether the line is a warning, a note or mere information, whatever words stand in it."""
    if said[:1] in "IW[" and _INFO.match(said):
        return True
    return any(word in said for word in _ASIDE_WORDS) and _ASIDE.search(said) is not None and " error: " not in said


def classify(number: int, text: str, said: str) -> Optional[Event]:
    """The event of this line, or None where it speaks of no error."""
    match = _COMPILE.match(said) if "error" in said else None
    if match:
        return Event(kind=Kind.COMPILE, number=number, text=text, said=said, file=match["file"], what=match["what"])
    if _ECHO.search(said):
        return Event(kind=Kind.ECHO, number=number, text=text, said=said, what=said)
    for rule in _RULES:
        if any(literal in said for literal in rule.literals):
            match = rule.pattern.search(said)
            if match:
                parts = match.groupdict()
                what, file = parts.get("what") or said, parts.get("file") or ""
                return Event(kind=rule.kind, number=number, text=text, said=said, file=file, what=what)
    return None
