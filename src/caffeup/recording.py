"""Turns a machine into a folder that tests can play back: exactly what the probes asked for, and nothing more.

``root/`` holds the files, ``commands/`` the answers of programs, ``machine.toml`` the rest. Home folders, user and host
names, GPU serials and passwords in URLs are masked, so that the folder can be published.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Callable, Optional

import msgspec

from caffeup.host import Host, Output, Own
from caffeup.model.base import Value
from caffeup.model.driver import DriverAnswer
from caffeup.transcript import Recorded, format_recorded

HOME = "/home/user"
KEEP = ".keep"
"""Stands in a recorded folder that is otherwise empty: git keeps no empty folders."""
PROC_SELF = "/proc/self"
NOT_NAMES = frozenset(("root", "user", "host", "home", "localhost", "cuda", "nvidia", "gpu", "linux", "python", "caffe"))
"""Never masked as the name of a user or host: they are in every path and help no one to know who it was."""


class MachineRecord(Value):
    """machine.toml."""

    title: str
    """One line: what is special about it."""
    origin: str
    """``recorded`` or ``hand-made``, from what, and what was changed."""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    unreadable: tuple[str, ...] = ()
    """Files that are there and cannot be read."""
    own: Own = msgspec.field(default_factory=Own)
    nvml: Optional[DriverAnswer] = None
    libcuda: Optional[DriverAnswer] = None


class Mask:
    """Replaces what tells whose machine it is."""

    def __init__(self, host: Host) -> None:
        home = host.env.get("HOME", "").rstrip("/")
        names = {host.env.get("USER", ""), host.env.get("LOGNAME", ""), home.rpartition("/")[2]}
        hosts = {(host.read_text("/proc/sys/kernel/hostname") or "").strip(), host.env.get("HOSTNAME", "")}
        release = (host.read_text("/etc/os-release") or "").lower()
        self._rules: list[tuple[re.Pattern[str], str]] = []
        if len(home) > 1 and home != "/root":
            self._rules.append((re.compile(re.escape(home) + r"(?=/|[^\w.-]|$)"), HOME))
        self._rules.append((re.compile(r"(?<![\w.-])/home/[^/:\s'\"]+"), HOME))
        self._rules.append((re.compile(r"(?<=://)[^/@\s]+@"), ""))
        self._rules.append((re.compile(r"\b(GPU|MIG)-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"), r"\1-masked"))
        for group, replacement in ((names, "user"), (hosts, "host")):
            for name in sorted(group):
                if len(name) > 2 and name.lower() not in NOT_NAMES and name.lower() not in release:
                    self._rules.append((re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])"), replacement))

    def __call__(self, text: str) -> str:
        """The text without names."""
        for pattern, replacement in self._rules:
            text = pattern.sub(replacement, text)
        return text


class _AskedEnv(Mapping[str, str]):
    """The environment, noting which variables were asked for; the others are nobody's business."""

    def __init__(self, env: Mapping[str, str], note: Callable[[str], None]) -> None:
        self._env = env
        self._note = note

    def __getitem__(self, name: str) -> str:
        self._note(name)
        return self._env[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._env)

    def __len__(self) -> int:
        return len(self._env)


