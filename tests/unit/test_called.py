"""Commands are printed as this person can type them."""

from __future__ import annotations

import pytest

from caffeup.cli.called import as_typed
from caffeup.cli.main import main


def test_a_checkout_is_called_by_its_script(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CAFFEUP_COMMAND", "./caffeup.sh")
    assert as_typed("caffeup up ssd") == "./caffeup.sh up ssd"
    assert as_typed("sudo apt-get install caffeup") == "sudo apt-get install caffeup"
    main(["--help"])
    assert "Usage: caffeup.sh " in capsys.readouterr().out


def test_installed_it_is_called_by_its_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("CAFFEUP_COMMAND", raising=False)
    assert as_typed("caffeup up ssd") == "caffeup up ssd"
    main(["--help"])
    assert "Usage: caffeup " in capsys.readouterr().out
