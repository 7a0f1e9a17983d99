"""Real trees, from nothing to a Caffe that works. Minutes each.

``CAFFEUP_TREES`` names more trees to build (folders, separated by colons; they are copied, never changed).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from caffeup.facts.forks import fork_named
from caffeup.facts.load import load_facts
from caffeup.model.base import from_json
from caffeup.model.outcome import Report

pytestmark = pytest.mark.real
GIVEN = [Path(name) for name in os.environ.get("CAFFEUP_TREES", "").split(":") if name]


def up(*arguments: str, within: Path) -> Report:
    """Run the program as a user does; what it reports."""
    done = subprocess.run(
        [sys.executable, "-m", "caffeup", "up", *arguments, "--cpu", "--yes", "--json"],
        cwd=within,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return from_json(done.stdout, Report)


def check(report: Report, tree: Path, fork: str) -> None:
    """The build is whole, and what failed is known of this fork."""
    assert report.tests is not None
    assert report.tests.unknown_failures == ()
    row = fork_named(load_facts().forks, fork)
    if row is not None and row.tests is not None:
        assert report.tests.passed == row.tests + report.tests.added
    assert report.checks
    assert [one.name for one in report.checks if not one.ok] == []
    assert list((tree / ".caffeup" / "tmp").glob("*")) == []


def left_in_temp() -> set[str]:
    return {path.name for path in Path("/tmp").glob("caffe_test.*")} | {path.name for path in Path("/tmp").glob("test_all.*")}


def check_second_run(tree: Path) -> None:
    """Nothing is to do."""
    again = up(str(tree), within=tree.parent)
    assert [
        stage.name for stage in again.stages if stage.name in {"build", "test", "pycaffe", "verify"} and stage.state == "done"
    ] == []


def test_brocolli_from_the_package_index(tmp_path: Path) -> None:
    before = left_in_temp()
    tree = tmp_path / "caffe"
    report = up("brocolli", "--into", str(tree), within=tmp_path)
    check(report, tree, "brocolli")
    assert left_in_temp() <= before
    check_second_run(tree)


@pytest.mark.parametrize("given", GIVEN, ids=lambda path: str(path.name))
def test_a_given_tree(given: Path, tmp_path: Path) -> None:
    tree = Path(shutil.copytree(given, tmp_path / given.name, symlinks=True))
    report = up(str(tree), within=tmp_path)
    check(report, tree, next((name for name in ("bvlc", "ssd", "brocolli") if name in given.name), ""))
    check_second_run(tree)
