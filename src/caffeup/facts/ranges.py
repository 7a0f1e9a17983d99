"""Half-open version ranges: the only kind that facts may hold.

``<=12.3`` does not contain 12.3.2 and ``==9.0`` does not contain 9.0.176; ``<12.4`` and ``>=9.0,<9.1`` say what is meant.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Optional

from packaging.version import InvalidVersion, Version

from caffeup.model.base import Value

_PART = re.compile(r"\s*(>=|<)\s*([0-9][0-9A-Za-z.]*)\s*")


class BadRange(ValueError):
    """A text that is not a half-open range."""


class Range(Value, kw_only=True):
    """Versions from ``low`` (included) up to ``high`` (excluded); an absent end is open."""

    low: Optional[Version] = None
    high: Optional[Version] = None
    text: str = ""
    """As it stands in the row."""

    @classmethod
    def parse(cls, text: str) -> Range:
        """Read ``>=8.0,<9.0``; raise ``BadRange`` for other operators, a bound given twice, or an empty range."""
        return _parse(text)

    def __contains__(self, version: Version) -> bool:
        return (self.low is None or version >= self.low) and (self.high is None or version < self.high)

    def __str__(self) -> str:
        return self.text

    def words(self) -> str:
        """The range as a person says it: ``8.0 up to, not including, 13.0``."""
        if self.low is None:
            return f"older than {self.high}"
        return f"{self.low} or newer" if self.high is None else f"{self.low} up to (not including) {self.high}"


@lru_cache(maxsize=512)
def _parse(text: str) -> Range:
    bounds: dict[str, Version] = {}
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise BadRange(f"not a half-open range: {text!r} (write it as >=8.0,<9.0)")
        operator, number = match.groups()
        if operator in bounds:
            raise BadRange(f"{operator} stands twice in {text!r}")
        try:
            bounds[operator] = Version(number)
        except InvalidVersion as error:
            raise BadRange(f"not a version in {text!r}: {number}") from error
    low, high = bounds.get(">="), bounds.get("<")
    if low is not None and high is not None and low >= high:
        raise BadRange(f"an empty range: {text!r}")
    return Range(low=low, high=high, text=text)
