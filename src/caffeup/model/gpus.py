"""The GPUs at one moment: what the driver tells of each, and who holds how much of it."""

from __future__ import annotations

from typing import Optional

from packaging.version import Version

from caffeup.model.base import SCHEMA, ComputeCapability, Value, Word
from caffeup.model.finding import Finding
from caffeup.model.machine import Attempt, Container, GpuState


class Kind(Word):
    """What a process does with a GPU."""

    COMPUTE = "compute"
    GRAPHICS = "graphics"
    BOTH = "compute+graphics"
    MPS = "mps"
    """Computes through NVIDIA's multi-process service."""
    OPEN = "open"
    """It has the GPU's device node open, and the driver lists no memory for it under this PID."""

    @property
    def computes(self) -> bool:
        """Whether it can fill the GPU's memory with data."""
        return self in {Kind.COMPUTE, Kind.BOTH, Kind.MPS}


class Listed(Value, kw_only=True):
    """A process as the driver lists it: a number, in the driver's own count of processes."""

    pid: int
    kind: Kind
    memory_bytes: Optional[int] = None
    """None: the driver does not tell (MIG, WSL2), which is not nothing."""
    gpu_instance: Optional[int] = None
    compute_instance: Optional[int] = None


class Instance(Value, kw_only=True):
    """A part of a GPU that MIG made."""

    index: int
    name: str = ""
    uuid: str = ""
    gpu_instance: Optional[int] = None
    compute_instance: Optional[int] = None
    memory_total: Optional[int] = None
    memory_used: Optional[int] = None
    memory_free: Optional[int] = None


class Card(Value, kw_only=True):
    """One GPU's figures; None is what the card does not tell, and is shown as N/A."""

    index: int
    name: str = "NVIDIA GPU"
    uuid: str = ""
    bus: str = ""
    minor: Optional[int] = None
    """Its device node is ``/dev/nvidia<minor>``."""
    compute_capability: Optional[ComputeCapability] = None
    memory_total: Optional[int] = None
    memory_used: Optional[int] = None
    memory_free: Optional[int] = None
    memory_reserved: Optional[int] = None
    """Kept by the driver for itself; not in ``memory_used``."""
    shared_memory: bool = False
    """The memory is the system's (Jetson)."""
    fan_percent: Optional[int] = None
    temperature: Optional[int] = None
    temperature_slowdown: Optional[int] = None
    """Degrees at which it slows itself down."""
    performance_state: str = ""
    power_watts: Optional[float] = None
    power_limit_watts: Optional[float] = None
    persistence: Optional[bool] = None
    display_active: Optional[bool] = None
    utilisation: Optional[int] = None
    """Percent of the last moment in which any kernel ran."""
    memory_utilisation: Optional[int] = None
    """Percent of that moment in which memory was read or written; not how full it is."""
    clock_mhz: Optional[int] = None
    clock_max_mhz: Optional[int] = None
    slowed_by: tuple[str, ...] = ()
    ecc: Optional[bool] = None
    ecc_corrected: Optional[int] = None
    ecc_uncorrected: Optional[int] = None
    """Since the driver was loaded."""
    ecc_uncorrected_ever: Optional[int] = None
    repair_pending: Optional[bool] = None
    """Rows of memory that are put out of use at the next reset."""
    repair_failed: Optional[bool] = None
    compute_mode: str = ""
    """``default``, ``exclusive-process``, ``exclusive-thread``, ``prohibited``."""
    mig: Optional[bool] = None
    instances: tuple[Instance, ...] = ()
    listed: tuple[Listed, ...] = ()
    lists_processes: bool = True
    """Whether the driver lists processes at all (on WSL2 it does not)."""
    error: str = ""
    """The driver's words where this GPU does not answer: ``GPU is lost``."""


class Reading(Value, kw_only=True):
    """One answer of NVIDIA's management library."""

    library: str = ""
    error: str = ""
    code: int = 0
    """The library's own number of that error."""
    release: str = ""
    cuda: int = 0
    cards: tuple[Card, ...] = ()


class Process(Value, kw_only=True):
    """A process as /proc shows it here."""

    pid: int
    state: str = ""
    """The kernel's letter: R, S, D, Z, T …"""
    uid: int = -1
    user: str = ""
    command: str = ""
    """Its command line, one that can be shown: control characters are written out."""
    age_seconds: Optional[float] = None
    parent: int = 0
    started: int = 0
    """The kernel's number of its start: with the PID it names one process for ever."""
    nodes: Optional[tuple[str, ...]] = None
    """Device nodes of GPUs that it has open; None where nobody may look."""

    @property
    def ended(self) -> bool:
        """A zombie: it has ended, and its parent has not asked how."""
        return self.state == "Z"


class Presence(Word):
    """Whether the process that the driver means can be seen here."""

    HERE = "here"
    ZOMBIE = "zombie"
    GONE = "gone"
    """No such process: it ended a moment ago, or never came back from the driver."""
    ELSEWHERE = "elsewhere"
    """In another PID namespace: its number means nothing here."""


