"""From what the driver lists and what /proc shows to one snapshot: who is on which GPU, and whether it can be seen here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Optional

from msgspec.structs import replace

from caffeup.gpu.nodes import holds_gpu, minors
from caffeup.gpu.room import CONTEXT_BYTES, rooms_of
from caffeup.model.base import Value
from caffeup.model.gpus import Card, GpuNow, Instance, Kind, Listed, Presence, Process, Use


class Around(Value, kw_only=True):
    """What is known of the processes here."""

    processes: tuple[Process, ...] = ()
    """Those that the driver lists by number, and those that have a GPU's node open."""
    own_pids: bool = True


def on_cards(cards: Sequence[Card], around: Around) -> tuple[GpuNow, ...]:
    """Each GPU with its processes: the driver's list, and those here that it does not list under their PID."""
    known = {one.pid: one for one in around.processes}
    listed = {
        one.pid for card in cards for one in card.listed if presence(one.pid, known, own_pids=around.own_pids) is Presence.HERE
    }
    open_here = [one for one in around.processes if holds_gpu(one.nodes or ()) and one.pid not in listed and not one.ended]
    return tuple(_gpu(card, known, open_here, own_pids=around.own_pids) for card in cards)


def _gpu(card: Card, known: Mapping[int, Process], open_here: Iterable[Process], *, own_pids: bool) -> GpuNow:
    uses = [_use(one, known, own_pids=own_pids) for one in card.listed]
    uses += [
        Use(pid=one.pid, kind=Kind.OPEN, presence=Presence.HERE, process=one)
        for one in open_here
        if (not minors(one.nodes or ()) and card.index == 0) or card.minor in minors(one.nodes or ())
    ]
    uses.sort(key=lambda one: (-(one.memory_bytes or 0), one.pid))
    return GpuNow(card=replace(card, listed=()), uses=tuple(uses), rooms=rooms_of(card, uses))


def _use(one: Listed, known: Mapping[int, Process], *, own_pids: bool) -> Use:
    where = presence(one.pid, known, own_pids=own_pids)
    return Use(
        pid=one.pid,
        kind=one.kind,
        presence=where,
        memory_bytes=one.memory_bytes,
        gpu_instance=one.gpu_instance,
        compute_instance=one.compute_instance,
        context_only=one.kind.computes and one.memory_bytes is not None and one.memory_bytes <= CONTEXT_BYTES,
        process=known.get(one.pid) if where in {Presence.HERE, Presence.ZOMBIE} else None,
    )


def presence(pid: int, known: Mapping[int, Process], *, own_pids: bool) -> Presence:
    """Whether the driver's number is that of a process here.

    Where PIDs are not the machine's own, a process of that number here may be another one: only one with a GPU open is believed.
    """
    process = known.get(pid)
    if not own_pids and not (process is not None and holds_gpu(process.nodes or ())):
        return Presence.ELSEWHERE
    if process is None:
        return Presence.GONE
    return Presence.ZOMBIE if process.ended else Presence.HERE


def of_system(card: Card, *, total: int, available: int) -> Card:
    """A Jetson's GPU: its memory is the system's."""
    return replace(card, memory_total=total, memory_free=available, memory_used=max(0, total - available), shared_memory=True)


def part_of(card: Card, use: Use) -> Optional[Instance]:
    """The part of the GPU that a process is on, where MIG divides it."""
    if use.gpu_instance is None:
        return None
    return next(
        (
            one
            for one in card.instances
            if one.gpu_instance == use.gpu_instance and one.compute_instance in (use.compute_instance, None)
        ),
        None,
    )
