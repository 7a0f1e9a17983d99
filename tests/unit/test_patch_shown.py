"""What ``caffeup patch …`` prints: one line an entry, nothing raw, nothing cut where it is read by a program."""

from __future__ import annotations

import json

import pytest

from caffeup.app.session import Session
from caffeup.cli.main import main

Captured = pytest.CaptureFixture[str]


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
