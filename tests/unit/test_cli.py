"""The program as a person meets it: words, exit codes, JSON alone on stdout, and no traceback."""

from __future__ import annotations

import errno
import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from caffeup.app.session import Session
from caffeup.build.progress import Status
from caffeup.cli import show
from caffeup.cli.failure import code_for
from caffeup.cli.main import main
from caffeup.cli.request import make_request
from caffeup.cli.terminal import Terminal
from caffeup.errors import BuildFailed, CaffeupError, SourceError, UsageError
from caffeup.model.base import from_json
from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.machine import Machine
from caffeup.model.outcome import PatchEntry, PatchState, Report, StageOutcome
from caffeup.model.plan import Request

TESTS = Path(__file__).resolve().parents[1]
MACHINE = from_json((TESTS / "machines" / "debian12-no-gpu" / "expected" / "machine.json").read_bytes(), Machine)
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def on_debian(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Session, "machine", lambda *_named: MACHINE)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    shutil.copytree(TESTS / "trees" / "tiny", tmp_path / "tiny")
    return tmp_path / "tiny"


def test_help_names_every_command(capsys: Captured) -> None:
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    for command in ("up", "detect", "doctor", "plan", "configure", "patch", "build", "verify", "diagnose", "env", "clean"):
        assert f"\n  {command} " in said


@pytest.mark.parametrize("group", [[], ["patch"]])
def test_the_summary_of_every_command_is_whole_on_one_line(
    group: list[str], capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*group, "--help"]) == 0
    rows = capsys.readouterr().out.partition("Commands:\n")[2].splitlines()
    assert len(rows) >= 6
    for row in rows:
        assert re.fullmatch(r"  \S+ +[A-Z].*[a-z]\.", row), row


def test_commands_that_plan_take_the_same_options(capsys: Captured) -> None:
    for command in ("up", "plan", "configure"):
        assert main([command, "--help"]) == 0
        said = capsys.readouterr().out
        for option in ("--cpu", "--no-cudnn", "--arch", "--cuda", "--python", "--blas", "--prefix", "--force"):
            assert f" {option} " in said


def test_help_loads_nothing_heavy() -> None:
    heavy = {"git", "requests", "jinja2", "rich.console", "rich.progress", "pynvml", "elftools", "msgspec"}
    code = "import sys, caffeup.cli.main; print(*sys.modules)"
    loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())
    assert not loaded & heavy


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nonsense"], 2, "nonsense"),
        (["up", "--arch", "8.6,x", "--dry-run"], 2, "--arch"),
        (["up", "--blas", "eigen", "--dry-run"], 2, "open, atlas, mkl"),
        (["up", "--prefix", "nowhere", "--dry-run"], 2, "no such folder"),
        (["up", "no-such-thing", "--dry-run"], 7, "no-such-thing"),
        (["up", "--upload-pack=evil"], 2, "upload-pack"),
        (["plan"], 7, "no Caffe tree here"),
        (["plan", "nowhere"], 7, "nowhere"),
        (["env"], 7, "no Caffe tree here"),
        (["diagnose", "nowhere.log"], 2, "nowhere.log"),
        (["diagnose", "--machine", "nowhere.json", "nowhere.log"], 2, "nowhere.json"),
    ],
)
def test_bad_arguments_end_in_words(capsys: Captured, arguments: list[str], code: int, said: str) -> None:
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert said in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("arguments", [["detect"], ["up", "--dry-run"], ["doctor"], ["patch", "list"]])
def test_json_stands_alone_on_stdout(capsys: Captured, arguments: list[str]) -> None:
    main([*arguments, "--json"])
    json.loads(capsys.readouterr().out)


def test_plan_of_a_tree(tiny: Path, capsys: Captured) -> None:
    assert main(["plan", str(tiny)]) == 0
    said = capsys.readouterr().out
    assert "no NVIDIA GPU" in said or "no GPU" in said
    assert main(["plan", str(tiny), "--explain", "mode"]) == 0
    assert "cpu" in capsys.readouterr().out
    assert main(["plan", str(tiny), "--explain", "nonsense"]) == 2
    assert "mode" in capsys.readouterr().err
    assert main(["plan", str(tiny), "--why-not", "8.6"]) == 0
    assert "without CUDA" in capsys.readouterr().out


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tuple(one for one in MACHINE.programs if one.name not in {"git", "make", "protoc"})
    machine = msgspec.structs.replace(MACHINE, compilers=(), libraries=(), programs=programs)
    monkeypatch.setattr(Session, "machine", lambda *_named: machine)
    monkeypatch.setattr(
        "caffeup.source.git.unanswered", lambda url, _host: None if "BVLC" in url else "Could not resolve host: github.com"
    )


