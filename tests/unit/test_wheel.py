"""What ``pip install`` brings is whole: it holds all templates, patches and facts, and works without the checkout."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def files(folder: str) -> set[str]:
    """Every file below a folder of the checkout that is not a cache, by its path within it."""
    top = ROOT / folder
    return {path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file() and "__pycache__" not in path.parts}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-c", "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])", str(into)],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (built,) = into.glob("*.whl")
    return built


def test_it_holds_every_file_and_nothing_else(wheel: Path) -> None:
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    expected = {f"caffeup/{name}" for name in files("src/caffeup")}
    for folder in ("templates", "patches"):
        expected |= {f"caffeup/_bundle/{folder}/{name}" for name in files(folder)}
    assert held == expected


def test_it_gives_the_command_and_the_licence(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    told = {name.split("/", 1)[1]: name for name in archive.namelist() if ".dist-info/" in name}
    assert "caffeup = caffeup.__main__:start" in archive.read(told["entry_points.txt"]).decode()
    assert "licenses/LICENSE" in told


def test_it_works_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """Unpacked elsewhere, it reads its own templates and patches."""
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from caffeup.bundle import bundled\n"
        "from caffeup.facts.load import load_facts\n"
        "print(bundled('templates') / 'Makefile.config.j2'); print(bundled('patches')); print(len(load_facts().fixes) > 50)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(site)], cwd=tmp_path, check=True, stdout=subprocess.PIPE, text=True)
    template, patches, facts = done.stdout.splitlines()
    assert Path(template).is_file()
    assert Path(template).is_relative_to(site)
    assert Path(patches).is_relative_to(site)
    assert facts == "True"
