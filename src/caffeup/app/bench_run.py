"""``caffe time`` of a built tree, run while the GPU is watched."""

from __future__ import annotations

import os
import shlex
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Optional

from caffeup.app.gpus import Looker, absence
from caffeup.app.netcheck import tree_schema
from caffeup.app.session import Session, find_tree, require_tree
from caffeup.app.treework import last_plan
from caffeup.bench.caffe_time import Timed, parse_times
from caffeup.bench.samples import Sample
from caffeup.bench.variants import AUTO, Ability
from caffeup.diagnose.diagnose import diagnose
from caffeup.diagnose.findings import UNKNOWN
from caffeup.diagnose.read import read
from caffeup.disk import read_plain
from caffeup.errors import NotBuilt, UsageError
from caffeup.gpu.room import all_rooms, environment
from caffeup.live import Live
from caffeup.model.base import Value
from caffeup.model.finding import Finding
from caffeup.model.gpus import Card, Room
from caffeup.model.plan import Plan
from caffeup.net.depthwise import TYPES
from caffeup.net.text import printable
from caffeup.stream import run_stream

_PLACES = ("build", ".build_release", "temp")
_PHASE = b"DEFINE_string(phase"
_EVERY = 0.2
"""Seconds between two looks at the GPU."""
_SIGNALS = {-4: "SIGILL", -6: "SIGABRT", -7: "SIGBUS", -8: "SIGFPE", -9: "SIGKILL", -11: "SIGSEGV", -15: "SIGTERM"}
_AS_SHELL = {-6: "Aborted", -9: "Killed", -11: "Segmentation fault"}
"""What a shell says of a program that a signal ended: the diagnosis knows logs with it."""
_HELD = 8000
"""Lines of its output that are kept; a net of a thousand layers prints fewer."""


class Site(Value, kw_only=True):
    """A built tree, and what of it concerns measuring."""

    root: Path
    program: Path
    plan: Optional[Plan] = None
    """How it was configured; None where that was not done by caffeup."""
    gpu: bool = False
    cudnn: bool = False
    types: frozenset[str] = frozenset()
    """The layers that its sources register."""
    has_phase: bool = False
    """Whether its ``caffe time`` takes a phase."""

    @property
    def depthwise(self) -> str:
        """The type of its depthwise layer; empty where it has none."""
        return next((name for name in TYPES if name in self.types), "")

    def ability(self, *, on_gpu: bool) -> Ability:
        """What it can do on the CPU, or on a GPU."""
        why = "" if self.cudnn and on_gpu else "cuDNN needs a GPU" if self.cudnn else "this tree is built without cuDNN"
        return Ability(cudnn=self.cudnn and on_gpu, depthwise=self.depthwise, no_cudnn_because=why)


def find_site(session: Session, named: str) -> Site:
    """The built tree that is meant; raise ``NotBuilt`` for one without ``tools/caffe``."""
    root = find_tree(named)
    plan: Optional[Plan] = None
    try:
        plan = last_plan(root)
    except NotBuilt as error:  # somebody else may have built it
        program = _program(root, _PLACES)
        if program is None:
            require_tree(root)
            raise error from None
    else:
        program = _program(root, (plan.build_dir,))
    if program is None:
        builds = f"caffeup build {shlex.quote(str(root))}"
        raise NotBuilt(f"{root} has no built tools/caffe.", advice="This builds it:", commands=(builds,))
    gpu, cudnn = (plan.gpu, plan.cudnn) if plan is not None else _linked(session, program)
    return Site(
        root=root,
        program=program,
        plan=plan,
        gpu=gpu,
        cudnn=cudnn,
        types=frozenset(tree_schema(root).layers),
        has_phase=_takes_phase(root / "tools" / "caffe.cpp"),
    )


def _takes_phase(tool: Path) -> bool:
    try:
        return _PHASE in read_plain(tool)
    except OSError:
        return False


