"""Runs make in a tree: progress, log, first error."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from caffeup.build.first import failed_targets, read_first_error
from caffeup.build.logs import NO_SPACE, full_disk, is_full, log_path, open_log
from caffeup.build.makefile import Make, Variables, ask, make_environment
from caffeup.build.progress import Progress, Status
from caffeup.build.steps import Estimate, Step, parse_step, steps_of
from caffeup.build.times import Stopwatch, read_times
from caffeup.errors import BuildFailed
from caffeup.model.base import Value
from caffeup.model.plan import Plan
from caffeup.stream import run_capture, run_stream


class Build(Value):
    """One tree that is to be built, and with what."""

    root: str
    plan: Plan
    env: dict[str, str]
    """The user's environment, as the Host has it."""
    ccache: str = ""
    """Path of ccache; empty: do without."""
    make: str = "make"

    @property
    def path(self) -> Path:
        """The tree's root."""
        return Path(self.root)

    @property
    def maker(self) -> Make:
        """How make is called in this tree."""
        return Make(root=self.root, program=self.make, env=make_environment(self.env, self.plan.make_env))

    def ask(self) -> Variables:
        """What the Makefile's variables come to."""
        return ask(self.maker)


class Made(Value):
    """What came of one make."""

    status: int
    seconds: float
    steps: int
    failed: tuple[str, ...] = ()
    """Targets whose recipes failed."""
    disk_full: bool = False
    out_of_memory: bool = False


def planned_steps(build: Build, goals: tuple[str, ...], set_to: Mapping[str, str]) -> tuple[Step, ...]:
    """What make would do, by its own word; empty where nothing is to do or make cannot say."""
    argv = build.maker.argv(*goals, options=("-n",), set_to=set_to)
    answer = run_capture(argv, cwd=build.root, env=build.maker.env, timeout=120.0)
    return steps_of(answer.output.splitlines())


class _Watch:
    """Reads make's lines as they come, and tells the progress display."""

    def __init__(self, estimate: Estimate, stopwatch: Stopwatch, progress: Progress) -> None:
        self._estimate = estimate
        self._stopwatch = stopwatch
        self._progress = progress
        self._begun = time.monotonic()
        self._current = ""
        self.complaints: list[str] = []
        self.disk_full = False
        self.out_of_memory = False
        self.steps = 0

    def line(self, line: str) -> None:
        step = parse_step(line)
        if step is not None:
            self._estimate.begin(step)
            self._stopwatch.begin(step)
            self._current = str(step)
            self.steps += 1
        elif line.startswith("make"):
            self.complaints.append(line)
        if NO_SPACE in line:
            self.disk_full = True
        if "Killed signal terminated program" in line or "virtual memory exhausted" in line or "std::bad_alloc" in line:
            self.out_of_memory = True

    def tick(self) -> bool:
        elapsed = time.monotonic() - self._begun
        estimate = self._estimate
        self._progress.show(
            Status(done=estimate.done, total=estimate.total, current=self._current, elapsed=elapsed, left=estimate.left(elapsed))
        )
        return False


def run_make(
    build: Build,
    log: IO[bytes],
    progress: Progress,
    *goals: str,
    planned: tuple[Step, ...] = (),
    build_dir: str = "",
    jobs: int = 0,
    options: tuple[str, ...] = (),
    set_to: Mapping[str, str] = {},
) -> Made:
    """Run make for these goals; never raises for a failed build. ``build_dir`` is where the times of objects are read."""
    count = jobs or build.plan.jobs
    stopwatch = Stopwatch()
    watch = _Watch(Estimate(planned, count, read_times(build.path)), stopwatch, progress)
    maker = build.maker
    argv = maker.argv(*goals, jobs=count, options=options, set_to=set_to)
    log.write((" ".join(argv) + "\n").encode("utf-8", "surrogateescape"))
    try:
        ended = run_stream(argv, cwd=build.root, env=maker.env, log=log, on_line=watch.line, stop=watch.tick)
    finally:
        with contextlib.suppress(OSError):  # a full disk is reported by what needs it
            stopwatch.keep(build.path, build_dir)
    return Made(
        status=ended.status,
        seconds=ended.seconds,
        steps=watch.steps,
        failed=failed_targets(watch.complaints),
        disk_full=watch.disk_full,
        out_of_memory=watch.out_of_memory,
    )


def failure(build: Build, stage: str, made: Made, goal: str) -> Exception:
    """The error to raise for a make that failed: what happened first, where, and where the log is."""
    log = str(log_path(build.path, stage))
    if made.disk_full or is_full(build.path):
        return full_disk(f"make {goal}", build.path, log)
    first = read_first_error(build.path, Path(log))
    if first is None:
        return BuildFailed(
            f"make {goal} failed with exit code {made.status}, and said nothing that looks like an error.", log=log
        )
    where = f" (line {first.line} of the log)" if first.line else ""
    return BuildFailed(
        f"make {goal} failed. The first error{where}: {first.text}", details="\n".join((first.text, *first.context)), log=log
    )


__all__ = ["Build", "Made", "failure", "open_log", "planned_steps", "run_make"]
