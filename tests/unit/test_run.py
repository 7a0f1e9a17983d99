"""``caffeup run``: output as it was, exit code and signals kept, a terminal stays one; and what is looked at after a failure."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, Optional

import pytest
from packaging.version import Version

from caffeup.diagnose import suspects
from caffeup.diagnose.nets import fitting_batch, grouped, need
from caffeup.diagnose.suspects import Grouped
from caffeup.model.base import ComputeCapability
from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.gpus import Card, GpuNow, Snapshot
from caffeup.model.machine import GpuState
from caffeup.model.suspect import Suspect, Verdict
from caffeup.passthrough import Remembered

RUN = (sys.executable, "-m", "caffeup", "run", "--")
QUIET = {**os.environ, "TERM": "dumb", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def run(*command: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run((*RUN, *command), capture_output=True, env=QUIET, timeout=60, check=False, **options)  # type: ignore[call-overload,no-any-return]


def python(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


def typing(text: bytes) -> Callable[[int], None]:
    return lambda screen: void(os.write(screen, text))


def void(_: object) -> None:
    return


def on_terminal(*command: str, act: Optional[Callable[[int], None]] = None, after: bytes = b"") -> tuple[int, bytes]:
    """Run it on a terminal of its own; ``act`` once the text ``after`` was seen."""
    pid, screen = pty.fork()
    if pid == 0:
        os.execvpe(RUN[0], [*RUN, *command], QUIET)  # noqa: S606
    seen, end = b"", time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([screen], [], [], 0.2)[0]:
            try:
                data = os.read(screen, 1 << 16)
            except OSError:
                break
            if not data:
                break
            seen += data
        if act is not None and after in seen:
            act(screen)
            act = None
    status = os.waitpid(pid, 0)[1]
    os.close(screen)
    return (os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)), seen


def test_streams_stay_apart_and_bytes_are_what_they_were() -> None:
    text = r"import sys; sys.stdout.buffer.write(b'a\r\n\xff\x00\x1b[31m b'); sys.stdout.flush(); sys.stderr.write('e\n')"
    done = run(*python(text))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"a\r\n\xff\x00\x1b[31m b", b"e\n")


def test_a_great_output_arrives_whole() -> None:
    done = run(*python("import sys\nfor i in range(300000): sys.stdout.write(f'{i} ' + 'x' * 50 + '\\n')"))
    assert done.stdout == b"".join(f"{i} {'x' * 50}\n".encode() for i in range(300000))


@pytest.mark.parametrize("code", [0, 1, 134, 255])
def test_the_exit_code_is_kept(code: int) -> None:
    assert run(*python(f"raise SystemExit({code})")).returncode == code


def test_a_signal_is_told_as_a_shell_does() -> None:
    done = run(*python("import os, signal; os.kill(os.getpid(), signal.SIGABRT)"))
    assert done.returncode == 128 + signal.SIGABRT


def test_standard_input_is_the_commands() -> None:
    assert run("cat", input=b"hello").stdout == b"hello"


def test_options_behind_the_command_are_the_commands() -> None:
    assert run("echo", "--help", "-n").stdout == b"--help -n\n"


@pytest.mark.parametrize(("command", "code"), [("no-such-command-here", 127), ("/", 126)])
def test_what_cannot_be_started_ends_as_in_a_shell(command: str, code: int) -> None:
    done = run(command)
    assert done.returncode == code
    assert done.stderr.startswith(b"\ncaffeup: ")
    assert b"Traceback" not in done.stderr


def test_a_failure_is_explained_on_standard_error_alone() -> None:
    line = "/usr/bin/ld: cannot find -lopenblas"
    done = run(*python(f"print({line!r}); raise SystemExit(2)"))
    assert done.returncode == 2
    assert done.stdout.decode() == f"{line}\n"
    assert b"[openblas-library]" in done.stderr


def test_of_a_command_that_was_interrupted_nothing_is_said() -> None:
    done = run(*python("import os, signal; os.kill(os.getpid(), signal.SIGINT)"))
    assert b"looking for" not in done.stderr


def test_where_nobody_reads_any_more_the_command_ends() -> None:
    shell = " ".join(RUN) + " yes | head -n 1"
    done = subprocess.run(
        ["bash", "-c", f"{shell}; exit ${{PIPESTATUS[0]}}"], capture_output=True, env=QUIET, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (128 + signal.SIGPIPE, b"y\n")


def test_what_the_command_leaves_behind_is_not_waited_for() -> None:
    begun = time.monotonic()
    assert run("sh", "-c", "sleep 30 & echo done").stdout == b"done\n"
    assert time.monotonic() - begun < 20


def test_both_streams_in_one_place_keep_their_order() -> None:
    text = "import os\nfor i in range(200): os.write(1 + i % 2, f'{i}\\n'.encode())"
    done = subprocess.run(
        [*RUN, *python(text)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=QUIET, timeout=60, check=False
    )
    assert done.stdout == b"".join(f"{i}\n".encode() for i in range(200))


def test_a_terminal_stays_a_terminal() -> None:
    code, seen = on_terminal(*python("import os; print(os.isatty(0), os.isatty(1), os.isatty(2)); print('a\\tb')"))
    assert code == 0
    assert b"True True True\r\na\tb\r\n" in seen


def test_the_command_reads_what_is_typed() -> None:
    code, seen = on_terminal(*python("print('hello', input('name? '))"), act=typing(b"bob\n"), after=b"name? ")
    assert code == 0
    assert b"hello bob" in seen


def test_ctrl_c_reaches_the_command_once() -> None:
    text = """