@pytest.mark.usefixtures("bare")
class TestOnABareMachine:
    def test_the_doctor_lists_what_is_missing_and_the_command(self, capsys: Captured) -> None:
        assert main(["doctor"]) == 1
        said = capsys.readouterr().out
        for part in ("g++:", "make:", "Boost:", "apt-get install", "libboost-system-dev"):
            assert part in said
        assert main(["doctor", "--json"]) == 1
        found = {one["id"]: one for one in json.loads(capsys.readouterr().out)}
        assert "protobuf-compiler" in found["missing-needed"]["remedies"][0]["commands"][-1]
        assert found["missing-optional"]["severity"] == "note"

    def test_a_dry_run_shows_the_command_and_says_that_something_is_missing(self, capsys: Captured) -> None:
        assert main(["up", "bvlc", "--dry-run"]) == 8
        captured = capsys.readouterr()
        assert " git ca-certificates g++ " in captured.out
        assert "would fetch https://github.com/BVLC/caffe into " in captured.err
        assert "the plan is what can be known before the tree is and the packages are here" in captured.err
        assert captured.out.startswith("plan         bvlc tree, CPU-only, ")

    def test_a_dry_run_shows_the_substitute(self, capsys: Captured) -> None:
        assert main(["up", "ssd", "--dry-run"]) == 8
        captured = capsys.readouterr()
        assert "brocolli can be had instead of ssd" in captured.err
        assert " git " not in captured.out, "an archive needs no git"

    def test_a_dry_run_shows_the_plan_also_where_the_tree_cannot_be_had_now(self, capsys: Captured) -> None:
        assert main(["up", "nvidia", "--dry-run"]) == 7
        captured = capsys.readouterr()
        assert captured.out.startswith("plan         nvidia tree, CPU-only, ")
        assert "depthwise  known when the tree is here" in captured.out
        assert "cannot reach https://github.com/NVIDIA/caffe: Could not resolve host: github.com" in captured.err

    @pytest.mark.parametrize("dry", [["--dry-run"], []])
    def test_a_folder_is_not_taken_elsewhere(self, dry: list[str], tiny: Path, capsys: Captured) -> None:
        assert main(["up", str(tiny), "--into", str(tiny.parent / "other"), *dry]) == 2
        assert "used where it is" in capsys.readouterr().err
        assert not (tiny.parent / "other").exists()

    def test_a_dry_run_refuses_what_up_would_refuse(self, tiny: Path, capsys: Captured) -> None:
        assert main(["up", str(tiny / "README.md"), "--dry-run"]) == 7
        assert "no archive" in capsys.readouterr().err
        assert main(["up", "bvlc", "--into", str(tiny / "README.md"), "--dry-run"]) == 7
        assert "is there already" in capsys.readouterr().err

    def test_a_plan_says_it_too(self, tiny: Path, capsys: Captured) -> None:
        assert main(["plan", str(tiny)]) == 8
        said = capsys.readouterr().out
        assert said.startswith("plan         ")
        assert "apt-get install" in said


def test_the_doctor_is_content_with_a_machine_that_has_all(capsys: Captured) -> None:
    assert main(["doctor"]) == 0
    assert "missing" not in capsys.readouterr().out


def test_a_name_of_the_catalogue_is_no_folder_and_the_way_to_its_plan_is_told(capsys: Captured) -> None:
    assert main(["plan", "ssd"]) == SourceError.exit_code
    assert "caffeup up ssd --dry-run" in capsys.readouterr().err
    assert main(["plan", "nowhere"]) == SourceError.exit_code
    assert "--dry-run" not in capsys.readouterr().err


