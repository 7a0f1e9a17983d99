"""caffeup.sh where nothing is set up, and the project's own checks when they are stopped."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from caffeup.facts.load import load_facts
from caffeup.source.catalogue import trees

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout where nothing is set up, on a machine without Python."""
    here = tmp_path / "caffeup"
    (here / "src" / "caffeup" / "facts").mkdir(parents=True)
    shutil.copy(ROOT / "src" / "caffeup" / "facts" / "forks.toml", here / "src" / "caffeup" / "facts")
    script = (ROOT / "caffeup.sh").read_text()
    assert "/usr/bin/python3" in script
    (here / "caffeup.sh").write_text(script.replace("/usr/bin/python3", "/no/python3"))
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "dirname", "awk", "cat", "id", "cksum", "tail"):
        (programs / name).symlink_to(str(shutil.which(name)))
    return here


def call(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    programs = checkout.parent / "bin"
    return subprocess.run(
        [str(programs / "sh"), str(checkout / "caffeup.sh"), *arguments],
        env={"PATH": str(programs), "HOME": str(checkout)},
        stdin=subprocess.DEVNULL,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["up", "--list"], ["up", "--help"], ["gpu", "run", "-h"]])
def test_what_it_is_and_what_it_takes_is_told_without_python(checkout: Path, arguments: list[str]) -> None:
    ran = call(checkout, *arguments)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert "From a bare Linux machine to a Caffe" in ran.stdout
    names = {line.split()[0] for line in ran.stdout.splitlines() if line.startswith("  ")}
    assert {row.id for row in trees(load_facts())} <= names
    assert not (checkout / ".caffeup-venv").exists()


def test_what_needs_python_still_says_so(checkout: Path) -> None:
    ran = call(checkout, "up")
    assert ran.returncode == 8
    assert "Python 3.9 or newer" in ran.stderr
    assert call(checkout, "run", "--", "x", "--help").returncode == 8, "that help is asked of another program"


def test_the_help_of_the_checks_sets_nothing_up(checkout: Path) -> None:
    ran = call(checkout, "test", "--help")
    assert ran.returncode == 0
    assert "CAFFEUP_TREES" in ran.stdout
    assert "--real" in ran.stdout
    assert not (checkout / ".caffeup-venv").exists()


def test_checks_that_are_stopped_end_without_a_traceback(tmp_path: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r}); import run\n"
        f"run.STEPS = {{'types': [{sys.executable!r}, '-c', 'import time; print(1, flush=True); time.sleep(60)']}}\n"
        "sys.exit(run.main([]))"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert started.stdout is not None
    while (line := started.stdout.readline()) != "1\n":
        assert line
    time.sleep(0.2)
    os.killpg(started.pid, signal.SIGINT)
    out, _ = started.communicate(timeout=30)
    assert started.returncode == 130
    assert "stopped" in out
