"""The GPU table for a screen that is too low for all of it: a line a GPU, then the processes with most memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Optional

from caffeup.gpu.words import NA, age, cut, standing, who
from caffeup.model.gpus import GpuNow, Snapshot

BAR = 10


def compact(snapshot: Snapshot, width: int, height: int) -> Iterator[str]:
    """At most ``height`` lines; what does not fit is counted."""
    names = Counter(gpu.card.name for gpu in snapshot.gpus)
    yield cut(f"NVIDIA driver {snapshot.release}: " + ", ".join(f"{many} x {name}" for name, many in names.items()), width)
    yield ""
    rows = [_gpu(gpu) for gpu in snapshot.gpus]
    processes = _processes(snapshot)
    room = max(1, height - 3)
    shown = rows if len(rows) <= room else [*rows[: room - 1], f"… and {len(rows) - room + 1} GPUs more"]
    yield from (cut(row, width) for row in shown)
    left = height - 3 - len(shown)
    if not processes or left < 2:
        return
    yield ""
    fitting = (
        processes if len(processes) <= left else [*processes[: left - 1], f"  … and {len(processes) - left + 1} processes more"]
    )
    yield from (cut(row, width) for row in fitting)


def _gpu(gpu: GpuNow) -> str:
    card = gpu.card
    if card.error:
        return f"GPU {card.index:<2} {standing(gpu)}"
    share = (card.memory_used or 0) / card.memory_total if card.memory_total else 0.0
    bar = "#" * min(BAR, round(share * BAR) or (1 if share >= 0.01 else 0))
    memory = f"{_mib(card.memory_used)}/{_mib(card.memory_total)} MiB"
    cells = (
        f"GPU {card.index:<2}",
        f"[{bar:.<{BAR}}]",
        f"{memory:>17}",
        f"{_figure(card.utilisation):>3} %",
        f"{_figure(card.temperature):>3} °C",
    )
    return "  ".join([*cells, f"{_figure(card.power_watts):>4} W", _short(gpu)])


def _short(gpu: GpuNow) -> str:
    """``free``, ``2 computing``, ``taken``, ``barred``: the whole reason stands in the whole table."""
    if len(gpu.rooms) > 1:
        return standing(gpu)
    computing = sum(room.computing for room in gpu.rooms)
    return "free" if gpu.free else f"{computing} computing" if computing else "barred" if gpu.rooms[0].barred else "taken"


def _processes(snapshot: Snapshot) -> list[str]:
    uses = [(gpu, use) for gpu in snapshot.gpus for use in gpu.uses]
    uses.sort(key=lambda row: -(row[1].memory_bytes or 0))
    lines = []
    for gpu, use in uses:
        user = cut(use.process.user, 10) if use.process is not None and use.process.user else "?"
        old = age(use.process.age_seconds) if use.process is not None else "?"
        lines.append(
            f"  {gpu.card.index:>2}  {use.pid:>7}  {user:<10}  {old:>9}  {_mib(use.memory_bytes):>7} MiB  {who(gpu, use)}"
        )
    return lines


def _mib(size: Optional[int]) -> str:
    return NA if size is None else str(size >> 20)


def _figure(value: Optional[float]) -> str:
    return NA if value is None else f"{value:.0f}"
