"""Runs a tree's tests in parallel; a test that aborts or hangs never hides the ones after it."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import queue
import shutil
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Callable, Optional

from caffeup.build.gtest import Reader, filters, parse_list
from caffeup.build.logs import log_path, open_log
from caffeup.build.progress import Pace, Progress, Status
from caffeup.build.run import Build
from caffeup.build.testbuild import TestPrograms
from caffeup.errors import TestsFailed
from caffeup.model.base import Value
from caffeup.model.outcome import TestCase, TestReport
from caffeup.model.plan import GPU_TESTS
from caffeup.stream import run_capture, run_stream

STAGE = "test"
LIMIT = 300.0
"""Seconds for one test; Caffe's slowest takes some ten on one old core."""
_FIRST = 20
"""Tests that say nothing about the others."""
OF_CAFFEUP = ("CuDNNSharedConvLayerTest/", "DepthwiseConvLayerTest/")
"""How the names of the tests begin that caffeup puts into trees."""
_WITHOUT_GPU = {"CUDA_VISIBLE_DEVICES": "-1"}
"""Hides every GPU from a process: it takes no turns on one, and none of its memory (some hundred MB each)."""


class _Unit(Value):
    """Tests of one binary that one process runs."""

    binary: str
    names: tuple[str, ...]
    gpu: bool = False
    hidden: bool = False
    """Whether the GPU is hidden: what does not pass then is tried again with it."""


class _Tally:
    """What came of the tests so far; shared by the threads."""

    def __init__(self, total: int, known: Callable[[str], str]) -> None:
        self.total = total
        self._known = known
        self._pace = Pace()
        self.passed = 0
        self.failures: list[TestCase] = []
        self.again: list[tuple[str, str]] = []
        """Binary and name of what did not pass while the GPU was hidden."""
        self.current = ""
        self.errors: list[BaseException] = []
        self.halt = threading.Event()
        self.lock = threading.Lock()

    def status(self, begun: float) -> Status:
        done = self.passed + len(self.failures)
        elapsed = time.monotonic() - begun
        left = self._pace.left(done, self.total - done, elapsed)
        failed = sum(1 for case in self.failures if not self._known(case.name))
        shown = left if done > _FIRST else None
        return Status(done=done, total=self.total, current=self.current, elapsed=elapsed, left=shown, failed=failed)


def _unknown(_name: str) -> str:
    return ""


def run_tests(
    build: Build, programs: TestPrograms, progress: Progress, *, known: Callable[[str], str] = _unknown, limit: float = LIMIT
) -> TestReport:
    """Run all tests that the plan's filter leaves; ``known`` gives the reason of a failure known of this tree.

    Raises ``TestsFailed`` only where a test binary does not even start.
    """
    begun = time.monotonic()
    folder = build.path / ".caffeup" / "tmp"
    _sweep(folder)
    env = _environment(build)
    units, skipped = _units(build, programs, env)
    tally = _Tally(sum(len(unit.names) for unit in units), known)
    try:
        _Runner(build, env, tally, limit).run(units, progress)
    finally:
        progress.close()
        _gather_logs(build.path)
        _sweep(folder)
    for error in tally.errors:
        raise error
    failures = (*programs.not_compiled, *sorted(tally.failures, key=lambda case: case.name))
    return TestReport(
        total=tally.total,
        passed=tally.passed,
        added=sum(name.startswith(OF_CAFFEUP) for unit in units for name in unit.names),
        failures=tuple(_with_reason(case, known) for case in failures),
        skipped=skipped,
        seconds=time.monotonic() - begun,
    )


