"""Weights by chance for any net whose shapes are known: enough to run it, to time it and to try tools on it."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Iterable, Iterator, Sequence

from caffeup.net.rules.base import Shape, count
from caffeup.net.shapes import LayerShapes

_POOL = 65_521
"""Numbers that are drawn; a prime, so that what is filled with them in turn hardly repeats itself row by row."""

Blobs = Sequence[tuple[Shape, "array[float]"]]


def random_weights(layers: Iterable[LayerShapes], seed: int = 1) -> Iterator[tuple[str, str, Blobs]]:
    """Name, type and blobs of each layer that has weights; the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311  # no secret
    pool = array("f", (chance.uniform(-1.0, 1.0) for _ in range(_POOL)))
    for one in layers:
        if one.params:
            blobs = [(shape, _blob(one.layer.type, place, shape, pool, chance)) for place, shape in enumerate(one.params)]
            yield one.layer.name, one.layer.type, blobs


def _blob(kind: str, place: int, shape: Shape, pool: array[float], chance: random.Random) -> array[float]:
    """What a trained net could hold there: spreads that keep values from growing, and variances above zero."""
    if kind == "BatchNorm":
        return array("f", [7.0]) if place == 2 else _drawn(shape, pool, chance, 3.5 if place else 0.35, 7.0 if place else 0.0)
    if kind in {"Scale", "PReLU", "Normalize"} and place == 0:
        return _drawn(shape, pool, chance, 0.25, {"Scale": 1.0, "PReLU": 0.25}.get(kind, 10.0))
    if place == 1 or len(shape) < 2:
        return _drawn(shape, pool, chance, 0.1, 0.0)
    return _drawn(shape, pool, chance, math.sqrt(6.0 / max(1, count(shape[1:]))), 0.0)


def _drawn(shape: Shape, pool: array[float], chance: random.Random, spread: float, middle: float) -> array[float]:
    many = count(shape)
    if not many:
        return array("f")
    scaled = array("f", [value * spread + middle for value in pool[: min(many, _POOL)]])
    begin = chance.randrange(len(scaled))
    turned = scaled[begin:] + scaled[:begin]
    return (turned * -(-many // len(turned)))[:many]
