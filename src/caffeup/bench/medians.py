"""Several runs to one figure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Optional

from msgspec.structs import replace

from caffeup.bench.caffe_time import Timed
from caffeup.model.bench import LayerTime, Row

UNSTEADY = 0.15
"""Runs that differ by more than this part of their median are called unsteady."""


def with_times(row: Row, runs: Sequence[Timed], depthwise: frozenset[str]) -> Row:
    """The row with medians of its runs."""
    layers = median_layers([run.layers for run in runs])
    inside = [layer for layer in layers if layer.name in depthwise]
    return replace(
        row,
        forward=statistics.median(run.forward for run in runs),
        backward=statistics.median(run.backward for run in runs),
        forward_runs=tuple(run.forward for run in runs),
        backward_runs=tuple(run.backward for run in runs),
        depthwise_forward=sum(layer.forward for layer in inside),
        depthwise_backward=sum(layer.backward for layer in inside),
        layers=layers,
    )


def median_layers(runs: Sequence[Sequence[LayerTime]]) -> tuple[LayerTime, ...]:
    """Each layer's medians; layers of one net are the same in each run, and stand in the same order."""
    return tuple(
        LayerTime(
            name=layers[0].name,
            forward=statistics.median(layer.forward for layer in layers),
            backward=statistics.median(layer.backward for layer in layers),
            forward_spread=_spread([layer.forward for layer in layers]),
            backward_spread=_spread([layer.backward for layer in layers]),
        )
        for layers in zip(*runs)
    )


def _spread(values: Sequence[float]) -> float:
    return max(values) - min(values)


def with_ratios(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Each row against the first of its batch size that has times."""
    first: dict[int, float] = {}
    result = []
    for row in rows:
        total = row.total
        if total:
            first.setdefault(row.batch, total)
        known = first.get(row.batch)
        result.append(replace(row, ratio=total / known) if total and known else row)
    return tuple(result)


def unsteady(row: Row) -> Optional[float]:
    """By which part of their median the runs differ, where that is too much to believe small differences."""
    totals = [forward + backward for forward, backward in zip(row.forward_runs, row.backward_runs)]
    if len(totals) < 2 or min(totals) <= 0:
        return None
    spread = (max(totals) - min(totals)) / statistics.median(totals)
    return spread if spread > UNSTEADY else None


def slowest(rows: Sequence[Row], most: int) -> tuple[str, ...]:
    """Names of the layers that take longest in any of these rows, the longest first."""
    longest: dict[str, float] = {}
    for layer in (layer for row in rows for layer in row.layers):
        longest[layer.name] = max(longest.get(layer.name, 0.0), layer.forward + layer.backward)
    return tuple(sorted(longest, key=lambda name: -longest[name])[:most])


def by_name(layers: Iterable[LayerTime]) -> Mapping[str, LayerTime]:
    """Layers by name; those that share one are summed."""
    found: dict[str, LayerTime] = {}
    for layer in layers:
        known = found.get(layer.name)
        found[layer.name] = (
            layer
            if known is None
            else replace(known, forward=known.forward + layer.forward, backward=known.backward + layer.backward)
        )
    return found
