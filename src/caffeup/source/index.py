"""Downloads pinned files of the Python package index with pip's own settings (mirrors, proxies, certificates)."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Callable, Optional

from caffeup.errors import CaffeupError
from caffeup.facts.forks import Sdist
from caffeup.host import Host
from caffeup.model.base import Value
from caffeup.source.problems import BadArchive, NotFetched, Unreachable, disk_error
from caffeup.source.progress import Progress, silent
from caffeup.stream import run_stream

Run = Callable[[Sequence[str], Callable[[str], None]], int]
"""Runs a program, hands on each line it prints, gives its exit code."""
PROGRAM = Path(__file__).with_name("pip_index.py")


class Pinned(Value, kw_only=True):
    """One file of the index, exactly."""

    name: str
    version: str
    file: str = ""
    """Its name; empty: the only one of that kind for this Python."""
    sha256: str
    binary: bool = False
    """A wheel; otherwise an sdist, which is never run."""


def pinned(sdist: Sdist) -> Pinned:
    """A catalogue's sdist."""
    return Pinned(name=sdist.name, version=sdist.version, file=sdist.file, sha256=sdist.sha256)


def runner(host: Host, folder: Path) -> Run:
    """Programs in the environment that the host has."""

    def run(argv: Sequence[str], on_line: Callable[[str], None]) -> int:
        return run_stream(argv, cwd=str(folder), env=host.env, on_line=on_line).status

    return run


def pythons(host: Host) -> tuple[str, ...]:
    """Pythons whose pip may be asked: our own first, since its pip is known, then those on PATH."""
    candidates = [sys.executable, *host.which("python3"), *host.which("python")]
    return tuple(dict.fromkeys(path for path in candidates if path))


def download(wanted: Pinned, into: Path, *, run: Run, python: Sequence[str], progress: Progress = silent) -> Path:
    """Fetch one file into a folder; nothing but the whole and right file is ever there under its name."""
    refusal: Optional[CaffeupError] = None
    for executable in python:
        said = _Said(progress)
        order = {"name": wanted.name, "version": wanted.version, "file": wanted.file, "sha256": wanted.sha256}
        status = run([executable, str(PROGRAM), json.dumps({**order, "into": str(into), "binary": wanted.binary})], said.hear)
        if status == 0 and said.file:
            return Path(said.file)
        refusal = _refusal(wanted, said, into, executable)
        if said.error != "pip":
            break
    raise refusal or NotFetched("there is no Python with pip here", commands=("python3 -m ensurepip --user",))


class _Said:
    """What the child printed."""

    def __init__(self, progress: Progress) -> None:
        self.file = ""
        self.error = "pip"
        self.text = ""
        self._progress = progress
        self._other: list[str] = []

    def hear(self, line: str) -> None:
        try:
            said = json.loads(line)
        except ValueError:
            said = None
        if not isinstance(said, dict):
            self._other = [*self._other[-7:], line] if line.strip() else self._other
        elif "done" in said:
            self._progress("downloading", int(said["done"]), int(said["total"]))
        elif "error" in said:
            self.error, self.text = str(said["error"]), str(said["text"])
        else:
            self.file = str(said.get("file", ""))

    @property
    def details(self) -> str:
        """What to show; passwords in index addresses are left out."""
        return re.sub(r"//[^/@\s]*@", "//", "\n".join(part for part in (self.text, *self._other[-5:]) if part))


def _refusal(wanted: Pinned, said: _Said, into: Path, executable: str) -> CaffeupError:
    what = f"{wanted.name} {wanted.version}"
    by_hand = f"{executable} -m pip config list"
    if said.error == "unreachable":
        return Unreachable(
            f"cannot reach the package index for {what}",
            details=said.details,
            advice="Check the network; pip's index-url, proxy and cert settings are used.",
            commands=(by_hand,),
        )
    if said.error == "absent":
        return NotFetched(
            f"the package index has no {what}",
            details=said.details,
            advice="pip is set to an index that does not carry it; another index can be named with PIP_INDEX_URL.",
            commands=(by_hand,),
        )
    if said.error == "corrupt":
        return BadArchive(
            f"the download of {what} is not what it should be: its hash differs",
            details=said.details,
            advice="It was cut or changed on the way, by a proxy or a mirror. Nothing of it was kept.",
            commands=(by_hand, f"{executable} -m pip cache purge"),
        )
    if said.error == "disk":
        return disk_error(OSError(28 if shutil.disk_usage(into).free < (64 << 20) else 5, said.details), into)
    return NotFetched(
        f"pip could not be used to fetch {what}",
        details=said.details,
        advice="caffeup uses pip's own way to the index. Another version of pip may help.",
        commands=(f"{executable} -m pip install --upgrade pip",),
    )
