"""Every id that the program can show has its story, offline."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from caffeup.cli.main import app, main
from caffeup.cli.show_explanation import explanation
from caffeup.diagnose.context import Context
from caffeup.diagnose.example import example
from caffeup.diagnose.explain import explain, explained, proposed, titles
from caffeup.facts.load import load_facts
from caffeup.gpu.trouble import TROUBLES
from caffeup.model.explanation import Explained

FACTS = load_facts()
SOURCE = Path(__file__).resolve().parents[2] / "src" / "caffeup"
MAKERS = {"conflict": 0, "note": 0, "_finding": 0, "_refusal": 0, "refuse": 0, "_problem": 1, "_suspect": 0}
"""Functions that make a finding, and the place of its id among their arguments."""
PROGRAM: Any = typer.main.get_command(app)
ALL = [name for name, _ in titles(FACTS)]


def constants(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from constants(node.body)
        yield from constants(node.orelse)


def ids_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if called in {"Finding", "Trouble", *MAKERS}:
            for keyword in node.keywords:
                if keyword.arg in {"id", "id_", "name"}:
                    yield from constants(keyword.value)
        if path.parent.name == "net" and called in {"add", "_refuse"} and node.args:
            yield from constants(node.args[called == "_refuse"])
        if path.name == "checks.py" and called == "_one":
            yield from (f"gpu-{name}" for name in constants(node.args[1]))
        if called in MAKERS and len(node.args) > MAKERS[called]:
            yield from constants(node.args[MAKERS[called]])


SHOWN = sorted(
    {name for path in SOURCE.rglob("*.py") for name in ids_in(path) if re.fullmatch(r"[a-z0-9]+(?:[-.][a-z0-9]+)+", name)}
)


def test_the_ids_are_found_in_the_code() -> None:
    assert {"missing-needed", "gpu-dropped", "tree-crlf", "patch-anchor-missing", "cudnn-disagree", "gpu-lost"} <= set(SHOWN)


@pytest.mark.parametrize(
    "name", [*SHOWN, *(one.id for one in TROUBLES.values()), "log.unknown", "log.stopped", "log.flooded", "verify-program"]
)
def test_every_id_in_the_code_is_explained(name: str) -> None:
    """A new finding needs a row in facts/findings.toml."""
    assert explain(name, FACTS, Context()) is not None


@pytest.mark.parametrize("name", ALL)
def test_a_story_says_what_why_and_what_mends_it(name: str) -> None:
    told = explain(name, FACTS, Context(distro="debian"))
    assert told is not None
    text = "\n".join(explanation(told))
    assert told.title
    assert len(told.why) > 20
    assert f"[{name}]" in text
    assert not re.search(r"\{(?!HDF5_|CUDNN_INCLUDE)\w+\}", text), "a placeholder is left"
    fix = FACTS.fix(name)
    assert told.remedies or (fix is not None and fix.harmless) or any(one.id == name for one in FACTS.figures)


@pytest.mark.parametrize("fix", FACTS.fixes, ids=lambda fix: fix.id)
def test_a_symptom_is_shown_as_a_line_and_not_as_an_expression(fix: object) -> None:
    for symptom in [*fix.symptoms, *fix.also]:  # type: ignore[attr-defined]
        line = example(symptom)
        assert line
        assert not re.search(r"\\|\(\?|\[\^|\.\*", line), line


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (r"a\.cpp:\d+\] x", "a.cpp:N] x"),
        (r"^(?:one|two) .* (?P<name>\w+)$", "one … <name>"),
        (r"lib[Ff]oo(?:_bar)?\b", "lib" + "Foo_bar"),
        (r"(?!no)yes(?=z)", "yes"),
        (r"CUDNN_STATUS \((?:4|1) vs\. 0\)", "CUDNN_STATUS (4 vs. 0)"),
        (r"[^']+x", "…x"),
    ],
)
def test_an_expression_as_a_line(pattern: str, line: str) -> None:
    assert example(pattern) == line


@pytest.mark.parametrize("row", FACTS.explained, ids=lambda row: row.id)
def test_the_commands_of_a_row_exist(row: Explained) -> None:
    for command in row.commands:
        words = shlex.split(command.partition(" > ")[0])
        group = PROGRAM
        if words.pop(0) == "caffeup":
            while words and hasattr(group, "commands"):
                group = group.commands[words.pop(0)]
            if not hasattr(group, "commands"):
                group.make_context(command, words)


def test_a_row_may_stand_for_a_family() -> None:
    row = explained("verify-gpu-against-cpu,-cudnn", FACTS.explained)
    assert row is not None
    assert row.id.endswith("*")
    assert explained("verify", FACTS.explained) is None


@pytest.mark.parametrize(
    ("slip", "meant"),
    [("cudnn-handels", "cudnn-handles"), ("[hdf5-heder]", "hdf5-header"), ("imgcodecs", "opencv3-imgcodecs-not-linked")],
)
def test_a_slip_is_answered_with_what_is_meant(slip: str, meant: str) -> None:
    assert meant in proposed(slip, FACTS)


def test_ids_do_not_clash() -> None:
    names = [row.id for row in FACTS.explained] + [figure.id for figure in FACTS.figures]
    assert len(names) == len(set(names))


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "[cudnn-handles]"]) == 0
    assert "cudnn_conv_layer.cpp" in capsys.readouterr().out
    assert main(["explain", "cudnn-handles", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["id"] == "cudnn-handles"
    assert main(["explain"]) == 0
    assert len(capsys.readouterr().out.splitlines()) >= len(ALL)
    assert main(["explain", "no such thing at all"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "There is no finding" in said.err


def test_a_hostile_name_does_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "\x1b[2Jx"]) == 2
    assert "\x1b" not in capsys.readouterr().err
