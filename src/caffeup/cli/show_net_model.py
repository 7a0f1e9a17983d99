"""What the commands on nets with weights answer, as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from caffeup.cli import show
from caffeup.model.net import NetChange
from caffeup.model.net_model import CutReport, Difference, MergeReport, Written

_NAMED = 5
"""Layers that were left are named up to so many a reason."""


def merged(value: MergeReport) -> Iterator[str]:
    """What was folded."""
    by_root: dict[str, list[str]] = {}
    for change in value.changes:
        by_root.setdefault(change.what.rpartition(" ")[2], []).append(change.layer)
    yield from show.table([(root, f"takes in {', '.join(layers)}") for root, layers in by_root.items()])
    yield from left(value.left)
    if value.written:
        many = len(value.changes)
        yield f"{' and '.join(value.written)}: {many} layer{'s' if many != 1 else ''} folded into {len(by_root)}"
    else:
        yield "Nothing to fold: no file was written."
    if value.difference is not None:
        yield from difference(value.difference)
    yield from show.findings(value.findings)


def cut(value: CutReport) -> Iterator[str]:
    """What was cut."""
    yield from show.table([(f"line {change.line}", change.layer, change.what) for change in value.changes])
    named = (
        name if name == str(number) else f"{number} (was {name})" if name.isdigit() else f"{number} {name}"
        for number, name in enumerate(value.classes)
    )
    yield f"classes: {', '.join(named)}"
    yield f"{', '.join(value.written)} written"
    if value.difference is not None:
        yield from difference(value.difference)
    yield from show.findings(value.findings)


def left(changes: Sequence[NetChange]) -> Iterator[str]:
    """What stays, by its reason."""
    by_reason: dict[str, list[str]] = {}
    for change in changes:
        by_reason.setdefault(change.what, []).append(change.layer or f"line {change.line}")
    for reason, layers in by_reason.items():
        more = f" and {len(layers) - _NAMED} more" if len(layers) > _NAMED else ""
        yield f"  stays  {', '.join(layers[:_NAMED])}{more}: {reason}"


def difference(value: Difference) -> Iterator[str]:
    """How far two nets are apart."""
    verdict = "the same" if value.same else "NOT the same"
    at = f" (in {value.where})" if value.where else ""
    yield f"Run side by side: {verdict}; {value.blobs} blobs differ by {value.worst:.1e} of their largest value at most{at}."


def written(value: Written) -> Iterator[str]:
    """Files that were made."""
    yield f"{' and '.join(name for name in (value.prototxt, value.model, value.labels, value.picture) if name)} written"
    yield from value.about
