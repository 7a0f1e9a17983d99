"""A prototxt from Python values: pairs of a field's name and its value, a list of pairs for a block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Union

from caffeup.net.text import quoted


class Bare(str):
    """A word without quotes: an enum's."""

    __slots__ = ()


Value = Union[str, int, float, bool, Bare, "Fields"]
Fields = list[tuple[str, Value]]


def spelled(fields: Fields) -> str:
    """The text."""
    return "".join(f"{line}\n" for line in _lines(fields, ""))


def _lines(fields: Fields, indent: str) -> Iterator[str]:
    for name, value in fields:
        if isinstance(value, list):
            yield f"{indent}{name} {{"
            yield from _lines(value, f"{indent}  ")
            yield f"{indent}}}"
        else:
            yield f"{indent}{name}: {_scalar(value)}"


def _scalar(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Bare):
        return value
    return quoted(value) if isinstance(value, str) else str(value)


def layer(name: str, kind: str, bottoms: Iterable[str], tops: Iterable[str], *fields: tuple[str, Value]) -> tuple[str, Value]:
    """A layer."""
    head: Fields = [("name", name), ("type", kind)]
    return "layer", [*head, *(("bottom", one) for one in bottoms), *(("top", one) for one in tops), *fields]


def several(name: str, values: Iterable[Value]) -> Fields:
    """A repeated field."""
    return [(name, value) for value in values]
