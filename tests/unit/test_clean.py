"""clean: what caffeup made goes, all of it, also when it is killed midway; what somebody else put beside it stays."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from caffeup.app.state import StageRecord, State, exclusive, load_state, save_state
from caffeup.build.came import keep_what_came, put_back
from caffeup.cli.main import main
from caffeup.errors import Busy, DiskError, SourceError
from caffeup.model.outcome import StageOutcome
from caffeup.model.plan import Request
from caffeup.model.tree import Origin
from caffeup.source.origin import recorded_origin, write_origin

TESTS = Path(__file__).resolve().parents[1]
Captured = pytest.CaptureFixture[str]

BUILT = (".build_release/lib/libcaffe.so.1.0.0-rc3", ".build_release/tools/caffe.bin", "python/caffe/_caffe.so")
"""Programs and libraries."""
MADE = (
    *(".build_release/src/caffe/blob.o", ".build_release/src/caffe/blob.d", ".build_release/src/caffe/blob.o.warnings.txt"),
    *(".build_release/src/caffe/proto/caffe.pb.h", ".build_release/.linked", "python/caffe/proto/caffe_pb2.py"),
    *(".caffeup/logs/build.log", ".caffeup/plan.json", ".caffeup/times.json", ".caffeup/origin.json"),
)
"""What else a build leaves."""


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A tree in a git checkout, built; the folder of notes is hidden from git as caffeup hides it."""
    tree = tmp_path / "tree"
    shutil.copytree(TESTS / "trees" / "tiny", tree)
    git(tree, "init", "--quiet")
    git(tree, "add", "--all")
    build_in(tree)
    return tree


def git(tree: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=tree, check=True, capture_output=True, text=True).stdout


def build_in(tree: Path) -> None:
    keep_what_came(tree, tree / ".caffeup")
    for name in (*BUILT, *MADE):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(b"\x7fELF" if name in BUILT else b"x\n")
    for name, target in (("lib/libcaffe.so", "libcaffe.so.1.0.0-rc3"), ("tools/caffe", "caffe.bin")):
        (tree / ".build_release" / name).symlink_to(target)
    (tree / "build").symlink_to(".build_release")
    (tree / "python" / "caffe" / "proto" / "__init__.py").touch()
    (tree / ".caffeup" / ".gitignore").write_text("*\n")
    (tree / ".caffeup" / "fingerprint.json").write_text("{}")
    save_state(tree, State(request=Request(cpu=True), stages=(record("build"),)))


def record(name: str) -> StageRecord:
    return StageRecord(name=name, key="k", outcome=StageOutcome(name=name, state="done"))


def status(tree: Path) -> str:
    """What git sees besides the files that were added."""
    return "".join(line for line in git(tree, "status", "--short", "--ignored").splitlines(True) if not line.startswith("A  "))


def test_a_built_tree_is_as_it_came(built: Path, capsys: Captured) -> None:
    assert main(["clean", str(built), "--all", "--yes"]) == 0
    assert status(built) == ""
    assert not (built / ".caffeup").exists()
    capsys.readouterr()
    assert main(["clean", str(built), "--all", "--yes"]) == 0, "a second time there is nothing to do"
    assert "nothing" in capsys.readouterr().out


def test_what_somebody_put_into_the_folders_of_a_build_stays(built: Path, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "precious").write_text("mine")
    mine = (
        *(".build_release/lenet_iter_10.solverstate", ".build_release/tools/weights.bin", ".build_release/notes.txt"),
        *("python/caffe/proto/mine_pb2.py", "python/mine/_caffe.so", ".caffeup/include/mine.h", ".caffeup/notes"),
    )
    for name in mine:
        (built / name).parent.mkdir(parents=True, exist_ok=True)
        (built / name).write_text("mine")
    (built / ".build_release" / "data").symlink_to(tmp_path / "data")
    assert main(["clean", str(built), "--all", "--yes"]) == 0
    assert all((built / name).read_text() == "mine" for name in mine)
    assert (built / ".build_release" / "data" / "precious").read_text() == "mine"
    assert not any((built / name).exists() for name in (*BUILT, *MADE))
    said = capsys.readouterr().out
    assert "lenet_iter_10.solverstate" in said
    assert "notes" in said


