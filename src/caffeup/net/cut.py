"""A trained detector cut to some of its classes: the rows of its heads that predict them, and every number of classes."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NoReturn, Optional

import msgspec

from caffeup.errors import UsageError
from caffeup.model.net import NetChange
from caffeup.net.caffemodel import Blob, Model, Weights, as_blob, layer_with, rewritten
from caffeup.net.depthwise import states
from caffeup.net.marks import Edit
from caffeup.net.model import Layer, Net, filtered
from caffeup.net.text import Block, Scalar, printable
from caffeup.net.wire import Buffer, floats

ENDS = {"DetectionOutput": "detection_output_param", "MultiBoxLoss": "multibox_loss_param"}
"""Layers to which predictions come: locations first, confidences second."""
_COUNTING = {**ENDS, "DetectionEvaluate": "detection_evaluate_param"}
_CHANNELS = frozenset({"BatchNorm", "Bias", "PReLU", "Scale"})
"""Layers with a number for each channel."""
_THROUGH = frozenset({"Flatten", "Permute", "ReLU", "Reshape", "Sigmoid", "Softmax", "Split"}) | _CHANNELS


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """A layer whose output channels are cut."""

    layer: Layer
    keep: tuple[int, ...]
    of: int
    """Channels that it has."""


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be written."""

    prototxt: bytes
    model: Iterator[Buffer]
    changes: tuple[NetChange, ...]
    rows: dict[str, tuple[int, tuple[int, ...]]]
    """Blobs that have some of their entries only: along which axis, and which."""


class Detector(msgspec.Struct, frozen=True, kw_only=True):
    """How many classes a net tells apart."""

    classes: int
    background: int
    ends: tuple[Layer, ...]


def detector(net: Net) -> Detector:
    """``UsageError`` where it is none, or where its layers disagree."""
    ends = tuple(layer for layer in net.layers if layer.type in ENDS)
    if not ends:
        raise UsageError(f"{net.document.name} is no detector of the SSD kind: it has no DetectionOutput and no MultiBoxLoss.")
    numbers = {_settings(layer).integer("num_classes") for layer in net.layers if layer.type in _COUNTING}
    if len(numbers) != 1 or min(numbers) < 2:
        raise UsageError(
            f"{net.document.name} has not one number of classes, but {', '.join(map(str, sorted(numbers)))}.",
            commands=(f"caffeup net check {net.document.name}",),
        )
    return Detector(classes=numbers.pop(), background=_settings(ends[0]).integer("background_label_id"), ends=ends)


def _settings(layer: Layer) -> Block:
    return layer.block.block(_COUNTING[layer.type])


def cut(net: Net, model: Model, kept: Sequence[int]) -> Cut:
    """Leave the classes of these numbers, in this order; ``UsageError`` where the net is built in a way that is not known."""
    found = detector(net)
    rows: dict[int, Rows] = {}
    between: dict[int, Layer] = {}
    for state in states(net):
        layers = filtered(net, state)
        for number, layer in enumerate(layers):
            if layer.type in ENDS:
                _trace(layers, number, 1, found.classes, kept, rows, between)
                if not _settings(layer).flag("share_location", default=True):
                    _trace(layers, number, 0, found.classes, _quadrupled(kept), rows, between)
    edits, changes = _edits(net, found, kept, tuple(rows.values()), tuple(between.values()))
    changed = {}
    for one in rows.values():
        weights = model.weights(one.layer.name)
        if weights is not None:
            _check(weights, one)
            changed[weights.start] = _layer(model, weights, one)
        elif one.layer.type not in {"ReLU", "Sigmoid"}:
            raise UsageError(f"{model.file} has no weights for {printable(one.layer.name)}, a head of {net.document.name}.")
    return Cut(
        prototxt=net.document.edited(edits),
        model=rewritten(model, changed),
        changes=tuple(sorted(changes, key=lambda change: change.line)),
        rows=_blobs(tuple(rows.values()), tuple(between.values()), found.classes, kept),
    )


def _quadrupled(kept: Sequence[int]) -> tuple[int, ...]:
    """Of locations that each class has for itself: four numbers each."""
    return tuple(4 * number + side for number in kept for side in range(4))


def _trace(
    layers: Sequence[Layer],
    end: int,
    bottom: int,
    classes: int,
    kept: Sequence[int],
    rows: dict[int, Rows],
    between: dict[int, Layer],
) -> None:
    """From a loss or the detections back to the heads."""
    group = classes * (4 if bottom == 0 else 1)
    waiting = [(end, bottom)]
    while waiting:
        reader, index = waiting.pop()
        maker = _maker(layers, reader, index)
        if maker is None:
            _unknown(layers[end], "its predictions come from outside of the net")
        layer = layers[maker]
        if layer.type == "Concat":
            waiting += [(maker, number) for number in range(len(layer.bottoms))]
            continue
        if layer.type in _THROUGH:
            between[layer.start] = layer
            waiting.append((maker, 0))
            continue
        if layer.type != "Convolution":
            _unknown(layer, f"it stands where a convolution is known to predict, and is a {layer.type}")
        settings = layer.block.block("convolution_param")
        many = settings.integer("num_output")
        if settings.integer("group", 1) != 1 or many % group or not many:
            _unknown(layer, f"its num_output, {many}, is no multiple of {group}, or it has groups")
        keep = tuple(place + number for place in range(0, many, group) for number in kept)
        rows[layer.start] = Rows(layer=layer, keep=keep, of=many)
        _behind(layers, maker, rows, between)


