"""The machine as it is this moment: the driver's figures, processes, device nodes, and the ending of a process.

``host`` answers what is true for a whole run, and can be recorded; what is here changes while one looks.
"""
# ruff: noqa: PTH115, PTH116, PTH208 - /proc is read as text, thousands of names at a time

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import select
import signal
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Optional, Protocol

from caffeup.driver_child import DriverChild, ask_cuda
from caffeup.model.gpus import CudaAnswer, Node, Process, Reading

FIRST_NAMESPACE = "pid:[4026531836]"
"""The kernel's own number of the PID namespace that a machine starts with."""
LONGEST_COMMAND = 4096
NODES = ("/dev/nvidia", "/dev/dxg", "/dev/nvhost", "/dev/nvgpu/", "/dev/nvmap")


class Grip(Protocol):
    """One process held by a descriptor: whatever becomes of its number, this means that process alone."""

    def alive(self) -> bool:
        """Whether it has not ended."""
        ...

    def send(self, number: int) -> None:
        """Send a signal; raise ``PermissionError`` or ``ProcessLookupError``."""
        ...

    def wait(self, seconds: float) -> bool:
        """Wait for its end; False where it has not come."""
        ...

    def close(self) -> None:
        """Let go."""


class NoGrip(Exception):
    """A process cannot be held: it is not there, or this kernel or Python has no pidfd."""

    def __init__(self, why: str, *, unsupported: bool = False) -> None:
        super().__init__(why)
        self.unsupported = unsupported


class Live(Protocol):
    """What is asked of the moment; tests have another one."""

    pid: int
    uid: int
    own_pids: bool
    """Whether this is the PID namespace that the machine started with."""

    def reading(self) -> Optional[Reading]:
        """The driver's answer; None where there is no such library."""
        ...

    def process(self, pid: int) -> Optional[Process]:
        """The process of that number here, with its device nodes; None where there is none."""
        ...

    def holders(self) -> tuple[tuple[Process, ...], int]:
        """Processes here that have a GPU's device node open, and of how many others it cannot be told."""
        ...

    def grip(self, pid: int) -> Grip:
        """Hold a process; raise ``NoGrip``."""
        ...

    def node(self, path: str) -> Node:
        """A file or folder, and what this user may do with it."""
        ...

    def cuda(self) -> Optional[CudaAnswer]:
        """What CUDA shows to a program of this user; None where there is no such library."""
        ...

    def close(self) -> None:
        """Let the driver go."""


