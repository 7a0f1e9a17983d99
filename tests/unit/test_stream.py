from __future__ import annotations

import io
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from caffeup.errors import CaffeupError, DiskError
from caffeup.stream import Lines, Streamed, run_capture, run_stream

ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C"}


def cut(*chunks: bytes, longest: int = 1 << 16) -> list[str]:
    seen: list[str] = []
    lines = Lines(seen.append, longest)
    for chunk in chunks:
        lines.feed(chunk)
    lines.feed(b"", last=True)
    return seen


def shell(script: str, tmp_path: Path, **kwargs: Any) -> tuple[list[str], Streamed, bytes]:
    seen: list[str] = []
    log = io.BytesIO()
    ended = run_stream(["bash", "-c", script], cwd=str(tmp_path), env=ENV, log=log, on_line=seen.append, **kwargs)
    return seen, ended, log.getvalue()


def alive(pid: str) -> bool:
    """Whether it runs; one that has ended may wait a moment for its new parent, the system's first process, to take note."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([b"a\nb\n"], ["a", "b"]),
        ([b"a\nb"], ["a", "b"]),
        ([b"\n\n"], ["", ""]),
        ([b"10%\r20%\r\n", b"end\n"], ["10%", "20%", "end"]),
        ([b"10%\r", b"\nend"], ["10%", "end"]),
        ([b"10%\r", b"20%\n"], ["10%", "20%"]),
        ([b"caf\xc3", b"\xa9\n"], ["café"]),
        ([b"\xff\xfeX\n"], ["\ufffd\ufffdX"]),
        ([b"ok \xc3"], ["ok \ufffd"]),
        ([b""], []),
    ],
)
def test_bytes_become_lines(chunks: list[bytes], expected: list[str]) -> None:
    assert cut(*chunks) == expected


def test_long_line_is_cut_and_the_next_is_whole() -> None:
    assert cut(b"x" * 50, b"x" * 50, b"\nnext\n", longest=30) == ["x" * 30, "next"]


def test_a_burst_before_exit_is_never_short(tmp_path: Path) -> None:
    burst = tmp_path / "burst"
    burst.write_bytes(b"".join(b"line %05d\n" % number for number in range(5345)))
    size = burst.stat().st_size
    assert size > 58_000
    for _ in range(200):
        log = io.BytesIO()
        seen: list[str] = []
        run_stream(["cat", str(burst)], cwd=str(tmp_path), env=ENV, log=log, on_line=seen.append)
        assert (len(log.getvalue()), len(seen), seen[-1]) == (size, 5345, "line 05344")


def test_last_line_without_newline_and_bad_bytes(tmp_path: Path) -> None:
    seen, ended, raw = shell(r"printf 'one\n\xff two'; exit 3", tmp_path)
    assert (seen, ended.status, raw) == (["one", "\ufffd two"], 3, b"one\n\xff two")


def test_stderr_is_in_the_same_stream_and_stdin_is_empty(tmp_path: Path) -> None:
    seen, _, _ = shell("echo out; echo err >&2; cat; read x || echo no-input", tmp_path)
    assert seen == ["out", "err", "no-input"]


def test_a_grandchild_that_keeps_the_pipe_is_not_waited_for(tmp_path: Path) -> None:
    seen, ended, _ = shell("sleep 30 & echo $!; exit 3", tmp_path, linger=0.3)
    os.kill(int(seen[0]), signal.SIGKILL)
    assert ended.status == 3
    assert ended.seconds < 10


def test_stop_ends_the_whole_group(tmp_path: Path) -> None:
    seen, ended, _ = shell("sleep 300 & echo $! > new; mv new pid; wait", tmp_path, stop=(tmp_path / "pid").exists)
    assert (seen, ended.stopped) == ([], True)
    assert not alive((tmp_path / "pid").read_text().strip())


def test_a_group_that_ignores_int_and_term_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caffeup.stream.LADDER", ((signal.SIGINT, 0.1), (signal.SIGTERM, 0.1), (signal.SIGKILL, 5.0)))
    seen: list[str] = []
    script = "trap '' INT TERM; echo $$; while :; do sleep 0.05; done"
    ended = run_stream(["bash", "-c", script], cwd=str(tmp_path), env=ENV, on_line=seen.append, stop=lambda: bool(seen))
    assert ended.stopped
    assert ended.status == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_leaves_no_process(tmp_path: Path, number: int) -> None:
    program = f"""
