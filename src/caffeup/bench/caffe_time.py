"""What ``caffe time`` prints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Optional

from caffeup.model.base import Value
from caffeup.model.bench import LayerTime
from caffeup.net.text import printable

_LAYER = re.compile(r"^(?:[IWEF]\d{4,8} [^\]]*\] )?\s*(?P<name>.*?)\t(?P<way>forward|backward): (?P<ms>\S+) ms")
_AVERAGE = re.compile(r"Average (?P<way>Forward|Backward) pass: (?P<ms>\S+) ms")
_LONGEST = 200


class Timed(Value, kw_only=True):
    """One run."""

    forward: float
    backward: float
    layers: tuple[LayerTime, ...] = ()


def parse_times(lines: Iterable[str]) -> Optional[Timed]:
    """The averages of a run; None where it did not come to its end."""
    found: dict[str, float] = {}
    forward: list[tuple[str, float]] = []
    backward: list[float] = []
    for line in lines:
        if match := _LAYER.search(line):
            if match["way"] == "forward":
                forward.append((shown(match["name"]), _number(match["ms"])))
            else:
                backward.append(_number(match["ms"]))
        elif match := _AVERAGE.search(line):
            found[match["way"]] = _number(match["ms"])
    if len(found) < 2:
        return None
    backward += [0.0] * (len(forward) - len(backward))
    layers = tuple(LayerTime(name=name, forward=ms, backward=back) for (name, ms), back in zip(forward, backward))
    return Timed(forward=found["Forward"], backward=found["Backward"], layers=layers)


def shown(name: str) -> str:
    """A layer's name as it stands in a ``Timed``."""
    return printable(name, _LONGEST)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if 0 <= value < float("inf") else 0.0
