"""Which GPUs are free, and which has room for what a program needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Optional

from msgspec.structs import replace

from caffeup.model.base import Value
from caffeup.model.gpus import Card, GpuNow, Instance, Room, Snapshot, Use

CONTEXT_BYTES = 640 << 20
"""More than a CUDA context takes on any GPU, less than most programs that compute."""
BUSY_PERCENT = 10
"""Of utilisation: a look at the driver and a desktop's clock stay below it."""


def rooms_of(card: Card, uses: Sequence[Use]) -> tuple[Room, ...]:
    """The GPU as a whole, or where MIG divides it, its parts: a program gets one of them."""
    if not card.instances:
        barred = card.error or ("MIG is on and has made no parts: nothing can compute here" if card.mig else "")
        return (_room(card, None, uses, barred or _mode_bars(card)),)
    return tuple(_room(card, part, _within(uses, part), card.error or _mode_bars(card)) for part in card.instances)


def _mode_bars(card: Card) -> str:
    return "its compute mode is prohibited: no program may use it" if card.compute_mode == "prohibited" else ""


def _within(uses: Sequence[Use], part: Instance) -> tuple[Use, ...]:
    return tuple(
        one for one in uses if one.gpu_instance == part.gpu_instance and one.compute_instance in (None, part.compute_instance)
    )


def _room(card: Card, part: Optional[Instance], uses: Sequence[Use], barred: str) -> Room:
    held: Card | Instance = part or card
    computing = sum(one.kind.computes for one in uses)
    exclusive = computing > 0 and card.compute_mode.startswith("exclusive")
    return Room(
        index=card.index,
        instance=None if part is None else part.index,
        uuid=held.uuid,
        name=held.name or card.name,
        memory_total=held.memory_total,
        memory_free=held.memory_free,
        computing=computing,
        busy="" if barred else _busy(card, part, uses, computing),
        barred=barred or ("its compute mode is exclusive, and a process is on it" if exclusive else ""),
    )


def _busy(card: Card, part: Optional[Instance], uses: Sequence[Use], computing: int) -> str:
    """Why it is not free. What nobody is listed for counts too: in a container others cannot be seen."""
    if computing:
        return "1 process computes on it" if computing == 1 else f"{computing} processes compute on it"
    used = part.memory_used if part is not None else card.memory_used
    known = sum(one.memory_bytes or 0 for one in uses)
    own = card.lists_processes and not (card.shared_memory or card.display_active)  # the memory is its processes' alone
    if own and used is not None and used - known > CONTEXT_BYTES:
        return f"{used >> 20} MiB of it are in use, by processes that cannot be seen here"
    if part is None and (card.utilisation or 0) >= BUSY_PERCENT and not (card.display_active or uses or card.shared_memory):
        return f"it is {card.utilisation} % busy, with processes that cannot be seen here"
    return ""


class Choice(Value, kw_only=True):
    """What was chosen, and what speaks against each of the others."""

    room: Optional[Room] = None
    against: tuple[tuple[str, str], ...] = ()
    """Label and reason of each that has no room."""


def choose(rooms: Iterable[Room], need: int, promised: Optional[Mapping[str, int]] = None) -> Choice:
    """The best room: one that nobody computes on, then the most free memory, then the lowest index.

    ``need`` 0: any that is free. ``promised``: bytes by UUID that others were given and have not taken yet.
    """
    taken = promised or {}
    fitting, against = [], []
    for room in rooms:
        why = _why_not(room, need, taken.get(room.uuid or room.label, 0))
        against += [(room.label, why)] if why else []
        fitting += [] if why else [room]
    best = min(fitting, key=lambda one: (one.computing, -(one.memory_free or 0), one.index, one.instance or 0), default=None)
    return Choice(room=best, against=tuple(against))


def _why_not(room: Room, need: int, promised: int) -> str:
    if room.hidden:
        return "CUDA_VISIBLE_DEVICES does not show it"
    if room.barred:
        return room.barred
    if not need:
        return room.busy or (f"{promised >> 20} MiB of it are promised to another caffeup gpu run" if promised else "")
    if room.memory_free is None:
        return "it does not tell how much memory is free"
    free = room.memory_free - promised
    if free >= need:
        return ""
    words = f"{max(0, free) >> 20} MiB free"
    return words + (f" ({promised >> 20} MiB more are promised to another caffeup gpu run)" if promised else "")


def shown(gpus: Sequence[GpuNow], setting: Optional[str]) -> tuple[GpuNow, ...]:
    """The same GPUs, with what this CUDA_VISIBLE_DEVICES does not show marked as hidden."""
    if setting is None:
        return tuple(gpus)
    labels = _named(gpus, setting)
    marked = ((gpu, tuple(replace(room, hidden=room.label not in labels) for room in gpu.rooms)) for gpu in gpus)
    return tuple(replace(gpu, rooms=rooms) for gpu, rooms in marked)


def _named(gpus: Sequence[GpuNow], setting: str) -> set[str]:
    """Labels of the rooms that it names: CUDA stops at the first entry that names none."""
    found: set[str] = set()
    for entry in (part.strip() for part in setting.split(",")):
        named = {room.label for gpu in gpus for room in gpu.rooms if _names(entry, gpu, room)}
        if not named:
            break
        found |= named
    return found


def _names(entry: str, gpu: GpuNow, room: Room) -> bool:
    if re.fullmatch(r"[0-9]{1,4}", entry):
        return gpu.card.index == int(entry)
    if entry.startswith("MIG-"):
        return room.instance is not None and room.uuid.startswith(entry)
    return entry.startswith("GPU-") and gpu.card.uuid.startswith(entry)


def environment(room: Room) -> dict[str, str]:
    """What gives a program this room and no other, counted as it is shown here."""
    device = room.uuid or str(room.index)
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": device}


def all_rooms(snapshot: Snapshot) -> tuple[Room, ...]:
    """Of all GPUs."""
    return tuple(room for gpu in snapshot.gpus for room in gpu.rooms)
