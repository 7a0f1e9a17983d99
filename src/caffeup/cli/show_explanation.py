"""An explanation as text for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from caffeup.cli import show
from caffeup.cli.called import as_typed, prompted
from caffeup.model.explanation import Explanation

_MARGIN = " " * 12


def explanation(one: Explanation) -> Iterator[str]:
    """Title, why, when, how it looks, what mends it, where it was reported."""
    yield as_typed(f"{one.title}  [{one.id}]")
    yield ""
    yield from _part("why", [one.why])
    yield from _part("when", [one.when])
    yield from _part("looks like", one.looks)
    yield from _part("nearby", one.near)
    unsure = "the reports do not settle the cause" if one.unsure else ""
    yield from _part("sure", [unsure])
    yield from _part("decides", [one.decides])
    yield from _part("alike", [", ".join(one.alike)])
    for remedy in one.remedies:
        yield from _part("mend", [remedy.text])
        yield from (f"{_MARGIN}  {prompted(command)}" for command in remedy.commands)
    yield from _part("reported", one.sources)


def _part(label: str, texts: Iterable[str]) -> Iterator[str]:
    head = f"{label:<{len(_MARGIN)}}"
    for text in texts:
        yield from textwrap.wrap(
            as_typed(text),
            show.width(),
            initial_indent=head,
            subsequent_indent=_MARGIN,
            break_on_hyphens=False,
            break_long_words=False,
        )
        head = _MARGIN if text else head
