"""Completion in shells, and the manual page: both from the commands as they are; no dot file is written."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest

from caffeup.cli.completion import SCRIPTS, VARIABLE, figures, forms, ids, trees
from caffeup.cli.main import main
from caffeup.cli.man import page

ROOT = Path(__file__).resolve().parents[2]
Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize("shell", sorted(SCRIPTS))
def test_a_script_is_printed_and_nothing_written(
    shell: str, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["--show-completion", shell]) == 0
    said = capsys.readouterr().out
    assert said == SCRIPTS[shell]
    assert VARIABLE in said
    assert not list(tmp_path.iterdir())
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=said.encode(), check=True)


def test_other_shells_are_told(capsys: Captured) -> None:
    assert main(["--show-completion", "tcsh"]) == 2
    assert "bash, zsh, fish" in capsys.readouterr().err
    assert main(["--install-completion"]) == 2, "it would write into the user's dot files"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("caffeup ex", {"explain", "export"}),
        ("caffeup up br", {"brocolli"}),
        ("caffeup explain gpu-dr", {"gpu-driver-shutting-down", "gpu-dropped"}),
        ("caffeup export ", {"docker", "apptainer", "sh"}),
        ("caffeup gpu ex", {"explain"}),
        ("caffeup up --no-c", {"--no-cudnn"}),
        ("caffeup plan ", set()),
    ],
)
def test_bash_is_answered(words: str, expected: set[str], tmp_path: Path) -> None:
    """With nothing, bash goes on with the names of files."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    program = tmp_path / "caffeup"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m caffeup "$@"\n')
    program.chmod(0o755)
    script = (
        f"{SCRIPTS['bash']}\nread -r -a COMP_WORDS <<<\"$1\"; case $1 in *' ') COMP_WORDS+=('') ;; esac\n"
        'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _caffeup_completion caffeup; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([bash, "-c", script, "bash", words], env=env, capture_output=True, text=True, check=True)
    found = set(done.stdout.split())
    assert expected <= found if expected else not found
    assert all(one.startswith(words.rpartition(" ")[2]) for one in found)


def test_the_words_come_from_the_facts() -> None:
    assert "ssd" in dict(trees(""))
    assert not trees("no-such")
    assert dict(ids("opencv4-c"))["opencv4-c-constants"]
    assert forms("d") == ["docker"]
    assert figures("")


def test_the_page_is_current(golden: Callable[[Path, str], None]) -> None:
    """Written anew by ``pytest --bless`` or ``python -m caffeup.cli.man >docs/caffeup.1``."""
    golden(ROOT / "docs" / "caffeup.1", page())


def test_no_line_of_the_page_is_a_request_by_accident() -> None:
    known = (".TH ", ".SH ", ".SS ", ".TP", ".PP", ".B ", '.\\"')
    for line in page().splitlines():
        assert not line.startswith(("'", ".")) or line.startswith(known), line


def test_man_has_nothing_to_say_against_it() -> None:
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("no groff here")
    done = subprocess.run([groff, "-man", "-Tutf8", "-ww", "-z"], input=page(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