def test_only_what_can_be_a_conflict_can_be_forced(tiny: Path, capsys: Captured) -> None:
    assert main(["plan", str(tiny), "--force", "compiler-too-neww"]) == UsageError.exit_code
    assert "compiler-too-new" in capsys.readouterr().err
    assert main(["plan", str(tiny), "--force", "nonsense"]) == UsageError.exit_code
    assert main(["plan", str(tiny), "--force", "gpu-dropped"]) == 0, "also where it is none here"


def test_configure_to_stdout_touches_nothing(tiny: Path, capsys: Captured) -> None:
    assert main(["configure", str(tiny), "--stdout"]) == 0
    assert capsys.readouterr().out.startswith("# Makefile.config written by caffeup")
    assert not (tiny / "Makefile.config").exists()


def test_apply_diff_revert(tiny: Path, capsys: Captured) -> None:
    before = sorted(str(path.relative_to(tiny)) for path in tiny.rglob("*"))
    assert main(["configure", str(tiny)]) == 0
    assert (tiny / "Makefile.config").is_file()
    capsys.readouterr()
    assert main(["patch", "status", str(tiny)]) == 0
    assert "needed" not in capsys.readouterr().out
    assert main(["patch", "diff", str(tiny)]) == 0
    assert "+CPU_ONLY := 1" in capsys.readouterr().out
    capsys.readouterr()
    assert main(["patch", "revert", str(tiny)]) == 0
    said = capsys.readouterr().out
    assert "reverted" in said
    assert "needed" not in said
    assert not (tiny / "Makefile.config").exists()
    left = {path for path in tiny.rglob("*") if ".caffeup" not in path.parts}
    assert sorted(str(path.relative_to(tiny)) for path in left) == before


def test_clean_shows_sizes_and_removes_only_with_consent(tiny: Path, capsys: Captured) -> None:
    main(["configure", str(tiny)])
    capsys.readouterr()
    assert main(["clean", str(tiny)]) == 0
    assert "kept by caffeup" in capsys.readouterr().out
    assert main(["clean", str(tiny), "--all"]) == 1
    assert "Nothing was removed" in capsys.readouterr().err
    assert (tiny / ".caffeup").is_dir(), "nobody said yes"
    assert main(["clean", str(tiny), "--all", "--yes"]) == 0
    assert not (tiny / ".caffeup").exists()
    assert not (tiny / "Makefile.config").exists()


def test_what_is_not_built_is_not_shown_as_if_it_were(tiny: Path, capsys: Captured) -> None:
    for command in ("env", "verify"):
        assert main([command, str(tiny)]) == 12
        captured = capsys.readouterr()
        assert captured.out == ""
        assert f"caffeup up {tiny}" in captured.err
    assert main(["configure", str(tiny)]) == 0
    capsys.readouterr()
    for command in ("env", "verify"):
        assert main([command, str(tiny)]) == 12
        assert f"caffeup build {tiny}" in capsys.readouterr().err


def test_the_names_that_up_takes_are_listed(capsys: Captured) -> None:
    assert main(["up", "--list"]) == 0
    said = capsys.readouterr().out
    for name in ("ssd", "bvlc", "nvidia", "brocolli"):
        assert f"  {name} " in said
    assert main(["up", "--list", "--json"]) == 0
    assert {"ssd", "openpose"} <= {one["id"] for one in json.loads(capsys.readouterr().out)}


def test_a_plan_without_tests_has_none(tiny: Path, capsys: Captured) -> None:
    assert main(["up", str(tiny), "--no-tests", "--dry-run", "--json"]) == 0
    decisions = json.loads(capsys.readouterr().out)["decisions"]
    assert [one["value"] for one in decisions if one["key"] == "tests"] == ["none"]


REASON = "OpenCV 4 and 5 do not define the C constants where Caffe looks for them: OpenCV 4.6.0, and so on and so on"
LISTED = (
    PatchEntry(id="shims", fix="f", kind="shim", files=tuple(f"h{n}.h" for n in range(21)), state=PatchState.NEEDED, because=REASON),
    PatchEntry(id="own", fix="f", kind="edit", files=("io.py",), state=PatchState.EDITED, because=f"io.py was changed since: {REASON}"),
    PatchEntry(id="one", fix="f", kind="edit", files=("io.py",), state=PatchState.DONE, because="short", by="tree"),
)  # fmt: skip


