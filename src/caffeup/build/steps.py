"""What make says it does, and how long it may take. Pure: text and numbers in, values out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Optional

from caffeup.build.progress import Pace
from caffeup.model.base import Value

_STEP = re.compile(r"^(?:@ *)?(?:echo )?(CXX/LD|CXX|NVCC|LD|AR|PROTOC)( \\?\(python\\?\))? (?:-o )?([^\s-]\S*)")
# Seconds on one core, from builds of BVLC's and SSD's trees; only their ratio matters after the first objects.
_TRUST = 30.0
"""Seconds of a build that agree with the earlier times, before any step of this one has ended."""
_USUAL = {"CXX": 4.0, "NVCC": 12.0, "CXX/LD": 2.0, "LD": 2.0, "AR": 1.0, "PROTOC": 0.5}


class Step(Value):
    """One thing that make makes."""

    kind: str
    """Caffe's own word: ``CXX``, ``NVCC``, ``LD``, ``CXX/LD``, ``AR``, ``PROTOC`` or ``PROTOC (python)``."""
    name: str
    """The source, or for a link what is linked."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def parse_step(line: str) -> Optional[Step]:
    """Read one line of make's output, or of ``make -n``; None where it begins no step."""
    match = _STEP.match(line)
    return Step(kind=f"{match[1]} (python)" if match[2] else match[1], name=match[3]) if match else None


def steps_of(lines: Iterable[str]) -> tuple[Step, ...]:
    """The steps that ``make -n`` announces, each once."""
    found = (parse_step(line) for line in lines)
    return tuple(dict.fromkeys(step for step in found if step is not None))


def object_of(step: Step, build_dir: str) -> str:
    """The object that a compile step writes, relative to the tree; empty for the other steps."""
    stem = re.sub(r"\.(cpp|cu|cc)$", "", step.name)
    if step.kind == "CXX":
        return f"{stem}.o" if stem.startswith(f"{build_dir}/") else f"{build_dir}/{stem}.o"
    return f"{build_dir}/cuda/{stem}.o" if step.kind == "NVCC" else ""


class Estimate:
    """Expected time from what was planned, what began, and what earlier builds took."""

    def __init__(self, planned: Iterable[Step], jobs: int, taken: Optional[Mapping[str, float]] = None) -> None:
        self._taken = dict(taken or {})
        self._jobs = max(jobs, 1)
        self._planned = {step: self._weight(step) for step in planned}
        self._total = sum(self._planned.values())
        self._begun: dict[Step, float] = {}
        known = 2 * sum(1 for step in self._planned if str(step) in self._taken) > len(self._planned)
        self._tells = known
        self._pace = Pace(work=self._jobs * _TRUST, seconds=_TRUST) if known else Pace()

    def _weight(self, step: Step) -> float:
        return max(self._taken.get(str(step), _USUAL.get(step.kind, 1.0)), 0.05)

    def begin(self, step: Step) -> None:
        """A step was seen; one that was not announced counts too."""
        weight = self._weight(step)
        if step not in self._planned:
            self._planned[step] = weight
            self._total += weight
        self._begun[step] = weight

    @property
    def total(self) -> int:
        """Number of steps."""
        return len(self._planned)

    @property
    def done(self) -> int:
        """Steps that have ended, as far as can be told: of those begun, the newest ``jobs`` may still run."""
        return max(len(self._begun) - self._jobs, 0)

    def left(self, elapsed: float) -> Optional[float]:
        """Seconds that are left; None as long as there is nothing to tell it from."""
        running = list(self._begun.values())[-self._jobs :]
        done = sum(self._begun.values()) - sum(running) / 2
        left = self._pace.left(done, max(self._total - done, 0.0), elapsed)
        return left if self._tells or len(self._begun) > 2 * self._jobs else None
