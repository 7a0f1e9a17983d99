"""The order of runs, how long each is, and how long all that remain will take."""

from __future__ import annotations

from typing import Optional

from caffeup.bench.caffe_time import Timed

SPAN = 1.0
"""Seconds that a run is to measure for, where nobody says how often."""
MOST = 200
SLOW = 2.0
"""Seconds a pass from which on a net is measured once."""


class Case:
    """One net that is measured in turns with others."""

    def __init__(self, *, repeat: int, iterations: Optional[int]) -> None:
        self.iterations = 1
        self.warm = False
        """Whether it has run once, for nothing but to be warm."""
        self.left = repeat
        self._wanted = iterations
        self._start = 0.0
        self._pass = 0.0

    def ran(self, seconds: float, times: Optional[Timed]) -> bool:
        """Take note of a run; whether it counts."""
        if times is None:
            self.left = 0
            return False
        self._pass = (times.forward + times.backward) / 1000
        self._start = max(0.0, seconds - self._pass * self.iterations)
        if self.warm:
            self.left -= 1
            return True
        self.warm = True
        self.iterations = self._wanted or max(1, min(MOST, round(SPAN / self._pass) if self._pass else MOST))
        if self._pass > SLOW:
            self.left = min(self.left, 1)
        return False

    @property
    def runs_left(self) -> int:
        """How often it is still to run."""
        return self.left + (0 if self.warm or not self.left else 1)

    @property
    def expected(self) -> Optional[float]:
        """Seconds that one more run takes; None before the first."""
        return self._start + self._pass * self.iterations if self.warm else None


def expected_seconds(cases: list[Case]) -> Optional[float]:
    """Of all that is still to run; a case that never ran is taken as long as the others are on average."""
    known = [case.expected for case in cases if case.expected is not None]
    if not known:
        return None
    usual = sum(known) / len(known)
    return sum(case.runs_left * (usual if case.expected is None else case.expected) for case in cases)
