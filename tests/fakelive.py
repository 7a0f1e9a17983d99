"""A moment of a machine with GPUs, for tests: what the driver lists, which processes there are, and what signals do to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Optional

from msgspec.structs import replace

from caffeup.host import Output, Own
from caffeup.live import NoGrip
from caffeup.model.driver import DriverAnswer
from caffeup.model.gpus import Card, CudaAnswer, Kind, Listed, Node, Process, Reading
from caffeup.model.machine import Attempt

GIB = 1 << 30
MIB = 1 << 20
ME = 1000
OWN_PID = 4000
NODES = ("/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidiactl")


def card(index: int = 0, *, used: int = 0, total: int = 24576 * MIB, listed: Iterable[Listed] = (), **figures: Any) -> Card:
    """A GPU of a desk."""
    known: dict[str, Any] = {
        "name": "NVIDIA GeForce RTX 4090",
        "uuid": f"GPU-0000000{index}",
        "bus": f"00000000:0{index + 1}:00.0",
        "minor": index,
        "compute_mode": "default",
        "utilisation": 0,
        "memory_utilisation": 0,
        "display_active": False,
    }
    return Card(
        index=index, memory_total=total, memory_used=used, memory_free=total - used, listed=tuple(listed), **{**known, **figures}
    )


def listed(pid: int, mib: Optional[int] = 1000, kind: Kind = Kind.COMPUTE, **more: int) -> Listed:
    return Listed(pid=pid, kind=kind, memory_bytes=None if mib is None else mib * MIB, **more)


def process(pid: int, *, uid: int = ME, nodes: Optional[tuple[str, ...]] = NODES, **more: Any) -> Process:
    known: dict[str, Any] = {"state": "S", "user": "me" if uid == ME else "other", "command": "python train.py", "parent": 1}
    known |= {"started": pid * 7, "age_seconds": 130.0}
    return Process(pid=pid, uid=uid, nodes=nodes, **{**known, **more})


class FakeGrip:
    """``heeds``: the signals that end it."""

    def __init__(self, live: FakeLive, pid: int, heeds: Iterable[int]) -> None:
        self._live = live
        self._pid = pid
        self._heeds = frozenset(heeds)
        self.closed = False

    def alive(self) -> bool:
        return self._pid in self._live.processes

    def send(self, number: int) -> None:
        if self._pid in self._live.forbidden:
            raise PermissionError(1, "Operation not permitted")
        self._live.sent.append((self._pid, number))
        if number in self._heeds:
            self._live.end(self._pid)

    def wait(self, seconds: float) -> bool:
        self._live.waited.append((self._pid, seconds))
        return not self.alive()

    def close(self) -> None:
        self.closed = True


class FakeLive:
    """The moment; it changes only by the signals sent."""

    def __init__(
        self,
        *cards: Card,
        reading: Optional[Reading] = None,
        processes: Iterable[Process] = (),
        own_pids: bool = True,
        uid: int = ME,
        heeds: Optional[Mapping[int, Iterable[int]]] = None,
        nodes: Iterable[Node] = (),
        cuda: Optional[CudaAnswer] = None,
        pidfd: bool = True,
        library: bool = True,
    ) -> None:
        self.pid, self.uid, self.own_pids = OWN_PID, uid, own_pids
        self._reading = reading or Reading(library="libnvidia-ml.so.1", release="580.65.06", cuda=13000, cards=cards)
        self._library = library
        self.processes = {one.pid: one for one in (*processes, process(OWN_PID, nodes=(), command="caffeup"))}
        self._heeds = dict(heeds or {})
        self._nodes = {one.path: one for one in nodes}
        self._cuda = cuda
        self._pidfd = pidfd
        self.sent: list[tuple[int, int]] = []
        self.waited: list[tuple[int, float]] = []
        self.forbidden: set[int] = set()
        self.grips: list[FakeGrip] = []
        self.closed = 0

    def reading(self) -> Optional[Reading]:
        return self._reading if self._library else None

    def change(self, *cards: Card) -> None:
        self._reading = replace(self._reading, cards=cards)

    def process(self, pid: int) -> Optional[Process]:
        return self.processes.get(pid)

    def holders(self) -> tuple[tuple[Process, ...], int]:
        known = sorted(self.processes.values(), key=lambda one: one.pid)
        return tuple(one for one in known if one.nodes), sum(one.nodes is None for one in known)

    def grip(self, pid: int) -> FakeGrip:
        if not self._pidfd:
            raise NoGrip("this kernel has no pidfd (Linux 5.3 and newer have)", unsupported=True)
        if pid not in self.processes:
            raise NoGrip("there is no such process here")
        self.grips.append(FakeGrip(self, pid, self._heeds.get(pid, (15, 9))))
        return self.grips[-1]

    def end(self, pid: int) -> None:
        """It is gone, and its memory has come back."""
        del self.processes[pid]
        cards = []
        for one in self._reading.cards:
            held = sum(row.memory_bytes or 0 for row in one.listed if row.pid == pid)
            left = tuple(row for row in one.listed if row.pid != pid)
            used, free = (one.memory_used or 0) - held, (one.memory_free or 0) + held
            cards.append(replace(one, listed=left, memory_used=used, memory_free=free))
        self._reading = replace(self._reading, cards=tuple(cards))

    def node(self, path: str) -> Node:
        return self._nodes.get(path, Node(path=path))

    def cuda(self) -> Optional[CudaAnswer]:
        return self._cuda

    def close(self) -> None:
        self.closed += 1


class PlainHost:
    """A machine of which only what is given here is known."""

    def __init__(
        self,
        *,
        files: Optional[Mapping[str, str]] = None,
        env: Optional[Mapping[str, str]] = None,
        kernel: str = "6.1.0",
        nvml: Optional[DriverAnswer] = None,
    ) -> None:
        self.files = dict(files or {})
        self.env = MappingProxyType(dict(env or {}))
        self.own = Own(uid=ME, kernel=kernel)
        self._nvml = nvml

    def read_text(self, path: str) -> Optional[str]:
        return self.files.get(path)

    def read_bytes(self, path: str, limit: int = 1 << 20) -> Optional[bytes]:
        text = self.files.get(path)
        return None if text is None else text.encode()[:limit]

    def exists(self, path: str) -> bool:
        return path in self.files

    def is_dir(self, path: str) -> bool:
        return any(one.startswith(path.rstrip("/") + "/") for one in self.files)

    def glob(self, pattern: str) -> tuple[str, ...]:
        from fnmatch import fnmatch

        return tuple(sorted(one for one in self.files if fnmatch(one, pattern)))

    def real_path(self, path: str) -> Optional[str]:
        return path if self.exists(path) or self.is_dir(path) else None

    def which(self, name: str) -> tuple[str, ...]:
        return ()

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0, stdin: str = "") -> Optional[Output]:
        return None

    def nvml(self) -> Optional[DriverAnswer]:
        return self._nvml

    def libcuda(self) -> Optional[DriverAnswer]:
        return None


NOT_THERE = Attempt(where="NVML (libnvidia-ml.so.1)", outcome="not there")
