"""The doctor on a tree: fetched, built, half built, taken apart, and while another caffeup is at work in it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_up import TESTS, OnDebian, go

from caffeup.app.doctor import examine
from caffeup.app.state import exclusive
from caffeup.cli.main import main
from caffeup.errors import Busy, NotBuilt
from caffeup.model.finding import Finding, Severity
from caffeup.model.plan import Request
from caffeup.patch import engine

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def once_built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("built") / "tiny"
    shutil.copytree(TESTS / "trees" / "tiny", root)
    go(root)
    return root


@pytest.fixture
def built(once_built: Path) -> Iterator[Path]:
    """Where it was built, since a built tree knows its place; put back afterwards."""
    kept = once_built.with_name("kept")
    shutil.copytree(once_built, kept, symlinks=True)
    yield once_built
    shutil.rmtree(once_built)
    kept.rename(once_built)


def about(root: Path) -> dict[str, Finding]:
    found = examine(OnDebian(), str(root), Request())
    return {one.id: one for one in found if one.id.startswith("tree-")}


def test_a_tree_as_it_came_is_not_called_ok(tmp_path: Path) -> None:
    shutil.copytree(TESTS / "trees" / "tiny", tmp_path / "tiny")
    found = about(tmp_path / "tiny")
    assert found["tree-not-built"].severity is Severity.NOTE
    assert not {"tree-built", "tree-verified"} & set(found)


def test_a_built_tree_says_what_was_looked_at(built: Path) -> None:
    found = about(built)
    assert {found[name].severity for name in ("tree-built", "tree-tests", "tree-verified")} == {Severity.OK}
    assert all(found[name].evidence for name in ("tree-built", "tree-verified"))
    assert "passed" in found["tree-tests"].title


def test_a_build_of_which_a_part_is_gone_is_not_whole(built: Path) -> None:
    next((built / ".build_release" / "lib").glob("libcaffe.so")).unlink()
    found = about(built)
    assert found["tree-not-whole"].severity is Severity.WARNING
    assert "the library" in found["tree-not-whole"].title
    assert "tree-built" not in found


def test_of_a_build_that_is_gone_only_that_is_told(built: Path) -> None:
    shutil.rmtree(built / ".build_release")
    found = about(built)
    assert found["tree-not-whole"].title == "the program and the library are not built"
    assert not {"tree-tests", "tree-verified", "tree-not-verified"} & set(found)


def test_what_was_taken_out_is_told(built: Path) -> None:
    assert "tree-patches-absent" not in about(built)
    engine.revert(str(built))
    found = about(built)["tree-patches-absent"]
    assert found.severity is Severity.WARNING
    assert found.remedies[0].commands == (f"caffeup patch apply {built}",)


def test_nothing_is_said_of_what_changes_now(built: Path) -> None:
    with exclusive(built):
        found = about(built)
    assert found["tree-at-work"].severity is Severity.NOTE
    assert not {"tree-built", "tree-not-whole", "tree-verified", "tree-patches-absent"} & set(found)


def test_the_tree_below_the_current_folder_is_looked_at_too(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for here in (built, built / "src"):
        monkeypatch.chdir(here)
        assert "tree-built" in {one.id for one in examine(OnDebian(), "", Request())}


def test_env_gives_only_what_is_built(built: Path, capsys: Captured) -> None:
    assert main(["env", str(built)]) == 0
    said = capsys.readouterr()
    assert "export PATH=" in said.out
    assert "PYTHONPATH" not in said.out, "it was built without pycaffe"
    engine.revert(str(built))
    assert main(["env", str(built)]) == 0
    assert "taken out" in capsys.readouterr().err


def test_while_another_builds_nobody_is_told_to_build(built: Path, capsys: Captured) -> None:
    for name in ("lib/libcaffe.so", "tools/caffe"):
        (built / ".build_release" / name).unlink()
    assert main(["env", str(built)]) == NotBuilt.exit_code
    with exclusive(built):
        for command in ("env", "verify"):
            assert main([command, str(built)]) == Busy.exit_code
            assert "nothing is built yet" in capsys.readouterr().err
