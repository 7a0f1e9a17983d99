"""Runs calls that wait for programs next to each other; the answers come in the order of the calls."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, TypeVar

A = TypeVar("A")
B = TypeVar("B")


def each(call: Callable[[A], B], values: Iterable[A]) -> tuple[B, ...]:
    """The call's answer for each value."""
    todo = tuple(values)
    if len(todo) < 2:
        return tuple(call(value) for value in todo)
    with ThreadPoolExecutor(max_workers=min(8, len(todo))) as pool:
        return tuple(pool.map(call, todo))