def _environment(build: Build) -> dict[str, str]:
    """One thread a process: the processes are what runs in parallel."""
    return {**build.maker.env, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def _with_reason(case: TestCase, known: Callable[[str], str]) -> TestCase:
    return TestCase(name=case.name, state=case.state, text=case.text, known=known(case.name))


def _sweep(folder: Path) -> None:
    """Remove the temporary folders of this and of killed runs."""
    for one in folder.glob("tests-*"):
        shutil.rmtree(one, ignore_errors=True)


def _own_folder(build: Build, number: int) -> Path:
    folder = build.path / ".caffeup" / "tmp" / f"tests-{os.getpid()}-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _within(env: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Caffe's tests and glog leave files wherever these say, some 800 folders a run."""
    return {**env, "TMPDIR": str(folder), "GLOG_log_dir": str(folder)}


def _units(build: Build, programs: TestPrograms, env: Mapping[str, str]) -> tuple[list[_Unit], int]:
    """What there is to run, in parts for the processes, and how many tests the filter leaves out."""
    units: list[_Unit] = []
    skipped = 0
    for binary in programs.binaries:
        everything = _listed(build, binary, env, "*")
        names = _listed(build, binary, env, f"-{build.plan.test_filter}") if build.plan.test_filter else everything
        skipped += len(everything) - len(names)
        on_gpu = tuple(name for name in names if build.plan.gpu and _runs_on_gpu(name))
        others = tuple(name for name in names if name not in set(on_gpu))
        most = build.plan.jobs - 1 if on_gpu else build.plan.jobs
        parts = [others[part::most] for part in range(most)] if most > 1 and len(programs.binaries) == 1 else [others]
        units += [_Unit(binary=binary, names=on_gpu, gpu=True)] if on_gpu else []
        units += [_Unit(binary=binary, names=part, hidden=bool(on_gpu)) for part in parts if part]
    return units, skipped


def _runs_on_gpu(name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in GPU_TESTS.split(":"))


def _listed(build: Build, binary: str, env: Mapping[str, str], wanted: str) -> tuple[str, ...]:
    argv = (f"./{binary}", "--gtest_list_tests", f"--gtest_filter={wanted}")
    got = run_capture(argv, cwd=build.root, env=_within(env, _own_folder(build, 0)), timeout=120.0)
    names = parse_list(got.output.splitlines())
    if got.status != 0:
        raise TestsFailed(
            f"{binary} does not start: {_exit_words(got.status)}.",
            details="\n".join(got.output.splitlines()[-15:]),
            advice="The lines above are its own words; where a library is missing, verify names it.",
            commands=(f"cd {build.root} && ldd {binary}",),
        )
    return names


def _exit_words(status: int) -> str:
    if status < 0:
        try:
            return f"ended by {signal.Signals(-status).name}"
        except ValueError:
            return f"ended by signal {-status}"
    return f"exit code {status}"


class _Runner:
    """Runs the units in threads, one process each at a time.

    The GPU's tests are left to one thread: processes that share a GPU take turns of milliseconds on it, and four of them
    were each ten times slower than one alone (seen on an H200). In a build with CUDA the CPU's tests touch the GPU too, so
    it is hidden from them; the few that need it (a net takes cuDNN's layers by itself) abort, and get it in a second round.
    """

    def __init__(self, build: Build, env: Mapping[str, str], tally: _Tally, limit: float) -> None:
        self._build = build
        self._env = env
        self._tally = tally
        self._limit = limit
        self._waiting: queue.SimpleQueue[_Unit] = queue.SimpleQueue()
        self._for_gpu: queue.SimpleQueue[_Unit] = queue.SimpleQueue()

    def run(self, units: list[_Unit], progress: Progress) -> None:
        """Run all; on Ctrl-C every process is ended before the exception goes on."""
        begun = time.monotonic()
        self._round(units, progress, begun)
        again: dict[str, list[str]] = {}
        for binary, name in self._tally.again:
            again.setdefault(binary, []).append(name)
        if again and not self._tally.errors:
            self._tally.halt.clear()
            self._round([_Unit(binary=one, names=tuple(names), gpu=True) for one, names in again.items()], progress, begun)

    def _round(self, units: list[_Unit], progress: Progress, begun: float) -> None:
        for unit in units:
            (self._for_gpu if unit.gpu else self._waiting).put(unit)
        threads = [
            threading.Thread(target=self._work, args=(number,), name=f"tests-{number}")
            for number in range(1, min(max(self._build.plan.jobs, 1), len(units)) + 1)
        ]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                progress.show(self._tally.status(begun))
                time.sleep(0.1)
            progress.show(self._tally.status(begun))
        finally:
            self._tally.halt.set()
            for thread in threads:
                thread.join()

    def _work(self, number: int) -> None:
        try:
            while not self._tally.halt.is_set():
                unit = self._next(number)
                if unit is None:
                    return
                self._unit(unit, number)
        except BaseException as error:  # noqa: BLE001  # raised again in the main thread
            self._tally.errors.append(error)
            self._tally.halt.set()

    def _next(self, number: int) -> Optional[_Unit]:
        for waiting in (self._for_gpu, self._waiting) if number == 1 else (self._waiting,):
            with contextlib.suppress(queue.Empty):
                return waiting.get_nowait()
        return None

    def _unit(self, unit: _Unit, number: int) -> None:
        """Run the unit's tests; after each process that died, the rest in a new one."""
        rest = list(unit.names)
        with open_log(self._build.path, f"{STAGE}-{number}", append=True) as log:
            while rest and not self._tally.halt.is_set():
                seen = self._process(unit, filters(rest)[0], number, log)
                rest = [name for name in rest if name not in seen]

    def _process(self, unit: _Unit, names: tuple[str, ...], number: int, log: IO[bytes]) -> set[str]:
        """Run these tests in one process; the names that need not run again."""
        follow = _Follow(self._tally, self._limit)
        folder = _own_folder(self._build, number)
        argv = (f"./{unit.binary}", f"--gtest_filter={':'.join(names)}", "--gtest_color=no")
        env = _within({**self._env, **_WITHOUT_GPU} if unit.hidden else self._env, folder)
        ended = run_stream(argv, cwd=self._build.root, env=env, log=log, on_line=follow.line, stop=follow.stop)
        shutil.rmtree(folder, ignore_errors=True)
        if self._tally.halt.is_set() and ended.stopped:
            return set(names)
        seen, cases = follow.outcome(unit.binary, names, ended.status)
        with self._tally.lock:
            if not unit.hidden:
                self._tally.failures += cases
                return seen
            if not follow.reader.began:  # it does not even start without a GPU
                self._tally.again += [(unit.binary, name) for name in names]
                return set(names)
            self._tally.again += [(unit.binary, case.name) for case in cases if case.name in names]
        return seen


class _Follow:
    """One process: counts as it goes, knows when the running test takes too long, and sums up."""

    def __init__(self, tally: _Tally, limit: float) -> None:
        self.reader = Reader()
        self._tally = tally
        self._limit = limit
        self._since = time.monotonic()
        self._late = False

    def line(self, line: str) -> None:
        """Take a line of the process."""
        passed = len(self.reader.passed)
        if not self.reader.line(line):
            return
        self._since = time.monotonic()
        with self._tally.lock:
            self._tally.passed += len(self.reader.passed) - passed
            self._tally.current = self.reader.running or self._tally.current

    def stop(self) -> bool:
        """Whether the process must be ended."""
        self._late = time.monotonic() - self._since > self._limit
        return self._late or self._tally.halt.is_set()

    def outcome(self, binary: str, names: tuple[str, ...], status: int) -> tuple[set[str], list[TestCase]]:
        """Which tests need not run again, and those of them that did not pass."""
        reader = self.reader
        cases = [TestCase(name=name, state="failed", text=text) for name, text in reader.failed.items()]
        seen = {*reader.passed, *reader.failed}
        died = reader.running
        if died is None and not seen:
            died = names[0]  # it died before any test: that one is given up, so that the rest still runs
        if died is not None:
            state = "timeout" if self._late else "aborted"
            words = f"took more than {self._limit:.0f} s" if self._late else reader.telling() or _exit_words(status)
            cases.append(TestCase(name=died, state=state, text=words))
            seen.add(died)
        elif status < 0 and seen.issuperset(names):
            cases.append(TestCase(name=f"{Path(binary).name} at its end", state="aborted", text=_exit_words(status)))
        return seen, cases


def _gather_logs(root: Path) -> None:
    """Join the processes' logs into one."""
    parts = sorted((root / ".caffeup" / "logs").glob(f"{STAGE}-*.log"))
    with contextlib.suppress(OSError), open_log(root, STAGE) as whole:
        for part in parts:
            with part.open("rb") as source:
                shutil.copyfileobj(source, whole)
    for part in (root / ".caffeup" / "logs").glob(f"{STAGE}-*.log*"):
        part.unlink(missing_ok=True)


def tests_log(build: Build) -> str:
    """Where the log of the last test run lies."""
    return str(log_path(build.path, STAGE))