class RecordingHost:
    """Answers like the host given, and writes each answer into a folder; ``finish`` writes machine.toml."""

    def __init__(
        self, host: Host, directory: Path, *, title: str = "Say here what is special about it", origin: str = "recorded"
    ) -> None:
        self._host = host
        self._directory = directory
        self._mask = Mask(host)
        self._lock = threading.RLock()
        self._asked: set[str] = set()
        self._unreadable: set[str] = set()
        self._commands: dict[tuple[str, ...], Recorded] = {}
        self._placed: dict[str, Optional[Path]] = {}
        self._record = MachineRecord(title=title, origin=origin)
        for folder in ("root", "commands"):
            (directory / folder).mkdir(parents=True, exist_ok=True)

    @property
    def env(self) -> Mapping[str, str]:
        """The environment; variables that were asked for are recorded."""
        return _AskedEnv(self._host.env, self._asked.add)

    @property
    def own(self) -> Own:
        """The running process."""
        own = self._host.own
        paths = {name: self._mask(getattr(own, name)) for name in ("executable", "prefix", "base_prefix")}
        self._note(own=msgspec.structs.replace(own, **paths))
        return own

    def read_text(self, path: str) -> Optional[str]:
        """Recorded as UTF-8, with names masked."""
        text = self._host.read_text(path)
        self._keep(path, None if text is None else self._mask(text).encode())
        return text

    def read_bytes(self, path: str, limit: int = 1 << 20) -> Optional[bytes]:
        """Recorded as far as it was read."""
        data = self._host.read_bytes(path, limit)
        self._keep(path, data)
        return data

    def exists(self, path: str) -> bool:
        """Recorded as an empty file or a folder."""
        there = self._host.exists(path)
        if there:
            self._place(path)
        return there

    def is_dir(self, path: str) -> bool:
        """Recorded as a folder, or as an empty file where it is one."""
        self.exists(path)
        return self._host.is_dir(path)

    def glob(self, pattern: str) -> tuple[str, ...]:
        """Everything that matched is recorded as being there."""
        paths = self._host.glob(pattern)
        for path in paths:
            self._place(path)
        return paths

    def real_path(self, path: str) -> Optional[str]:
        """Recorded as links inside the folder."""
        real = self._host.real_path(path)
        if real is not None:
            self._place(path)
        return real

    def which(self, name: str) -> tuple[str, ...]:
        """Recorded as empty files that are executable."""
        self._asked.add("PATH")
        paths = self._host.which(name)
        for path in paths:
            self._place_program(path)
        return paths

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0, stdin: str = "") -> Optional[Output]:
        """Recorded under commands/, one file a program."""
        output = self._host.run(argv, timeout=timeout, stdin=stdin)
        if output is not None and "/" in argv[0]:
            self._place_program(argv[0])
        masked = output and Output(status=output.status, stdout=self._mask(output.stdout), stderr=self._mask(output.stderr))
        recorded = Recorded(argv=tuple(self._mask(word) for word in argv), output=masked)
        with self._lock:
            self._commands.setdefault(recorded.argv, recorded)
        return output

    def nvml(self) -> Optional[DriverAnswer]:
        """Recorded in machine.toml."""
        answer = self._host.nvml()
        self._note(nvml=self._masked_answer(answer))
        return answer

    def libcuda(self) -> Optional[DriverAnswer]:
        """Recorded in machine.toml."""
        answer = self._host.libcuda()
        self._note(libcuda=self._masked_answer(answer))
        return answer

    def finish(self) -> Path:
        """Write what is not written yet, and give the folder."""
        by_program: dict[str, list[Recorded]] = {}
        for _, recorded in sorted(self._commands.items()):
            by_program.setdefault(Path(recorded.argv[0]).name, []).append(recorded)
        for name, group in by_program.items():
            text = "".join(format_recorded(one) for one in group)
            (self._directory / "commands" / f"{name}.txt").write_bytes(text.encode())
        asked = {name: self._mask(self._host.env[name]) for name in sorted(self._asked) if name in self._host.env}
        record = msgspec.structs.replace(self._record, env=asked, unreadable=tuple(sorted(self._unreadable)))
        (self._directory / "machine.toml").write_bytes(msgspec.toml.encode(record))
        self._keep_empty_folders()
        return self._directory

    def _note(self, **fields: object) -> None:
        with self._lock:
            self._record = msgspec.structs.replace(self._record, **fields)

    def _masked_answer(self, answer: Optional[DriverAnswer]) -> Optional[DriverAnswer]:
        if answer is None:
            return None
        devices = tuple(msgspec.structs.replace(one, uuid=self._mask(one.uuid)) for one in answer.devices)
        return msgspec.structs.replace(answer, error=self._mask(answer.error), devices=devices)

    def _target(self, path: str) -> Path:
        return self._directory / "root" / self._mask(path).lstrip("/")

    def _place(self, path: str) -> Optional[Path]:
        """Let the path stand in root/, with the links that lead to it; the file that stands at its end, None for "/"."""
        with self._lock:
            path = "/" + os.path.normpath(path).lstrip("/")  # normpath leaves two slashes at the start as they are
            if path not in self._placed:
                self._placed[path] = self._place_new(path)
            return self._placed[path]

    def _place_new(self, path: str) -> Optional[Path]:
        real = self._host.real_path(path)
        if path == "/" or real is None:
            return None
        if path.startswith(PROC_SELF):  # a link to this process's number, which says nothing and is another one each time
            real = path
        parent = os.path.dirname(path)  # noqa: PTH120 - paths of a Host are text
        self._place(parent)
        real_parent = parent if parent.startswith(PROC_SELF) else self._host.real_path(parent) or parent
        plain = f"{real_parent.rstrip('/')}/{path.rpartition('/')[2]}"
        if real != plain:
            self._place(real)
            self._link(self._target(plain), self._target(real))
        elif self._host.is_dir(path):
            self._target(real).mkdir(parents=True, exist_ok=True)
        else:
            self._target(real).parent.mkdir(parents=True, exist_ok=True)
            self._target(real).touch()
        return self._target(real)

    @staticmethod
    def _link(link: Path, target: Path) -> None:
        """Relative, so that it stays inside the folder wherever that lies."""
        if not link.is_symlink() and not link.exists():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(os.path.relpath(target, link.parent))

    def _place_program(self, path: str) -> None:
        target = self._place(path)
        if target is not None and target.is_file():
            target.chmod(0o755)

    def _keep(self, path: str, content: Optional[bytes]) -> None:
        if content is None and not self._host.exists(path):
            return
        target = self._place(path)
        if target is None or self._host.is_dir(path):
            return
        with self._lock:
            if content is None:
                self._unreadable.add(self._mask(path))
            elif len(content) > target.stat().st_size:
                target.write_bytes(content)

    def _keep_empty_folders(self) -> None:
        for folder, folders, files in os.walk(self._directory / "root"):
            if not folders and not files:
                (Path(folder) / KEEP).touch()
