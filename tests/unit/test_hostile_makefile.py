"""A Makefile is a program: nothing that only looks at a tree lets make read it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from caffeup.app.session import Session
from caffeup.cli.main import main
from caffeup.model.base import from_json
from caffeup.model.machine import Machine

TESTS = Path(__file__).resolve().parents[1]
MACHINE = from_json((TESTS / "machines" / "debian12-no-gpu" / "expected" / "machine.json").read_bytes(), Machine)
ATTACK = "A := $(shell touch ran)\nB != touch ran\ninclude Makefile.more\nMakefile.more: ; touch ran $@\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(Session, "machine", lambda *_args, **_wishes: MACHINE)
    tree = Path(shutil.copytree(TESTS / "trees" / "tiny", tmp_path / "tiny"))
    before = (tree / "Makefile").read_text()
    (tree / "Makefile").write_text(ATTACK + before)
    (tree / "Makefile.config").write_text("C := $(shell touch ran)\n")
    monkeypatch.chdir(tree)
    return tree


LOOKING = [
    ["detect"],
    ["doctor"],
    ["plan"],
    ["plan", "--json"],
    ["plan", "--explain", "compiler"],
    ["up", ".", "--dry-run"],
    ["configure", "--stdout"],
    ["patch", "list"],
    ["patch", "preview"],
    ["patch", "status"],
    ["patch", "diff"],
    ["patch", "revert"],
    ["env"],
    ["verify"],
    ["clean"],
]


@pytest.mark.parametrize("arguments", LOOKING, ids=" ".join)
def test_looking_at_a_tree_does_not_run_its_makefile(tree: Path, arguments: list[str]) -> None:
    main(arguments)
    assert not (tree / "ran").exists()
    assert not (tree / "Makefile.more").exists()


@pytest.mark.skipif(not shutil.which("make"), reason="no make")
def test_building_does_and_the_plan_says_so_before(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["plan"])
    said = capsys.readouterr().out
    assert "this Makefile runs commands when it is read" in said
    assert "Makefile:1: touch ran" in said
    main(["patch", "apply"])
    assert (tree / "ran").exists(), "the attack above is one"
    for done in ("ran", "Makefile.more"):
        (tree / done).unlink(missing_ok=True)
    for arguments in (["patch", "preview"], ["patch", "status"], ["patch", "diff"], ["patch", "revert"], ["clean", "--yes"]):
        assert main(arguments) == 0
        assert not (tree / "ran").exists(), arguments
