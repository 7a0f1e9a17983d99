"""The GPU table as lines for people: who is on each GPU, and every figure; N/A where the card does not tell."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Optional

from caffeup.gpu.snapshot import part_of
from caffeup.model.gpus import Card, Freed, GpuNow, Kind, Presence, Room, Snapshot, Use

NA = "N/A"
BAR = 20
_LETTERS = {Kind.COMPUTE: "C", Kind.GRAPHICS: "G", Kind.BOTH: "C+G", Kind.MPS: "M", Kind.OPEN: "open"}
_HEAD = ("PID", "USER", "AGE", "MEMORY", "TYPE", "COMMAND")


def mib(size: Optional[int]) -> str:
    """``1012 MiB``."""
    return NA if size is None else f"{size >> 20} MiB"


def age(seconds: Optional[float]) -> str:
    """``42 s``, ``3 min``, ``2 h 05``, ``3 d 4 h``."""
    if seconds is None:
        return NA
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    hours = whole // 3600
    return f"{hours} h {whole % 3600 // 60:02d}" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def table(snapshot: Snapshot, width: int, *, whole: bool = False) -> Iterator[str]:
    """All of it, in lines of at most ``width`` columns; with ``whole`` commands are not cut."""
    room = max(width, 40)
    if snapshot.release or snapshot.cuda:
        cuda = f", CUDA up to {snapshot.cuda}" if snapshot.cuda else ""
        yield cut(f"NVIDIA driver {snapshot.release or 'of unknown release'}{cuda}", room)
    for gpu in snapshot.gpus:
        yield ""
        yield from one_gpu(gpu, room, whole=whole)
    for note in snapshot.notes:
        yield ""
        yield from textwrap.wrap(note, room)


def one_gpu(gpu: GpuNow, width: int, *, whole: bool = False) -> Iterator[str]:
    """One GPU: its figures, its parts, its processes."""
    card = gpu.card
    capability = f" ({card.compute_capability})" if card.compute_capability else ""
    title = f"GPU {card.index}  {card.name}{capability}"
    verdict = standing(gpu)
    if len(title) + len(verdict) + 2 <= width:
        yield f"{title}{verdict:>{width - len(title)}}"
    else:
        yield cut(title, width)
        yield from textwrap.wrap(verdict, width, initial_indent="  ", subsequent_indent="  ")
    if card.error:
        return
    for label, text in _figures(card):
        yield from textwrap.wrap(text, width, initial_indent=f"  {label:<9}", subsequent_indent=" " * 11, break_on_hyphens=False)
    for part, room in zip(card.instances, gpu.rooms):
        held = f"{mib(part.memory_used)} of {mib(part.memory_total)}"
        yield cut(f"  part {room.label}  {part.name.rpartition('MIG ')[2]}: {held} used; {_room_words(room)}", width)
    yield from _processes(gpu, None if whole else width)


def standing(gpu: GpuNow) -> str:
    """``free``, or why not."""
    if gpu.card.error:
        return f"does not answer: {gpu.card.error}"
    if gpu.card.instances:
        return f"{sum(not (one.busy or one.barred) for one in gpu.rooms)} of {len(gpu.rooms)} parts free"
    return ", ".join(_room_words(room) for room in gpu.rooms)


def _room_words(room: Room) -> str:
    words = room.barred or room.busy or "free"
    return f"{words}; not shown to CUDA here" if room.hidden else words


def _figures(card: Card) -> Iterator[tuple[str, str]]:
    yield "memory", _memory(card)
    busy = [f"GPU {_number(card.utilisation, ' %')}", f"memory traffic {_number(card.memory_utilisation, ' %')}"]
    yield "busy", ", ".join([*busy, *(f"slowed by {why}" for why in card.slowed_by)])
    power = f"{_number(card.power_watts)} of {_number(card.power_limit_watts, ' W')}"
    clocks = f"{_number(card.clock_mhz)} of {_number(card.clock_max_mhz, ' MHz')}"
    state = [
        _number(card.temperature, " °C"),
        f"fan {_number(card.fan_percent, ' %')}",
        card.performance_state or f"P-state {NA}",
    ]
    state += [power if card.power_watts is not None else f"power {NA}", clocks if card.clock_mhz is not None else f"clocks {NA}"]
    yield "state", ", ".join(state)
    words = [f"persistence {_switch(card.persistence)}", f"display {_switch(card.display_active)}", f"ECC {_ecc(card)}"]
    yield "set", ", ".join([*words, f"MIG {_switch(card.mig)}", f"compute {card.compute_mode or NA}"])
    yield "bus", ", ".join(one for one in (card.bus or NA, card.uuid) if one)


def _memory(card: Card) -> str:
    if card.memory_total is None or card.memory_used is None:
        return NA if card.memory_total is None else f"{NA} of {mib(card.memory_total)}"
    share = min(1.0, card.memory_used / card.memory_total) if card.memory_total else 0.0
    filled = round(share * BAR) or (1 if share >= 0.01 else 0)
    whose = ", the system's" if card.shared_memory else ""
    used = f"{card.memory_used >> 20} of {mib(card.memory_total)} used"
    return f"[{'#' * filled}{'.' * (BAR - filled)}] {used}, {mib(card.memory_free)} free{whose}"


def _ecc(card: Card) -> str:
    if not card.ecc:
        return _switch(card.ecc)
    many = card.ecc_uncorrected
    return "on" if many is None else "1 error" if many == 1 else f"{many} errors"


def _number(value: Optional[float], unit: str = "") -> str:
    return NA if value is None else f"{value:.0f}{unit}"


def _switch(value: Optional[bool]) -> str:  # noqa: FBT001
    return NA if value is None else "on" if value else "off"


def _processes(gpu: GpuNow, width: Optional[int]) -> Iterator[str]:
    if not gpu.uses:
        return
    rows = [(*_cells(use), who(gpu, use)) for use in gpu.uses]
    widths = [max(len(row[i]) for row in (_HEAD, *rows)) for i in range(5)]
    for row in (_HEAD, *rows):
        cells = [f"{row[0]:>{widths[0]}}", f"{row[1]:<{widths[1]}}", f"{row[2]:>{widths[2]}}", f"{row[3]:>{widths[3]}}"]
        line = "  " + "  ".join([*cells, f"{row[4]:<{widths[4]}}", row[5]])
        yield line if width is None else cut(line, width)


def _cells(use: Use) -> tuple[str, str, str, str, str]:
    one = use.process
    user = cut(one.user, 12) if one is not None and one.user else "?"
    return str(use.pid), user, age(one.age_seconds) if one is not None else "?", mib(use.memory_bytes), _LETTERS[use.kind]


def who(gpu: GpuNow, use: Use) -> str:
    """What is said of the process in the last column: the most important first, since it is cut at the edge."""
    part = part_of(gpu.card, use)
    where = f"(part {gpu.card.index}:{part.index}) " if part is not None else ""
    if use.presence is Presence.ELSEWHERE:
        return f"{where}(of the machine, outside this container)"
    if use.presence is Presence.GONE:
        return f"{where}(has ended; the driver still lists it)"
    if use.presence is Presence.ZOMBIE:
        parent = use.process.parent if use.process is not None else 0
        return f"{where}(zombie: ended; waits for its parent {parent})"
    command = (use.process.command if use.process is not None else "") or "(another user's: /proc does not show it)"
    return f"{where}{'(context only) ' if use.context_only else ''}{command}"


def holders(snapshot: Snapshot) -> tuple[str, ...]:
    """A sentence for each process that has memory on a GPU, the largest first: for whoever met `out of memory`."""
    rows = sorted(
        ((use, gpu.card) for gpu in snapshot.gpus for use in gpu.uses if use.kind is not Kind.OPEN),
        key=lambda row: -(row[0].memory_bytes or 0),
    )
    return tuple(f"GPU {card.index}: {sentence(use)}" for use, card in rows)


def sentence(use: Use) -> str:
    """``process 4242 of alice (python train.py), 2 h 05 old: 1012 MiB``."""
    held = "memory not told" if use.memory_bytes is None else mib(use.memory_bytes)
    only = ", hardly more than a context" if use.context_only else ""
    if use.process is None:
        where = "outside this container" if use.presence is Presence.ELSEWHERE else "which has ended"
        return f"process {use.pid} {where}: {held}{only}"
    one = use.process
    return f"process {one.pid} of {one.user} ({cut(one.command, 60)}), {age(one.age_seconds)} old: {held}{only}"


def came_back(rows: Sequence[Freed]) -> Iterator[str]:
    """What came back of each GPU's memory."""
    for row in rows:
        if row.used_before is None or row.used_after is None:
            yield f"GPU {row.index}: the driver does not tell its memory"
            continue
        back = row.used_before - row.used_after
        words = f"{mib(back)} came back" if back >= 1 << 20 else "nothing came back"
        yield f"GPU {row.index}: {words} ({mib(row.used_before)} in use before, {mib(row.used_after)} now)"


def cut(text: str, width: int) -> str:
    """At most that many columns."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"
