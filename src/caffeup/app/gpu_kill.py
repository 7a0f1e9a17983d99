"""``caffeup gpu kill``: only what holds a GPU here, after a question, politely first, and what memory came back."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Callable

import msgspec

from caffeup.app.gpus import Looker
from caffeup.app.ui import Ui
from caffeup.gpu.end import draws, on_gpus, refusal
from caffeup.gpu.words import age, cut, mib
from caffeup.live import Grip, NoGrip
from caffeup.model.gpus import End, Ended, Freed, Killed, Process, Snapshot

GRACE = 10.0
AFTER_KILL = 5.0
COMES_BACK = 5.0
"""Seconds within which the driver gives memory back when its process has ended."""


class Held(msgspec.Struct):
    """A process that may be ended, held by its descriptor since before it was looked at."""

    process: Process
    grip: Grip


def end_processes(
    looker: Looker,
    pids: Sequence[int],
    ui: Ui,
    *,
    force: bool = False,
    grace: float = GRACE,
    pause: Callable[[float], None] = time.sleep,
) -> Killed:
    """End these processes; each one's end, and what came back of the GPUs' memory."""
    before = looker.look()
    with ExitStack() as stack:
        held, refused = _hold(looker, tuple(dict.fromkeys(pids)), before, stack, force=force)
        if not held:
            return Killed(processes=refused)
        for one in held:
            ui.say("\n".join(_loss(one.process, before)))
        many = "this process" if len(held) == 1 else f"these {len(held)} processes"
        if not ui.ask(f"End {many}? What is not saved is lost."):
            kept = tuple(_ended(one.process, End.KEPT, "nobody agreed") for one in held)
            return Killed(processes=(*refused, *kept))
        ends = _end(held, grace)
        after = _after(looker, before, ends, pause)
    return Killed(processes=(*refused, *ends), memory=tuple(_freed(ends, before, after)))


def _hold(
    looker: Looker, pids: Sequence[int], before: Snapshot, stack: ExitStack, *, force: bool
) -> tuple[list[Held], tuple[Ended, ...]]:
    """Those that may be ended. The descriptor comes first: were its number another's by now, it would be known to have ended."""
    held: list[Held] = []
    refused: list[Ended] = []
    for pid in pids:
        try:
            grip = stack.enter_context(closing(looker.live.grip(pid)))
        except NoGrip as error:
            process = looker.live.process(pid)
            own, uid = looker.live.pid, looker.live.uid
            why = refusal(pid, process, before, own=own, uid=uid, force=force) or str(error)
            if error.unsupported and why == str(error):
                why += (
                    f"; caffeup sends no signal by number alone. Look again that it is the one you mean, then: kill -TERM {pid}"
                )
            refused.append(Ended(pid=pid, end=End.REFUSED, because=why))
            continue
        process = looker.live.process(pid)
        why = refusal(pid, process, before, own=looker.live.pid, uid=looker.live.uid, force=force)
        if not why and not grip.alive():
            why = "it has ended by itself"
        if why or process is None:
            command, user = (process.command, process.user) if process is not None else ("", "")
            refused.append(Ended(pid=pid, end=End.REFUSED, because=why, command=command, user=user))
        else:
            held.append(Held(process, grip))
    return held, tuple(refused)


def _loss(process: Process, snapshot: Snapshot) -> Iterator[str]:
    """What would be lost."""
    yield f"process {process.pid} of {process.user}, started {age(process.age_seconds)} ago: {cut(process.command, 200)}"
    where = on_gpus(process.pid, snapshot)
    for index, size in where:
        yield f"  GPU {index}: {'memory not told' if size is None else mib(size)}"
    if not where:
        yield "  it has a GPU open; the driver lists no memory under its number"
    if draws(process.pid, snapshot):
        yield "  it draws on a display: a desktop and all that is open in it may end with it"


def _end(held: Sequence[Held], grace: float) -> tuple[Ended, ...]:
    """TERM to all, time to end, KILL to those that are left."""
    barred = {one.process.pid: why for one in held if (why := _send(one.grip, signal.SIGTERM))}
    asked = [one for one in held if one.process.pid not in barred]
    left = _wait(asked, grace)
    killed = {one.process.pid for one in left if not _send(one.grip, signal.SIGKILL)}
    stuck = {one.process.pid for one in _wait(left, AFTER_KILL)}
    ends = []
    for one in held:
        pid = one.process.pid
        if pid in barred:
            ends.append(_ended(one.process, End.STAYED, barred[pid]))
        elif pid in stuck:
            why = "it waits inside the driver, where not even KILL reaches it: a restart of the machine ends it"
            ends.append(_ended(one.process, End.STAYED, why))
        else:
            ends.append(_ended(one.process, End.KILLED if pid in killed else End.ENDED, ""))
    return tuple(ends)


def _wait(held: Sequence[Held], seconds: float) -> list[Held]:
    """Those that have not ended when the time is over."""
    deadline = time.monotonic() + seconds
    return [one for one in held if not one.grip.wait(max(0.0, deadline - time.monotonic()))]


def _send(grip: Grip, number: int) -> str:
    """Empty, or why it may not be."""
    try:
        grip.send(number)
    except ProcessLookupError:
        return ""  # it has just ended by itself
    except OSError as error:
        return f"the system refused the signal: {error.strerror}"
    return ""


def _ended(process: Process, end: End, because: str) -> Ended:
    return Ended(pid=process.pid, end=end, because=because, command=process.command, user=process.user)


def _after(looker: Looker, before: Snapshot, ends: Sequence[Ended], pause: Callable[[float], None]) -> Snapshot:
    """A look when the memory has come back, or the time for that is over."""
    waited = 0.0
    while True:
        after = looker.look()
        rows = list(_freed(ends, before, after))
        done = all(row.used_before is None or row.used_after is None or row.used_after < row.used_before for row in rows)
        if done or waited >= COMES_BACK:
            return after
        pause(0.5)
        waited += 0.5


def _freed(ends: Sequence[Ended], before: Snapshot, after: Snapshot) -> Iterator[Freed]:
    """Of the GPUs that they were on; of all where the driver does not say which."""
    pids = {one.pid for one in ends if one.end in {End.ENDED, End.KILLED}}
    named = {index for pid in pids for index, _ in on_gpus(pid, before)}
    now = {gpu.card.index: gpu.card for gpu in after.gpus}
    for card in (gpu.card for gpu in before.gpus if pids):
        if card.index in named or not named:
            later = now.get(card.index)
            used = None if later is None else later.memory_used
            yield Freed(index=card.index, name=card.name, used_before=card.memory_used, used_after=used)