from caffeup.stream import ends_as_ctrl_c, run_stream
with ends_as_ctrl_c():
    run_stream(["bash", "-c", "sleep 300 & echo $! > {tmp_path}/pid; touch {tmp_path}/on; wait"], cwd="/", env={{"PATH": "/usr/bin:/bin"}})
"""
    source = Path(__file__).resolve().parents[2] / "src"
    child = subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(source)}, stderr=subprocess.PIPE, text=True
    )
    while not (tmp_path / "on").exists():
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(number)
    _, error = child.communicate(timeout=30)
    assert "KeyboardInterrupt" in error
    assert not alive((tmp_path / "pid").read_text().strip())


def test_an_error_of_the_watcher_ends_the_program(tmp_path: Path) -> None:
    def fail(line: str) -> None:
        raise RuntimeError(line)

    with pytest.raises(RuntimeError) as caught:
        run_stream(["bash", "-c", "echo $$; sleep 300"], cwd=str(tmp_path), env=ENV, on_line=fail)
    assert not Path(f"/proc/{caught.value}").exists()


def test_a_large_log_needs_no_memory(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    longest = 0

    def watch(line: str) -> None:
        nonlocal longest
        longest = max(longest, len(line))

    with (tmp_path / "log").open("wb") as log:
        script = "head -c 100000000 /dev/zero | tr '\\0' x; echo; seq 1000000"
        run_stream(["bash", "-c", script], cwd=str(tmp_path), env=ENV, log=log, on_line=watch)
    assert (tmp_path / "log").stat().st_size == 100_000_001 + 6_888_896
    assert longest == 1 << 16
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000  # kilobytes


def test_programs_in_threads_can_be_stopped_together(tmp_path: Path) -> None:
    halt = threading.Event()
    results: list[bool] = []

    def one() -> None:
        ended = run_stream(["sleep", "300"], cwd=str(tmp_path), env=ENV, stop=halt.is_set)
        results.append(ended.stopped)

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    halt.set()
    for thread in threads:
        thread.join(30)
    assert results == [True] * 3


def test_a_missing_program_or_folder_is_an_expected_problem(tmp_path: Path) -> None:
    with pytest.raises(CaffeupError, match="cannot start no-such-program"):
        run_stream(["no-such-program"], cwd=str(tmp_path), env=ENV)
    with pytest.raises(CaffeupError, match="cannot start"):
        run_stream(["true"], cwd=str(tmp_path / "gone"), env=ENV)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_ends_the_program(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match="No space left"), Path("/dev/full").open("wb", buffering=0) as log:
        run_stream(["bash", "-c", "echo x; sleep 300"], cwd=str(tmp_path), env=ENV, log=log)


def test_capture_gives_status_and_text(tmp_path: Path) -> None:
    got = run_capture(["bash", "-c", "echo a; echo b >&2; exit 4"], cwd=str(tmp_path), env=ENV)
    assert (got.status, got.output) == (4, "a\nb")


def test_capture_ends_what_takes_too_long(tmp_path: Path) -> None:
    assert run_capture(["sleep", "300"], cwd=str(tmp_path), env=ENV, timeout=0.2).status == 124


STREAMER = """
import os, sys
from caffeup.stream import run_stream
run_stream(["bash", "-c", sys.argv[1]], cwd="/", env=dict(os.environ), on_line=lambda line: print(line, flush=True))
"""


def streaming(script: str) -> tuple[subprocess.Popen[str], str]:
    """A process that streams a script; its first line."""
    process = subprocess.Popen([sys.executable, "-c", STREAMER, script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def test_what_runs_ends_with_a_killed_caffeup_and_its_children_too(tmp_path: Path) -> None:
    process, pids = streaming("sleep 300 & echo $$ $!; wait")
    assert len(pids.split()) == 2
    process.kill()
    process.wait()
    process.stdout.close()  # type: ignore[union-attr]
    deadline = time.monotonic() + 30
    while any(alive(pid) for pid in pids.split()):
        assert time.monotonic() < deadline, "it lives on"
        time.sleep(0.05)


def test_a_program_that_must_not_be_cut_short_is_waited_for(tmp_path: Path) -> None:
    said: list[str] = []
    told: list[str] = []
    log = io.BytesIO()

    def hear(line: str) -> None:
        said.append(line)
        if line == "begun":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_stream(
            ["bash", "-c", "trap '' INT; echo begun; sleep 0.3; seq 20000; echo ended"],
            cwd=str(tmp_path),
            env=ENV,
            log=log,
            on_line=hear,
            finishing=lambda: told.append("wait"),
        )
    assert told == ["wait"]
    assert said[-1] == "ended"
    assert log.getvalue().endswith(b"20000\nended\n")
