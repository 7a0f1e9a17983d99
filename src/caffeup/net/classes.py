"""Where the number of classes of a detector is written, and where it is another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

import msgspec

from caffeup.net.rules.base import Case, Wrong
from caffeup.net.rules.ssd import priors_per_place
from caffeup.net.shapes import LayerShapes

_THROUGH = frozenset({"Flatten", "Permute", "ReLU", "Reshape", "Sigmoid", "Softmax", "Split", "BatchNorm", "Scale", "Bias"})
"""Layers that hand predictions on."""


class Makers:
    """Who makes each bottom of each layer."""

    def __init__(self, shapes: tuple[LayerShapes, ...]) -> None:
        self._steps: dict[int, dict[str, LayerShapes]] = {}
        by_top: dict[str, LayerShapes] = {}
        for one in shapes:
            self._steps[id(one)] = {name: by_top[name] for name in one.layer.bottoms if name in by_top}
            by_top.update(dict.fromkeys(one.layer.tops, one))

    def of(self, one: LayerShapes, bottom: int) -> Optional[LayerShapes]:
        """The layer that makes a bottom."""
        names = one.layer.bottoms
        return self._steps[id(one)].get(names[bottom]) if bottom < len(names) else None

    def sources(self, one: LayerShapes, bottom: int, seen: list[LayerShapes]) -> list[LayerShapes]:
        """The layers at the beginning of what is handed on and concatenated, in order; ``seen`` gets what lies between."""
        result: list[LayerShapes] = []
        waiting = [(one, bottom)]
        while waiting:
            layer, number = waiting.pop()
            maker = self.of(layer, number)
            if maker is None:
                continue
            if maker.layer.type == "Concat":
                waiting += [(maker, index) for index in reversed(range(len(maker.layer.bottoms)))]
            elif maker.layer.type in _THROUGH:
                seen.append(maker)
                waiting.append((maker, 0))
            else:
                result.append(maker)
        return result


PARAMS = {"DetectionOutput": "detection_output_param", "MultiBoxLoss": "multibox_loss_param"}


class Mismatch(msgspec.Struct, frozen=True, kw_only=True):
    """Where another number of classes is written than the layer at the end has."""

    classes: int
    places: tuple[int, ...]
    through: tuple[LayerShapes, ...]
    """Layers between the heads and the end: what does not fit in them has the same cause."""


def mismatch(end: LayerShapes, makers: Makers) -> Optional[Mismatch]:
    """Compare what MultiBoxLoss or DetectionOutput says with the heads and reshapes before it; nothing where all agree."""
    classes = end.layer.block.block(PARAMS[end.layer.type]).integer("num_classes")
    between: list[LayerShapes] = []
    heads = makers.sources(end, 1, between)
    priors = [one for one in makers.sources(end, 2, []) if one.layer.type == "PriorBox"]
    places = [place for one in between for place in _reshapes(one, classes)]
    if len(heads) == len(priors):
        places += [place for head, prior in zip(heads, priors) for place in _heads(head, prior, classes)]
    if not places or classes <= 0:
        return None
    return Mismatch(classes=classes, places=tuple(places), through=(*between, end))


def _reshapes(one: LayerShapes, classes: int) -> Iterator[int]:
    shape = one.layer.block.block("reshape_param").block("shape")
    if shape.has("dim") and shape.integers("dim")[-1:] not in ([classes], [0], [-1]):
        yield shape.all("dim")[-1].start


def _heads(head: LayerShapes, prior: LayerShapes, classes: int) -> Iterator[int]:
    block = head.layer.block.block("convolution_param")
    field, many = block.field("num_output"), _priors(prior)
    if field is not None and many and block.integer("num_output") != many * classes:
        yield field.start


def _priors(one: LayerShapes) -> int:
    try:
        return priors_per_place(Case(layer=one.layer, bottoms=()))
    except Wrong:
        return 0
