"""What layers keep for themselves besides their tops and weights, in elements of four bytes, where that is known."""

from __future__ import annotations

import math
from typing import Callable, Optional

from caffeup.net.model import DATA
from caffeup.net.rules.base import Shape, count
from caffeup.net.shapes import LayerShapes

PREFETCHED = 4
"""Batches that a data layer holds ready, where the prototxt does not say."""


def workspace(one: LayerShapes, phase: str, *, cudnn: bool) -> int:
    """Bytes. With cuDNN a convolution that does not ask for the CAFFE engine has none: all share one, counted elsewhere."""
    first = one.bottoms[0] if one.bottoms else None
    if one.layer.type in DATA:
        block = next(
            (one.layer.block.block(name) for name in ("data_param", "image_data_param") if one.layer.block.has(name)), None
        )
        ready = block.integer("prefetch", PREFETCHED) if block else PREFETCHED
        return 4 * ready * sum(count(top) for top in one.tops if top is not None)
    rule = _RULES.get(one.layer.type)
    if rule is None or first is None or None in one.tops:
        return 0
    return 4 * rule(one, first, phase, cudnn)


def _caffe_engine(one: LayerShapes, settings: str, *, cudnn: bool) -> bool:
    return not cudnn or one.layer.block.block(settings).string("engine") in {"CAFFE", "1"}


def _convolution(one: LayerShapes, first: Shape, _phase: str, cudnn: bool) -> int:  # noqa: FBT001
    """A column for each place of one image; none for windows of one pixel."""
    settings = one.layer.block.block("convolution_param")
    group, channels, top = settings.integer("group", 1), first[1] if len(first) > 1 else 0, one.tops[0]
    depthwise = group > 1 and group == channels and not settings.has("engine")
    if not one.params or top is None or depthwise or not _caffe_engine(one, "convolution_param", cudnn=cudnn):
        return 0
    window = one.params[0][2:]
    columns, places = (channels, top[2:]) if one.layer.type == "Convolution" else (top[1], first[2:])
    plain = count(window) == 1 and top[2:] == first[2:]
    return (0 if plain else columns * count(window) * count(places)) + count(top[2:])


def _batch_norm(_one: LayerShapes, first: Shape, _phase: str, _cudnn: bool) -> int:  # noqa: FBT001
    return 2 * count(first)


def _like_the_bottom_in_place(one: LayerShapes, first: Shape, _phase: str, _cudnn: bool) -> int:  # noqa: FBT001
    return count(first) if one.layer.tops[:1] == one.layer.bottoms[:1] else 0


def _pooling(one: LayerShapes, _first: Shape, _phase: str, cudnn: bool) -> int:  # noqa: FBT001
    """Where each largest value stood."""
    block = one.layer.block.block("pooling_param")
    largest = block.string("pool", "MAX") in {"MAX", "0"} and len(one.tops) == 1
    return count(one.tops[0] or (0,)) if largest and _caffe_engine(one, "pooling_param", cudnn=cudnn) else 0


def _lrn(one: LayerShapes, first: Shape, _phase: str, cudnn: bool) -> int:  # noqa: FBT001
    return count(first) if _caffe_engine(one, "lrn_param", cudnn=cudnn) else 0


def _dropout(_one: LayerShapes, first: Shape, phase: str, _cudnn: bool) -> int:  # noqa: FBT001
    return count(first) if phase == "TRAIN" else 0


def _softmax(one: LayerShapes, first: Shape, _phase: str, _cudnn: bool) -> int:  # noqa: FBT001
    axis = one.layer.block.block("softmax_param").integer("axis", 1)
    return count(first) // first[axis] if -len(first) <= axis < len(first) and first[axis] else 0


def _bottoms(one: LayerShapes, _first: Shape, _phase: str, _cudnn: bool) -> int:  # noqa: FBT001
    return sum(count(shape) for shape in one.bottoms[:2] if shape is not None)


def _first_bottom(_one: LayerShapes, first: Shape, _phase: str, _cudnn: bool) -> int:  # noqa: FBT001
    return count(first)


def _normalize(_one: LayerShapes, first: Shape, _phase: str, _cudnn: bool) -> int:  # noqa: FBT001
    """One image, and a norm for each place."""
    return count(first[1:]) + (count(first) // first[1] if len(first) > 1 and first[1] else 0)


def _eltwise(one: LayerShapes, first: Shape, _phase: str, _cudnn: bool) -> int:  # noqa: FBT001
    return count(first) if one.layer.block.block("eltwise_param").string("operation") in {"MAX", "2"} else 0


_Rule = Callable[[LayerShapes, Shape, str, bool], int]
_RULES: dict[str, _Rule] = {
    "BatchNorm": _batch_norm,
    "Convolution": _convolution,
    "Deconvolution": _convolution,
    "DetectionOutput": _bottoms,
    "Dropout": _dropout,
    "Eltwise": _eltwise,
    "LRN": _lrn,
    "Normalize": _normalize,
    "PReLU": _like_the_bottom_in_place,
    "Pooling": _pooling,
    "Scale": _like_the_bottom_in_place,
    "SigmoidCrossEntropyLoss": _first_bottom,
    "Softmax": _softmax,
    "SoftmaxWithLoss": _first_bottom,
}

SOLVERS = {"SGD": 1, "Nesterov": 1, "AdaGrad": 1, "RMSProp": 1, "AdaDelta": 2, "Adam": 2}
"""Numbers that each type of solver remembers for each weight."""
_OLD_SOLVERS = ("SGD", "NESTEROV", "ADAGRAD", "RMSPROP", "ADADELTA", "ADAM")


def solver_named(text: str) -> Optional[str]:
    """A type of solver, as any age writes it: ``Adam``, ``ADAM``, ``5``."""
    if text.isascii() and text.isdigit() and int(text) < len(_OLD_SOLVERS):
        text = _OLD_SOLVERS[int(text)]
    return next((name for name in SOLVERS if name.lower() == text.lower()), None)


def largest_that(fits: Callable[[int], bool], most: int) -> int:
    """The largest number up to ``most`` for which something holds that holds for all smaller ones; 0 where it never does."""
    high = 1
    while high <= most and fits(high):
        high *= 2
    low = high // 2
    high = min(high, most + 1)
    while high - low > 1:
        middle = math.floor((low + high) / 2)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
