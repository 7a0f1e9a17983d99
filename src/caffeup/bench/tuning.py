"""Which engine is best for each convolution of a net, by what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Optional

from caffeup.bench.caffe_time import shown
from caffeup.bench.edits import CONVOLUTION, Choice, Convolutions, engine_of
from caffeup.bench.medians import by_name
from caffeup.bench.words import ms
from caffeup.gpu.words import mib
from caffeup.model.bench import Candidate, LayerTime, Row, Tuned
from caffeup.net.depthwise import TYPES
from caffeup.net.marks import TUNED, Edit, newline_of
from caffeup.net.model import LOSSES, Layer, Net
from caffeup.net.text import printable

AS_WRITTEN = "as written"
DEPTHWISE = "depthwise"
WAYS = ("as-built", "group", "cudnn", "depthwise", "depthwise-cudnn")
"""Variants that together show every convolution in every way."""
_NEAR = 0.05
_LEAST = 0.002
"""Part, and milliseconds, by which a way must be better than what the file says: less is noise."""

# In which variants a layer is computed in which way; the first one that ran tells, it is nearest to what comes of it.
_OF_DEPTHWISE = {
    AS_WRITTEN: ("as-built",),
    DEPTHWISE: ("depthwise", "depthwise-cudnn"),
    "CAFFE": ("group", "group-cudnn"),
    "CUDNN": ("cudnn",),
}
_OF_OTHERS = {
    AS_WRITTEN: ("as-built",),
    "CAFFE": ("depthwise", "group"),
    "CUDNN": ("depthwise-cudnn", "cudnn", "group-cudnn"),
}


def is_training(net: Net) -> bool:
    """Whether the net is there to be trained: it has a loss."""
    return any(layer.type in LOSSES for layer in net.layers)


def tuned(
    net: Net,
    found: Convolutions,
    rows: Iterable[Row],
    *,
    training: bool,
    memory: Optional[Mapping[tuple[str, str], int]] = None,
) -> tuple[Tuned, ...]:
    """Each convolution that was measured in more than one way, and the best of them."""
    times = {row.variant: by_name(row.layers) for row in rows if row.layers}
    of_layer = [(layer, _OF_DEPTHWISE) for layer in found.depthwise] + [(layer, _OF_OTHERS) for layer in found.others]
    of_layer.sort(key=lambda one: one[0].start)
    result = []
    for layer, ways in of_layer:
        candidates = _candidates(layer, ways, times, memory or {})
        if len({one.way for one in candidates} - {AS_WRITTEN}) > 1:  # of one engine alone the difference is noise
            result.append(_judged(net, layer, candidates, depthwise=ways is _OF_DEPTHWISE, training=training))
    return tuple(result)


def _candidates(
    layer: Layer,
    ways: Mapping[str, Sequence[str]],
    times: Mapping[str, Mapping[str, LayerTime]],
    memory: Mapping[tuple[str, str], int],
) -> list[Candidate]:
    name, found = shown(layer.name), []
    for way, variants in ways.items():
        seen = next((times[one][name] for one in variants if name in times.get(one, {})), None)
        if seen is not None:
            found.append(
                Candidate(
                    way=way,
                    forward=seen.forward,
                    backward=seen.backward,
                    forward_spread=seen.forward_spread,
                    backward_spread=seen.backward_spread,
                    memory_bytes=memory.get((name, way)),
                )
            )
    return found


def cost(one: Candidate, *, training: bool) -> float:
    """What counts, in milliseconds."""
    return one.forward + one.backward if training else one.forward


def _noise(one: Candidate, *, training: bool) -> float:
    return one.forward_spread + one.backward_spread if training else one.forward_spread


def _judged(net: Net, layer: Layer, candidates: Sequence[Candidate], *, depthwise: bool, training: bool) -> Tuned:
    before = written(layer)
    best = _best([one for one in candidates if one.way != AS_WRITTEN], training=training)
    now = [one for one in candidates if one.way in (AS_WRITTEN, before)]
    current = min(now, key=lambda one: cost(one, training=training), default=None)
    keeps = current is not None and not _better(best, current, training=training)
    winner = before if keeps else best.way
    return Tuned(
        layer=shown(layer.name),
        line=net.document.position(layer.start)[0],
        kind=DEPTHWISE if depthwise else _kind(layer),
        candidates=tuple(candidates),
        winner=winner,
        before=before,
        changed=winner != before,
        because=_because(best, current, keeps=keeps, training=training),
    )


def _best(candidates: Sequence[Candidate], *, training: bool) -> Candidate:
    """The fastest; of those that are as fast but for noise the one that takes least memory, where that is known."""
    fastest = min(candidates, key=lambda one: cost(one, training=training))
    near = [one for one in candidates if not _better(fastest, one, training=training)]
    if any(one.memory_bytes is None for one in near):
        return fastest
    return min(near, key=lambda one: (one.memory_bytes or 0, cost(one, training=training)))


def _better(best: Candidate, current: Candidate, *, training: bool) -> bool:
    """Whether the difference is more than noise: than what single runs of both differ by, too."""
    least = cost(best, training=training)
    noise = (_noise(best, training=training) + _noise(current, training=training)) / 2
    return cost(current, training=training) - least > max(least * _NEAR, _LEAST, noise)


def _because(best: Candidate, current: Optional[Candidate], *, keeps: bool, training: bool) -> str:
    least = ms(cost(best, training=training))
    if current is None:
        return f"{best.way} takes {least} ms; as it is written it does not run"
    now = ms(cost(current, training=training))
    if keeps:
        return f"as it is written it takes {now} ms; none is better by more than noise"
    return f"{best.way} takes {least} ms, as it is written {now}"


def written(layer: Layer) -> str:
    """The way that the file names; ``as written`` where it leaves the engine to the tree."""
    return DEPTHWISE if layer.type in TYPES else engine_of(layer) or AS_WRITTEN


def _kind(layer: Layer) -> str:
    """``1x1``, ``3x3``."""
    block = layer.block.block("convolution_param")
    sizes = block.integers("kernel_size")
    high = block.integer("kernel_h", sizes[0] if sizes else 0)
    wide = block.integer("kernel_w", sizes[-1] if sizes else 0)
    return f"{high}x{wide}"


def choices(net: Net, layers: Iterable[Tuned], depthwise_type: str) -> dict[int, Choice]:
    """What is to be changed in the file, by the place of the layer."""
    wanted = {one.line: one.winner for one in layers if one.changed}
    by_line = {net.document.position(layer.start)[0]: layer for layer in net.layers}
    return {
        by_line[line].start: Choice(depthwise_type) if way == DEPTHWISE else Choice(CONVOLUTION, way)
        for line, way in wanted.items()
    }


def notes(net: Net, layers: Iterable[Tuned], *, batch: int, device: str, training: bool) -> list[Edit]:
    """The reasons as comments, each on a line before its layer; ``net revert`` takes them out too."""
    document = net.document
    newline = newline_of(document)
    starts = {document.position(layer.start)[0]: layer.start for layer in net.layers}
    edits = []
    for one in layers:
        start = starts[one.line]
        line, _ = document.line(start)
        if not one.changed or document.text[line:start].strip():
            continue
        figures = ", ".join(_figure(candidate, training=training) for candidate in one.candidates)
        what = "forward + backward" if training else "forward"
        text = f"{TUNED}for batch {batch} on {printable(device)}, ms {what}: {figures}"
        edits.append((line, line, f"{document.text[line:start]}{text}{newline}".encode("utf-8", "replace")))
    return edits


def _figure(one: Candidate, *, training: bool) -> str:
    """``CAFFE 0.031``, with its memory where that is known."""
    memory = "" if one.memory_bytes is None else f" ({mib(one.memory_bytes)})"
    return f"{one.way} {ms(cost(one, training=training))}{memory}"
