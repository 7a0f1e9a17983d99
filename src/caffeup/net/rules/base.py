"""What a rule is given, what it answers, and the questions that many rules ask."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Callable, Optional

import msgspec

from caffeup.net.model import Layer

Shape = tuple[int, ...]
LARGEST = 2**31 - 1
"""Caffe counts the elements of a blob in an int."""


class Wrong(Exception):  # a layer and its bottoms contradict each other: no program error
    """The layer does not fit its bottoms or itself: Caffe stops here."""

    def __init__(self, what: str, field: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.field = field
        """Name of the field to blame, in the layer's block or in one of the blocks within it."""


class Untold(Exception):
    """The shape does not follow from the prototxt."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class Datum(msgspec.Struct, frozen=True, kw_only=True):
    """The first entry of a data layer's source."""

    channels: int
    height: int
    width: int
    boxes: int = 0
    """Annotated boxes in it."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A layer with the shapes of its bottoms."""

    layer: Layer
    bottoms: tuple[Shape, ...]
    phase: str = "TEST"
    datum: Optional[Datum] = None

    @property
    def first(self) -> Shape:
        """The first bottom's shape."""
        return self.bottoms[0]

    def need(self, least: int, most: Optional[int] = None) -> None:
        """``Wrong`` where the number of bottoms is not the layer's."""
        have = len(self.bottoms)
        if have < least or (most is not None and have > most):
            wanted = f"{least}" if most == least else f"at least {least}" if most is None else f"{least} to {most}"
            raise Wrong(f"it takes {wanted} bottom{'' if wanted.endswith('1') else 's'} and has {have}", "bottom")


class Out(msgspec.Struct, frozen=True, kw_only=True):
    """What a layer makes."""

    tops: tuple[Shape, ...] = ()
    params: tuple[Shape, ...] = ()
    """Its weights, in the order of the model file."""
    assumed: str = ""
    """What was taken for granted since it stands in no prototxt."""


Rule = Callable[[Case], Out]


def count(shape: Sequence[int]) -> int:
    """Elements of a blob."""
    return math.prod(shape)


def axis_of(shape: Shape, axis: int, field: str = "axis") -> int:
    """An axis counted from the front; negative ones count from the end."""
    if not -len(shape) <= axis < len(shape):
        raise Wrong(f"axis {axis} is out of range for a bottom of {len(shape)} axes {text(shape)}", field)
    return axis % len(shape)


def legacy(shape: Shape, index: int) -> int:
    """num, channels, height or width (0 to 3); axes that are not there count 1."""
    if len(shape) > 4:
        raise Wrong(f"it takes at most 4 axes and its bottom has {text(shape)}", "bottom")
    return shape[index] if index < len(shape) else 1


def four(shape: Shape) -> Shape:
    """A shape filled up to four axes."""
    return tuple(legacy(shape, index) for index in range(4))


def text(shape: Sequence[int]) -> str:
    """``1x3x300x300``; of a single number ``()``."""
    return "x".join(str(size) for size in shape) if shape else "()"
