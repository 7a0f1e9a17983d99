"""What all tests share: goldens, and the machines under tests/machines/."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest
from hypothesis import settings

settings.register_profile("caffeup", deadline=None, max_examples=60)  # a busy machine is no failure
settings.load_profile("caffeup")

# Started in the background of a script, or by nohup, a program ignores Ctrl-C or a hang-up, and so would all those that tests
# send them to.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
# What is printed depends on the terminal and on how caffeup was called; a test that is about that says it.
for name in ("COLUMNS", "LINES", "CAFFEUP_COMMAND"):
    os.environ.pop(name, None)

Golden = Callable[[Path, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="write the expected results instead of comparing with them")


@pytest.fixture(scope="session", autouse=True)
def state_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Trees that tests build are not noted among the user's own."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares text with the file that holds what is expected; ``--bless`` writes that file."""

    def check(path: Path, text: str) -> None:
        if request.config.getoption("--bless"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        assert path.is_file(), f"{path} is missing; pytest --bless writes it"
        assert text == path.read_text(encoding="utf-8")

    return check