def test_the_patch_list_has_a_line_an_entry_but_for_what_somebody_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    lines = list(show.patches(LISTED))
    assert max(len(line) for line in lines) <= 100
    assert lines[0].startswith("  shims  needed        shim, 21 files  OpenCV 4 and 5")
    assert lines[0].endswith(" …")
    assert lines[1].startswith("  own    edited        edit            io.py was changed since:")
    assert " ".join(" ".join(lines[1:-1]).split()).endswith("and so on and so on"), "nothing of it is cut off"
    assert lines[-1] == "  one    done by tree  edit            short"


@pytest.mark.parametrize("told", [False, True])
def test_stages_are_told_once(told: bool) -> None:
    done = Report(tree="/t", stages=(StageOutcome(name="build", state="done", seconds=3, summary="9 steps"),))
    lines = list(show.report(done, told=told))
    assert any("9 steps" in line for line in lines) is not told
    assert "ready" in lines


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize(
    "arguments", [["patch", "list"], ["plan", "TREE", "--explain", "python"], ["plan", "TREE", "--why-not", "8.6"]]
)
def test_on_a_terminal_no_line_is_cut_in_a_word(
    columns: int, arguments: list[str], tiny: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> str:
        main([word.replace("TREE", str(tiny)) for word in arguments])
        return capsys.readouterr().out

    whole = run()
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    fitted = run()
    assert whole.split() == fitted.split()
    assert max(len(line) for line in fitted.splitlines() if not line.endswith(str(tiny))) <= columns


def test_in_a_narrow_table_the_columns_stay_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rows = [("a-name-of-thirty-and-some-letters-x", "done by caffeup", "edit", "why " * 9), ("b", "needed", "shim", "because")]
    heads = [line for line in show.table(rows) if "edit" in line or "shim" in line]
    assert heads[0].index("done") == heads[1].index("needed")


def test_the_patch_list_with_files_has_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    lines = list(show.patches(LISTED, files=True))
    assert [line for line in lines if ".h" in line] == [f"      h{n}.h" for n in range(21)]
    assert "…" not in "".join(lines)


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 200])
def test_a_table_keeps_within_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = [
        ("opencv", "4.6.0", "found in the compiler's own folders " * 4),
        ("a-long-name-of-a-fix", "", "short"),
        ("x", "y", ""),
    ]
    lines = list(show.table(rows))
    assert max(len(line) for line in lines) <= min(max(columns, 38), show.WIDEST)
    words = " ".join(lines).split()
    assert sorted(words) == sorted(word for row in rows for cell in row for word in cell.split())
    assert ("found" in lines[0]) == (columns >= 80), "side by side where there is room"


