"""Runs long programs: every byte to the log first, lines to whoever watches, and no process left behind."""

from __future__ import annotations

import codecs
import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Callable, Optional

from caffeup.errors import CaffeupError, DiskError
from caffeup.model.base import Value

CHUNK = 1 << 16
LONGEST_LINE = 1 << 16
"""A line is cut here for the watchers; the log has all of it."""
LINGER = 2.0
"""Seconds that a grandchild may keep the pipe open after the program itself has ended."""
TICK = 0.1
LADDER = ((signal.SIGINT, 3.0), (signal.SIGTERM, 3.0), (signal.SIGKILL, 3.0))
"""make removes half-written targets on INT, so it comes first and gets time."""


class Streamed(Value):
    """How a program ended. ``status`` is its exit code, negative for a signal."""

    status: int
    seconds: float
    stopped: bool = False
    """Whether ``stop`` asked for its end."""


class Lines:
    """Cuts raw bytes into lines of text: UTF-8 with replacement, CR and LF both end a line, over-long lines are cut."""

    def __init__(self, on_line: Callable[[str], None], longest: int = LONGEST_LINE) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._on_line = on_line
        self._longest = longest
        self._parts: list[str] = []
        self._size = 0
        self._after_cr = False

    def feed(self, raw: bytes, *, last: bool = False) -> None:
        """Take the next bytes; with ``last``, hand out the unterminated rest too."""
        text = self._decoder.decode(raw, last)
        if self._after_cr and text:
            text = text.removeprefix("\n")
            self._after_cr = False
        if text.endswith("\r"):
            self._after_cr = True
        pieces = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for piece in pieces[:-1]:
            self._keep(piece)
            self._flush()
        self._keep(pieces[-1])
        if last and self._size:
            self._flush()

    def _keep(self, piece: str) -> None:
        room = self._longest - self._size
        if piece and room > 0:
            self._parts.append(piece[:room])
            self._size += min(len(piece), room)

    def _flush(self) -> None:
        line = "".join(self._parts)
        self._parts.clear()
        self._size = 0
        self._on_line(line)


_WATCHER = 'read -r ended || { kill -s TERM -- "-$1"; sleep 3; kill -s KILL -- "-$1"; }'
"""Ends a group of processes when its standard input ends without a word: then caffeup was killed, and could do it no more."""


def _never() -> bool:
    return False


def _ignore(_line: str) -> None:
    return


def run_stream(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    log: Optional[IO[bytes]] = None,
    on_line: Callable[[str], None] = _ignore,
    stop: Callable[[], bool] = _never,
    linger: float = LINGER,
    finishing: Optional[Callable[[], None]] = None,
) -> Streamed:
    """Run a program in a process group of its own until its output ends.

    ``log`` gets the raw bytes before ``on_line`` sees them. ``stop`` is asked about ten times a second;
    when it says yes, and on any exception (Ctrl-C too), the whole group is ended: INT, TERM, KILL. Where caffeup itself is
    killed, the group is ended too. A program that must not be cut short comes with ``finishing``: on Ctrl-C that is called,
    INT goes to the program alone, and it is waited for until a second Ctrl-C; without caffeup it goes on to its end.
    Raises ``CaffeupError`` where the program cannot be started and ``DiskError`` where the log cannot be written.
    """
    begun = time.monotonic()
    child = _start(argv, cwd, env)
    watcher = None
    lines = Lines(on_line)
    stopped = False
    try:
        watcher = _watch(child, env) if finishing is None else None
        stopped = _pump(child, log, lines, stop, linger)
        if stopped:
            _end_group(child)
            _drain(child, log, lines)
        lines.feed(b"", last=True)
    except BaseException as error:
        try:
            if finishing is not None:
                finishing()
                _let_finish(child, None if isinstance(error, DiskError) else log, lines, linger)
        finally:
            _end_group(child)
            with contextlib.suppress(Exception):
                _drain(child, log, lines)
        raise
    finally:
        if child.stdout is not None:
            child.stdout.close()
        _dismiss(watcher)
    status = child.wait()
    if status < 0 and not stopped:
        _end_group(child)
    return Streamed(status=status, seconds=time.monotonic() - begun, stopped=stopped)