def test_of_the_folder_to_distribute_only_copies_go(built: Path) -> None:
    save_state(built, State(stages=(record("distribute"),)))
    for name in ("include/caffe/blob.hpp", "proto/caffe.proto", "bin/caffe.bin", "mine/model", "include/mine.hpp"):
        (built / "distribute" / name).parent.mkdir(parents=True, exist_ok=True)
        (built / "distribute" / name).write_bytes(b"\x7fELF")
    assert main(["clean", str(built), "--products", "--yes"]) == 0
    left = {path.relative_to(built / "distribute").as_posix() for path in (built / "distribute").rglob("*") if path.is_file()}
    assert left == {"mine/model", "include/mine.hpp"}


@pytest.mark.parametrize("how", ["--all", "--products"])
def test_killed_at_any_step_it_goes_on_where_it_stopped(built: Path, how: str) -> None:
    """Every removal and rename is a step; the child ends without any clean-up at the n-th."""
    proto = built / "python" / "caffe" / "proto" / "caffe_pb2.py"
    came = built / ".caffeup" / "came" / "python" / "caffe" / "proto" / "caffe_pb2.py"
    came.parent.mkdir(parents=True)
    came.write_text("came")
    for number in range(1, 400):
        died = _killed_at(number, ["clean", str(built), how, "--yes"])
        state = load_state(built)
        gone = [name for name in (*BUILT, *MADE[:5]) if not (built / name).exists()]
        assert not gone or all(stage.name != "build" for stage in state.stages), "half of a build must not pass for a whole one"
        if not died:
            break
    else:
        pytest.fail("it never came to its end")
    assert number > 10
    assert proto.read_text() == "came"
    assert not any((built / name).exists() for name in (*BUILT, *MADE[:5]))


def _killed_at(number: int, arguments: list[str]) -> bool:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 99
    steps = iter(range(1, number))

    def count(event: str, _arguments: object) -> None:
        if event in {"os.remove", "os.rmdir", "os.rename"} and next(steps, None) is None:
            os._exit(99)

    sys.addaudithook(count)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os._exit(main(arguments) and 1)


def test_what_came_and_was_changed_after_a_clean_is_not_put_back(built: Path) -> None:
    module = built / "python" / "caffe" / "proto" / "caffe_pb2.py"
    came = built / ".caffeup" / "came" / "python" / "caffe" / "proto" / "caffe_pb2.py"
    came.parent.mkdir(parents=True)
    came.write_text("came")
    assert main(["clean", str(built), "--products", "--yes"]) == 0
    assert module.read_text() == "came"
    module.write_text("newer, of a pull")
    assert main(["clean", str(built), "--products", "--yes"]) == 0
    assert module.read_text() == "newer, of a pull"
    build_in_again = built / ".caffeup"
    keep_what_came(built, build_in_again)
    module.unlink()
    put_back(built, build_in_again)
    assert module.read_text() == "newer, of a pull"


def test_a_module_that_stands_as_git_has_it_is_left(built: Path) -> None:
    module = built / "python" / "caffe" / "proto" / "caffe_pb2.py"
    came = built / ".caffeup" / "came" / "python" / "caffe" / "proto" / "caffe_pb2.py"
    came.parent.mkdir(parents=True)
    came.write_text("of an older commit")
    module.write_text("of this commit")
    git(built, "add", "--force", str(module))
    assert main(["clean", str(built), "--products", "--yes"]) == 0
    assert module.read_text() == "of this commit"


def test_the_options_of_the_last_build_are_known_after_a_clean(built: Path) -> None:
    assert main(["clean", str(built), "--products", "--yes"]) == 0
    assert load_state(built).request == Request(cpu=True)
    assert load_state(built).stages == ()


@pytest.fixture
def sealed(built: Path) -> Iterator[Path]:
    folder = built / ".build_release" / "tools"
    folder.chmod(0o500)
    yield folder
    folder.chmod(0o700)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_what_cannot_be_removed_is_told_and_the_next_run_goes_on(built: Path, sealed: Path, capsys: Captured) -> None:
    assert main(["clean", str(built), "--all", "--yes"]) == DiskError.exit_code
    assert "caffe.bin" in capsys.readouterr().err
    assert (built / ".caffeup" / "fingerprint.json").exists()
    sealed.chmod(0o700)
    assert main(["clean", str(built), "--all", "--yes"]) == 0
    assert status(built) == ""


