"""Room that was given to programs which have not taken it yet: two that start at once must not be given the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from caffeup.model.base import Value
from caffeup.model.gpus import GpuNow, Presence, Room, Use

Ancestors = Mapping[int, frozenset[int]]
"""Of each process on a GPU: the processes that it descends from."""


class Promise(Value, kw_only=True):
    """What one ``gpu run`` was given; its program has the PID that caffeup had."""

    pid: int
    started: int
    """With the PID it names the process for ever."""
    key: str
    """UUID of the room, or its label where it has none."""
    bytes: int
    used_then: int = 0
    """What was in use of that room when it was given."""


def key_of(room: Room) -> str:
    """What names a room in promises."""
    return room.uuid or room.label


def outstanding(promises: Iterable[Promise], gpus: Sequence[GpuNow], ancestors: Ancestors) -> dict[str, int]:
    """Bytes by room that are promised and not taken yet."""
    by_key: dict[str, list[Promise]] = {}
    for promise in promises:
        by_key.setdefault(promise.key, []).append(promise)
    rooms = {key_of(room): (gpu, room) for gpu in gpus for room in gpu.rooms}
    return {key: _left(many, *rooms[key], ancestors) for key, many in by_key.items() if key in rooms}


def _left(promises: Sequence[Promise], gpu: GpuNow, room: Room, ancestors: Ancestors) -> int:
    """Each promise less what its program holds; where the driver's list cannot be read so, all less what came into use since."""
    uses = [use for use in gpu.uses if use.kind.computes]
    if all(use.presence is Presence.HERE and use.memory_bytes is not None for use in uses):
        return sum(max(0, one.bytes - _taken(one, uses, ancestors)) for one in promises)
    used = (room.memory_total or 0) - (room.memory_free or 0)
    since = max(0, used - min(one.used_then for one in promises))
    return max(0, sum(one.bytes for one in promises) - since)


def _taken(promise: Promise, uses: Iterable[Use], ancestors: Ancestors) -> int:
    return sum(
        use.memory_bytes or 0 for use in uses if use.pid == promise.pid or promise.pid in ancestors.get(use.pid, frozenset())
    )