def _program(root: Path, places: Sequence[str]) -> Optional[Path]:
    for place in places:
        for name in ("caffe.bin", "caffe"):
            path = root / place / "tools" / name
            if path.is_file() and os.access(path, os.X_OK):
                return path
    return None


def _linked(session: Session, program: Path) -> tuple[bool, bool]:
    """CUDA and cuDNN, by what the loader would load."""
    output = session.host.run(("ldd", str(program)))
    text = output.stdout if output is not None else ""
    return "libcudart.so" in text or "libcublas.so" in text, "libcudnn.so" in text


class Device(Value, kw_only=True):
    """What a net is measured on."""

    name: str
    room: Optional[Room] = None
    """None: the CPU."""
    busy: str = ""
    """Why it is not free."""

    @property
    def on_gpu(self) -> bool:
        """Whether it is a GPU."""
        return self.room is not None


CPU = Device(name="CPU")


def find_device(looker: Looker, site: Site, *, gpu: str = "", cpu: bool = False) -> Device:
    """The CPU where that is asked for or all there is; else the GPU of this number, or the freest."""
    if cpu and gpu:
        raise UsageError("--gpu and --cpu exclude each other.")
    if gpu and not site.gpu:
        raise UsageError("This tree is built without CUDA: it runs on the CPU.")
    if cpu or not site.gpu:
        return CPU
    snapshot = looker.look()
    error = absence(snapshot)
    if error is not None:
        if gpu:
            raise error
        return CPU
    rooms = [room for room in all_rooms(snapshot) if not room.barred and not room.hidden]
    if gpu:
        rooms = [room for room in rooms if room.label == gpu]
    if not rooms:
        raise UsageError(
            f"There is no GPU {printable(gpu)} to be used." if gpu else "No GPU can be used.", commands=("caffeup gpu",)
        )
    best = min(rooms, key=lambda room: (bool(room.busy), room.computing, -(room.memory_free or 0), room.index))
    return Device(name=best.name, room=best, busy=best.busy)


class Ran(Value, kw_only=True):
    """One run of ``caffe time``."""

    seconds: float
    times: Optional[Timed] = None
    failed: str = ""
    findings: tuple[Finding, ...] = ()
    before: Optional[Card] = None
    samples: tuple[Sample, ...] = ()
    resident: Optional[int] = None
    """The most memory of the host that it held."""


