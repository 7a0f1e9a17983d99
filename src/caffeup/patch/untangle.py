"""Takes an edit out of a file that somebody changed since, where the two do not touch. Pure."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Optional


def without(before: bytes, after: bytes, now: bytes) -> Optional[bytes]:
    """What stands there now, less what turned ``before`` into ``after``.

    None where a place of it is not found exactly once, with the lines around it, as the edit left them.
    """
    old, new, lines = (text.splitlines(keepends=True) for text in (before, after, now))
    for tag, i1, i2, j1, j2 in reversed(SequenceMatcher(None, old, new, autojunk=False).get_opcodes()):
        if tag == "equal":
            continue
        above, below = new[max(j1 - 1, 0) : j1], new[j2 : j2 + 1]
        ours = new[j1:j2]
        found = _places(lines, ours) if ours else []
        start = found[0] if len(found) == 1 else None
        if start is None:
            found = _places(lines, [*above, *ours, *below])
            if len(found) != 1:
                return None
            start = found[0] + len(above)
        lines[start : start + len(ours)] = old[i1:i2]
    return b"".join(lines)


def _places(lines: list[bytes], block: list[bytes]) -> list[int]:
    return [at for at in range(len(lines) - len(block) + 1) if lines[at : at + len(block)] == block]
