"""Which texts a line must hold for a regular expression to match: what makes a catalogue of hundreds of symptoms fast."""

from __future__ import annotations

Needs = list[tuple[str, ...]]
"""Each entry: a matching line holds at least one of its texts."""

_CLASSES = frozenset("wWdDsSbBAZ0123456789")


def required(pattern: str) -> Needs:
    """All that can be told of ``pattern`` without running it; longest first. Empty where nothing can."""
    needs, end = _alternatives(pattern, 0)
    if end != len(pattern):
        raise ValueError(f"unbalanced: {pattern!r}")
    return sorted(needs, key=lambda texts: -min(map(len, texts)))


def _alternatives(pattern: str, at: int) -> tuple[Needs, int]:
    branches: list[Needs] = []
    while True:
        needs, at = _sequence(pattern, at)
        branches.append(needs)
        if at >= len(pattern) or pattern[at] == ")":
            break
        at += 1  # the bar
    if len(branches) == 1:
        return branches[0], at
    if not all(branches):
        return [], at
    best = [max(needs, key=lambda texts: min(map(len, texts))) for needs in branches]
    return [tuple(text for texts in best for text in texts)], at


def _sequence(pattern: str, at: int) -> tuple[Needs, int]:
    needs: Needs = []
    run = ""

    def close() -> None:
        nonlocal run
        if run:
            needs.append((run,))
        run = ""

    while at < len(pattern) and pattern[at] not in "|)":
        text, inner, at = _atom(pattern, at)
        least, at, repeated = quantifier(pattern, at)
        if text and least and not repeated:
            run += text
            continue
        if text and least:
            run += text
        close()
        if least:
            needs += inner
    close()
    return needs, at


def _atom(pattern: str, at: int) -> tuple[str, Needs, int]:
    """One atom: its literal character or "", what a group needs, and where it ends."""
    char = pattern[at]
    if char == "\\":
        escaped = pattern[at + 1]
        return ("" if escaped in _CLASSES else escaped), [], at + 2
    if char == "[":
        return "", [], end_of_set(pattern, at)
    if char == "(":
        return _group(pattern, at)
    return ("" if char in ".^$" else char), [], at + 1


def _group(pattern: str, at: int) -> tuple[str, Needs, int]:
    start, counts = at + 1, True
    if pattern.startswith("(?P<", at):
        start = pattern.index(">", at) + 1
    elif pattern.startswith("(?:", at):
        start = at + 3
    elif pattern.startswith(("(?=", "(?!"), at):
        start, counts = at + 3, False
    elif pattern.startswith(("(?<=", "(?<!"), at):
        start, counts = at + 4, False
    elif pattern.startswith("(?", at):
        raise ValueError(f"flags and back references are not for symptoms: {pattern!r}")
    needs, end = _alternatives(pattern, start)
    return "", needs if counts else [], end + 1


def end_of_set(pattern: str, at: int) -> int:
    """Behind the closing bracket."""
    at += 2 if pattern[at + 1] == "^" else 1
    at += pattern[at] == "]"
    while pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1


def quantifier(pattern: str, at: int) -> tuple[int, int, bool]:
    """How often at least, where it ends, and whether there was one."""
    if at >= len(pattern) or pattern[at] not in "?*+{":
        return 1, at, False
    least = 1 if pattern[at] == "+" else 0
    if pattern[at] == "{":
        end = pattern.index("}", at)
        least = int(pattern[at + 1 : end].partition(",")[0] or 0)
        at = end
    at += 1
    return least, at + (pattern[at : at + 1] == "?"), True