@pytest.mark.parametrize(("term", "drawn"), [("dumb", False), ("xterm", True)])
def test_a_dumb_terminal_gets_no_control_signs(term: str, drawn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", term)

    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Screen()
    ui = Terminal(stream=screen)
    ui.begin("fetch", "…")
    ui.progress("fetch").show(Status(current="downloading", elapsed=1))
    begun = screen.getvalue().partition("━")[0]
    assert begun.rpartition("\r\x1b[K")[2].count("fetch") == 1, "the bar does not stand behind the line that was begun"
    ui.say("done", ("df -h",))
    assert ("\x1b" in screen.getvalue()) == drawn
    assert "$ df -h" in screen.getvalue()


def test_diagnose_a_log(tmp_path: Path, capsys: Captured) -> None:
    log = tmp_path / "make.log"
    log.write_text("src/caffe/util/io.cpp:76:34: error: ‘CV_LOAD_IMAGE_COLOR’ was not declared in this scope\n")
    assert main(["diagnose", str(log), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found[0]["id"] == "opencv4-c-constants"


@pytest.mark.parametrize(("here", "named"), [("tree", "."), ("tree/src", ".."), ("above", "caffe"), ("none", "TREE")])
def test_the_command_that_mends_names_the_tree_that_is_here(
    here: str, named: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("tree/src/caffe", "above/caffe/src/caffe", "none"):
        (tmp_path / folder).mkdir(parents=True)
    log = tmp_path / "make.log"
    log.write_text("src/caffe/util/io.cpp:76:34: error: ‘CV_LOAD_IMAGE_COLOR’ was not declared in this scope\n")
    monkeypatch.chdir(tmp_path / here)
    assert main(["diagnose", str(log)]) == 0
    assert f"$ caffeup up {named}\n" in capsys.readouterr().out


def test_a_log_of_nothing_is_not_called_free_of_errors(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "make.log").touch()
    assert main(["diagnose", str(tmp_path / "make.log")]) == UsageError.exit_code
    said = capsys.readouterr()
    assert said.out == ""
    assert "empty" in said.err


def test_at_a_terminal_it_is_said_that_the_log_is_waited_for(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    class Keyboard(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Keyboard(io.BytesIO(b"all is well\n")))
    assert main(["diagnose"]) == 0
    assert "Ctrl-D" in capsys.readouterr().err


def test_an_error_says_what_why_how_and_where(capsys: Captured) -> None:
    finding = Finding(
        id="x.y",
        severity=Severity.PROBLEM,
        title="cuDNN is gone",
        why="because",
        evidence=(Evidence(where="make.log", line=3, text="boom"),),
        remedies=(Remedy(text="do this", commands=("caffeup up",)),),
    )
    code = code_for(BuildFailed("make failed", details="the first error", log="/logs/build.log", findings=(finding,)))
    said = capsys.readouterr().err
    assert code == BuildFailed.exit_code
    for part in ("make failed", "the first error", "cuDNN is gone", "x.y", "make.log:3", "$ caffeup up", "/logs/build.log"):
        assert part in said


def test_every_expected_error_has_its_code(capsys: Captured) -> None:
    for kind in CaffeupError.__subclasses__():
        assert code_for(kind("x")) == kind.exit_code
    assert code_for(KeyboardInterrupt()) == 130
    assert code_for(OSError(errno.ENOSPC, "No space left on device", "/full")) == 10
    assert "Traceback" not in capsys.readouterr().err


def test_a_fault_of_ours_leaves_a_report(capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert code_for(ZeroDivisionError("oops")) == 70
    said = capsys.readouterr().err
    report = Path(said.rsplit(": ", 1)[1].strip())
    assert "Traceback" not in said
    assert "ZeroDivisionError" in report.read_text()


def test_what_the_user_names_is_looked_at_wherever_it_lies(tiny: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[tuple[object, ...]] = []

    def machine(_self: Session, *given: object) -> Machine:
        named.append(given)
        return MACHINE

    monkeypatch.setattr(Session, "machine", machine)
    main(["plan", str(tiny), "--python", "/srv/python3", "--cuda", "/srv/cuda", "--prefix", str(tiny.parent)])
    capsys.readouterr()
    assert named == [((str(tiny.parent),), "/srv/python3", "/srv/cuda")]


def test_every_wish_has_an_option(tmp_path: Path) -> None:
    """TF32 could be asked for in a plan, and by no option."""
    everywhere: dict[str, Any] = {
        "source": "bvlc",
        "into": "here",
        "no_opencv": True,
        "python": "python3",
        "blas": "open",
        "deps": "user",
        "prefix": [str(tmp_path)],
    }
    ways: dict[str, Any] = {
        "no_auto_depthwise": True,
        "replace_depthwise": True,
        "jobs": 3,
        "no_tests": True,
        "distribute": True,
        "yes": True,
    }
    made = make_request(**everywhere, **ways, force=["some-conflict"], arch="8.6", cuda="12.9", tf32=True, tree_cudnn_conv=True)
    without = make_request(cpu=True, no_cudnn=True)
    default = Request()
    assert [
        name
        for name in Request.__struct_fields__
        if getattr(made, name) == getattr(default, name) and getattr(without, name) == getattr(default, name)
    ] == []


@pytest.mark.parametrize(
    "both",
    [
        {"cpu": True, "cuda": "12.9"},
        {"cpu": True, "arch": "8.6"},
        {"cpu": True, "tf32": True},
        {"no_cudnn": True, "tree_cudnn_conv": True},
    ],
)
def test_wishes_that_exclude_each_other_are_refused(both: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        make_request(**both)
