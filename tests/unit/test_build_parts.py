from __future__ import annotations

import io
import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caffeup.build.debris import remove_debris, whole_dependencies, whole_elf
from caffeup.build.first import failed_targets, first_error, is_error, read_first_error
from caffeup.build.makefile import Variables, make_environment
from caffeup.build.progress import Bar, Pace, Plain, Status, plain_line, short_line, short_time
from caffeup.build.stale import Fingerprint, remove_stale
from caffeup.build.steps import Estimate, Step, object_of, parse_step, steps_of
from caffeup.build.times import Stopwatch, read_times


@pytest.mark.parametrize(
    ("line", "kind", "name"),
    [
        ("CXX src/caffe/net.cpp", "CXX", "src/caffe/net.cpp"),
        ("echo CXX src/caffe/net.cpp", "CXX", "src/caffe/net.cpp"),
        ("NVCC src/caffe/layers/relu_layer.cu", "NVCC", "src/caffe/layers/relu_layer.cu"),
        ("LD -o .build_release/lib/libcaffe.so.1.0.0", "LD", ".build_release/lib/libcaffe.so.1.0.0"),
        ("AR -o .build_release/lib/libcaffe.a", "AR", ".build_release/lib/libcaffe.a"),
        ("CXX/LD -o .build_release/tools/caffe.bin", "CXX/LD", ".build_release/tools/caffe.bin"),
        ("CXX/LD -o python/caffe/_caffe.so python/caffe/_caffe.cpp", "CXX/LD", "python/caffe/_caffe.so"),
        ("PROTOC src/caffe/proto/caffe.proto", "PROTOC", "src/caffe/proto/caffe.proto"),
        ("PROTOC (python) src/caffe/proto/caffe.proto", "PROTOC (python)", "src/caffe/proto/caffe.proto"),
        (r"echo PROTOC \(python\) src/caffe/proto/caffe.proto", "PROTOC (python)", "src/caffe/proto/caffe.proto"),
    ],
)
def test_steps_are_read_from_make_and_from_its_dry_run(line: str, kind: str, name: str) -> None:
    assert parse_step(line) == Step(kind=kind, name=name)


@pytest.mark.parametrize("line", ["", "g++ src/x.cpp -c", "make: Nothing to be done for 'all'.", "CXX", "LDFLAGS := x", "LD -o "])
def test_other_lines_are_no_steps(line: str) -> None:
    assert parse_step(line) is None


def test_a_step_that_is_announced_twice_counts_once() -> None:
    assert len(steps_of(["CXX a.cpp", "g++ a.cpp", "CXX a.cpp", "CXX b.cpp"])) == 2


def test_objects_of_steps() -> None:
    assert object_of(Step(kind="CXX", name="src/a.cpp"), "b") == "b/src/a.o"
    assert object_of(Step(kind="CXX", name="b/src/p.pb.cc"), "b") == "b/src/p.pb.o"
    assert object_of(Step(kind="NVCC", name="src/a.cu"), "b") == "b/cuda/src/a.o"
    assert object_of(Step(kind="LD", name="b/lib/x.so"), "b") == ""


def steps(count: int) -> tuple[Step, ...]:
    return tuple(Step(kind="CXX", name=f"{number}.cpp") for number in range(count))


def test_time_left_follows_the_pace() -> None:
    estimate = Estimate(steps(100), jobs=2)
    assert estimate.left(0) is None
    for step in steps(51):
        estimate.begin(step)
    assert (estimate.total, estimate.done) == (100, 49)
    assert estimate.left(50) == pytest.approx(50)


def test_time_left_is_never_absurd_after_a_burst_a_stall_and_under_load() -> None:
    pace = Pace()
    done = 0.0
    for tenth in range(3000):  # a burst from a cache for ten seconds, then one piece a second
        done += 4.0 if tenth < 100 else 0.1
        pace.left(done, 300, tenth / 10)
    assert pace.left(done, 300, 300) == pytest.approx(300, rel=0.25)
    after_a_stall = pace.left(done, 300, 360)
    assert after_a_stall is not None
    assert 300 < after_a_stall < 1500
    assert pace.left(done, 300, 1e6) is None, "nobody is told of years"


def test_pace_says_nothing_before_anything_was_done() -> None:
    assert Pace().left(0, 10, 0) is None
    assert Pace().left(0, 10, 100) is None
    assert Pace().left(5, 0, 100) == 0


def test_earlier_times_tell_before_the_first_object() -> None:
    taken = {str(step): 10.0 for step in steps(8)}
    assert Estimate(steps(8), 2, taken).left(0) == pytest.approx(40)


