"""How long each object took in earlier builds of a tree."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from caffeup.build.steps import Step, object_of
from caffeup.disk import read_plain, write_atomically
from caffeup.model.base import Value, from_json, to_json


class Times(Value):
    """Seconds a step, by its text (``CXX src/caffe/net.cpp``)."""

    seconds: dict[str, float] = msgspec.field(default_factory=dict)


def _where(root: Path) -> Path:
    return root / ".caffeup" / "times.json"


def read_times(root: Path) -> dict[str, float]:
    """What earlier builds took; empty where nothing is known."""
    try:
        return from_json(read_plain(_where(root)), Times).seconds
    except (OSError, msgspec.MsgspecError, ValueError):
        return {}


class Stopwatch:
    """Notes when steps begin; their ends are read from the objects that they wrote."""

    def __init__(self) -> None:
        self._begun: dict[Step, float] = {}

    def begin(self, step: Step) -> None:
        """A step begins now."""
        self._begun.setdefault(step, time.time())

    def keep(self, root: Path, build_dir: str) -> None:
        """Add what was measured to the tree's record. An object from ccache does not shorten what compiling it takes."""
        known = read_times(root)
        for step, begun in self._begun.items():
            name = object_of(step, build_dir)
            try:
                taken = (root / name).stat().st_mtime - begun if name else 0.0
            except OSError:
                continue
            if taken > max(1.0, 0.3 * known.get(str(step), 0.0)):
                known[str(step)] = round(taken, 1)
        if self._begun:
            write_atomically(_where(root), to_json(Times(seconds=known)))
