from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from caffeup.build.progress import Silent, Status
from caffeup.build.run import Build
from caffeup.build.stages import make_all, make_distribute, make_pycaffe
from caffeup.errors import BuildFailed, DiskError
from caffeup.model.plan import Decision, Plan, Request

TINY = Path(__file__).resolve().parents[1] / "trees" / "tiny"
SOURCE = Path(__file__).resolve().parents[2] / "src"
GXX = shutil.which("g++") or ""
needs_compiler = pytest.mark.skipif(not (GXX and shutil.which("make")), reason="needs make and g++")
CONFIG = "CPU_ONLY := 1\nBUILD_DIR := build\nDISTRIBUTE_DIR := distribute\nQ ?= @\nCOMMON_FLAGS := -I.caffeup/include\n"


class Seen:
    def __init__(self) -> None:
        self.all: list[Status] = []
        self.closed = 0

    def show(self, status: Status) -> None:
        self.all.append(status)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tiny"
    shutil.copytree(TINY, root)
    (root / "Makefile.config").write_text(CONFIG)
    (root / ".caffeup" / "include").mkdir(parents=True)
    return root


@pytest.fixture(scope="module")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("built") / "tiny"
    shutil.copytree(TINY, root)
    (root / "Makefile.config").write_text(CONFIG)
    (root / ".caffeup" / "include").mkdir(parents=True)
    make_all(build_of(root), Silent())
    return root


@pytest.fixture
def built(built_once: Path, tmp_path: Path) -> Path:
    """A tree that is built already."""
    return Path(shutil.copytree(built_once, tmp_path / "tiny", symlinks=True))


def build_of(root: Path, **changes: object) -> Build:
    plan: dict[str, object] = {
        "tree": str(root), "fork": "tiny", "request": Request(), "gpu": False, "compiler": GXX, "jobs": 2, **changes
    }  # fmt: skip
    return Build(root=str(root), plan=Plan(**plan), env={"PATH": os.environ["PATH"]})  # type: ignore[arg-type]


def times_of(root: Path, pattern: str) -> dict[str, int]:
    return {str(path.relative_to(root)): path.stat().st_mtime_ns for path in root.glob(pattern)}


@needs_compiler
def test_builds_and_a_second_run_does_nothing(tree: Path) -> None:
    progress = Seen()
    first = make_all(build_of(tree), progress)
    assert first.state == "done"
    assert (tree / ".build_release/tools/caffe").exists()
    assert progress.closed == 1
    last = progress.all[-1]
    assert last.total is not None
    assert 0 < last.done <= last.total
    assert "CXX src/caffe" in Path(first.log).read_text()
    second = make_all(build_of(tree), Silent())
    assert (second.state, second.summary) == ("unchanged", "nothing to do")


@needs_compiler
def test_other_flags_rebuild_all_objects_and_the_same_flags_none(built: Path) -> None:
    before = times_of(built, ".build_release/**/*.o")
    (built / "Makefile.config").write_text(CONFIG + "# only a comment\n")
    make_all(build_of(built), Silent())
    assert times_of(built, ".build_release/**/*.o") == before
    (built / "Makefile.config").write_text(CONFIG + "CXXFLAGS := -DOTHER\n")
    assert make_all(build_of(built), Silent()).state == "done"
    after = times_of(built, ".build_release/**/*.o")
    assert after.keys() == before.keys()
    assert all(after[name] > before[name] for name in before)


@needs_compiler
def test_a_link_setting_only_links_again(built: Path) -> None:
    objects, library = times_of(built, ".build_release/**/*.o"), times_of(built, ".build_release/lib/*.so.*")
    (built / "Makefile.config").write_text(CONFIG + "LDFLAGS := -L/nonexistent\n")
    make_all(build_of(built), Silent())
    assert times_of(built, ".build_release/**/*.o") == objects
    assert times_of(built, ".build_release/lib/*.so.*") != library


@needs_compiler
@pytest.mark.parametrize("what", ["shim", "decision"])
def test_what_the_command_line_does_not_show_rebuilds_too(built: Path, what: str) -> None:
    before = times_of(built, ".build_release/**/*.o")
    build = build_of(built)
    if what == "shim":
        (built / ".caffeup/include/more.h").write_text("#define MORE\n")
    else:
        build = build_of(built, decisions=(Decision(key="opencv", value="4.6", because="there"),))
    make_all(build, Silent())
    after = times_of(built, ".build_release/**/*.o")
    assert all(after[name] > before[name] for name in before)