def _behind(layers: Sequence[Layer], head: int, rows: dict[int, Rows], between: dict[int, Layer]) -> None:
    """Layers with a number for each channel right behind a head lose the same channels."""
    top, own = layers[head].tops[0], rows[layers[head].start]
    for layer in layers[head + 1 :]:
        if top not in layer.bottoms or layer.start not in between:
            continue
        if layer.type == "Permute":
            return
        if layer.type in _CHANNELS:
            rows[layer.start] = Rows(layer=layer, keep=own.keep, of=own.of)
        top = layer.tops[0]


def _maker(layers: Sequence[Layer], reader: int, bottom: int) -> Optional[int]:
    names = layers[reader].bottoms
    if bottom >= len(names):
        return None
    return next((number for number in range(reader - 1, -1, -1) if names[bottom] in layers[number].tops), None)


def _unknown(layer: Layer, what: str) -> NoReturn:
    raise UsageError(f"This detector cannot be cut: at {printable(layer.name)} ({layer.type}), {what}.")


def _edits(
    net: Net, found: Detector, kept: Sequence[int], rows: Sequence[Rows], between: Sequence[Layer]
) -> tuple[list[Edit], list[NetChange]]:
    """The prototxt's numbers: what heads make, what is reshaped, how many classes there are, and which is the background."""
    edits: list[Edit] = []
    changes: list[NetChange] = []

    def replace(layer: Layer, scalar: Optional[Scalar], new: int) -> None:
        if scalar is None or scalar.text == str(new):
            return
        edits.append((scalar.start, scalar.end, str(new).encode()))
        what = f"{scalar.text} → {new}"
        changes.append(NetChange(line=net.document.position(scalar.start)[0], layer=layer.name, what=what))

    for one in rows:
        if one.layer.type == "Convolution":
            replace(one.layer, one.layer.block.block("convolution_param").scalar("num_output"), len(one.keep))
    for layer in between:
        dim = _classes_dim(layer, found.classes)
        replace(layer, dim, len(kept))
    for layer in net.layers:
        if layer.type in _COUNTING:
            replace(layer, _settings(layer).scalar("num_classes"), len(kept))
            background = _settings(layer).integer("background_label_id")
            replace(layer, _settings(layer).scalar("background_label_id"), kept.index(background) if background in kept else -1)
    return edits, changes


def _classes_dim(layer: Layer, classes: int) -> Optional[Scalar]:
    """Where a Reshape names the number of classes: its last dim."""
    if layer.type != "Reshape":
        return None
    dims = layer.block.block("reshape_param").block("shape").all("dim")
    last = dims[-1].value if dims else None
    return last if isinstance(last, Scalar) and last.number() == classes else None


def _check(weights: Weights, one: Rows) -> None:
    """``UsageError`` where the model does not fit the prototxt."""
    for blob in weights.blobs:
        single = blob.size == 1  # BatchNorm's factor, a slope that all channels share
        stored = sum(end - start for start, end in blob.pieces) // floats(blob.code).itemsize if blob.code else -1
        if stored != blob.size or not (single or (blob.size and blob.size % one.of == 0)):
            raise UsageError(
                f"The weights of {printable(one.layer.name)} do not fit: a blob of {stored} numbers for {one.of} channels.",
                advice="Is it the model of this net?",
            )


def _layer(model: Model, weights: Weights, one: Rows) -> Iterator[Buffer]:
    blobs = (
        as_blob(_cut_shape(blob, one), _cut_values(model.values(blob), one), number=weights.numbers.blobs)
        for blob in weights.blobs
    )
    yield from layer_with(model, weights, blobs)


def _cut_shape(blob: Blob, one: Rows) -> tuple[int, ...]:
    """The axis of the channels, which in old shapes is not the first, made smaller."""
    sizes = list(blob.shape)
    if blob.size != 1 and one.of in sizes:
        sizes[sizes.index(one.of)] = len(one.keep)
    return tuple(sizes)


def _cut_values(values: array[float], one: Rows) -> array[float]:
    if len(values) == 1:
        return values
    row = len(values) // one.of
    result = floats(values.typecode)
    for number in one.keep:
        result.extend(values[number * row : (number + 1) * row])
    return result


def _blobs(
    rows: Sequence[Rows], between: Sequence[Layer], classes: int, kept: Sequence[int]
) -> dict[str, tuple[int, tuple[int, ...]]]:
    """Which entries of the old net's blobs the new one still has, before they are mixed."""
    found = {top: (1, one.keep) for one in rows for top in one.layer.tops}
    for layer in between:
        if layer.type == "Permute" and layer.bottoms[0] in found:
            found[layer.tops[0]] = (3, found[layer.bottoms[0]][1])
        elif _classes_dim(layer, classes) is not None:
            dims = layer.block.block("reshape_param").block("shape").all("dim")
            found[layer.tops[0]] = (len(dims) - 1, tuple(kept))
    return found
