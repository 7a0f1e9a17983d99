"""Commands are printed as this person can type them."""

from __future__ import annotations

import io
from typing import Optional

import pytest

from caffeup.cli import show
from caffeup.cli.called import as_typed, prompted
from caffeup.cli.main import main
from caffeup.cli.terminal import Terminal
from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.outcome import StageOutcome


def test_a_checkout_is_called_by_its_script(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CAFFEUP_COMMAND", "./caffeup.sh")
    assert as_typed("caffeup up ssd") == "./caffeup.sh up ssd"
    assert as_typed("sudo apt-get install caffeup") == "sudo apt-get install caffeup"
    main(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "Usage: caffeup.sh " in said
    assert "./caffeup.sh test [--real]" in said, "what only the checkout has"


COMMAND = "sudo apt-get update && sudo apt-get install x"


@pytest.mark.parametrize(
    ("uid", "sudo", "expected"),
    [
        (1000, "/usr/bin/sudo", f"$ {COMMAND}"),
        (1000, None, "as root: apt-get update && apt-get install x"),
        (0, None, "$ apt-get update && apt-get install x"),
        (0, "/usr/bin/sudo", "$ apt-get update && apt-get install x"),
    ],
)
def test_nobody_is_told_to_use_a_sudo_that_is_not_there(
    uid: int, sudo: Optional[str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: uid)
    monkeypatch.setattr("shutil.which", lambda _name: sudo)
    assert prompted(COMMAND) == expected
    assert prompted("df -h /") == "$ df -h /"


def test_installed_it_is_called_by_its_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("CAFFEUP_COMMAND", raising=False)
    assert as_typed("caffeup up ssd") == "caffeup up ssd"
    main(["--help"])
    assert "Usage: caffeup " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ('eval "$(caffeup env /a/caffe)"', 'eval "$(./caffeup.sh env /a/caffe)"'),
        ("cd caffe && caffeup up --cuda wheels", "cd caffe && ./caffeup.sh up --cuda wheels"),
        ("To remove it: caffeup clean --cuda", "To remove it: ./caffeup.sh clean --cuda"),
        ("install them (caffeup up does, after a question)", "install them (./caffeup.sh up does, after a question)"),
        ("'caffeup patch status'; `caffeup doctor`", "'./caffeup.sh patch status'; `./caffeup.sh doctor`"),
        ("caffeup --help", "./caffeup.sh --help"),
        ("caffeup builds with an older g++", "caffeup builds with an older g++"),
        ("caffeup puts a stand-in into .caffeup/lib", "caffeup puts a stand-in into .caffeup/lib"),
        ("/opt/caffeup up", "/opt/caffeup up"),
        ("./caffeup.sh up", "./caffeup.sh up"),
    ],
)
def test_a_command_is_found_wherever_it_stands(text: str, typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAFFEUP_COMMAND", "./caffeup.sh")
    assert as_typed(text) == typed
    assert as_typed(typed) == typed
    note = Finding(id="x", severity=Severity.NOTE, title=text, why=text, remedies=(Remedy(text=text, commands=(text,)),))
    assert " ".join(" ".join(show.finding(note)).split()).count(typed) == 4


class OnTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_lines_break_between_words_and_commands_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    path = "/a/" + "long/" * 20 + "caffe"
    words = "there is a word that stands where a line of sixty columns would end, and a path: " + path
    shown = OnTerminal()
    Terminal(stream=shown).say(words, (f"caffeup up {path}",))
    Terminal(stream=shown).end(StageOutcome(name="detect", state="done", summary=words))
    lines = shown.getvalue().replace("\r\x1b[K", "").splitlines()
    lines += show.finding(Finding(id="x", severity=Severity.NOTE, title=words, evidence=(Evidence(where=path, text=words),)))
    assert {line for line in lines if len(line) > 60 and path not in line} == set()
    assert sum(path in line for line in lines) == 6, "no path is broken"
    assert f"  $ caffeup up {path}" in lines
    log = io.StringIO()
    Terminal(stream=log).say(words)
    assert log.getvalue() == f"{words}\n", "in a log it is one line"