@needs_compiler
def test_objects_of_unknown_settings_are_made_again(tree: Path) -> None:
    subprocess.run(["make", "lib"], cwd=tree, check=True, capture_output=True)
    before = times_of(tree, ".build_release/**/*.o")
    make_all(build_of(tree), Silent())
    after = times_of(tree, ".build_release/**/*.o")
    assert before
    assert all(after[name] > before[name] for name in before)


@needs_compiler
def test_first_error_with_its_place_and_the_log(tree: Path) -> None:
    (tree / "Makefile.config").write_text(CONFIG + "COMMON_FLAGS += -DTINY_BROKEN\n")
    with pytest.raises(BuildFailed) as caught:
        make_all(build_of(tree), Silent())
    assert "twice_layer" in caught.value.brief
    assert "error" in caught.value.brief
    assert "error" in Path(caught.value.log).read_text()
    (tree / "Makefile.config").write_text(CONFIG)
    assert make_all(build_of(tree), Silent()).state == "done"


@needs_compiler
@needs_compiler
@pytest.mark.parametrize("named", ["{outside}", "../outside"])
def test_make_writes_and_removes_only_inside_the_tree(tree: Path, named: str) -> None:
    outside = tree.parent / "outside"
    outside.mkdir()
    (outside / "precious").touch()
    value = named.format(outside=outside)
    (tree / "Makefile").write_text(
        (tree / "Makefile").read_text() + f"\noverride BUILD_DIR := {value}\nBUILD_DIR_LINK := {value}\n"
    )
    with pytest.raises(BuildFailed, match="outside the tree"):
        make_all(build_of(tree), Silent())
    assert [path.name for path in outside.iterdir()] == ["precious"]


def test_a_makefile_that_make_cannot_read(tree: Path) -> None:
    (tree / "Makefile.config").write_text("this is no makefile\n")
    with pytest.raises(BuildFailed, match="cannot read") as caught:
        make_all(build_of(tree), Silent())
    assert "missing separator" in caught.value.details


@needs_compiler
def test_a_broken_compiler_is_named_before_the_build(tree: Path) -> None:
    fake = tree.parent / "g++"
    fake.write_text("#!/bin/sh\necho 'g++: fatal error: cannot execute cc1plus' >&2\nexit 1\n")
    fake.chmod(0o755)
    with pytest.raises(BuildFailed, match="cannot build the smallest C") as caught:
        make_all(build_of(tree, compiler=str(fake)), Silent())
    assert "cannot execute cc1plus" in caught.value.details


@needs_compiler
def test_the_users_environment_does_not_change_the_build(tree: Path) -> None:
    build = build_of(tree)
    env = {**build.env, "DEBUG": "1", "CXXFLAGS": "-DSURPRISE", "MAKEFLAGS": "-n", "BUILD_DIR": "elsewhere"}
    make_all(Build(root=str(tree), plan=build.plan, env=env), Silent())
    assert (tree / ".build_release/tools/caffe").exists()
    assert not (tree / ".build_debug").exists()


