"""A line as a symptom means it: its regular expression written out for people."""

from __future__ import annotations

from caffeup.diagnose.literals import end_of_set, quantifier

_NUMBER = "\0"
_CLASSES = {"d": _NUMBER, "w": "…", "S": "…", "s": " ", "b": "", "B": "", "A": "", "Z": ""}


def example(pattern: str) -> str:
    """One text of those that the expression matches: N for a number, … for what may be anything, <name> for a named part."""
    text, _ = _alternatives(pattern, 0)
    for mark in ("…", _NUMBER):
        while mark * 2 in text:
            text = text.replace(mark * 2, mark)
    return " ".join(text.replace(_NUMBER, "N").split())


def concrete(pattern: str) -> str:
    """The same with a number and a letter in the places that are open, so that other expressions can be tried on it."""
    return _alternatives(pattern, 0)[0].replace("…", "x").replace(_NUMBER, "1")


def _alternatives(pattern: str, at: int) -> tuple[str, int]:
    """The first of the alternatives that is not empty."""
    first, at = _sequence(pattern, at)
    while at < len(pattern) and pattern[at] == "|":
        other, at = _sequence(pattern, at + 1)
        first = first or other
    return first, at


def _sequence(pattern: str, at: int) -> tuple[str, int]:
    text = ""
    while at < len(pattern) and pattern[at] not in "|)":
        piece, at = _atom(pattern, at)
        least, end, _ = quantifier(pattern, at)
        text += piece if least or piece == "…" or pattern[at] == "?" else ""
        at = end
    return text, at


def _atom(pattern: str, at: int) -> tuple[str, int]:
    char = pattern[at]
    if char == "\\":
        return _CLASSES.get(pattern[at + 1], pattern[at + 1]), at + 2
    if char == "[":
        end = end_of_set(pattern, at)
        return "…" if pattern[at + 1] == "^" or "-" in pattern[at:end] or "\\" in pattern[at:end] else pattern[at + 1], end
    if char == "(":
        return _group(pattern, at)
    return ("…" if char == "." else "" if char in "^$" else char), at + 1


def _group(pattern: str, at: int) -> tuple[str, int]:
    name = ""
    start = at + 1
    if pattern.startswith("(?P<", at):
        start = pattern.index(">", at) + 1
        name = pattern[at + 4 : start - 1]
    elif pattern.startswith("(?:", at):
        start = at + 3
    elif pattern.startswith(("(?=", "(?!", "(?<=", "(?<!"), at):
        _, end = _alternatives(pattern, at + (4 if pattern[at + 2] == "<" else 3))
        return "", end + 1
    elif pattern.startswith("(?i:", at):
        start = at + 4
    text, end = _alternatives(pattern, start)
    open_ended = not text or "…" in text or _NUMBER in text
    return f"<{name}>" if name and open_ended else text, end + 1
