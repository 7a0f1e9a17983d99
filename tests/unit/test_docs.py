"""Every command line in the README and the pages under docs/ is one: the command exists, and so do its options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from caffeup.cli.main import app
from caffeup.results import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("README*.md"), *(ROOT / "docs").glob("*.md")])
PROGRAM = re.compile(r"(?:\./)?caffeup(?:\.sh)?")
INLINE = re.compile(r"`((?:\./)?caffeup(?:\.sh)? [^`]+)`")
BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
ROOT_COMMAND: Any = typer.main.get_command(app)


def lines_of(text: str) -> Iterator[str]:
    """What can be typed: lines of shell blocks, what stands behind a prompt, and code within sentences."""
    for kind, block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if kind == "console" and not line.lstrip().startswith(("$ ", "# ")):
                continue
            if kind in ("sh", "console"):
                yield line.strip().removeprefix("$ ").removeprefix("# ")
    for line in INLINE.findall(BLOCK.sub("", text)):
        yield line.replace("\\|", " # ")


def calls_in(line: str) -> Iterator[list[str]]:
    """The calls of caffeup in a line, each with its words."""
    for inside in re.findall(r"\$\(([^)]*)\)", line):
        yield from calls_in(inside)
    lexer = shlex.shlex(re.sub(r"\$\([^)]*\)", "IT", line), posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word[0] in "|&;<>":
            if words and PROGRAM.fullmatch(words[0]):
                yield words
            words = words if word[0] in "<>" else []
        else:
            words.append(word)


def faults(words: list[str]) -> str:
    """What the program would say against this call; empty: nothing."""
    command, rest, path = ROOT_COMMAND, [one for one in words[1:] if one != "…"], "caffeup"
    if words[0].endswith(".sh") and rest[:1] == ["test"]:
        return ""
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        if rest[0] not in command.commands:
            return f"{path} has no command {rest[0]}"
        command, path = command.commands[rest[0]], f"{path} {rest[0]}"
        rest = rest[1:]
    context = command.context_class(command, info_name=path, **command.context_settings)
    try:
        command.make_parser(context).parse_args(list(rest))
    except Exception as error:  # noqa: BLE001  # each is a refusal of the parser
        if "requires an argument" in str(error) and rest[-1].startswith("-"):
            return ""  # a sentence speaks of the option
        return f"{path}: {error}"
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_line_parses(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    said = [(line, fault) for line in lines_of(text) for words in calls_in(line) if (fault := faults(words))]
    assert said == []


def test_the_test_sees_faults() -> None:
    text = '```sh\ncaffeup nonsense\nmake | caffeup plan --no-such x\neval "$(caffeup env --x)"\n```\nand `caffeup net wrong`\n'
    bad = [fault for line in lines_of(text) for words in calls_in(line) if (fault := faults(words))]
    assert len(bad) == 4
    assert [words for line in lines_of("```console\n$ caffeup up\ncaffeup: said\n```") for words in calls_in(line)] == [
        ["caffeup", "up"]
    ]


def test_each_task_has_its_page() -> None:
    for name in ("workstation", "after-upgrade", "container", "jetson", "adding", "api"):
        page = ROOT / "docs" / f"{name}.md"
        text = page.read_text(encoding="utf-8")
        assert text.startswith("# ")
        assert len(text.splitlines()) < 80, "short"
        assert any(calls for line in lines_of(text) for calls in calls_in(line))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", BLOCK.sub("", text)):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_table_of_the_api_names_what_there_is() -> None:
    import caffeup

    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)\(", row.split("|")[1])}
    functions = {name for name in caffeup.api.__all__ if name.islower()}
    assert named == functions
    assert {one for row in rows for one in re.findall(r"`caffeup (\w+)`", row)} <= {*COMMANDS, "export"}


def test_files_that_the_pages_name_are_there() -> None:
    for name in re.findall(r"`((?:src|tests|patches|docs)/[\w./-]+)`", (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")):
        assert (ROOT / name).exists(), name
