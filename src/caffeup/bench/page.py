"""What the page of a bench shows: bars and figures, as values for its template."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Optional

from caffeup.bench.medians import by_name, slowest
from caffeup.bench.words import gpu_words, memory_words, ms
from caffeup.model.base import Value
from caffeup.model.bench import BenchReport, Row
from caffeup.model.finding import Finding

LAYERS = 30
"""So many of the slowest are shown; the others are summed."""


class Bar(Value, kw_only=True):
    """One bar: forward, then backward, in percent of the longest beside it."""

    label: str
    forward: float = 0.0
    backward: float = 0.0
    text: str = ""
    more: str = ""
    failed: str = ""
    findings: tuple[Finding, ...] = ()


class LayerBars(Value, kw_only=True):
    """One layer in each variant."""

    name: str
    depthwise: bool
    bars: tuple[Bar, ...]


class Part(Value, kw_only=True):
    """All of one batch size."""

    batch: int
    whole: tuple[Bar, ...]
    layers: tuple[LayerBars, ...] = ()
    rest: str = ""
    """The layers that are not shown, summed."""


def parts(report: BenchReport) -> tuple[Part, ...]:
    """A part for each batch size."""
    return tuple(
        _part(batch, [row for row in report.rows if row.batch == batch], frozenset(report.depthwise))
        for batch in dict.fromkeys(row.batch for row in report.rows)
    )


def _part(batch: int, rows: Sequence[Row], depthwise: frozenset[str]) -> Part:
    longest = max((row.total or 0.0 for row in rows), default=0.0)
    ran = [row for row in rows if row.layers]
    names = slowest(ran, LAYERS)
    layers = tuple(_layer(name, ran, depthwise=name in depthwise) for name in names)
    return Part(batch=batch, whole=tuple(_whole(row, longest) for row in rows), layers=layers, rest=_rest(ran, set(names)))


def _whole(row: Row, longest: float) -> Bar:
    if row.forward is None or row.backward is None:
        return Bar(label=row.variant, more=row.title, failed=row.failed, findings=row.findings)
    words = [row.title]
    words += [f"{row.ratio:.3g} of the first"] if row.ratio is not None else []
    words += [memory_words(row)] if row.memory_bytes is not None else []
    words += [gpu_words(row)] if row.gpu is not None else []
    return Bar(
        label=row.variant,
        forward=percent(row.forward, longest),
        backward=percent(row.backward, longest),
        text=f"{ms(row.forward)} + {ms(row.backward)} ms",
        more="; ".join(word for word in words if word),
    )


def _layer(name: str, rows: Sequence[Row], *, depthwise: bool) -> LayerBars:
    found = [(row.variant, by_name(row.layers).get(name)) for row in rows]
    longest = max((layer.forward + layer.backward for _, layer in found if layer is not None), default=0.0)
    bars = tuple(
        Bar(
            label=variant,
            forward=percent(layer.forward, longest),
            backward=percent(layer.backward, longest),
            text=f"{ms(layer.forward)} + {ms(layer.backward)}",
        )
        for variant, layer in found
        if layer is not None
    )
    return LayerBars(name=name, depthwise=depthwise, bars=bars)


def _rest(rows: Iterable[Row], shown: set[str]) -> str:
    words = []
    many = 0
    for row in rows:
        rest = [layer for layer in row.layers if layer.name not in shown]
        many = max(many, len(rest))
        words.append(f"{row.variant} {ms(sum(layer.forward for layer in rest))} + {ms(sum(layer.backward for layer in rest))}")
    return f"The other {many} layers together: {', '.join(words)} ms." if many else ""


def percent(value: float, longest: float) -> float:
    """Of the longest, so that a bar that is there at all can be seen."""
    return round(max(100 * value / longest, 0.15), 2) if longest > 0 and value > 0 else 0.0


def fastest(report: BenchReport) -> Optional[str]:
    """One sentence: what is fastest, and by how much."""
    sentences = []
    for batch in dict.fromkeys(row.batch for row in report.rows):
        ran = [row for row in report.rows if row.batch == batch and row.total]
        if len(ran) > 1:
            best = min(ran, key=lambda row: row.total or 0.0)
            first = ran[0]
            times = (first.total or 0.0) / (best.total or 1.0)
            than = f", {times:.3g} times as fast as {first.variant}" if best is not first else ""
            sentences.append(f"At batch {batch} {best.variant} is fastest{than}.")
    return " ".join(sentences) or None