def test_a_step_that_nobody_announced_is_counted() -> None:
    estimate = Estimate((), jobs=1)
    for step in steps(3):
        estimate.begin(step)
    assert (estimate.total, estimate.done) == (3, 2)


def test_times_are_kept_and_a_cache_hit_does_not_shorten_them(tmp_path: Path) -> None:
    step = Step(kind="CXX", name="a.cpp")
    (tmp_path / "b").mkdir()
    for ahead, expected in ((10.0, 10.0), (0.0, 10.0), (20.0, 20.0)):
        watch = Stopwatch()
        watch.begin(step)
        (tmp_path / "b/a.o").touch()
        now = (tmp_path / "b/a.o").stat().st_mtime
        os.utime(tmp_path / "b/a.o", (now, now + ahead))
        watch.keep(tmp_path, "b")
        assert read_times(tmp_path)[str(step)] == pytest.approx(expected, abs=0.5)


def test_damaged_times_are_no_times(tmp_path: Path) -> None:
    (tmp_path / ".caffeup").mkdir()
    (tmp_path / ".caffeup/times.json").write_text('{"seconds": {"a": "b"')
    assert read_times(tmp_path) == {}


GCC = """\
CXX src/caffe/net.cpp
CXX src/caffe/util/io.cpp
src/caffe/net.cpp: In function 'void f()':
src/caffe/net.cpp:3:4: warning: unused [-Wunused]
src/caffe/util/io.cpp:57:34: error: no matching function for call
   57 |   coded_input->SetTotalBytesLimit(a, b);
src/caffe/util/io.cpp:76:34: error: 'CV_LOAD_IMAGE_COLOR' was not declared
make: *** [Makefile:572: .build_release/src/caffe/util/io.o] Error 1
make: *** Waiting for unfinished jobs....
"""


def test_the_first_error_and_not_the_last() -> None:
    found = first_error(GCC.splitlines())
    assert found is not None
    assert (found.place, found.line) == ("src/caffe/util/io.cpp:57", 5)
    assert found.context[0].startswith("   57 |")
    assert failed_targets(GCC.splitlines()) == (".build_release/src/caffe/util/io.o",)


@pytest.mark.parametrize(
    "line",
    [
        'src/caffe/layers/a.cu(12): error: identifier "x" is undefined',
        "nvcc fatal   : Unsupported gpu architecture 'compute_20'",
        "/usr/bin/ld: cannot find -lcblas: No such file or directory",
        "x.cpp:(.text+0x1): undefined reference to `cblas_sgemm'",
        "collect2: error: ld returned 1 exit status",
        "/bin/sh: 1: protoc: not found",
        "g++: fatal error: Killed signal terminated program cc1plus",
        "caffe.proto:3:1: Expected identifier.",
        "src/x.cpp:6:10: fatal error: opencv2/core/core.hpp: No such file or directory",
        "cp: missing destination file operand after 'distribute/bin'",
        "cp: error writing 'x': No space left on device",
    ],
)
def test_errors_of_many_tools(line: str) -> None:
    assert is_error(line)


@pytest.mark.parametrize(
    "line",
    [
        "CXX src/caffe/layers/error_layer.cpp",
        "/usr/include/boost/bind.hpp:36:1: note: '#pragma message: error handling'",
        "src/a.cpp:1:2: warning: catching polymorphic type 'struct boost::python::error_already_set' by value",
        "make: *** Waiting for unfinished jobs....",
        "ar: creating .build_release/lib/libcaffe.a",
    ],
)
def test_what_is_no_error(line: str) -> None:
    assert not is_error(line)


def test_where_only_make_complains_its_words_are_shown() -> None:
    found = first_error(["make: *** No rule to make target 'x.h', needed by 'x.o'.  Stop."])
    assert found is not None
    assert "No rule" in found.text


@given(st.text())
def test_any_text_can_be_searched(text: str) -> None:
    first_error(text.splitlines())
    failed_targets(text.splitlines())


