"""A machine played back from a folder under tests/machines/; see the README there."""
# ruff: noqa: PTH110, PTH112, PTH113, PTH207 - a Host speaks of paths as text

from __future__ import annotations

import glob as globbing
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Optional

from caffeup.host import Output, Own, path_folders
from caffeup.model.base import from_toml
from caffeup.model.driver import DriverAnswer
from caffeup.recording import MachineRecord
from caffeup.transcript import Recorded, parse_transcript

MACHINES = Path(__file__).resolve().parent / "machines"


class UnrecordedCommand(AssertionError):
    """A probe ran a program that stands in the fake root and of which no answer is recorded."""


class FakeHost:
    """Answers from the folder, and never from the machine that the test runs on."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._root = os.path.realpath(directory / "root")
        self.record = from_toml((directory / "machine.toml").read_bytes(), MachineRecord)
        self.commands: tuple[Recorded, ...] = tuple(
            one for file in sorted((directory / "commands").glob("*.txt")) for one in parse_transcript(file.read_text("utf-8"))
        )
        self.ran: list[tuple[str, ...]] = []

    @property
    def env(self) -> Mapping[str, str]:
        return MappingProxyType(self.record.env)

    @property
    def own(self) -> Own:
        return self.record.own

    def _inside(self, path: str) -> Optional[str]:
        """Where the path lies on the real disk; None where nothing stands there, or a link leads out."""
        if not path.startswith("/") or "\0" in path:
            return None
        real = os.path.realpath(self._root + os.path.normpath(path))
        within = real == self._root or real.startswith(self._root + "/")
        return real if within and os.path.exists(real) else None

    def _outside(self, real: str) -> str:
        return real[len(self._root) :] or "/"

    def read_text(self, path: str) -> Optional[str]:
        data = self.read_bytes(path, 8 << 20)
        return None if data is None else data.decode("utf-8", "replace")

    def read_bytes(self, path: str, limit: int = 1 << 20) -> Optional[bytes]:
        real = self._inside(path)
        if real is None or not os.path.isfile(real) or path in self.record.unreadable:
            return None
        return Path(real).read_bytes()[:limit]

    def exists(self, path: str) -> bool:
        return self._inside(path) is not None

    def is_dir(self, path: str) -> bool:
        real = self._inside(path)
        return real is not None and os.path.isdir(real)

    def glob(self, pattern: str) -> tuple[str, ...]:
        if not pattern.startswith("/"):
            return ()
        found = globbing.glob(globbing.escape(self._root) + pattern)
        return tuple(sorted(path[len(self._root) :] for path in found if self.exists(path[len(self._root) :])))

    def real_path(self, path: str) -> Optional[str]:
        real = self._inside(path)
        return None if real is None else self._outside(real)

    def which(self, name: str) -> tuple[str, ...]:
        paths = (name,) if "/" in name else tuple(f"{folder.rstrip('/')}/{name}" for folder in path_folders(self.env))
        return tuple(path for path in paths if self._is_program(path))

    def _is_program(self, path: str) -> bool:
        real = self._inside(path)
        return real is not None and os.path.isfile(real) and os.access(real, os.X_OK)

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0, stdin: str = "") -> Optional[Output]:
        self.ran.append(argv)
        exact = [one for one in self.commands if one.argv == argv]
        for one in exact or self.commands:
            if one.answers(argv):
                return one.output
        if not self.which(argv[0]):
            return None
        raise UnrecordedCommand(f"{self._directory.name}: no recording of {argv!r} under commands/")

    def nvml(self) -> Optional[DriverAnswer]:
        return self.record.nvml

    def libcuda(self) -> Optional[DriverAnswer]:
        return self.record.libcuda


def write_machine(
    folder: Path,
    *,
    files: Optional[Mapping[str, str]] = None,
    programs: Iterable[str] = (),
    links: Optional[Mapping[str, str]] = None,
    commands: str = "",
    toml: str = "",
    env: Optional[Mapping[str, str]] = None,
) -> FakeHost:
    """A small machine for one test: ``links`` and all paths are absolute, as the machine would show them."""
    root = folder / "root"
    for path, text in {**(files or {}), **dict.fromkeys(programs, "")}.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        target.chmod(0o755 if path in programs else 0o644)
    for path, to in (links or {}).items():
        link = root / path.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(root / to.lstrip("/"), link.parent))
    root.mkdir(exist_ok=True)
    (folder / "commands").mkdir(exist_ok=True)
    (folder / "commands" / "all.txt").write_text(commands, encoding="utf-8")
    variables = "".join(f"{name} = {json.dumps(value)}\n" for name, value in {"PATH": "/usr/bin", **(env or {})}.items())
    (folder / "machine.toml").write_text(f'title = "t"\norigin = "o"\n{toml}\n[env]\n{variables}', encoding="utf-8")
    return FakeHost(folder)
