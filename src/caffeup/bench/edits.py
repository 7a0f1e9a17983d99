"""A convolution computed in another way, and a net with another batch size: as edits of its prototxt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Optional

import msgspec

from caffeup.model.net import NetChange
from caffeup.net import marks
from caffeup.net.depthwise import TYPES, grouped, groups_of
from caffeup.net.marks import Edit
from caffeup.net.model import Layer, Net
from caffeup.net.rules.base import Shape
from caffeup.net.text import Block, Document, Field, Scalar
from caffeup.net.v1 import upgraded

CONVOLUTION = "Convolution"
_DATA_PARAMS = (
    "data_param",
    "image_data_param",
    "memory_data_param",
    "hdf5_data_param",
    "window_data_param",
    "video_data_param",
)
_IMAGES = 4
"""Dimensions of a batch of images."""


class Choice(msgspec.Struct, frozen=True):
    """How a convolution is to be computed."""

    type: str
    engine: str = ""
    """Empty: none is named."""


class Convolutions(msgspec.Struct, frozen=True, kw_only=True):
    """The convolutions of a net that can be computed in more than one way."""

    depthwise: tuple[Layer, ...] = ()
    others: tuple[Layer, ...] = ()
    left: tuple[tuple[Layer, str], ...] = ()
    """Those that cannot be edited, and why."""


def convolutions(net: Net, given: Optional[Mapping[str, Shape]] = None) -> Convolutions:
    """All of a net, in the order of the file."""
    depthwise = {one.layer.start for one in grouped(net, given=given) if not one.because}
    found: dict[bool, list[Layer]] = {True: [], False: []}
    left = []
    for layer in net.layers:
        if layer.type != CONVOLUTION and layer.type not in TYPES:
            continue
        problem = _unwritable(net.document, layer)
        if problem:
            left.append((layer, problem))
        else:
            found[layer.type in TYPES or layer.start in depthwise].append(layer)
    return Convolutions(depthwise=tuple(found[True]), others=tuple(found[False]), left=tuple(left))


def _unwritable(document: Document, layer: Layer) -> str:
    if len(layer.block.all("type")) != 1 or len(layer.block.all("convolution_param")) != 1:
        return "its type or its convolution_param does not stand there just once"
    kind = layer.block.scalar("type")
    if kind is None or not re.fullmatch(r"\"\w+\"|'\w+'|\w+", kind.text):
        return "its type is written with escapes or in pieces"
    parameters = layer.block.block("convolution_param")
    if not parameters.fields:
        return "its convolution_param is empty"
    if not all(marks.takes_edit(document, field.start, field.end) for field in parameters.all("engine")):
        return "its engine is spread over several lines"
    if layer.type in TYPES and groups_of(layer) < 2:
        return "it names no group, so no Convolution does the same"
    return ""


def engine_of(layer: Layer) -> str:
    """``CAFFE``, ``CUDNN``, or nothing where none is named."""
    word = layer.block.block("convolution_param").string("engine")
    return {"1": "CAFFE", "2": "CUDNN", "0": "", "DEFAULT": ""}.get(word, word)


def chosen(net: Net, choices: Mapping[int, Choice], changes: Optional[list[NetChange]] = None) -> list[Edit]:
    """Edits that compute layers, named by their start in the file, in another way."""
    edits: list[Edit] = []
    told = [] if changes is None else changes
    for layer in net.layers:
        choice = choices.get(layer.start)
        if choice is not None:
            edits += _of_layer(net.document, layer, choice, told)
    if net.v1 and any(choice.type != CONVOLUTION for choice in choices.values()):
        edits += upgraded(net, told, taken={edit[0] for edit in edits})
    return edits


def _of_layer(document: Document, layer: Layer, choice: Choice, told: list[NetChange]) -> Iterator[Edit]:
    def note(place: int, what: str) -> None:
        told.append(NetChange(line=document.position(place)[0], layer=layer.name, what=what))

    kind = layer.block.scalar("type")
    if kind is not None and layer.type != choice.type:
        quote = kind.text[0] if kind.kind == "string" else '"'
        note(kind.start, f"type {kind.value} → {choice.type}")
        yield marks.replaced(document, kind.start, kind.end, f"{quote}{choice.type}{quote}")
    parameters = layer.block.block("convolution_param")
    present = [field for field in parameters.all("engine") if isinstance(field.value, Scalar)]
    if not choice.engine:
        for field in present:
            note(field.start, f"engine: {_word(field)} commented out")
            yield marks.commented_out(document, field)
    elif not present:
        last = parameters.fields[-1]
        note(last.start, f"engine: {choice.engine} added")
        yield marks.added_behind(document, last, f"engine: {choice.engine}")
    elif engine_of(layer) != choice.engine:
        for field in present:
            note(field.start, f"engine: {_word(field)} → {choice.engine}")
            yield marks.replaced(document, field.value.start, field.value.end, choice.engine)


def _word(field: Field) -> str:
    return field.value.value if isinstance(field.value, Scalar) else "…"


def with_batch(net: Net, batch: int) -> list[Edit]:
    """Edits that make a net read so many images at a time."""
    return [
        (value.start, value.end, str(batch).encode())
        for value in _batches(net)
        if value.number() != batch and _free_standing(net.document, value)
    ]


def batch_of(net: Net) -> int:
    """How many images a net reads at a time, by its file; 1 where it does not say."""
    numbers = [value.number() for value in _batches(net)]
    return next((int(number) for number in numbers if isinstance(number, int) and number > 0), 1)


def _free_standing(document: Document, value: Scalar) -> bool:
    """Whether the number is written in plain digits (and no hexadecimal or placeholder)."""
    return document.text[value.start : value.end].isdigit()


def _batches(net: Net) -> list[Scalar]:
    """The numbers that say it: the first of each input's shape, and each data layer's batch size."""
    root = net.document.root
    shapes = [_dims(shape) for shape in root.blocks("input_shape")]
    dims = _scalars(root, "input_dim")
    shapes += [dims[at : at + _IMAGES] for at in range(0, len(dims), _IMAGES)]
    for layer in net.layers:
        for name in ("input_param", "dummy_data_param"):
            shapes += [_dims(shape) for shape in layer.block.block(name).blocks("shape")]
    shapes = [shape for shape in shapes if shape]
    images = [shape for shape in shapes if len(shape) == _IMAGES]
    sizes = [value for layer in net.layers for name in _DATA_PARAMS for value in _scalars(layer.block.block(name), "batch_size")]
    return [shape[0] for shape in images or shapes] + sizes


def _dims(shape: Block) -> list[Scalar]:
    return _scalars(shape, "dim")


def _scalars(block: Block, name: str) -> list[Scalar]:
    return [field.value for field in block.all(name) if isinstance(field.value, Scalar)]
