"""Figures of the GPU table, found by any of their names and explained."""

from __future__ import annotations

import difflib
import re
import textwrap
from collections.abc import Iterator, Sequence

from caffeup.model.gpus import Figure

TWO_THINGS = (
    "Memory in use and utilisation are different things: memory is what programs hold, utilisation whether any kernel ran in "
    "the last moment. A GPU at 0 % may be full, one at 100 % nearly empty."
)
_FIELDS = ("meaning", "range", "normal", "look")
_LABELS = {"meaning": "what", "range": "range", "normal": "normal", "look": "else"}


class UnknownFigure(LookupError):
    """No figure has that name; ``likely`` holds those that come near."""

    def __init__(self, name: str, likely: tuple[str, ...]) -> None:
        super().__init__(name)
        self.likely = likely


def find(figures: Sequence[Figure], name: str) -> Figure:
    """By its id, its title, what nvidia-smi calls it, or a beginning that only one has; raise ``UnknownFigure``."""
    wanted = _folded(name)
    names = {_folded(one): figure for figure in figures for one in (*figure.also, figure.title, figure.id)}
    if wanted in names:
        return names[wanted]
    begun = {figure.id: figure for one, figure in names.items() if wanted and one.startswith(wanted)}
    if len(begun) == 1:
        return next(iter(begun.values()))
    near = difflib.get_close_matches(wanted, names, n=3, cutoff=0.6)
    likely = tuple(begun) or tuple(dict.fromkeys(names[one].id for one in near))
    raise UnknownFigure(name, likely)


def _folded(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def overview(figures: Sequence[Figure], width: int) -> Iterator[str]:
    """All of them with what is normal."""
    room = max(len(one.id) for one in figures)
    for one in figures:
        yield from textwrap.wrap(
            one.normal, width, initial_indent=f"  {one.id:<{room}}  ", subsequent_indent=" " * (room + 4), break_on_hyphens=False
        )
    yield ""
    yield from textwrap.wrap(TWO_THINGS, width)
    yield "caffeup gpu explain FIGURE tells what one means, and what to do where it is not normal."


def explained(one: Figure, width: int) -> Iterator[str]:
    """One figure whole."""
    yield one.title + (f"  (nvidia-smi: {', '.join(one.also)})" if one.also else "")
    for field in _FIELDS:
        text = getattr(one, field)
        if text:
            label = f"  {_LABELS[field]:<8}"
            yield from textwrap.wrap(text, width, initial_indent=label, subsequent_indent=" " * 10, break_on_hyphens=False)
    for source in one.source:
        yield f"  {'source':<8}{source}"