def test_what_the_file_system_refuses_is_no_success(built: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.name == "caffe.bin":
            raise PermissionError(13, "Permission denied", str(path))
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    assert main(["clean", str(built), "--all", "--yes"]) == DiskError.exit_code
    said = capsys.readouterr().err
    assert "caffe.bin: Permission denied" in said
    assert "chmod" in said
    monkeypatch.undo()
    assert main(["clean", str(built), "--all", "--yes"]) == 0
    assert status(built) == ""


def test_a_build_folder_that_somebody_put_elsewhere_is_left_and_told(built: Path, tmp_path: Path, capsys: Captured) -> None:
    (built / ".build_release").rename(tmp_path / "large")
    (built / ".build_release").symlink_to(tmp_path / "large")
    assert main(["clean", str(built), "--all", "--yes"]) == 0
    assert (built / ".build_release").is_symlink()
    assert (tmp_path / "large" / "tools" / "caffe.bin").exists()
    assert str(tmp_path / "large") in capsys.readouterr().out


def test_a_link_called_build_that_leads_elsewhere_is_somebodys(built: Path, tmp_path: Path) -> None:
    (built / "build").unlink()
    (built / "build").symlink_to(tmp_path)
    assert main(["clean", str(built), "--all", "--yes"]) == 0
    assert (built / "build").is_symlink()
    assert not (built / ".build_release").exists()


def test_a_tree_that_is_no_longer_whole_can_be_cleaned(built: Path) -> None:
    for path in sorted((built / "src").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert main(["clean", str(built), "--products", "--yes"]) == 0
    assert not (built / ".build_release").exists()


def test_the_note_where_a_tree_was_fetched_from_came_with_it(built: Path, capsys: Captured) -> None:
    origin = Origin(kind="sdist", url="u", sha256="0" * 64, asked_for="ssd")
    write_origin(built, origin)
    assert main(["clean", str(built), "--all", "--yes"]) == 0
    assert recorded_origin(built) == origin, "up knows the tree by it"
    assert {path.name for path in (built / ".caffeup").iterdir()} <= {"origin.json", ".gitignore"}
    assert "fetched from" in capsys.readouterr().out
    for again in ([], ["--all", "--yes"]):
        assert main(["clean", str(built), *again]) == 0
        assert "has made nothing" in capsys.readouterr().out


def test_what_goes_and_its_size_is_told_before_the_question(built: Path, capsys: Captured) -> None:
    with (built / ".build_release" / "src" / "caffe" / "blob.o").open("wb") as file:
        file.truncate(3 << 20)
    assert main(["clean", str(built), "--all"]) == 1
    said = capsys.readouterr().err
    before, _, _ = said.partition("Remove everything that caffeup made")
    assert "3.0 MiB" in before
    assert str(built / ".build_release") in before
    assert (built / ".build_release").exists()


def test_nobody_is_asked_while_another_caffeup_is_at_work(built: Path, capsys: Captured) -> None:
    with exclusive(built):
        assert main(["clean", str(built), "--all", "--yes"]) == Busy.exit_code
    assert "Remove" not in capsys.readouterr().err


def test_pythons_bytecode_of_pycaffe_goes_and_that_of_others_stays(built: Path) -> None:
    for name in ("python/caffe/io", "python/caffe/proto/caffe_pb2", "python/caffe/mine"):
        module = built / f"{name}.py"
        cached = module.parent / "__pycache__" / f"{module.stem}.cpython-311.pyc"
        cached.parent.mkdir(parents=True, exist_ok=True)
        cached.touch()
        if name != "python/caffe/mine":
            module.touch()
    assert main(["clean", str(built), "--all", "--yes"]) == 0
    assert [path.name for path in built.rglob("*.pyc")] == ["mine.cpython-311.pyc"]


def test_a_folder_that_is_no_tree_is_refused(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "other").mkdir()
    for arguments in ([], ["--all", "--yes"], ["--json"]):
        assert main(["clean", str(tmp_path / "other"), *arguments]) == SourceError.exit_code
    assert "is not a Caffe tree" in capsys.readouterr().err


def test_json_tells_what_was_done(built: Path, capsys: Captured) -> None:
    assert main(["clean", str(built), "--all", "--yes", "--json"]) == 0
    assert any(".build_release" in line for line in json.loads(capsys.readouterr().out))
