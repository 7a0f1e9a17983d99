"""Commands are printed as this person can type them."""

from __future__ import annotations

from typing import Optional

import pytest

from caffeup.cli.called import as_typed, prompted
from caffeup.cli.main import main


def test_a_checkout_is_called_by_its_script(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CAFFEUP_COMMAND", "./caffeup.sh")
    assert as_typed("caffeup up ssd") == "./caffeup.sh up ssd"
    assert as_typed("sudo apt-get install caffeup") == "sudo apt-get install caffeup"
    main(["--help"])
    assert "Usage: caffeup.sh " in capsys.readouterr().out


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