class Use(Value, kw_only=True):
    """One process on one GPU."""

    pid: int
    kind: Kind
    presence: Presence
    memory_bytes: Optional[int] = None
    gpu_instance: Optional[int] = None
    compute_instance: Optional[int] = None
    context_only: bool = False
    """It takes no more than a CUDA context takes: nothing much was allocated."""
    process: Optional[Process] = None


class Room(Value, kw_only=True):
    """A GPU, or a part of one that MIG made, as something a program can be given."""

    index: int
    uuid: str
    name: str
    instance: Optional[int] = None
    memory_total: Optional[int] = None
    memory_free: Optional[int] = None
    computing: int = 0
    """Processes that compute on it, as far as the driver lists them."""
    busy: str = ""
    """Why it is not free; empty where it is."""
    barred: str = ""
    """Why no program may use it at all; empty where one may."""
    hidden: bool = False
    """CUDA_VISIBLE_DEVICES does not show it."""

    @property
    def label(self) -> str:
        """``0``, or ``0:1`` for a part."""
        return str(self.index) if self.instance is None else f"{self.index}:{self.instance}"


class GpuNow(Value, kw_only=True):
    """One GPU and who is on it."""

    card: Card
    uses: tuple[Use, ...] = ()
    rooms: tuple[Room, ...] = ()

    @property
    def free(self) -> bool:
        """Whether the whole of it, or a part, can be had now."""
        return any(not (room.busy or room.barred) for room in self.rooms)


class Snapshot(Value, kw_only=True):
    """All GPUs at one moment."""

    schema: int = SCHEMA
    state: GpuState
    release: str = ""
    cuda: Optional[Version] = None
    gpus: tuple[GpuNow, ...] = ()
    wsl: int = 0
    jetson: str = ""
    container: Container = Container.NONE
    own_pids: bool = True
    """Whether PIDs here are those of the machine; in a container they are not."""
    unseen: int = 0
    """Processes of others here of which it cannot be told whether they hold a GPU."""
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    tried: tuple[Attempt, ...] = ()


class End(Word):
    """What became of a process that was to be ended."""

    ENDED = "ended"
    KILLED = "killed"
    """It did not end when asked, and was ended."""
    STAYED = "stayed"
    REFUSED = "refused"
    KEPT = "kept"
    """Nobody agreed."""


class Ended(Value, kw_only=True):
    """One process of ``gpu kill``."""

    pid: int
    end: End
    because: str = ""
    command: str = ""
    user: str = ""


class Freed(Value, kw_only=True):
    """What came back of one GPU's memory."""

    index: int
    name: str
    used_before: Optional[int] = None
    used_after: Optional[int] = None


class Killed(Value, kw_only=True):
    """The result of ``gpu kill``."""

    schema: int = SCHEMA
    processes: tuple[Ended, ...] = ()
    memory: tuple[Freed, ...] = ()


class Figure(Value, kw_only=True):
    """A row of figures.toml: one figure of the table, explained."""

    id: str
    title: str
    also: tuple[str, ...] = ()
    """What nvidia-smi calls it."""
    meaning: str
    range: str
    normal: str
    look: str = ""
    """What to do where it is not normal."""
    source: tuple[str, ...]


class FigureFile(Value, kw_only=True):
    """figures.toml."""

    figure: tuple[Figure, ...] = ()


class CudaDevice(Value, kw_only=True):
    """One GPU as CUDA shows it to a program: what deviceQuery prints."""

    index: int
    name: str = ""
    memory_total: Optional[int] = None
    multiprocessors: Optional[int] = None
    clock_khz: Optional[int] = None
    memory_clock_khz: Optional[int] = None
    memory_bus_bits: Optional[int] = None
    l2_bytes: Optional[int] = None
    threads_per_block: Optional[int] = None
    threads_per_multiprocessor: Optional[int] = None
    shared_memory_per_block: Optional[int] = None
    registers_per_block: Optional[int] = None
    warp: Optional[int] = None
    copy_engines: Optional[int] = None
    integrated: Optional[int] = None
    watchdog: Optional[int] = None
    ecc: Optional[int] = None
    unified_addressing: Optional[int] = None
    managed_memory: Optional[int] = None
    concurrent_kernels: Optional[int] = None
    pci_bus: Optional[int] = None
    major: Optional[int] = None
    minor: Optional[int] = None


class CudaAnswer(Value, kw_only=True):
    """Whether CUDA starts for a program of this user, and with which GPUs."""

    cuda: int = 0
    error: str = ""
    code: int = 0
    devices: tuple[CudaDevice, ...] = ()


class Node(Value, kw_only=True):
    """A file or folder, and what this user may do with it."""

    path: str
    there: bool = False
    folder: bool = False
    readable: bool = False
    """A folder: its names can be listed and its files reached."""
    writable: bool = False
    mode: str = ""
    """As ``ls -l`` shows it: ``crw-rw----``."""
    owner: str = ""
    group: str = ""