def test_interleaved_lines_are_read_from_the_objects_own_file(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a.cpp:1:2: error: one\nother compiler's line\nmake: *** [Makefile:1: b/a.o] Error 1\n")
    (tmp_path / "b").mkdir()
    (tmp_path / "b/a.o.warnings.txt").write_text("a.cpp:1:2: error: one\n    1 | its own line\n")
    found = read_first_error(tmp_path, tmp_path / "log")
    assert found is not None
    assert (found.line, found.context) == (1, ("    1 | its own line",))


def elf(size: int = 200, table: int = 100) -> bytes:
    head = bytearray(b"\x7fELF\x02\x01\x01" + bytes(57))
    struct.pack_into("<Q", head, 0x28, table)
    struct.pack_into("<HH", head, 0x3A, 64, 1)
    return bytes(head) + bytes(size - 64)


@pytest.mark.parametrize(
    ("raw", "whole"),
    [(elf(), True), (elf(150), False), (elf(200, 0), False), (b"", False), (b"\x7fELF", False), (b"text" * 40, False)],
)
def test_a_cut_object_is_told_from_a_whole_one(tmp_path: Path, raw: bytes, *, whole: bool) -> None:
    (tmp_path / "a.o").write_bytes(raw)
    assert whole_elf(tmp_path / "a.o") is whole


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_real_objects_are_whole(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text("int main() {}\n")
    subprocess.run(["g++", "-MMD", "-c", "a.cpp", "-o", "a.o"], cwd=tmp_path, check=True)
    subprocess.run(["g++", "a.o", "-o", "a.bin"], cwd=tmp_path, check=True)
    assert whole_elf(tmp_path / "a.o")
    assert whole_elf(tmp_path / "a.bin")
    assert whole_dependencies(tmp_path / "a.d")


def test_debris_goes_and_the_rest_stays(tmp_path: Path) -> None:
    build = tmp_path / ".build_release" / "src"
    build.mkdir(parents=True)
    for name, raw in {
        "good.o": elf(), "good.d": b"a: b\n", "cut.o": elf()[:100], "lost.o": elf(), "lost.d": b"a: b", "p.pb.h": b"#if",
        "x.o.warnings.txt": b"",
    }.items():  # fmt: skip
        (build / name).write_bytes(raw)
    (build / "link.so").symlink_to("nowhere")
    assert set(remove_debris(tmp_path)) == {f".build_release/src/{name}" for name in ("cut.o", "lost.d", "lost.o", "p.pb.h")}
    assert {path.name for path in build.iterdir()} == {"good.o", "good.d", "x.o.warnings.txt", "link.so"}


def prints(**changes: Any) -> Fingerprint:
    return Fingerprint(**{"cxx": "1", "cuda": "1", "link": "1", "python": "1", "protoc": "1", **changes})


@pytest.mark.parametrize(
    ("changes", "gone"),
    [
        ({}, set()),
        ({"cuda": "2"}, {"cuda/a.o"}),
        ({"cxx": "2"}, {"a.o"}),
        ({"link": "2"}, {"lib/libcaffe.so.1.0.0-rc3", "lib/libcaffe.a", "tools/caffe.bin", "test/test_all.testbin"}),
        ({"protoc": "2"}, {"src/caffe.pb.h"}),
    ],
)
def test_only_what_other_settings_touch_is_removed(tmp_path: Path, changes: dict[str, str], gone: set[str]) -> None:
    names = {"a.o", "cuda/a.o", "lib/libcaffe.so.1.0.0-rc3", "lib/libcaffe.a", "tools/caffe.bin", "test/test_all.testbin",
             "src/caffe.pb.h", "a.o.warnings.txt", ".linked"}  # fmt: skip
    variables = Variables(values={"BUILD_DIR": ".b_release"})
    remove_stale(tmp_path, prints(), variables)
    for name in names:
        path = tmp_path / ".b_release" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\x7fELF")
    stale = remove_stale(tmp_path, prints(**changes), variables)
    left = {str(path.relative_to(tmp_path / ".b_release")) for path in (tmp_path / ".b_release").rglob("*") if path.is_file()}
    assert names - left == gone
    assert stale.files == len(gone)
    assert remove_stale(tmp_path, prints(**changes), variables).files == 0


@pytest.mark.parametrize(
    ("names", "said"), [({"python/caffe/proto/caffe_pb2.py"}, 0), ({"python/caffe/proto/caffe_pb2.py", ".b_release/a.o"}, 2)]
)
def test_modules_that_came_with_a_tree_are_made_anew_without_a_word(tmp_path: Path, names: set[str], said: int) -> None:
    for name in (*names, "src/caffe/proto/caffe.proto"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert remove_stale(tmp_path, prints(), Variables(values={"BUILD_DIR": ".b_release"})).files == said
    assert not any((tmp_path / name).exists() for name in names)


def test_what_no_build_makes_stays_in_its_folder(tmp_path: Path) -> None:
    """A snapshot's name holds ``.so``, and weights may be called ``.bin``."""
    mine = (
        *(".build_release/lenet_iter_10.solverstate", ".build_release/tools/weights.bin", ".build_release/notes.sorted.txt"),
        *("python/mine/_nms.so", "python/caffe/proto/mine_pb2.py", ".build_release/lib/linker.so"),
    )
    for name in mine:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    assert remove_debris(tmp_path) == ()
    remove_stale(tmp_path, prints(), Variables(values={"BUILD_DIR": ".build_release"}))
    assert all((tmp_path / name).read_text() == "mine" for name in mine)


def test_the_environment_for_make() -> None:
    env = {"PATH": "/usr/bin", "DEBUG": "1", "MAKEFLAGS": "-k", "HOME": "/h", "LC_ALL": "de_DE.UTF-8", "BASH_FUNC_x%%": "() {"}
    made = make_environment(env, (("PATH", "/deps/bin"), ("CCACHE_DIR", "/c"), ("LD_LIBRARY_PATH", "/l")))
    assert made == {
        "PATH": "/deps/bin:/usr/bin", "HOME": "/h", "LC_ALL": "C", "CCACHE_DIR": "/c", "LD_LIBRARY_PATH": "/l"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("before", "now", "because"),
    [
        ({"opencv": "4.5.4", "options of nvcc": "#1"}, {"opencv": "4.6.0", "options of nvcc": "#2"}, "opencv 4.5.4 → 4.6.0, options of nvcc"),
        ({"opencv": "4.6.0"}, {"opencv": "4.6.0", "cudnn": "9.1"}, "cudnn none → 9.1"),
        ({}, {"opencv": "4.6.0"}, "other settings"),
        ({f"n{i}": "1" for i in range(7)}, {f"n{i}": "2" for i in range(7)}, "n0 1 → 2, n1 1 → 2, n2 1 → 2, n3 1 → 2, 3 more"),
    ],
)  # fmt: skip
def test_what_is_built_anew_says_why(tmp_path: Path, before: dict[str, str], now: dict[str, str], because: str) -> None:
    variables = Variables(values={"BUILD_DIR": "build"})
    remove_stale(tmp_path, prints(parts=before), variables)
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "a.o").touch()
    assert remove_stale(tmp_path, prints(cxx="2", parts=now), variables).because == because
    (tmp_path / "build" / "a.o").touch()
    assert remove_stale(tmp_path, prints(cxx="2", parts={"opencv": "1"}), variables).files == 0, "the digests decide"


def test_times_for_people() -> None:
    assert [short_time(x) for x in (0.2, 59.4, 61, 3700, -3)] == ["0 s", "59 s", "1 min 01 s", "1 h 01 min", "0 s"]


@pytest.mark.parametrize("room", [30, 60, 70, 200])
def test_the_end_of_a_path_is_shown_where_a_line_is_short(room: int) -> None:
    current = "CXX src/caffe/layers/batch_norm_layer.cpp"
    status = Status(done=40, total=139, elapsed=80, left=185, current=current)
    line = short_line(status, room)
    assert line.startswith(
        "40 of 139, 1 min 20 s, about 3 min 05 s left: " if room == 200 else "40 of 139, about 3 min 05 s left: "
    )
    assert line.endswith("m_layer.cpp")
    assert len(line) <= max(room, 60)
    assert line.endswith(current) == (room == 200)
    assert short_line(Status(done=1, total=2), room) == "1 of 2, 0 s"


@pytest.mark.parametrize("columns", [80, 120])
def test_a_bar_leaves_room_for_what_is_made(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    bar = Bar("build tests", stream)
    bar.show(Status(done=40, total=139, elapsed=80, left=185, current="CXX src/caffe/layers/batch_norm_layer.cpp"))
    bar.close()
    assert "norm_layer.cpp" in stream.getvalue()


def test_a_plain_line() -> None:
    status = Status(done=40, total=139, current="CXX a.cpp", elapsed=80, left=185, failed=2)
    assert plain_line("build", status) == "build: 40 of 139, 1 min 20 s, about 3 min 05 s left, 2 failed: CXX a.cpp"
    assert plain_line("build", Status(done=3)) == "build: 3, 0 s"
    assert plain_line("build", Status(left=1745.0)).endswith("about 29 min left"), "and no seconds, which nobody can tell"
    assert plain_line("apt", Status(current="Reading lists", elapsed=2)) == "apt: 2 s: Reading lists"


def test_plain_progress_says_little_and_the_end() -> None:
    said: list[str] = []
    plain = Plain("build", said.append)
    for number in range(1001):
        plain.show(Status(done=number, total=1000, elapsed=number / 10))
    plain.close()
    plain.close()
    assert 5 < len(said) < 15
    assert said[-1].startswith("build: 1000 of 1000")
    assert not any("\x1b" in line or "\r" in line for line in said)


def test_the_bar_draws_on_its_stream_and_goes_away() -> None:
    stream = io.StringIO()
    bar = Bar("build", stream)
    bar.close()
    bar.show(Status(done=1, total=4, current="CXX [red]a.cpp"))
    bar.close()
    bar.close()
    assert "\x1b[31m" not in stream.getvalue()
