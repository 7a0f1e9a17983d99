"""The fields and layers of all known trees as one schema, each with the trees that have it."""

from __future__ import annotations

from caffeup.facts.nets import NetFile
from caffeup.net.schema import FieldType, Schema

ADDED = ("ConvolutionDepthwise", "DepthwiseConvolution")
"""Layers that caffeup puts into a tree."""


def schema_of(facts: NetFile) -> Schema:
    """The union of all trees."""
    every = tuple(tree.id for tree in facts.tree)
    messages = {}
    for row in facts.message:
        having = _names(row.trees, every)
        fields = [_field(text, having) for text in row.fields.splitlines()]
        messages[row.id] = {field.name: field for field in fields}
    enums = {row.id: {name: int(number) for name, number, *_ in map(str.split, row.values.splitlines())} for row in facts.enum}
    layers = {row.id: _names(row.trees, every) for row in facts.layer}
    layers.update(dict.fromkeys(ADDED, every))
    return Schema(
        messages=messages, enums=enums, layers=layers, trees=every, commands={tree.id: tree.command for tree in facts.tree}
    )


def _field(text: str, having: tuple[str, ...]) -> FieldType:
    """One field; a default may hold blanks, what stands behind the last @ are trees."""
    head, at, trees = text.rpartition(" @")
    name, number, kind, *rest = (head if at else text).split(" ", 3)
    return FieldType(
        name=name,
        number=int(number),
        type=kind.removesuffix("*"),
        repeated=kind.endswith("*"),
        default=rest[0][1:] if rest else "",
        trees=tuple(trees.split(",")) if at else having,
    )


def _names(text: str, every: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text.split()) or every
