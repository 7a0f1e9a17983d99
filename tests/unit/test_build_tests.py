from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caffeup import errors
from caffeup.build.gtest import Reader, filters, parse_list
from caffeup.build.progress import Silent
from caffeup.build.run import Build
from caffeup.build.runtest import run_tests
from caffeup.build.stages import make_all
from caffeup.build.testbuild import TestPrograms, build_tests
from caffeup.model.outcome import TestReport
from caffeup.model.plan import Plan, Request

TINY = Path(__file__).resolve().parents[1] / "trees" / "tiny"
GXX = shutil.which("g++") or ""
CONFIG = "CPU_ONLY := 1\nBUILD_DIR := build\nDISTRIBUTE_DIR := distribute\nQ ?= @\n"
needs_compiler = pytest.mark.skipif(not (GXX and shutil.which("make")), reason="needs make and g++")
SPOILT = "src/caffe/test/test_spoilt.cpp"

LISTED = """Cuda number of devices: 32767
Current device id: 32767
NeuronLayerTest/0.  # TypeParam = caffe::CPUDevice<float>
  TestAbsVal
  TestReLU
SolverFactoryTest/1.
  TestCreateSolver  # GetParam() = 3
CommonTest.
  DISABLED_TestSlow
  TestBrewMode
"""


def test_names_from_the_list() -> None:
    assert parse_list(LISTED.splitlines()) == (
        "NeuronLayerTest/0.TestAbsVal",
        "NeuronLayerTest/0.TestReLU",
        "SolverFactoryTest/1.TestCreateSolver",
        "CommonTest.TestBrewMode",
    )


@given(st.lists(st.from_regex(r"[A-Z]\w{0,30}/\d\.Test\w{1,9}", fullmatch=True), unique=True), st.integers(1, 200))
def test_filters_hold_every_name_once_and_fit(names: list[str], room: int) -> None:
    groups = filters(names, room)
    assert [name for group in groups for name in group] == names
    assert all(len(group) == 1 or len(":".join(group)) <= room for group in groups)


@given(st.text())
def test_reading_never_raises(text: str) -> None:
    reader = Reader()
    for line in text.splitlines():
        reader.line(line)
    parse_list(text.splitlines())


def read(text: str) -> Reader:
    reader = Reader()
    for line in text.splitlines():
        reader.line(line)
    return reader


def test_a_failed_expectation_is_told_with_its_values() -> None:
    reader = read(
        "[ RUN      ] NetTest/0.TestLoss\n"
        "src/caffe/test/test_net.cpp:9: Failure\nValue of: a\n  Actual: 1\nExpected: 2\n"
        "[  FAILED  ] NetTest/0.TestLoss, where TypeParam = caffe::CPUDevice<float> (3 ms)\n"
        "[  FAILED  ] NetTest/0.TestLoss, where TypeParam = caffe::CPUDevice<float>\n"
    )
    assert reader.failed == {"NetTest/0.TestLoss": "src/caffe/test/test_net.cpp:9: Failure Value of: a Actual: 1 Expected: 2"}
    assert reader.running is None


def test_an_abort_leaves_its_test_running_and_tells_the_check() -> None:
    reader = read(
        "[ RUN      ] A/0.One\n[       OK ] A/0.One (0 ms)\n[ RUN      ] A/0.Two\n"
        "I0101 setup\nF0101 12:00:00 1 io.cpp:20] Check failed: fd != -1 (-1 vs. -1) File not found: x.jpg\n*** Check failure stack trace: ***\n"
    )
    assert (reader.passed, reader.running) == (["A/0.One"], "A/0.Two")
    assert reader.telling() == "io.cpp:20: Check failed: fd != -1 (-1 vs. -1) File not found: x.jpg"


def test_output_without_newline_before_the_mark_hides_nothing() -> None:
    reader = read("progress 10%[ RUN      ] A.One\ntext without end[       OK ] A.One (0 ms)\n")
    assert reader.passed == ["A.One"]


def test_a_test_that_prints_the_mark_of_another_changes_nothing() -> None:
    reader = read("[ RUN      ] A.One\n[       OK ] B.Two (0 ms)\n")
    assert (reader.passed, reader.running) == ([], "A.One")


@pytest.fixture(scope="module")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tests") / "tiny"
    shutil.copytree(TINY, root)
    (root / "Makefile.config").write_text(CONFIG)
    make_all(build_of(root), Silent())
    build_tests(build_of(root), Silent())
    return root


@pytest.fixture
def tree(built_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built_once, tmp_path / "tiny", symlinks=True))


def build_of(root: Path, *, jobs: int = 2, test_filter: str = "", env: Mapping[str, str] = {}) -> Build:
    plan = Plan(
        tree=str(root), fork="tiny", request=Request(), gpu=False, compiler=GXX, jobs=jobs, test_filter=test_filter
    )  # fmt: skip
    return Build(root=str(root), plan=plan, env={"PATH": os.environ["PATH"], **env})


