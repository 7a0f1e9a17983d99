"""What ``caffeup patch …`` prints: one line an entry, nothing raw, nothing cut where it is read by a program."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from caffeup.app.session import Session
from caffeup.cli.main import main
from caffeup.model.base import from_json
from caffeup.model.machine import Machine
from caffeup.model.outcome import PatchEntry, PatchState

TESTS = Path(__file__).resolve().parents[1]
MACHINE = from_json((TESTS / "machines" / "debian12-no-gpu" / "expected" / "machine.json").read_bytes(), Machine)
REASON = " ".join(["OpenCV 4 and 5 do not define the C constants where Caffe looks for them"] * 3)
ENTRIES = tuple(
    PatchEntry(id=name, fix="f", kind="edit", files=(f"{name}.py",), state=state, because=REASON)
    for name, state in (("one", PatchState.NEEDED), ("own", PatchState.EDITED))
)
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(Session, "machine", lambda *_named: MACHINE)
    monkeypatch.setattr("caffeup.app.treework.patch_status", lambda *_asked: ENTRIES)
    monkeypatch.setattr("caffeup.app.treework.preview_patches", lambda *_asked: ENTRIES)
    return str(shutil.copytree(TESTS / "trees" / "tiny", tmp_path / "tiny"))


@pytest.mark.parametrize("command", ["status", "preview"])
def test_in_a_pipe_each_entry_is_one_whole_line(command: str, tiny: str, capsys: Captured) -> None:
    assert main(["patch", command, tiny]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["one", "own"]
    assert all(line.endswith(REASON) for line in lines)


@pytest.mark.parametrize("command", ["status", "preview"])
def test_on_a_terminal_what_is_cut_can_be_had(command: str, tiny: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["patch", command, tiny]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(" …")
    assert lines[-1] == "  --files names every file, and the whole reason"
    assert main(["patch", command, tiny, "--files"]) == 0
    said = capsys.readouterr().out
    assert "…" not in said
    assert said.endswith("      own.py\n")


def test_the_list_has_a_line_for_each_that_goes_into_a_tree_and_counts_the_rest(capsys: Captured) -> None:
    known = Session().facts.fixes
    into = [one.id for one in known if one.into_tree]
    assert main(["patch", "list"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == into
    assert {"pycaffe-python3", "depthwise-layer", "boost-system-gone"} <= set(into)
    assert not {"file-not-there", "program-missing"} & set(into)
    assert last.startswith(f"  and {len(known) - len(into)} that change no tree")
    assert last.endswith("--all")


def test_the_list_of_all_has_no_raw_placeholders(capsys: Captured) -> None:
    assert main(["patch", "list", "--all"]) == 0
    said = capsys.readouterr().out
    assert [line.split()[0] for line in said.splitlines()] == [one.id for one in Session().facts.fixes]
    assert "the file <file> cannot be opened" in said
    assert "{" not in said


@pytest.mark.parametrize("options", [[], ["--all"]])
def test_the_list_as_json_has_the_same(options: list[str], capsys: Captured) -> None:
    assert main(["patch", "list", *options, "--json"]) == 0
    listed = [one["id"] for one in json.loads(capsys.readouterr().out)]
    assert listed == [one.id for one in Session().facts.fixes if options or one.into_tree]