def _start(argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            bufsize=0,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CaffeupError(f"cannot start {argv[0]}: {reason}", details=" ".join(argv)) from error


def _watch(child: subprocess.Popen[bytes], env: Mapping[str, str]) -> Optional[subprocess.Popen[bytes]]:
    """A shell in a session of its own; only this process holds the other end of its pipe."""
    try:
        return subprocess.Popen(
            ["/bin/sh", "-c", _WATCHER, "caffeup", str(child.pid)],
            cwd="/",
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None


def _dismiss(watcher: Optional[subprocess.Popen[bytes]]) -> None:
    if watcher is not None:
        with contextlib.suppress(OSError):  # somebody ended it: nothing is left to say
            watcher.communicate(b"ended\n")


def _let_finish(child: subprocess.Popen[bytes], log: Optional[IO[bytes]], lines: Lines, linger: float) -> None:
    """Read to the end: a full pipe would hold the program up."""
    with contextlib.suppress(OSError):  # with sudo it is not ours to interrupt
        os.kill(child.pid, signal.SIGINT)
    _pump(child, log, lines, _never, linger)


def _pump(
    child: subprocess.Popen[bytes], log: Optional[IO[bytes]], lines: Lines, stop: Callable[[], bool], linger: float
) -> bool:
    """Read to the end of the output. True: ``stop`` said so before."""
    pipe = _pipe(child)
    os.set_blocking(pipe, False)
    deadline: Optional[float] = None
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            ready = selector.select(TICK)
            if ready and not _read(pipe, log, lines):
                return False
            if stop():
                return True
            if deadline is None and child.poll() is not None:
                deadline = time.monotonic() + linger
            if deadline is not None and time.monotonic() > deadline:
                _drain(child, log, lines)
                return False


def _pipe(child: subprocess.Popen[bytes]) -> int:
    if child.stdout is None:
        raise ValueError("the program was started without a pipe")
    return child.stdout.fileno()


def _read(pipe: int, log: Optional[IO[bytes]], lines: Lines) -> bool:
    """Take one chunk; False at the end of the output."""
    try:
        raw = os.read(pipe, CHUNK)
    except BlockingIOError:
        return True
    if raw and log is not None:
        _write(log, raw)
    lines.feed(raw)
    return bool(raw)


def _write(log: IO[bytes], raw: bytes) -> None:
    try:
        log.write(raw)
        log.flush()
    except OSError as error:
        name = str(getattr(log, "name", "the log"))
        raise DiskError(
            f"cannot write {Path(name).name}: {error.strerror}",
            details=name,
            advice="Make room on that disk, then run the same command again: it goes on where it stopped.",
            commands=(f"df -h {Path(name).parent}",),
        ) from error


def _drain(child: subprocess.Popen[bytes], log: Optional[IO[bytes]], lines: Lines) -> None:
    """Take what is already in the pipe, without waiting for more."""
    pipe = _pipe(child)
    os.set_blocking(pipe, False)
    for _ in range(64):
        try:
            raw = os.read(pipe, CHUNK)
        except OSError:
            return
        if not raw:
            return
        if log is not None:
            _write(log, raw)
        lines.feed(raw)


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """End every process of the group, politely first. A second Ctrl-C meanwhile goes straight to KILL."""
    try:
        for number, patience in LADDER:
            if not _signal(child.pid, number):
                break
            if _gone(child, patience):
                break
    except KeyboardInterrupt:
        _signal(child.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=1.0)


def _signal(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _gone(child: subprocess.Popen[bytes], patience: float) -> bool:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        child.poll()  # reap the leader: a zombie would keep the group alive
        if not _signal(child.pid, 0):
            return True
        time.sleep(0.02)
    return False


@contextlib.contextmanager
def ends_as_ctrl_c() -> Iterator[None]:
    """Let TERM and HUP end this process as Ctrl-C does, so that the programs it runs are ended too. For the main thread."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    wanted = (signal.SIGTERM, signal.SIGHUP)
    heard = [number for number in wanted if signal.getsignal(number) is not signal.SIG_IGN]  # nohup means to ignore
    before = {number: signal.signal(number, interrupt) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Captured(Value):
    """What a short program gave: stdout and stderr merged. ``status`` 124: ran out of time."""

    status: int
    output: str


def run_capture(
    argv: Sequence[str], *, cwd: str, env: Mapping[str, str], timeout: float = 60.0, limit: int = 1 << 24
) -> Captured:
    """Run a short program and keep what it said (at most ``limit`` characters of it)."""
    kept: list[str] = []
    size = 0
    deadline = time.monotonic() + timeout

    def keep(line: str) -> None:
        nonlocal size
        size += len(line) + 1
        if size <= limit:
            kept.append(line)

    ended = run_stream(argv, cwd=cwd, env=env, on_line=keep, stop=lambda: time.monotonic() > deadline)
    return Captured(status=124 if ended.stopped else ended.status, output="\n".join(kept))
