"""Every failure that people reported leads to the rows that answer it, in their order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from caffeup.diagnose.diagnose import diagnose
from caffeup.facts.load import load_facts
from caffeup.model.finding import Confidence, Severity

FACTS = load_facts()
TESTS = Path(__file__).resolve().parents[1]
CASES = {
    match[1]: (match[2].split(), match[3].strip().splitlines())
    for match in re.finditer(
        r"^== (\S+) (.*)\n((?:(?!== ).*\n?)*)", (TESTS / "logs" / "reported.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
}
GIVEN = TESTS.parents[1] / "shared" / "failures.md"
ALIKE = {"B9", "B10", "C2", "F7"}
"""Cases that read alike, with nothing near them that would decide."""


@pytest.mark.parametrize("case", CASES)
def test_a_reported_failure_has_its_answer(case: str) -> None:
    wanted, lines = CASES[case]
    found = diagnose(lines, FACTS)
    assert [one.id + ("*" if one.severity is Severity.NOTE else "") for one in found] == wanted


@pytest.mark.parametrize("case", sorted(ALIKE))
def test_where_cases_read_alike_each_says_what_decides(case: str) -> None:
    found = diagnose(CASES[case][1], FACTS)
    assert len(found) > 1
    assert {one.confidence for one in found} == {Confidence.UNSURE}
    assert "what decides: " in found[0].confidence_because


def test_no_case_is_left_without_a_row() -> None:
    rows = {fix.id for fix in FACTS.fixes}
    assert len(CASES) == 121
    assert all({name.rstrip("*") for name in wanted} <= rows for wanted, _ in CASES.values())


@pytest.mark.skipif(not GIVEN.exists(), reason="the collection of reports is not here")
def test_the_table_is_that_of_the_reports() -> None:
    assert set(re.findall(r"^### (\w+)\. ", GIVEN.read_text(encoding="utf-8"), re.MULTILINE)) == set(CASES)