@needs_compiler
def test_half_written_files_are_made_again(built: Path) -> None:
    one = next(built.glob(".build_release/src/caffe/**/*.o"))
    one.write_bytes(one.read_bytes()[: one.stat().st_size // 2])
    dependencies = next(built.glob(".build_release/src/caffe/**/*.d"))
    dependencies.write_text("src/caffe/x.o: src/ca")
    library = next(built.glob(".build_release/lib/*.so.*"))
    library.write_bytes(b"")
    assert make_all(build_of(built), Silent()).state == "done"
    assert library.stat().st_size > 1000
    assert dependencies.read_text().endswith("\n")


@needs_compiler
def test_a_read_only_tree(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / ".caffeup" / "logs").write_text("a file where the folder should be")
    with pytest.raises(DiskError, match="cannot be written"):
        make_all(build_of(tree), Silent())


@needs_compiler
def test_a_full_disk_is_told_from_a_broken_compiler(tree: Path) -> None:
    fake = tree.parent / "g++"
    fake.write_text("#!/bin/sh\necho '/usr/bin/ld: final link failed: No space left on device' >&2\nexit 1\n")
    fake.chmod(0o755)
    with pytest.raises(DiskError, match="no space left"):
        make_all(build_of(tree, compiler=str(fake)), Silent())


@needs_compiler
def test_tools_that_fail_without_a_word_on_a_full_disk(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "Makefile.config").write_text(CONFIG + "COMMON_FLAGS += -DTINY_BROKEN\n")
    monkeypatch.setattr("caffeup.build.run.is_full", lambda _root: True)
    with pytest.raises(DiskError, match="no space left") as caught:
        make_all(build_of(tree), Silent())
    assert caught.value.log.endswith("build.log")


@needs_compiler
def test_old_logs_are_kept(tree: Path) -> None:
    for _ in range(5):
        make_all(build_of(tree), Silent())
    assert sorted(path.name for path in (tree / ".caffeup/logs").iterdir()) == ["build.log", "build.log.1", "build.log.2"]


@needs_compiler
@pytest.mark.skipif(not shutil.which("ccache"), reason="needs ccache")
def test_ccache_is_used_and_a_plain_make_works_after(tree: Path) -> None:
    build = build_of(tree)
    env = {**build.env, "CCACHE_DIR": str(tree.parent / "cache")}
    make_all(Build(root=str(tree), plan=build.plan, env=env, ccache=shutil.which("ccache") or ""), Silent())
    assert any((tree.parent / "cache").rglob("*R")) or any((tree.parent / "cache").rglob("*.o"))
    shutil.rmtree(tree / ".caffeup")
    done = subprocess.run(["make", "all"], cwd=tree, check=True, capture_output=True, text=True)
    assert "CXX" not in done.stdout


@needs_compiler
@pytest.mark.skipif(not shutil.which("ccache"), reason="needs ccache")
def test_a_ccache_that_does_not_work_is_left_out(tree: Path) -> None:
    build = build_of(tree)
    broken = tree.parent / "ccache"
    broken.write_text("#!/bin/sh\necho ccache: error: no space >&2\nexit 1\n")
    broken.chmod(0o755)
    assert make_all(Build(root=str(tree), plan=build.plan, env=build.env, ccache=str(broken)), Silent()).state == "done"


@needs_compiler
def test_ctrl_c_ends_the_compilers_and_the_next_run_goes_on(tree: Path) -> None:
    slow = tree.parent / "g++"
    slow.write_text(f'#!/bin/sh\ncase "$*" in *twice*) touch {tree.parent}/on; sleep 300;; esac\nexec {GXX} "$@"\n')
    slow.chmod(0o755)
    program = f"""
from caffeup.build.stages import make_all
from caffeup.build.progress import Silent
from caffeup.build.run import Build
from caffeup.model.plan import Plan, Request
plan = Plan(tree={str(tree)!r}, fork="tiny", request=Request(), gpu=False, compiler={str(slow)!r}, jobs=2)
make_all(Build(root={str(tree)!r}, plan=plan, env={{"PATH": "{tree.parent}:/usr/bin:/bin"}}), Silent())
"""
    child = subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(SOURCE)}, stderr=subprocess.PIPE, text=True
    )
    while not (tree.parent / "on").exists():
        assert child.poll() is None
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    _, error = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in error
    running = [path for path in Path("/proc").glob("[0-9]*/cwd") if path.exists() and os.path.realpath(path) == str(tree)]
    assert running == []
    assert make_all(build_of(tree), Silent()).state == "done"


def with_module(tree: Path) -> Path:
    """A stand-in for pycaffe's module, newer than its source: building the real one takes Python's headers."""
    shutil.copy(next((tree / ".build_release/lib").glob("*.so.*")), tree / "python/caffe/_caffe.so")
    return tree


@needs_compiler
def test_distribute(built: Path) -> None:
    outcome = make_distribute(build_of(with_module(built)), Silent())
    assert (outcome.state, outcome.summary) == ("done", "copied to distribute")
    assert (built / "distribute/bin/caffe.bin").exists()


@needs_compiler
def test_distribute_of_a_tree_without_examples(built: Path) -> None:
    shutil.rmtree(built / "examples")
    makefile = (built / "Makefile").read_text().replace("shell find examples", "shell find tools -name none")
    (built / "Makefile").write_text(makefile)
    make_distribute(build_of(with_module(built)), Silent())
    assert (built / "distribute/bin/caffe.bin").exists()


@needs_compiler
def test_pycaffe_failure_names_what_is_missing(tree: Path) -> None:
    (tree / "python/caffe/_caffe.cpp").write_text("#include <no_such_header.h>\n")
    with pytest.raises(BuildFailed, match=r"no_such_header\.h"):
        make_pycaffe(build_of(tree), Silent())
