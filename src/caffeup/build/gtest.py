"""Reads what gtest binaries say. Pure: lines in, values out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Optional

_RUN = re.compile(r"\[ RUN      \] ([^\s,]+)")
_END = re.compile(r"\[(       OK |  FAILED  |  SKIPPED )\] ([^\s,]+)(?:, where TypeParam = (.*?))? \(\d+ ms\)")
_SUITE = re.compile(r"^([A-Za-z_][\w/]*)\.(?:\s|$)")
_CASE = re.compile(r"^  ([A-Za-z_][\w/]*)(?:\s|$)")
_TELLING = re.compile(r"Check failed|: Failure$|[Ee]rror|terminate called|SIG[A-Z]+|what\(\):|Could not|No such file")
_GLOG = re.compile(r"^[IWEF]\d{4,8} [\d:.]+ +\d+ ([^\s\]]+:\d+)\] ")
KEPT_LINES = 40
FILTER_ROOM = 100_000
"""Characters in one --gtest_filter; the kernel takes 131072 in one argument."""


def parse_list(lines: Iterable[str]) -> tuple[str, ...]:
    """Full names from ``--gtest_list_tests``; whatever else the binary prints is passed over. DISABLED tests are left out."""
    suite = ""
    names: list[str] = []
    for line in lines:
        found = _SUITE.match(line)
        if found:
            suite = found[1]
            continue
        case = _CASE.match(line)
        if case and suite and "DISABLED_" not in f"{suite}.{case[1]}":
            names.append(f"{suite}.{case[1]}")
    return tuple(names)


def filters(names: Iterable[str], room: int = FILTER_ROOM) -> tuple[tuple[str, ...], ...]:
    """Names in groups that each fit into one --gtest_filter."""
    groups: list[list[str]] = [[]]
    size = 0
    for name in names:
        if groups[-1] and size + len(name) + 1 > room:
            groups.append([])
            size = 0
        groups[-1].append(name)
        size += len(name) + 1
    return tuple(tuple(group) for group in groups if group)


class Reader:
    """Follows one run of a gtest binary line by line."""

    def __init__(self) -> None:
        self.running: Optional[str] = None
        """The test that began and has not ended."""
        self.passed: list[str] = []
        self.failed: dict[str, str] = {}
        """Name to what was said."""
        self._said: list[str] = []

    @property
    def began(self) -> bool:
        """Whether any test ran."""
        return bool(self.running or self.passed or self.failed)

    def line(self, line: str) -> bool:
        """Take a line; True where a test began or ended with it."""
        begun = _RUN.search(line)
        if begun:
            self.running = begun[1]
            self._said.clear()
            return True
        ended = _END.search(line)
        if ended and ended[2] == self.running:
            if ended[1] == "  FAILED  ":
                self.failed[ended[2]] = self.telling()
            else:
                self.passed.append(ended[2])
            self.running = None
            return True
        if len(self._said) < KEPT_LINES and line.strip():
            self._said.append(line.rstrip())
        return False

    def telling(self) -> str:
        """Of what the running test said, the line that tells most; for a failed expectation, with its lines."""
        for number, line in enumerate(self._said):
            if line.endswith(": Failure"):
                return " ".join(part.strip() for part in self._said[number : number + 4])[:300]
        for line in self._said:
            if _TELLING.search(line):
                return _GLOG.sub(r"\1: ", line.strip())[:300]
        return self._said[0].strip()[:300] if self._said else ""
