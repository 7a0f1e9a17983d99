"""What a package manager is doing now, from the lines it prints. Pure.

Its lines, and not apt's status descriptor, since sudo closes every descriptor but the first three.
"""

from __future__ import annotations

import re
from typing import Optional

from caffeup.build.progress import Status

_FETCHED = re.compile(r"Get:(\d{1,6}) \S+ \S+ \S+ (\S+) \S+ \S+ \[")
_DPKG = re.compile(r"(Unpacking|Setting up) ([^\s:]+)\S* \(")
_COUNTED = re.compile(r"(?:^|[\s(]|\[ *)(\d{1,6})/(\d{1,6})(?:[)\]\s,:]|$)")
_WORDS = {"Unpacking": "unpacking", "Setting up": "setting up"}
_PHASES = ("downloading", "unpacking", "setting up")
_TAIL = re.compile(r"\s+(?:\d{1,3}%|\|).*$")
"""Rates, bars and times that follow a name."""
_LONGEST = 60


class Said:
    """Hears one program to its end: apt's and dpkg's words are counted, others bring their own ``3/40``, or only a line."""

    def __init__(self, packages: int = 0) -> None:
        self._packages = packages
        self._done = 0
        self._total = packages or None
        self._current = ""
        self._seen: dict[str, int] = {}
        self._share: Optional[float] = None

    def hear(self, line: str) -> None:
        """Take the next line."""
        fetched = _FETCHED.match(line)
        dpkg = _DPKG.match(line)
        counted = _COUNTED.search(line)
        if fetched:
            self._now(int(fetched[1]), self._packages, f"downloading {fetched[2]}")
            self._phase("downloading")
        elif dpkg:
            self._seen[dpkg[1]] = self._seen.get(dpkg[1], 0) + 1
            self._now(self._seen[dpkg[1]], self._packages, f"{_WORDS[dpkg[1]]} {dpkg[2]}")
            self._phase(_WORDS[dpkg[1]])
        elif counted and 0 < int(counted[1]) <= int(counted[2]):
            rest = f"{line[: counted.start()]} {line[counted.end() :]}"
            self._now(int(counted[1]), int(counted[2]), rest)
        elif line.strip():
            self._current = _short(line)

    def _now(self, done: int, total: int, current: str) -> None:
        self._done, self._total, self._current = done, max(total, done), _short(current)

    def _phase(self, name: str) -> None:
        """The bar goes on over all phases, each of which counts the packages anew."""
        if self._total:
            share = (_PHASES.index(name) + self._done / self._total) / len(_PHASES)
            self._share = max(self._share or 0.0, share)

    def status(self, elapsed: float) -> Status:
        """What is to be shown."""
        return Status(done=self._done, total=self._total, current=self._current, elapsed=elapsed, share=self._share)


def _short(text: str) -> str:
    line = " ".join(_TAIL.sub("", text).split()).strip(" :,.")
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
