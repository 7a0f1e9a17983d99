"""``caffeup bench``: variants of a net by turns, their medians, and what disturbed them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Optional

from msgspec.structs import replace

from caffeup.app.bench_run import Device, Ran, Runner, Site, find_device, find_site, work_folder
from caffeup.app.gpus import Looker, looking
from caffeup.app.nets import read_net_file
from caffeup.app.session import Session
from caffeup.app.words import graphics_line, system_line
from caffeup.bench.caffe_time import Timed, shown
from caffeup.bench.edits import batch_of, convolutions
from caffeup.bench.medians import unsteady, with_ratios, with_times
from caffeup.bench.rounds import Case, expected_seconds
from caffeup.bench.samples import Sample, Taken, during, others, taken
from caffeup.bench.trunk import default_net
from caffeup.bench.variants import ALL, Variant, fitting, named, text_of
from caffeup.build.progress import Progress, Status
from caffeup.errors import UsageError
from caffeup.gpu.words import mib, sentence
from caffeup.live import Live
from caffeup.model.base import Value
from caffeup.model.bench import BenchReport, Row, Told
from caffeup.net.model import read_net
from caffeup.net.text import parse, printable

LIMIT = 300.0
STOPPED = "stopped before it was measured"
_LOAD = 0.5
"""Of the cores: more load than this before anything was started disturbs."""


class Wish(Value, kw_only=True):
    """What is to be measured."""

    net: str = ""
    """Empty: the net that is made here."""
    batches: tuple[int, ...] = ()
    """Empty: as the net has it."""
    variants: tuple[str, ...] = ()
    """Empty: all that can be."""
    iterations: Optional[int] = None
    """None: as many as fill a second."""
    repeat: int = 3
    gpu: str = ""
    cpu: bool = False
    phase: str = ""
    limit: float = LIMIT


def bench(session: Session, tree: str, wish: Wish, progress: Progress, live: Optional[Live] = None) -> BenchReport:
    """Measure; a variant that fails is a row with its cause."""
    began = time.monotonic()
    variants = named(wish.variants) if wish.variants else ALL
    net = read_net_file(wish.net) if wish.net else None
    site = find_site(session, tree)
    net = net or read_net(parse(default_net(site.types).encode()))
    with looking(session, live) as looker, work_folder() as folder:
        device = find_device(looker, site, gpu=wish.gpu, cpu=wish.cpu)
        can, found = site.ability(on_gpu=device.on_gpu), convolutions(net)
        kept, left = fitting(variants, can, found)
        if not kept:
            raise UsageError(
                "None of these variants can be measured here.", details="\n".join(f"{one.title}: {one.because}" for one in left)
            )
        machine, before = machine_lines(session, device), disturbances(session, looker, device)
        runner = Runner(session, site, device, looker.live, limit=wish.limit, phase=wish.phase)
        rounds = Rounds(runner, folder, progress, repeat=wish.repeat, iterations=wish.iterations)
        names = frozenset(shown(layer.name) for layer in found.depthwise)
        for batch in wish.batches or (batch_of(net),):
            for one in kept:
                row = Row(variant=one.id, title=one.title, batch=batch)
                rounds.add(row, text_of(net, found, one, can, batch), auto=switch(one), depthwise=names)
        rows = rounds.go()
        if rounds.stopped and all(row.forward is None for row in rows):
            raise KeyboardInterrupt
        after = disturbances(session, looker, device, ours=rounds.ours)
    every = [*found.depthwise, *found.others]
    return BenchReport(
        tree=str(site.root),
        net=wish.net,
        name=printable(net.name),
        device=device.name,
        phase=wish.phase or "TRAIN",
        repeat=wish.repeat,
        machine=machine,
        decisions=decisions(site),
        rows=with_ratios(rows),
        convolutions=tuple(shown(layer.name) for layer in every),
        depthwise=tuple(shown(layer.name) for layer in found.depthwise),
        left_out=left,
        disturbed=tuple(dict.fromkeys([*before, *after, *rounds.disturbed(rows)])),
        stopped=rounds.stopped,
        seconds=time.monotonic() - began,
    )


def switch(variant: Variant) -> Optional[bool]:
    """Whether the tree's own choice of the depthwise layer is on; None leaves it as the user has it."""
    return None if variant.as_written else variant.depthwise_layer


class _Turn:
    """One net among those that take turns."""

    def __init__(self, row: Row, net: Path, case: Case, *, auto: Optional[bool], depthwise: frozenset[str]) -> None:
        self.row = row
        self.net = net
        self.case = case
        self.auto = auto
        self.depthwise = depthwise
        self.times: list[Timed] = []
        self.runs: list[Ran] = []

    def finished(self) -> Row:
        """The row with all that was seen."""
        samples: list[Sample] = [sample for run in self.runs for sample in run.samples]
        memory = [taken(run.before, run.samples) for run in self.runs]
        best = max(memory, key=lambda one: (one.of == "process", one.size or 0), default=Taken())
        resident = max((run.resident for run in self.runs if run.resident is not None), default=None)
        row = replace(
            self.row,
            iterations=self.case.iterations,
            memory_bytes=best.size if best.of else resident,
            memory_of=best.of or ("host" if resident is not None else ""),
            gpu=during(samples),
        )
        if self.times:
            return with_times(row, self.times, self.depthwise)
        last = self.runs[-1] if self.runs else None
        if last is None or not last.failed:
            return replace(row, failed=STOPPED)
        return replace(row, failed=last.failed, findings=last.findings)