import time
try:
    print("ready", flush=True)
    time.sleep(30)
except KeyboardInterrupt:
    print("once", flush=True)
    time.sleep(0.5)
    print("end")
"""
    code, seen = on_terminal(*python(text), act=typing(b"\x03"), after=b"ready")
    assert code == 0
    assert b"once\r\nend\r\n" in seen


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_caffeup_is_passed_on(number: signal.Signals) -> None:
    process = subprocess.Popen([*RUN, *python("import time; print('ready', flush=True); time.sleep(30)")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=QUIET)  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode in {128 + number, 1}
    assert b"looking for" not in said


def test_the_beginning_and_the_end_are_remembered() -> None:
    kept = Remembered(head=100, tail=1000)
    for i in range(1000):
        kept.take(1, f"line {i}\n".encode())
    text = b"".join(kept.chunks())
    assert text.startswith(b"line 0\n")
    assert text.endswith(b"line 999\n")
    assert len(text) < 1200
    assert kept.dropped


def test_lines_of_two_streams_do_not_cut_each_other() -> None:
    kept = Remembered()
    kept.take(1, b"one ")
    kept.take(2, b"error: x\nmo")
    kept.take(1, b"line\n")
    kept.take(2, b"re")
    assert b"".join(kept.chunks()) == b"error: x\none line\nmore\n"


def test_a_line_without_an_end_is_not_kept_for_ever() -> None:
    kept = Remembered(head=10, tail=1 << 18)
    for _ in range(200):
        kept.take(1, b"x" * (1 << 16))
    assert sum(map(len, kept.chunks())) < 1 << 20


NET = """
layer {
  name: "conv1"
  type: "Convolution"
  convolution_param { num_output: 32 kernel_size: 3 }
}
layer {
  name: "conv2/dw" # a { in a comment
  type: "Convolution"
  convolution_param { num_output: 512 group: 512 }
}
layer { name: "conv3/dw" type: "Convolution" convolution_param { group: 64 engine: CAFFE } }
layer { name: "fc {" type: "InnerProduct" }
layer { name: "conv4" type: "Convolution" convolution_param { group: 2 } }
"""


def test_convolutions_with_groups_are_found() -> None:
    assert grouped(NET.splitlines()) == (Grouped(layer="conv2/dw", groups=512), Grouped(layer="conv4", groups=2))
    assert grouped(["I0101 net.cpp:84] Creating Layer conv1", "group: 3"]) is None
    assert grouped(['layer { name: "x" type: "ReLU" }']) == ()


SETUP = """
I0102 03:04:05.1 1 net.cpp:150] Setting up data
I0102 03:04:05.1 1 net.cpp:157] Top shape: 32 3 300 300 (8640000)
I0102 03:04:05.1 1 net.cpp:165] Memory required for data: 34560000
I0102 03:04:05.1 1 net.cpp:165] Memory required for data: 4000000000
I0102 03:04:05.2 1 net.cpp:157] Top shape: 8 3 300 300 (2160000)
I0102 03:04:05.2 1 net.cpp:165] Memory required for data: 8640000
I0102 03:04:05.2 1 net.cpp:165] Memory required for data: 1000000000
"""


def test_what_the_nets_need_is_counted_over_all_of_them() -> None:
    wanted = need(SETUP.splitlines())
    assert wanted is not None
    assert (wanted.blobs, wanted.batch) == (5_000_000_000, 32)
    assert fitting_batch(wanted, 5_000_000_000, training=True) == 16
    assert fitting_batch(wanted, 50_000_000_000, training=True) == 32
    assert fitting_batch(wanted, 1, training=False) == 0
    assert need(["nothing"]) is None


def seen(severity: Severity, *remedies: Remedy) -> Finding:
    evidence = (Evidence(where="/dev/nvidia0", text="crw-rw---- root video"),)
    return Finding(id="x", severity=severity, title="device nodes", evidence=evidence, remedies=remedies)


def snapshot(*free: int) -> Snapshot:
    cards = [Card(index=i, memory_total=80 << 30, memory_free=one) for i, one in enumerate(free)]
    return Snapshot(state=GpuState.PRESENT, gpus=tuple(GpuNow(card=card) for card in cards))


HERE = [("NVIDIA H200", ComputeCapability(9, 0))]
LOOKS: list[tuple[Suspect, Verdict, str]] = [
    (suspects.of_findings("x", "rights", [seen(Severity.OK)]), Verdict.RULED_OUT, "/dev/nvidia0"),
    (
        suspects.of_findings("x", "rights", [seen(Severity.OK), seen(Severity.PROBLEM, Remedy(text="join"))]),
        Verdict.FOUND,
        "video",
    ),
    (suspects.of_findings("x", "rights", []), Verdict.OPEN, "nothing to look at"),
    (suspects.of_findings("x", "cache", [], clear="it is yours"), Verdict.RULED_OUT, "it is yours"),
    (suspects.code_for_card(HERE, [], "SASS 9.0"), Verdict.RULED_OUT, "SASS 9.0"),
    (suspects.code_for_card(HERE, ["NVIDIA H200 (9.0)"], "SASS 6.1"), Verdict.FOUND, "SASS 6.1"),
    (suspects.code_for_card(HERE, None, ""), Verdict.OPEN, "libcaffe.so"),
    (suspects.driver(Version("535.1"), Version("13.0"), "580.65"), Verdict.FOUND, "580.65"),
    (suspects.driver(Version("580.95"), Version("13.0"), "580.65"), Verdict.RULED_OUT, "580.95"),
    (suspects.driver(None, Version("13.0"), "580.65"), Verdict.OPEN, "driver"),
    (suspects.cudnn_pair(Version("9.14"), Version("9.14.0"), "libcudnn.so.9"), Verdict.RULED_OUT, "9.14"),
    (suspects.cudnn_pair(Version("8.9.7"), Version("9.1.0"), "x"), Verdict.FOUND, "8.9.7"),
    (suspects.cudnn_pair(Version("9.14.0"), Version("9.1.0"), "x"), Verdict.FOUND, "9.1.0"),
    (suspects.cudnn_pair(Version("9.1.0"), Version("9"), "x"), Verdict.RULED_OUT, "9"),
    (suspects.memory(snapshot(40 << 30), ()), Verdict.RULED_OUT, "40.0 GiB"),
    (suspects.memory(snapshot(100 << 20), ("process 7 …",)), Verdict.FOUND, "0.1 GiB"),
    (suspects.memory(snapshot(100 << 20, 40 << 30), ()), Verdict.OPEN, "which of them"),
    (suspects.memory(None, ()), Verdict.OPEN, "does not tell"),
    (suspects.groups((Grouped(layer="conv2/dw", groups=512),), "the net"), Verdict.FOUND, "1536 handles"),
    (suspects.groups((Grouped(layer="conv2", groups=2),), "the net"), Verdict.RULED_OUT, "6 handles"),
    (suspects.groups(None, ""), Verdict.OPEN, "no net"),
]


@pytest.mark.parametrize(("suspect", "verdict", "words"), LOOKS)
def test_a_look_at_a_possible_cause(suspect: Suspect, verdict: Verdict, words: str) -> None:
    assert suspect.verdict is verdict
    assert words in suspect.seen
    assert bool(suspect.remedies) is (verdict is Verdict.FOUND) or verdict is Verdict.OPEN


def test_nothing_dangerous_is_proposed() -> None:
    for suspect, _, _ in LOOKS:
        for remedy in suspect.remedies:
            for text in (remedy.text, *remedy.commands):
                assert not any(word in text for word in ("chmod", "sudo", "rm -", "777"))


def finding(name: str) -> Finding:
    return Finding(id=name, severity=Severity.PROBLEM, title=name)


def test_what_was_looked_at_decides_between_causes_that_read_alike() -> None:
    found = [finding("cudnn-handles"), finding("cudnn8-workspace-unbounded"), finding("gpu-memory-at-start")]
    many, none = suspects.groups((Grouped(layer="x", groups=64),), "y"), suspects.groups((), "y")
    full, free = suspects.memory(snapshot(1), ()), suspects.memory(snapshot(9 << 30), ())
    assert [one.id for one in suspects.decided(found, (many, free))] == ["cudnn-handles", "cudnn8-workspace-unbounded"]
    assert [one.id for one in suspects.decided(found, (none, full))] == ["gpu-memory-at-start", "cudnn8-workspace-unbounded"]
    assert [one.id for one in suspects.decided(found[:1], (none, free))] == ["cudnn-handles"], "never nothing at all"
    assert suspects.ranked((free, many))[0] is many