class RealLive:
    """The machine that caffeup runs on."""

    def __init__(self, env: Mapping[str, str], *, proc: str = "/proc", nodes: tuple[str, ...] = NODES) -> None:
        self.pid = os.getpid()
        self.uid = os.geteuid()
        self._proc = proc
        self._nodes = nodes
        self._env = dict(env)
        self._driver = DriverChild(self._env)
        self.own_pids = _link(f"{proc}/self/ns/pid") == FIRST_NAMESPACE

    def reading(self) -> Optional[Reading]:
        """Asked in a process that stays, until ``close``."""
        return self._driver.ask()

    def process(self, pid: int) -> Optional[Process]:
        """Read from /proc."""
        folder = f"{self._proc}/{pid}"
        try:
            fields = _stat(Path(f"{folder}/stat").read_bytes())
            uid = _uid(Path(f"{folder}/status").read_bytes())
        except (OSError, ValueError, IndexError, StopIteration):
            return Process(pid=pid) if _hidden(pid) else None
        started = int(fields[19])
        return Process(
            pid=pid,
            state=fields[0],
            parent=int(fields[1]),
            uid=uid,
            user=_user(uid),
            started=started,
            age_seconds=self._age(started),
            command=self._command(pid),
            nodes=self._held(pid),
        )

    def holders(self) -> tuple[tuple[Process, ...], int]:
        """One look at the open files of every process."""
        found, unseen = [], 0
        ours = {self.pid, self._driver.pid}
        for name in sorted((one for one in _listing(self._proc) if one.isdigit() and int(one) not in ours), key=int):
            held = self._held(int(name))
            if held is None:
                unseen += 1
            elif held:
                process = self.process(int(name))
                found += [process] if process is not None else []
        return tuple(found), unseen

    def grip(self, pid: int) -> Grip:
        """Through a pidfd."""
        return _PidFd(pid)

    def node(self, path: str) -> Node:
        """As ``ls -l`` and ``test -r`` see it."""
        try:
            status = os.stat(path)
        except OSError:
            return Node(path=path)
        return Node(
            path=path,
            there=True,
            folder=stat.S_ISDIR(status.st_mode),
            readable=os.access(path, os.R_OK | (os.X_OK if stat.S_ISDIR(status.st_mode) else 0)),
            writable=os.access(path, os.W_OK),
            mode=stat.filemode(status.st_mode),
            owner=_user(status.st_uid),
            group=_group(status.st_gid),
        )

    def cuda(self) -> Optional[CudaAnswer]:
        """Asked in a process of its own: to start CUDA is the test."""
        return ask_cuda(self._env)

    def close(self) -> None:
        """End the process that asks."""
        self._driver.close()

    def _held(self, pid: int) -> Optional[tuple[str, ...]]:
        """Device nodes of GPUs among its open files; None where they may not be seen, or it has gone."""
        folder = f"{self._proc}/{pid}/fd"
        try:
            names = os.listdir(folder)
        except OSError:
            return None
        links = (_link(f"{folder}/{name}") for name in names)
        return tuple(sorted({link for link in links if link.startswith(self._nodes)}))

    def _age(self, started: int) -> Optional[float]:
        try:
            uptime = float(Path(f"{self._proc}/uptime").read_text("ascii").split()[0])
        except (OSError, ValueError, IndexError):
            return None
        return max(0.0, uptime - started / os.sysconf("SC_CLK_TCK"))

    def _command(self, pid: int) -> str:
        """Its arguments; where it has none (the kernel's own, a zombie) its name in brackets, as ps writes it."""
        try:
            with Path(f"{self._proc}/{pid}/cmdline").open("rb") as file:
                words = file.read(LONGEST_COMMAND).rstrip(b"\0").replace(b"\0", b" ")
            words = words or b"[" + Path(f"{self._proc}/{pid}/comm").read_bytes().rstrip(b"\n") + b"]"
        except OSError:
            return ""
        return plain(words.decode("utf-8", "replace"))


def become(command: tuple[str, ...], env: Mapping[str, str]) -> None:
    """Go on as this program, in the same process; returns only by an error: ``OSError``, ``ValueError``."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and what is ignored stays so
        signal.signal(number, signal.SIG_DFL)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvpe(command[0], list(command), dict(env))  # noqa: S606 - the command is the user's own


def plain(text: str) -> str:
    """A command line that can be shown: what a terminal would obey, or not show, is written out."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class _PidFd:
    def __init__(self, pid: int) -> None:
        opens = getattr(os, "pidfd_open", None)
        if opens is None or not hasattr(signal, "pidfd_send_signal"):
            raise NoGrip("this Python has no pidfd", unsupported=True)
        try:
            self._fd: int = opens(pid)
        except ProcessLookupError:
            raise NoGrip("there is no such process here") from None
        except OSError as error:
            missing = isinstance(error, PermissionError) or error.errno == 38  # ENOSYS; a sandbox says EPERM
            why = "this kernel has no pidfd (Linux 5.3 and newer have)" if missing else str(error.strerror)
            raise NoGrip(why, unsupported=missing) from None
        except (OverflowError, ValueError):
            raise NoGrip("there is no such process here") from None

    def alive(self) -> bool:
        return not self.wait(0)

    def send(self, number: int) -> None:
        signal.pidfd_send_signal(self._fd, number)

    def wait(self, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(max(0, round(seconds * 1000))))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._fd)


def _hidden(pid: int) -> bool:
    """Whether there is such a process of another user, which /proc was mounted not to show."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _stat(data: bytes) -> list[str]:
    """The fields behind the name, which may itself hold spaces and brackets."""
    return data.rpartition(b")")[2].decode("ascii", "replace").split()


def _uid(status: bytes) -> int:
    """The real one; the folder in /proc belongs to root where a process protects itself."""
    line = next(line for line in status.splitlines() if line.startswith(b"Uid:"))
    return int(line.split()[1])


def _listing(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _user(uid: int) -> str:
    try:
        return plain(pwd.getpwuid(uid).pw_name)
    except (KeyError, OverflowError):
        return str(uid)


def _group(gid: int) -> str:
    try:
        return plain(grp.getgrgid(gid).gr_name)
    except (KeyError, OverflowError):
        return str(gid)