class Rounds:
    """Nets measured in turns: what changes slowly (heat, clocks, other users) meets all of them alike."""

    def __init__(self, runner: Runner, folder: Path, progress: Progress, *, repeat: int, iterations: Optional[int]) -> None:
        self._runner = runner
        self._folder = folder
        self._progress = progress
        self._repeat = repeat
        self._iterations = iterations
        self._turns: list[_Turn] = []
        self._began = time.monotonic()
        self._done = 0
        self.stopped = False
        """Whether somebody stopped it before all was measured."""

    def add(self, row: Row, text: bytes, *, auto: Optional[bool] = None, depthwise: frozenset[str] = frozenset()) -> None:
        """One more net."""
        net = self._folder / f"{len(self._turns)}.prototxt"
        net.write_bytes(text)
        case = Case(repeat=self._repeat, iterations=self._iterations)
        self._turns.append(_Turn(row, net, case, auto=auto, depthwise=depthwise))

    def go(self) -> tuple[Row, ...]:
        """Measure all: batch size by batch size, round by round. What was measured until Ctrl-C is kept."""
        try:
            for batch in dict.fromkeys(turn.row.batch for turn in self._turns):
                turns = [turn for turn in self._turns if turn.row.batch == batch]
                while any(turn.case.runs_left for turn in turns):
                    for turn in turns:
                        if turn.case.runs_left:
                            self._run(turn)
        except KeyboardInterrupt:
            self.stopped = True
        finally:
            self._progress.close()
        return tuple(turn.finished() for turn in self._turns)

    @property
    def ours(self) -> frozenset[int]:
        """Processes that ran for this: the driver may list one for a moment after its end."""
        return frozenset(pid for turn in self._turns for run in turn.runs for sample in run.samples for pid in sample.ours)

    def disturbed(self, rows: Sequence[Row]) -> Iterator[str]:
        """What was seen besides while nets ran."""
        ours = self.ours
        seen: dict[int, int] = {}
        for other in (other for turn in self._turns for run in turn.runs for other in others(None, run.samples)):
            if other.pid not in ours:
                seen[other.pid] = max(seen.get(other.pid, 0), other.memory_bytes or 0)
        for pid, size in seen.items():
            yield f"process {pid} was on the GPU while it was measured: {mib(size) if size else 'memory not told'}"
        for row in rows:
            spread = unsteady(row)
            if spread is not None:
                yield f"{row.variant}, batch {row.batch}: its runs differ by {spread:.0%}"
            if row.gpu is not None and row.gpu.slowed_by:
                yield f"{row.variant}, batch {row.batch}: the GPU was slowed by {', '.join(row.gpu.slowed_by)}"

    def _run(self, turn: _Turn) -> None:
        began = time.monotonic()
        total = self._done + sum(one.case.runs_left for one in self._turns)
        number = f"run {len(turn.times) + 1}" if turn.case.warm else "warming up"
        current = f"{turn.row.variant}, batch {turn.row.batch}, {number}"
        left = expected_seconds([one.case for one in self._turns])

        def tick() -> None:
            now = time.monotonic()
            rest = None if left is None else max(0.0, left - (now - began))
            self._progress.show(Status(done=self._done, total=total, current=current, elapsed=now - self._began, left=rest))

        ran = self._runner.run(turn.net, turn.case.iterations, auto=turn.auto, tick=tick)
        turn.runs.append(ran)
        self._done += 1
        if turn.case.ran(ran.seconds, ran.times) and ran.times is not None:
            turn.times.append(ran.times)


def disturbances(session: Session, looker: Looker, device: Device, *, ours: Optional[frozenset[int]] = None) -> list[str]:
    """Who else is at work on what is measured; ``ours``: what ran for this, where it has run."""
    if device.room is None:
        words = (session.host.read_text("/proc/loadavg") or "").split()
        cores = session.host.own.cores
        if ours is None and words and float(words[0]) > _LOAD * cores:
            return [f"the machine was at work before: load {words[0]} on {cores} core{'s' if cores != 1 else ''}"]
        return []
    found = [device.busy] if ours is None and device.busy else []
    for gpu in looker.look().gpus:
        if gpu.card.index == device.room.index:
            found += [sentence(use) for use in gpu.uses if use.kind.computes and use.pid not in (ours or ())]
    return found


def machine_lines(session: Session, device: Device) -> tuple[Told, ...]:
    """What it was measured on, for a report."""
    machine = session.machine()
    lines = [Told(title="system", value=system_line(machine)), Told(title="graphics", value=graphics_line(machine))]
    if not device.on_gpu:
        text = session.host.read_text("/proc/cpuinfo") or ""
        model = next((line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")), "")
        lines += [Told(title="processor", value=printable(model))] if model else []
    return tuple(lines)


def decisions(site: Site) -> tuple[Told, ...]:
    """How the tree was configured, and why."""
    if site.plan is None:
        return ()
    return tuple(Told(title=one.key, value=one.value, because=one.because) for one in site.plan.decisions)
