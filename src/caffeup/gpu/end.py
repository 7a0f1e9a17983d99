"""Whether a process may be ended, decided before any signal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Optional

from caffeup.gpu.nodes import holds_gpu
from caffeup.model.gpus import End, Ended, Kind, Presence, Process, Snapshot, Use


def refusal(pid: int, process: Optional[Process], snapshot: Snapshot, *, own: int, uid: int, force: bool) -> str:
    """Why no signal goes to it; empty where one may. ``own``: caffeup's own PID, ``uid``: who runs it.

    Only /proc here is believed: the driver's numbers may be those of another PID namespace.
    """
    uses = uses_of(pid, snapshot)
    if process is None:
        if any(one.presence is Presence.ELSEWHERE for one in uses):
            return "that number is the machine's: the process runs outside this container and cannot be reached from here"
        return "there is no such process here"
    if pid == own:
        return "that is caffeup itself"
    if process.ended:
        return f"it has ended already (a zombie): no signal reaches it; its parent, process {process.parent}, has to take note"
    if process.uid != uid and not force:
        return f"it belongs to {process.user or 'another user'}: --force ends processes of other users too"
    if process.nodes is None:
        return "its open files may not be seen, so it cannot be told whether it holds a GPU: do it as its owner or as root"
    if not holds_gpu(process.nodes):
        if any(one.presence is Presence.ELSEWHERE for one in uses):
            return "the driver lists that number for a process outside this container; the one here holds no GPU"
        return "it holds no GPU"
    return ""


def uses_of(pid: int, snapshot: Snapshot) -> tuple[Use, ...]:
    """What the snapshot says of that number, on every GPU."""
    return tuple(use for gpu in snapshot.gpus for use in gpu.uses if use.pid == pid)


def draws(pid: int, snapshot: Snapshot) -> bool:
    """Whether a desktop hangs on it."""
    return any(use.kind in {Kind.GRAPHICS, Kind.BOTH} and use.presence is Presence.HERE for use in uses_of(pid, snapshot))


def on_gpus(pid: int, snapshot: Snapshot) -> tuple[tuple[int, Optional[int]], ...]:
    """Index and bytes of each GPU that it is on."""
    return tuple((gpu.card.index, use.memory_bytes) for gpu in snapshot.gpus for use in gpu.uses if use.pid == pid)


def told(ends: Iterable[Ended]) -> Iterator[str]:
    """A line for each process."""
    words = {
        End.ENDED: "ended",
        End.KILLED: "did not end when asked, and was killed",
        End.STAYED: "is still there",
        End.REFUSED: "not touched",
        End.KEPT: "not touched",
    }
    for one in ends:
        yield f"process {one.pid}: {words[one.end]}" + (f": {one.because}" if one.because else "")