class Runner:
    """Runs nets of one tree on one device."""

    def __init__(self, session: Session, site: Site, device: Device, live: Live, *, limit: float, phase: str = "") -> None:
        self._session = session
        self.site = site
        self.device = device
        self._live = live
        self._limit = limit
        if phase and not site.has_phase:
            raise UsageError("The caffe time of this tree has no phase to choose: it takes TRAIN.")
        self._phase = phase

    def run(self, net: Path, iterations: int, *, auto: Optional[bool] = None, tick: Callable[[], None] = lambda: None) -> Ran:
        """Measure a net's file. ``auto``: whether the tree's own choice of a depthwise layer is on; None: as the user has it."""
        watch = _Watch(self._session, self._live, self.device, self.site.program.name, self._limit, tick)
        lines: list[str] = []

        def keep(line: str) -> None:
            lines.append(line)
            if len(lines) > _HELD:
                del lines[_HELD // 4 : _HELD // 2]

        ended = run_stream(
            self._argv(net, iterations), cwd=str(Path.cwd()), env=self._env(auto=auto), on_line=keep, stop=watch.look, linger=0.2
        )
        times = parse_times(lines) if ended.status == 0 and not ended.stopped else None
        ran = Ran(seconds=ended.seconds, times=times, before=watch.before, samples=tuple(watch.samples), resident=watch.resident)
        if times is not None:
            return ran
        failed, findings = self._cause(ended.status, lines, stopped=ended.stopped)
        return Ran(
            seconds=ran.seconds, failed=failed, findings=findings, before=ran.before, samples=ran.samples, resident=ran.resident
        )

    def _argv(self, net: Path, iterations: int) -> list[str]:
        argv = [str(self.site.program), "time", f"-model={net}", f"-iterations={iterations}"]
        argv += [f"-phase={self._phase}"] if self._phase else []
        return [*argv, "-gpu=0"] if self.device.on_gpu else argv

    def _env(self, *, auto: Optional[bool]) -> dict[str, str]:
        env = {name: value for name, value in self._session.host.env.items() if not name.startswith("GLOG_")}
        env |= {"GLOG_logtostderr": "1", "LC_ALL": "C"}  # its own log files would stay in the folder for temporary files
        if auto is not None:
            env[AUTO] = "1" if auto else "0"
        return {**env, **environment(self.device.room)} if self.device.room is not None else env

    def _cause(self, status: int, lines: Sequence[str], *, stopped: bool) -> tuple[str, tuple[Finding, ...]]:
        """Why a run gave no times: what the diagnosis makes of its output, else its own words."""
        if stopped:
            return f"given up after {self._limit:.0f} s", ()
        text = "\n".join([*lines, _AS_SHELL.get(status, "")]).encode("utf-8", "replace")
        found = diagnose(read([text]), self._session.facts, log="caffe time")
        findings = tuple(finding for finding in found if finding.id != UNKNOWN)
        signal = _SIGNALS.get(status, f"signal {-status}" if status < 0 else "")
        said = next(
            (line.partition("] ")[2] or line for line in lines if "Check failed" in line or "error while loading" in line), ""
        )
        said = said or (f"ended by {signal}" if signal else next((line for line in reversed(lines) if line.strip()), ""))
        said = said or f"exit code {status}, and no times in its output"
        title = next((finding.title for finding in findings), "")
        return printable(title or said, 300), findings


class _Watch:
    """Looks at the device while the program runs; called about ten times a second."""

    def __init__(
        self, session: Session, live: Live, device: Device, program: str, limit: float, tick: Callable[[], None]
    ) -> None:
        self._session = session
        self._live = live
        self._room = device.room
        self._program = program
        self._tick = tick
        self._began = self._looked = time.monotonic()
        self._limit = limit
        self.before = self._card()
        self._known = {one.pid for one in self.before.listed} if self.before is not None else set()
        self.samples: list[Sample] = []
        self.resident: Optional[int] = None

    def look(self) -> bool:
        """Whether it has run for too long."""
        now = time.monotonic()
        self._tick()
        if now >= self._looked + _EVERY:
            self._looked = now
            self._sample()
        return now > self._began + self._limit

    def _sample(self) -> None:
        if self._room is None:
            self._measure_host()
            return
        card = self._card()
        if card is not None:
            self.samples.append(Sample(card=card, ours=tuple(one.pid for one in card.listed if self._is_ours(one.pid))))

    def _card(self) -> Optional[Card]:
        reading = self._live.reading() if self._room is not None else None
        index = self._room.index if self._room is not None else -1
        return next((card for card in reading.cards if card.index == index), None) if reading is not None else None

    def _is_ours(self, pid: int) -> bool:
        """A child of this process; where the driver's numbers are not those seen here, one that came since."""
        if not self._live.own_pids:
            return pid not in self._known
        process = self._live.process(pid)
        return process is not None and process.parent == self._live.pid

    def _measure_host(self) -> None:
        host, own = self._session.host, self._live.pid
        children = host.read_text(f"/proc/{own}/task/{own}/children") or ""
        for pid in children.split():
            status = host.read_text(f"/proc/{pid}/status") or ""
            fields = dict(line.partition(":")[::2] for line in status.splitlines())
            if fields.get("Name", "").strip() == self._program[:15]:
                size = fields.get("VmHWM", "").split()
                if size and size[0].isdigit():
                    self.resident = max(self.resident or 0, int(size[0]) << 10)


@contextmanager
def work_folder() -> Iterator[Path]:
    """A folder for the nets that are measured, gone in the end."""
    with tempfile.TemporaryDirectory(prefix="caffeup-bench-") as folder:
        yield Path(folder)
