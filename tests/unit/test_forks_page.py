"""docs/forks.md is what the results say, and a result says what came of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from caffeup.app.state import StageRecord, State, save_state
from caffeup.model.base import from_json
from caffeup.model.outcome import Check, StageOutcome, TestCase, TestReport
from forks import PAGE, RESULTS, Result, named, of_tree, render

BLANK = Result(
    column="cpu", fork="ssd", commit="4817bf8b4200b35ada8ed0dc378dceaf38c539e4", machine="compiler g++", status=0, whole=True
)


def test_the_page_is_written_from_the_results() -> None:
    results = [from_json(path.read_text(encoding="utf-8"), Result) for path in sorted(RESULTS.glob("*.json"))]
    if not results:
        pytest.skip("no results yet")
    assert PAGE.read_text(encoding="utf-8") == render(results)


def test_what_a_tree_keeps_becomes_a_row(tmp_path: Path) -> None:
    tests = TestReport(
        total=3,
        passed=1,
        failures=(
            TestCase(name="A.b", state="failed", text="x", known="it reads a file that is not here"),
            TestCase(name="C.d", state="aborted", text="Check failed"),
        ),
    )
    stages = (
        StageRecord(name="build", key="key", outcome=StageOutcome(name="build", state="done", seconds=61.23)),
        StageRecord(name="pycaffe", key="key", outcome=StageOutcome(name="pycaffe", state="unchanged", seconds=3.0)),
    )
    save_state(tmp_path, State(stages=stages, tests=tests, checks=(Check(name="import caffe", ok=False, result="no"),)))
    result = of_tree(BLANK, tmp_path)
    assert (result.passed, result.tests, result.seconds) == (1, 3, (("build", 61.2),))
    page = render([result])
    assert "| ssd | 1 of 3, 1.0 min; checks that failed: import caffe |" in page
    assert "- failed: `A.b`: it reads a file that is not here" in page
    assert "- failed: `C.d`: not known of this tree: Check failed" in page


def test_what_went_wrong_is_told_and_what_was_not_run_too() -> None:
    refused = Result(column="gpu", fork="an own one", commit="", machine="", status=3, problem="1 thing | stands in the way.")
    page = render([BLANK, refused])
    assert "| ssd | built, tests not run, 0.0 min | not run |" in page
    assert "| an own one | not run | no: 1 thing \\| stands in the way. |" in page
    assert "- exit code 3: 1 thing | stands in the way." in page


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            "compiler /usr/bin/g++ (gcc 13.3.0); python /opt/a/.venv/bin/python3 (Python 3.12.3)",
            "compiler g++ (gcc 13.3.0); python python3 (Python 3.12.3)",
        ),
        ("src/caffe/layers/conv_layer.cpp:1:10: error", "src/caffe/layers/conv_layer.cpp:1:10: error"),
        ("/tmp/deps", "deps"),
        ("1.0/2.0", "1.0/2.0"),
    ],
)
def test_paths_of_a_machine_are_named_by_their_last_part(said: str, kept: str) -> None:
    assert named(said) == kept
