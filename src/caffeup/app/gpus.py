"""``caffeup gpu``: what the driver, /proc and the rest of the machine tell, put together; and waiting for room."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Callable, Optional

from msgspec.structs import replace
from packaging.version import Version

from caffeup.app.session import Session
from caffeup.errors import CaffeupError, DriverSilent, NoDriver, NoGpu, NoRoom
from caffeup.gpu.nodes import holds_gpu
from caffeup.gpu.room import Choice, all_rooms, choose, shown
from caffeup.gpu.snapshot import Around, of_system, on_cards
from caffeup.gpu.trouble import finding_of, lost, trouble_of, without_figures
from caffeup.live import Live, RealLive
from caffeup.model.finding import Finding
from caffeup.model.gpus import Card, Process, Reading, Room, Snapshot
from caffeup.model.machine import Attempt, GpuState, Graphics, System

VISIBLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"
WAIT_SECONDS = 2.0
JETSON_LOAD = ("/sys/devices/gpu.0/load", "/sys/devices/platform/gpu.0/load", "/sys/devices/platform/*/*gpu*/load")
MEMINFO = "/proc/meminfo"


class Looker:
    """Looks at the GPUs as often as is wanted; what does not change is asked once."""

    def __init__(self, session: Session, live: Live) -> None:
        from caffeup.detect.system import probe_system  # noqa: PLC0415

        self._session = session
        self.live = live
        self.env = session.host.env
        self._system: System = probe_system(session.host)
        self._graphics: Optional[tuple[Graphics, tuple[Finding, ...]]] = None

    def look(self) -> Snapshot:
        """Everything now."""
        reading = self.live.reading()
        cards = reading.cards if reading is not None else ()
        state, findings = GpuState.PRESENT, tuple(one for one in map(lost, cards) if one is not None)
        tried: tuple[Attempt, ...] = ()
        if not cards:
            graphics, findings = self._without(reading)
            state, tried, cards = graphics.state, graphics.tried, _of_graphics(graphics)
        if self._system.jetson:
            cards = tuple(self._of_jetson(card) for card in cards)
        processes, unseen = self._processes(cards) if cards else ((), 0)
        gpus = on_cards(cards, Around(processes=processes, own_pids=self.live.own_pids))
        setting = self._session.host.env.get(VISIBLE)
        return Snapshot(
            state=state,
            release=reading.release if reading is not None else "",
            cuda=_cuda(reading),
            gpus=shown(gpus, setting),
            wsl=self._system.wsl,
            jetson=self._system.jetson,
            container=self._system.container,
            own_pids=self.live.own_pids,
            unseen=unseen,
            notes=tuple(self._notes(cards, setting)),
            findings=findings,
            tried=tried,
        )

    def _processes(self, cards: tuple[Card, ...]) -> tuple[tuple[Process, ...], int]:
        """Those here that have a GPU open, and those that the driver names."""
        holders, unseen = self.live.holders()
        known = {one.pid: one for one in holders if holds_gpu(one.nodes or ())}
        for pid in {one.pid for card in cards for one in card.listed} - set(known):
            process = self.live.process(pid)
            if process is not None:
                known[pid] = process
        return tuple(known.values()), unseen

    def _without(self, reading: Optional[Reading]) -> tuple[Graphics, tuple[Finding, ...]]:
        """What the other sources say where the library shows no GPU; its own error tells most."""
        from caffeup.detect.gpus import PROC_VERSION, probe_graphics  # noqa: PLC0415
        from caffeup.detect.parse.nvidia import parse_proc_version  # noqa: PLC0415

        if self._graphics is None:
            self._graphics = probe_graphics(self._session.host, self._session.facts, self._system)
        graphics, findings = self._graphics
        trouble = trouble_of(reading)
        if reading is not None and reading.error and graphics.gpus:
            return graphics, (*findings, without_figures(reading))
        if reading is None or trouble is None or graphics.state in {GpuState.NONE, GpuState.HIDDEN}:
            return graphics, findings
        release = parse_proc_version(self._session.host.read_text(PROC_VERSION) or "")
        finding = finding_of(reading, release)
        return replace(graphics, state=trouble.state), (finding,) if finding is not None else findings

    def _of_jetson(self, card: Card) -> Card:
        from caffeup.detect.parse.system import parse_meminfo  # noqa: PLC0415

        host = self._session.host
        memory = parse_meminfo(host.read_text(MEMINFO) or "")
        paths = [path for pattern in JETSON_LOAD for path in host.glob(pattern)]
        load = next((text for text in (host.read_text(path) for path in paths) if text), "").strip()
        card = of_system(card, total=memory.get("MemTotal", 0), available=memory.get("MemAvailable", 0))
        return replace(card, utilisation=min(100, int(load) // 10)) if load.isdigit() else card

    def _notes(self, cards: tuple[Card, ...], setting: Optional[str]) -> Iterator[str]:
        if not self.live.own_pids and cards:
            yield (
                "This is a PID namespace of its own (a container): processes outside it can be seen only by what they take. "
                "The driver's numbers for them are the machine's: no signal is sent to them. With --pid=host they can be seen."
            )
        if self._system.wsl and cards:
            yield "WSL2: the driver lists no processes here, and the memory in use includes what Windows uses."
        if self._system.jetson and cards:
            yield "Jetson: the GPU has no memory of its own; what is shown is the system's."
        elif any(not card.lists_processes for card in cards) and not self._system.wsl:
            yield "The driver does not list processes: they are those that have the GPU's device node open, without their memory."
        order = self._session.host.env.get(ORDER, "")
        by_number = setting is not None and any(part.strip().isdigit() for part in setting.split(","))
        if by_number and order != "PCI_BUS_ID" and len({card.name for card in cards}) > 1:
            yield f"{VISIBLE}={setting} counts the fastest GPU first; with {ORDER}=PCI_BUS_ID it counts as this table does."


@contextmanager
def looking(session: Session, live: Optional[Live] = None) -> Iterator[Looker]:
    """A looker that lets the driver go in the end."""
    used = live or RealLive(session.host.env)
    try:
        yield Looker(session, used)
    finally:
        used.close()


def look(session: Session, live: Optional[Live] = None) -> Snapshot:
    """Everything, once."""
    with looking(session, live) as looker:
        return looker.look()


def _of_graphics(graphics: Graphics) -> tuple[Card, ...]:
    """GPUs that another source than NVML names; few figures are known of them."""
    return tuple(
        Card(
            index=gpu.index,
            name=gpu.name,
            uuid=gpu.uuid,
            minor=None,
            compute_capability=gpu.compute_capability,
            memory_total=gpu.memory_bytes,
            lists_processes=False,
        )
        for gpu in graphics.gpus
    )


def _cuda(reading: Optional[Reading]) -> Optional[Version]:
    from caffeup.detect.parse.nvidia import cuda_of_number  # noqa: PLC0415

    return cuda_of_number(reading.cuda) if reading is not None else None


# --- what there is no GPU for ------------------------------------------------------------------------------


def absence(snapshot: Snapshot) -> Optional[CaffeupError]:
    """Why there is no GPU to be had, as the error of a command that needs one; None where there is one."""
    if snapshot.gpus:
        return None
    kinds: dict[GpuState, tuple[type[CaffeupError], str]] = {
        GpuState.NONE: (NoGpu, "There is no NVIDIA GPU here."),
        GpuState.HIDDEN: (NoGpu, "The GPUs of this machine are not shown here."),
        GpuState.NO_DRIVER: (NoDriver, "An NVIDIA GPU is here, and no driver for it."),
        GpuState.DRIVER_SILENT: (DriverSilent, "The NVIDIA driver does not answer."),
        GpuState.PRESENT: (DriverSilent, "The NVIDIA driver shows no GPU."),
    }
    kind, words = kinds[snapshot.state]
    tried = "\n".join(f"{one.where}: {one.outcome}" for one in snapshot.tried)
    return kind(words, findings=snapshot.findings, details="" if snapshot.findings else tried)


# --- room --------------------------------------------------------------------------------------------------


def find_room(
    looker: Looker,
    need: int,
    *,
    wait: bool = False,
    timeout: Optional[float] = None,
    choosing: Optional[Callable[[Snapshot], Choice]] = None,
    tell: Callable[[str], None] = lambda _text: None,
    pause: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Room:
    """A GPU that is free, or with ``need`` bytes of room; raise ``NoRoom``, or what ``absence`` says."""
    began, told = clock(), False
    while True:
        snapshot = looker.look()
        error = absence(snapshot)
        if error is not None:
            raise error
        if not told:
            for note in (one for one in snapshot.notes if one.startswith(VISIBLE)):
                tell(note)
        choice = choosing(snapshot) if choosing else choose(all_rooms(snapshot), need)
        if choice.room is not None:
            return choice.room
        left = None if timeout is None else timeout - (clock() - began)
        if not wait or (left is not None and left <= 0):
            raise _no_room(snapshot, need, choice, waited=clock() - began if wait else None)
        if not told:
            tell(
                f"waiting{f' for {need >> 20} MiB' if need else ''}: "
                + "; ".join(f"GPU {label}: {why}" for label, why in choice.against)
            )
            told = True
        pause(WAIT_SECONDS if left is None else min(WAIT_SECONDS, left))


def _no_room(snapshot: Snapshot, need: int, choice: Choice, *, waited: Optional[float]) -> NoRoom:
    what = f"No GPU has {need >> 20} MiB free" if need else "No GPU is free"
    return NoRoom(
        what + (f", after {waited:.0f} s." if waited is not None else "."),
        details="\n".join(f"GPU {label}: {why}" for label, why in choice.against),
        advice="See who is on them, wait, or ask for what fits." if snapshot.gpus else "",
        commands=("caffeup gpu", f"caffeup gpu free{f' --need {need >> 20}MiB' if need else ''} --wait"),
    )