def run(root: Path, **env: str) -> TestReport:
    build = build_of(root, env=env)
    return run_tests(build, build_tests(build, Silent()), Silent())


@needs_compiler
def test_one_binary_and_all_pass_and_nothing_is_left(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "temp").mkdir()
    report = run(tree, TMPDIR=str(tmp_path / "temp"))
    assert (report.total, report.passed, report.failures) == (6, 6, ())
    assert list((tmp_path / "temp").iterdir()) == []
    assert list((tree / ".caffeup/tmp").iterdir()) == []
    assert (tree / ".build_release/test/test_all.testbin").exists()
    assert not (tree / ".build_release/test/test_twice_layer.testbin").exists()
    log = (tree / ".caffeup/logs/test.log").read_text()
    assert log.count("[       OK ]") == 6


@needs_compiler
@pytest.mark.parametrize("jobs", [1, 2, 9])
def test_an_abort_hides_no_other_test(tree: Path, jobs: int) -> None:
    build = build_of(tree, jobs=jobs, env={"TINY_ABORT": "1", "TINY_FAIL": "1"})
    programs = build_tests(build, Silent())
    report = run_tests(build, programs, Silent(), known=lambda name: "known" if "Aborts" in name else "")
    assert (report.total, report.passed) == (6, 4)
    assert [(case.name, case.state, case.known) for case in report.failures] == [
        ("HabitTest.TestAborts", "aborted", "known"),
        ("HabitTest.TestFails", "failed", ""),
    ]
    assert "TINY_ABORT" in report.failures[0].text
    assert [case.name for case in report.unknown_failures] == ["HabitTest.TestFails"]


@needs_compiler
def test_the_filter_leaves_out_and_counts(tree: Path) -> None:
    build = build_of(tree, test_filter="*/1.*:Last*")
    report = run_tests(build, build_tests(build, Silent()), Silent())
    assert (report.total, report.passed, report.skipped) == (4, 4, 2)


@needs_compiler
def test_a_source_that_does_not_compile_stops_nothing(tree: Path) -> None:
    (tree / SPOILT).write_text("stray line\n")
    report = run(tree)
    assert (report.total, report.passed) == (6, 6)
    assert [(case.name, case.state) for case in report.failures] == [(SPOILT, "not-compiled")]
    assert "stray" in report.failures[0].text
    again = build_tests(build_of(tree), Silent())
    assert (again.steps, [case.name for case in again.not_compiled]) == (0, [SPOILT])
    (tree / SPOILT).write_text("static int mended;\nint MendedTest() { return mended; }\n")
    assert run(tree).failures == ()


@needs_compiler
def test_a_test_that_does_not_link_is_an_error(tree: Path) -> None:
    (tree / SPOILT).write_text("int NotThere();\nint Uses() { return NotThere(); }\n")
    with pytest.raises(errors.BuildFailed, match="undefined reference"):
        build_tests(build_of(tree), Silent())


@needs_compiler
def test_a_tree_without_one_target_for_all(tree: Path) -> None:
    makefile = (tree / "Makefile").read_text().replace("TEST_ALL_BIN", "TEST_OTHER_BIN")
    (tree / "Makefile").write_text(makefile.replace("test: $(TEST_OTHER_BIN) $(TEST_BINS)", "test: $(TEST_BINS)"))
    report = run(tree)
    assert (report.total, report.passed) == (6, 6)
    assert (tree / ".build_release/test/test_twice_layer.testbin").exists()


def program(tmp_path: Path, body: str) -> Build:
    """A stand-in for a test binary: lists two tests and does what ``body`` says."""
    (tmp_path / "bin").write_text(
        f'#!/bin/bash\ncase "$*" in *list_tests*) printf "A.\\n  One\\n  Two\\n"; exit 0;; esac\n{body}\n'
    )
    (tmp_path / "bin").chmod(0o755)
    return build_of(tmp_path, jobs=1)


def outcome(build: Build, limit: float = 60.0) -> list[tuple[str, str]]:
    report = run_tests(build, TestPrograms(binaries=("bin",)), Silent(), limit=limit)
    return [(case.name, case.state) for case in report.failures]


def test_a_test_that_hangs_is_ended_and_the_next_runs(tmp_path: Path) -> None:
    body = 'case "$*" in *One*) echo "[ RUN      ] A.One"; sleep 300;; *) echo "[ RUN      ] A.Two"; echo "[       OK ] A.Two (0 ms)";; esac'
    assert outcome(program(tmp_path, body), limit=0.5) == [("A.One", "timeout")]


def test_a_binary_that_dies_before_its_tests_gives_each_of_them_up(tmp_path: Path) -> None:
    assert outcome(program(tmp_path, "exit 1")) == [("A.One", "aborted"), ("A.Two", "aborted")]


