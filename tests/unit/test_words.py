"""Sentences about what was found and done."""

from __future__ import annotations

import pytest

from caffeup.app.words import tests_in_short as in_short
from caffeup.cli import show
from caffeup.model.outcome import TestCase, TestReport

FILE = TestCase(name="src/caffe/test/test_bbox_util.cpp", state="not-compiled", known="test_bbox_util.cpp: line 954")


def failing(many: int, known: str = "it reads a file") -> tuple[TestCase, ...]:
    return tuple(TestCase(name=f"A/{number}.b", state="failed", known=known) for number in range(many))


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (TestReport(total=3, passed=3), "3 of 3 passed"),
        (
            TestReport(total=1246, passed=1196, added=26, failures=(FILE, *failing(50)), skipped=2),
            (
                "1196 of 1246 passed (26 are caffeup's); 50 fail and 1 file does not compile, all known of this tree; "
                "2 left out: they need a GPU"
            ),
        ),
        (TestReport(total=3, passed=3, failures=(FILE,)), "3 of 3 passed; 1 file does not compile, known of this tree"),
        (
            TestReport(total=5, passed=2, failures=(*failing(1), *failing(2, known=""))),
            "2 of 5 passed; 2 fail, NOT known of this tree; 1 fails, known of this tree",
        ),
        (TestReport(total=3, passed=3, skipped=1), "3 of 3 passed; 1 left out: it needs a GPU"),
    ],
)
def test_the_counts_of_tests_add_up(report: TestReport, words: str) -> None:
    ran = [case for case in report.failures if case.state != "not-compiled"]
    assert report.passed + len(ran) == report.total
    assert in_short(report) == words


def test_a_file_that_does_not_compile_is_no_test() -> None:
    said = "\n".join(show.tests(TestReport(total=3, passed=2, failures=(FILE, *failing(1)))))
    assert "1 file  test_bbox_util.cpp: line 954" in said
    assert "1 test  it reads a file" in said
