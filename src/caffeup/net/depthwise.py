"""Which convolutions of a net are depthwise: as many groups as input channels, by shapes and not by names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Optional

import msgspec

from caffeup.net.model import DATA, Layer, Net, State, as_run, filtered
from caffeup.net.rules.base import Datum, Shape
from caffeup.net.shapes import LayerShapes, infer

TYPES = ("DepthwiseConvolution", "ConvolutionDepthwise")
_NAMED = re.compile(r"(?:/dw|_dw|[/_-]depthwise|[/_-]sep)\Z", re.IGNORECASE)
_ANY_IMAGE = (1, 3, 512, 512)
"""Stands in for images of unknown size: how many channels a convolution reads does not depend on it."""


class Depthwise(msgspec.Struct, frozen=True, kw_only=True):
    """A convolution with groups."""

    layer: Layer
    channels: Optional[int]
    """It reads so many; nothing where that cannot be told."""
    because: str = ""
    """Why it is none, or cannot be told; empty where it is depthwise."""


def grouped(
    net: Net,
    *,
    names: bool = False,
    given: Optional[Mapping[str, Shape]] = None,
    data: Optional[Mapping[str, Datum]] = None,
    inferred: Optional[Sequence[tuple[LayerShapes, ...]]] = None,
) -> tuple[Depthwise, ...]:
    """Every Convolution with groups, in the order of the file.

    ``names``: where shapes do not tell, a name that ends in /dw does. ``inferred``: the shapes, where they are known already.
    """
    found: dict[int, set[Optional[Shape]]] = {}
    for shapes in inferred or (_shapes(net, state, given or {}, data or {}) for state in _different(net)):
        for one in shapes:
            if not one.layer.added:
                found.setdefault(one.layer.start, set()).update(one.bottoms[:1])
    layers = [layer for layer in net.layers if layer.type == "Convolution" and groups_of(layer) > 1]
    return tuple(_judged(layer, found.get(layer.start, set()), names=names) for layer in layers)


def groups_of(layer: Layer) -> int:
    """Groups of a convolution."""
    return layer.block.block("convolution_param").integer("group", 1)


def states(net: Net) -> tuple[State, ...]:
    """States in which every layer that can be reached by phase or stage is in the net once."""
    rules = [rule for layer in net.layers for kind in ("include", "exclude") for rule in layer.block.blocks(kind)]
    stages = sorted({stage for rule in rules for stage in rule.strings("stage")})
    levels = sorted({level for rule in rules for level in rule.integers("min_level")} | {net.level})
    some = [(), tuple(stages)] if stages else [()]
    return tuple(net.state(phase, level, stage) for phase in ("TRAIN", "TEST") for level in levels[:8] for stage in some)


def _different(net: Net) -> Iterator[State]:
    """The states, but for those with the layers of another one."""
    seen = set()
    for state in states(net):
        layers = tuple(layer.start for layer in filtered(net, state))
        if layers not in seen:
            seen.add(layers)
            yield state


def _shapes(net: Net, state: State, given: Mapping[str, Shape], data: Mapping[str, Datum]) -> tuple[LayerShapes, ...]:
    layers = as_run(net, state)
    shapes = infer(layers, phase=state.phase, given=given, data=data)
    blind = {one.layer.tops[0]: _ANY_IMAGE for one in shapes if one.layer.type in DATA and one.layer.tops and one.trouble}
    return infer(layers, phase=state.phase, given={**blind, **given}, data=data) if blind else shapes


def _judged(layer: Layer, bottoms: set[Optional[Shape]], *, names: bool) -> Depthwise:
    known = {shape for shape in bottoms if shape is not None}
    block, group = layer.block.block("convolution_param"), groups_of(layer)
    channels = {shape[1] for shape in known if len(shape) == 4}
    if any(len(shape) != 4 for shape in known) or block.integer("axis", 1) not in {1, -3}:
        return Depthwise(layer=layer, channels=None, because="its bottom is no batch of images with the channels in axis 1")
    if len(channels) > 1:
        return Depthwise(layer=layer, channels=None, because="how many channels it reads depends on the phase")
    if not channels:
        if names and group == block.integer("num_output") and _NAMED.search(layer.name):
            return Depthwise(layer=layer, channels=group)
        return Depthwise(layer=layer, channels=None, because="how many channels it reads cannot be told")
    (many,) = channels
    if many != group:
        return Depthwise(layer=layer, channels=many, because=f"it reads {many} channels in {group} groups")
    if block.integer("num_output") % group:
        return Depthwise(layer=layer, channels=many, because=f"num_output is no multiple of its {group} groups")
    return Depthwise(layer=layer, channels=many)
