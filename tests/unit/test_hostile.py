"""What hurts: pipes in place of files, links that lead out, closed outputs, folders that are somebody else's."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from caffeup.app.clean import clean_tree, sizes
from caffeup.app.planning import read_plan
from caffeup.app.session import Session
from caffeup.app.state import exclusive, load_state
from caffeup.build.came import keep_what_came
from caffeup.cli.failure import code_for
from caffeup.cli.main import main
from caffeup.disk import as_path, read_plain
from caffeup.errors import CLOSED_PIPE, WARNINGS, CannotBuild, DiskError, UsageError
from caffeup.model.base import from_json
from caffeup.model.machine import Machine
from caffeup.model.plan import ConfigLine
from caffeup.model.tree import ConfigState
from caffeup.render import setting
from caffeup.source.inspect import config_state
from caffeup.source.origin import recorded_origin

TESTS = Path(__file__).resolve().parents[1]
MACHINE = from_json((TESTS / "machines" / "debian12-no-gpu" / "expected" / "machine.json").read_bytes(), Machine)
Captured = pytest.CaptureFixture[str]


class Yes:
    def ask(self, _question: str) -> bool:
        return True

    def say(self, text: str) -> None:
        """Nothing."""


@pytest.fixture(autouse=True)
def on_debian(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Session, "machine", lambda *_args, **_wishes: MACHINE)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    shutil.copytree(TESTS / "trees" / "tiny", tmp_path / "tiny")
    return tmp_path / "tiny"


@pytest.fixture
def waits_not() -> Iterator[None]:
    """A read that waits for ever ends the test, not the test run."""

    def give_up(_number: int, _frame: object) -> None:
        raise AssertionError("it waits for a pipe")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def program(*arguments: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [sys.executable, "-m", "caffeup", *arguments], check=False, **{"stderr": subprocess.PIPE, **options}
    )


@pytest.mark.usefixtures("waits_not")
def test_a_pipe_in_place_of_a_file_is_not_waited_for(tiny: Path) -> None:
    home = tiny / ".caffeup"
    home.mkdir()
    for name in ("state.json", "origin.json", "ledger.json", "plan.json", "fingerprint.json", "times.json"):
        os.mkfifo(home / name)
    os.mkfifo(tiny / "Makefile.config")
    assert config_state(tiny) is ConfigState.FOREIGN
    assert recorded_origin(tiny) is None
    assert load_state(tiny).request is None
    for arguments in (["plan"], ["doctor"], ["patch", "status"], ["clean"], ["env"], ["configure", "--python", "none"]):
        assert main([*arguments, str(tiny)]) in {0, 1, 2, 3, 4, 10, 12, WARNINGS}


def test_a_file_of_any_size_is_not_read_whole(tmp_path: Path) -> None:
    with (tmp_path / "state.json").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match="large"):
        read_plain(tmp_path / "state.json")


@pytest.mark.parametrize("name", ["", "logs", "tmp", "undo", "include", "lib", "lock", "holder", "logs/build.log"])
def test_nothing_is_written_or_removed_through_a_link_in_our_folder(tiny: Path, tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "logs").mkdir(parents=True)
    (elsewhere / "logs" / "mine.log").write_text("mine")
    place = tiny / ".caffeup" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(elsewhere)
    with pytest.raises(DiskError, match="is a link"), exclusive(tiny):
        pytest.fail("it went through the link")
    assert main(["clean", str(tiny), "--all", "--yes"]) == DiskError.exit_code
    assert main(["patch", "revert", str(tiny)]) == DiskError.exit_code
    assert sorted(path.name for path in elsewhere.rglob("*")) == ["logs", "mine.log"]


def test_clean_removes_what_caffeup_built_and_nothing_that_stands_beside_it(tiny: Path) -> None:
    for name in (".build_release", ".build_debug"):
        (tiny / name / "lib").mkdir(parents=True)
    (tiny / "build").symlink_to(".build_release")
    proto = tiny / "python" / "caffe" / "proto"
    proto.mkdir(exist_ok=True)
    for name in ("caffe_pb2.py", "__init__.py", "mine.py"):
        (proto / name).write_text("" if name == "__init__.py" else "x")
    (tiny / ".caffeup").mkdir()
    assert [one for one in sizes(Session(), tiny) if one.what == "products"] == []
    list(clean_tree(Session(), Yes(), tiny, products=True, logs=False, everything=False))  # type: ignore[arg-type]
    assert (tiny / ".build_release" / "lib").is_dir(), "caffeup never built here"

    (tiny / ".caffeup" / "fingerprint.json").write_text("{}")
    list(clean_tree(Session(), Yes(), tiny, products=True, logs=False, everything=True))  # type: ignore[arg-type]
    assert not (tiny / ".build_release").exists()
    assert not (tiny / "build").is_symlink()
    assert (tiny / ".build_debug" / "lib").is_dir()
    assert [path.name for path in proto.iterdir()] == ["mine.py"]


def products_of_a_build(tree: Path) -> None:
    for name in ("caffe_pb2.py", "__init__.py"):
        (tree / "python" / "caffe" / "proto" / name).write_text("" if name == "__init__.py" else "built")
    (tree / ".caffeup").mkdir(exist_ok=True)
    (tree / ".caffeup" / "fingerprint.json").write_text("{}")


@pytest.mark.parametrize("how", ["--all", "--products"])
def test_clean_puts_back_what_came_with_the_tree_and_was_built_over(tiny: Path, how: str) -> None:
    proto = tiny / "python" / "caffe" / "proto"
    proto.mkdir(exist_ok=True)
    (proto / "caffe_pb2.py").write_text("came")
    (proto / "__init__.py").touch()
    keep_what_came(tiny, tiny / ".caffeup")
    products_of_a_build(tiny)
    (proto / "other_pb2.py").write_text("built")
    (tiny / "src" / "caffe" / "proto" / "other.proto").touch()
    keep_what_came(tiny, tiny / ".caffeup")
    assert main(["clean", str(tiny), how, "--yes"]) == 0
    assert {path.name: path.read_text() for path in proto.iterdir()} == {"caffe_pb2.py": "came", "__init__.py": ""}
    assert not (tiny / ".caffeup" / "fingerprint.json").exists(), "what came is no product of the last build"


def test_what_came_is_not_put_back_through_a_link(tiny: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    proto = tiny / "python" / "caffe" / "proto"
    proto.mkdir(exist_ok=True)
    (proto / "caffe_pb2.py").write_text("came")
    keep_what_came(tiny, tiny / ".caffeup")
    products_of_a_build(tiny)
    shutil.rmtree(proto)
    proto.symlink_to(elsewhere)
    assert main(["clean", str(tiny), "--all", "--yes"]) == 0
    assert list(elsewhere.iterdir()) == []


def test_clean_leaves_what_git_keeps_where_an_earlier_build_recorded_nothing(tiny: Path) -> None:
    (tiny / "python" / "caffe" / "proto").mkdir(exist_ok=True)
    products_of_a_build(tiny)
    for arguments in (["init", "--quiet"], ["add", "--force", "python"]):
        subprocess.run(["git", *arguments], cwd=tiny, check=True)
    assert main(["clean", str(tiny), "--all", "--yes"]) == 0
    assert (tiny / "python" / "caffe" / "proto" / "caffe_pb2.py").is_file()
    assert (tiny / "python" / "caffe" / "proto" / "__init__.py").is_file()


def test_clean_leaves_no_link_that_leads_nowhere_where_the_makefile_names_another_folder(tiny: Path) -> None:
    makefile = tiny / "Makefile"
    makefile.write_text("BUILD_DIR = temp\n" + makefile.read_text())
    (tiny / ".build_release" / "lib").mkdir(parents=True)
    (tiny / "build").symlink_to(".build_release")
    (tiny / ".caffeup").mkdir()
    (tiny / ".caffeup" / "fingerprint.json").write_text("{}")
    assert main(["clean", str(tiny), "--all", "--yes"]) == 0
    assert not (tiny / "build").is_symlink()
    assert not (tiny / ".build_release").exists()


def test_clean_keeps_a_folder_called_build(tiny: Path) -> None:
    (tiny / "build").mkdir()
    (tiny / "build" / "CMakeCache.txt").write_text("mine")
    (tiny / ".caffeup").mkdir()
    (tiny / ".caffeup" / "fingerprint.json").write_text("{}")
    assert main(["clean", str(tiny), "--all", "--yes"]) == 0
    assert (tiny / "build" / "CMakeCache.txt").read_text() == "mine"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["up", "--help"]])
def test_an_output_without_room_is_told_without_a_traceback(arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = program(*arguments, stdout=full)
    assert done.returncode == DiskError.exit_code
    assert b"full" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_reader_that_has_gone_ends_it_quietly_and_not_as_a_success() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = program("--help", stdout=writing)
    finally:
        os.close(writing)
    assert done.returncode != 0
    assert done.stderr == b""
    assert code_for(BrokenPipeError(errno.EPIPE, "Broken pipe")) == CLOSED_PIPE


def test_no_standard_input_is_said(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["diagnose"]) == 2
    assert "standard input" in capsys.readouterr().err


def test_a_home_that_nobody_has_is_no_fault_of_caffeup(capsys: Captured) -> None:
    assert as_path("~nobody-of-that-name/x") == Path("~nobody-of-that-name/x")
    assert main(["plan", "~nobody-of-that-name/x"]) == 7
    assert main(["plan", "--prefix", "~nobody-of-that-name/x"]) == 2
    assert main(["up", "~nobody-of-that-name/x", "--dry-run"]) == 7
    assert "fault of caffeup" not in capsys.readouterr().err


def test_what_the_file_system_refuses_is_told_with_its_path(capsys: Captured) -> None:
    assert code_for(OSError(errno.ENAMETOOLONG, "File name too long", "a" * 5000)) == DiskError.exit_code
    assert code_for(IsADirectoryError(errno.EISDIR, "Is a directory", "/x/.caffeup/plan.json")) == DiskError.exit_code
    said = capsys.readouterr().err
    assert "/x/.caffeup/plan.json: Is a directory" in said
    assert len(said) < 1000


def test_a_current_folder_that_is_gone_is_said(capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["plan"]) == 2
    assert "current folder is gone" in capsys.readouterr().err
    os.chdir(tmp_path)


def test_a_fault_is_told_even_where_no_report_can_be_written(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    assert code_for(ZeroDivisionError("why")) == 70
    assert "ZeroDivisionError: why" in capsys.readouterr().err


def test_ctrl_c_while_it_is_still_being_loaded_leaves_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time\ntime.sleep(5)\n")
    done = program("--help", env={**os.environ, "PYTHONPATH": str(tmp_path)}, stdout=subprocess.PIPE)
    assert done.returncode == 130
    assert b"Traceback" not in done.stderr


def test_what_a_killed_check_leaves_lies_in_the_tree_and_the_next_one_removes_it(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temp = tmp_path / "temp"
    temp.mkdir()
    monkeypatch.setenv("TMPDIR", str(temp))
    monkeypatch.setattr(tempfile, "tempdir", None)
    left = tiny / ".caffeup" / "tmp" / "check" / "left"
    left.mkdir(parents=True)
    assert main(["configure", "--python", "none", "--cpu", str(tiny)]) == 0
    assert not left.exists()
    assert list(temp.iterdir()) == []


def test_a_disk_too_full_for_a_note_does_not_stop_clean(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = tiny / ".caffeup" / "logs"
    logs.mkdir(parents=True)
    (logs / "build.log").write_text("x")
    write = Path.write_text

    def full(path: Path, *args: object, **wishes: object) -> int:
        if path.name == "holder":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return write(path, *args, **wishes)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "write_text", full)
    assert main(["clean", str(tiny), "--logs", "--yes"]) == 0
    assert not logs.exists()


def test_clean_leaves_none_of_the_empty_folders_that_the_makefile_makes(tiny: Path) -> None:
    before = sorted(path for path in tiny.rglob("*"))
    for name in ("distribute/include", "distribute/bin", "python/other/proto", ".build_release"):
        (tiny / name).mkdir(parents=True)
    (tiny / ".caffeup").mkdir()
    (tiny / ".caffeup" / "fingerprint.json").write_text("{}")
    assert main(["clean", str(tiny), "--all", "--yes"]) == 0
    assert sorted(path for path in tiny.rglob("*")) == sorted({*before, tiny / "python" / "other"})


def test_clean_keeps_what_lies_in_a_folder_called_distribute(tiny: Path) -> None:
    (tiny / "distribute" / "mine").mkdir(parents=True)
    (tiny / "distribute" / "mine" / "model").write_text("mine")
    (tiny / ".caffeup").mkdir()
    (tiny / ".caffeup" / "fingerprint.json").write_text("{}")
    assert main(["clean", str(tiny), "--all", "--yes"]) == 0
    assert (tiny / "distribute" / "mine" / "model").read_text() == "mine"


@pytest.mark.parametrize("arguments", [["--explain", "blas"], ["--why-not", "8.6"]])
def test_every_answer_of_plan_is_json_where_json_is_asked_for(tiny: Path, arguments: list[str], capsys: Captured) -> None:
    assert main(["plan", str(tiny), "--cpu", "--json", *arguments]) in {0, 3}
    assert json.loads(capsys.readouterr().out)


def test_a_read_only_disk_is_not_told_to_be_made_room_on(capsys: Captured) -> None:
    assert code_for(OSError(errno.EROFS, "Read-only file system", "/x/notes")) == DiskError.exit_code
    said = capsys.readouterr().err
    assert "/x/notes" in said
    assert "space" not in said


@pytest.mark.parametrize(
    "line",
    [
        ConfigLine(key="X := $(shell id)\nY", value=("1",), because="x"),
        ConfigLine(key="$(shell id)", value=("1",), because="x"),
        ConfigLine(key="X", value=("id",), because="x", operator="!=", raw=True),
        ConfigLine(key="X", value=("$(shell id)",), because="x", raw=True),
        ConfigLine(key="X", value=("${eval Y:=1}",), because="x", raw=True),
    ],
)
def test_a_plan_from_elsewhere_cannot_make_make_run_a_program(line: ConfigLine) -> None:
    with pytest.raises(CannotBuild):
        setting(line)


@pytest.mark.parametrize(
    "field", ['"build_dir": "../../x"', '"build_dir": "/x"', '"build_dir": ""', '"build_dir": "."', '"schema": 99']
)
def test_a_plan_that_leads_out_of_the_tree_or_of_another_form_is_refused(tmp_path: Path, field: str) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(f'{{"tree": "/x", "fork": "bvlc", "request": {{}}, "gpu": false, {field}}}')
    with pytest.raises(UsageError, match=r"form 99|outside the tree"):
        read_plan(str(plan))


@pytest.mark.parametrize("arguments", [["plan", "--json"], ["doctor"], ["up", "--dry-run"]])
def test_a_path_that_is_no_utf8_text_is_refused_in_words(tiny: Path, arguments: list[str], capsys: Captured) -> None:
    odd = os.fsdecode(os.fsencode(tiny.parent) + b"/bad\xff")
    tiny.rename(odd)
    assert main([*arguments, odd]) == 7
    assert "UTF-8" in capsys.readouterr().err
    assert not Path(odd, ".caffeup").exists()