def test_a_crash_after_the_last_test_is_reported(tmp_path: Path) -> None:
    body = "".join(f'echo "[ RUN      ] A.{n}"; echo "[       OK ] A.{n} (0 ms)";' for n in ("One", "Two"))
    assert outcome(program(tmp_path, body + "kill -SEGV $$")) == [("bin at its end", "aborted")]


def test_a_binary_that_cannot_list_its_tests(tmp_path: Path) -> None:
    (tmp_path / "bin").write_text("#!/bin/bash\necho 'error while loading shared libraries: libglog.so.9'\nexit 127\n")
    (tmp_path / "bin").chmod(0o755)
    with pytest.raises(errors.TestsFailed, match="does not start") as caught:
        outcome(build_of(tmp_path))
    assert "libglog" in caught.value.details


# A test binary of a build with CUDA: it notes what it ran and which GPUs it saw; NetTest needs one.
FAKE = """#!/bin/sh
if [ "$1" = --gtest_list_tests ]; then
  printf 'BlobTest/0.\\n  TestInit\\n  TestCopy\\nNetTest/1.\\n  TestNet\\nBlobTest/1.\\n  TestInit\\n'
  case $2 in *=-*) exit 0;; esac
  printf 'NeuronLayerTest/2.\\n  TestReLU\\n  TestTanH\\nCuDNNLayerTest/0.\\n  TestConv\\n'
  exit 0
fi
names=${1#--gtest_filter=}
echo "${CUDA_VISIBLE_DEVICES:-all} $names" > ran-$$
[ -z "$NEVER" ] || [ -z "$CUDA_VISIBLE_DEVICES" ] || exit 1
IFS=:
for name in $names; do
  printf '[ RUN      ] %s\\n' "$name"
  case $CUDA_VISIBLE_DEVICES$name in -1NetTest*) echo 'F0101 12:00:00 1 cudnn_conv_layer.cpp:52] Check failed'; kill -ABRT $$;; esac
  case $BROKEN in "$name") exit 3;; esac
  printf '[       OK ] %s (0 ms)\\n' "$name"
done
"""
ON_GPU = "NeuronLayerTest/2.TestReLU:NeuronLayerTest/2.TestTanH:CuDNNLayerTest/0.TestConv"


def run_fake(folder: Path, *, jobs: int = 2, test_filter: str = "", **env: str) -> tuple[TestReport, list[str]]:
    """The report, and what each process saw and ran."""
    (folder / "fake").write_text(FAKE)
    (folder / "fake").chmod(0o755)
    plan = Plan(tree=str(folder), fork="tiny", request=Request(), gpu=True, jobs=jobs, test_filter=test_filter)
    build = Build(root=str(folder), plan=plan, env={"PATH": os.environ["PATH"], **env})
    report = run_tests(build, TestPrograms(binaries=("fake",)), Silent())
    return report, sorted(path.read_text().strip() for path in folder.glob("ran-*"))


@pytest.mark.parametrize("jobs", [1, 2, 8])
def test_the_tests_of_the_gpu_run_in_one_process_and_it_is_hidden_from_the_others(tmp_path: Path, jobs: int) -> None:
    report, ran = run_fake(tmp_path, jobs=jobs)
    assert (report.total, report.passed, report.failures) == (7, 7, ())
    assert [one for one in ran if one.startswith("all")] == ["all NetTest/1.TestNet", f"all {ON_GPU}"]
    hidden = [one for one in ran if one.startswith("-1 ")]
    assert len(hidden) == {1: 2, 2: 2, 8: 4}[jobs]  # the abort takes a process of its own where something is left
    assert not any("/2." in one or "CuDNN" in one for one in hidden)


def test_what_fails_with_and_without_the_gpu_is_told_once(tmp_path: Path) -> None:
    report, _ = run_fake(tmp_path, BROKEN="BlobTest/0.TestCopy")
    assert (report.total, report.passed) == (7, 6)
    assert [(case.name, case.state) for case in report.failures] == [("BlobTest/0.TestCopy", "aborted")]


def test_a_binary_that_never_starts_without_a_gpu_is_not_asked_test_by_test(tmp_path: Path) -> None:
    report, ran = run_fake(tmp_path, NEVER="1")
    assert (report.total, report.passed) == (7, 7)
    assert len(ran) == 3


def test_where_no_test_of_the_gpu_is_wanted_nothing_is_hidden_or_run_twice(tmp_path: Path) -> None:
    report, ran = run_fake(tmp_path, test_filter="*/2.*:*CuDNN*", BROKEN="BlobTest/0.TestCopy")
    assert (report.total, report.passed, report.skipped) == (4, 3, 3)
    assert all(one.startswith("all ") for one in ran)
