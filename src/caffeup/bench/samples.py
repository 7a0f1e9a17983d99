"""What was seen of a GPU again and again while a net ran on it, as figures of the whole run."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Optional

from caffeup.model.base import Value
from caffeup.model.bench import GpuDuring
from caffeup.model.gpus import Card


class Sample(Value, kw_only=True):
    """One look at the card."""

    card: Card
    ours: tuple[int, ...] = ()
    """Those of its processes that were started from here."""


class Taken(Value, kw_only=True):
    """Memory, and how it is known."""

    size: Optional[int] = None
    of: str = ""


class Other(Value, kw_only=True):
    """Another process on the GPU."""

    pid: int
    memory_bytes: Optional[int] = None


def during(samples: Sequence[Sample]) -> Optional[GpuDuring]:
    """Clock and temperature; moments in which the GPU did nothing do not count for the clock."""
    cards = [sample.card for sample in samples if not sample.card.error]
    if not cards:
        return None
    working = [card for card in cards if card.utilisation] or cards
    clocks = [card.clock_mhz for card in working if card.clock_mhz is not None]
    slowed = [why for card in working for why in card.slowed_by]
    return GpuDuring(
        clock_mhz=round(statistics.median(clocks)) if clocks else None,
        clock_lowest_mhz=min(clocks, default=None),
        clock_max_mhz=max((card.clock_max_mhz for card in cards if card.clock_max_mhz is not None), default=None),
        temperature=max((card.temperature for card in cards if card.temperature is not None), default=None),
        power_watts=max((card.power_watts for card in cards if card.power_watts is not None), default=None),
        slowed_by=tuple(dict.fromkeys(slowed)),
        samples=len(cards),
    )


def taken(before: Optional[Card], samples: Sequence[Sample]) -> Taken:
    """What the process took: by the driver's list where it is in it, else by how much the GPU filled up."""
    listed = [
        sum(one.memory_bytes or 0 for one in sample.card.listed if one.pid in sample.ours) for sample in samples if sample.ours
    ]
    if any(listed):
        return Taken(size=max(listed), of="process")
    used = [sample.card.memory_used for sample in samples if sample.card.memory_used is not None]
    if before is None or before.memory_used is None or not used or max(used) <= before.memory_used:
        return Taken()
    return Taken(size=max(used) - before.memory_used, of="gpu")


def others(before: Optional[Card], samples: Sequence[Sample]) -> tuple[Other, ...]:
    """Processes that compute on the GPU and are not ours, each with the most that it held."""
    cards = [(before, ())] if before is not None else []
    found: dict[int, Optional[int]] = {}
    for card, ours in [*cards, *((sample.card, sample.ours) for sample in samples)]:
        for one in card.listed:
            if one.kind.computes and one.pid not in ours:
                held = [size for size in (found.get(one.pid), one.memory_bytes) if size is not None]
                found[one.pid] = max(held, default=None)
    return tuple(Other(pid=pid, memory_bytes=size) for pid, size in found.items())
