"""What the net commands answer, as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from caffeup.cli import show
from caffeup.model.net import NetChange, NetReport, NetRewrite

_REASONS = 5
"""Layers that were left are named up to so many a reason."""


def rewrite(value: NetRewrite, nothing: str) -> Iterator[str]:
    """What was changed in a net's file; ``nothing`` where nothing was."""
    yield from show.table([(f"line {change.line}", change.layer, change.what) for change in value.changes])
    yield from _left(value.left)
    if value.written:
        layers = len({change.layer for change in value.changes if change.layer})
        counted = f", {layers} layer{'s' if layers != 1 else ''}" if layers else ""
        many = len(value.changes)
        like = "it was" if value.written == value.source else f"in {value.source}"
        yield f"{value.written}: {many} change{'s' if many != 1 else ''}{counted}; every other byte as {like}"
    else:
        yield nothing
    yield from show.findings(value.findings)


def _left(changes: Sequence[NetChange]) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for change in changes:
        by_reason.setdefault(change.what, []).append(change.layer or f"line {change.line}")
    for reason, layers in by_reason.items():
        more = f" and {len(layers) - _REASONS} more" if len(layers) > _REASONS else ""
        yield f"  left   {', '.join(layers[:_REASONS])}{more}: {reason}"


def report(value: NetReport) -> Iterator[str]:
    """What was found in a net's file."""
    against = value.checked_against or "all known trees"
    yield f"{value.source}: a {value.kind.replace('-', ' ')}{f', {value.name}' if value.name else ''}; against {against}"
    for phase in value.phases:
        layers = f"{phase.layers} layer{'s' if phase.layers != 1 else ''}"
        yield f"  {phase.phase:<6} {layers}: {_some(phase.inputs)} → {_some(phase.outputs)}"
        for line in phase.assumed:
            yield f"         assumed for {line}"
        for line in phase.untold[:_REASONS]:
            yield f"         not told from {line}"
    yield from show.findings(value.findings)
    if not value.findings:
        yield "Nothing wrong that can be seen without Caffe."


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _REASONS} more" if len(names) > _REASONS else ""
    return ", ".join(names[:_REASONS]) + more if names else "nothing"
