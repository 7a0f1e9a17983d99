"""Runs a program as if it were called directly: what it says passes through unchanged, and the last of it is remembered.

Standard output and standard error stay apart; where one is a terminal, the program gets one too. Standard input is
its own. It stays in the process group of caffeup, so that Ctrl-C, Ctrl-Z and a closed terminal reach it by themselves;
signals that are sent to caffeup alone are passed on.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import selectors
import signal
import subprocess
import termios
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Callable, Optional

from caffeup.errors import CannotRun, NotFound
from caffeup.model.base import Value

CHUNK = 1 << 16
HEAD = 1 << 18
"""Bytes of the beginning that are kept: programs say there what they run on."""
TAIL = 1 << 22
LONGEST = 1 << 16
TICK = 0.1
LINGER = 0.5
"""Seconds of silence after the program's end until those are left alone that it started and that still hold its output."""
PASSED_ON = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_BY_KERNEL = 128
"""``si_code`` of a signal that the terminal sent to the whole group."""

OUT, ERR = 1, 2


class Ran(Value):
    """How it ended, as a shell counts: its exit code, or 128 and the signal's number."""

    status: int
    interrupted: bool = False
    """Whether somebody asked it to end."""


class Remembered:
    """The first and the last lines of what was said, in the order in which they came; bounded."""

    def __init__(self, head: int = HEAD, tail: int = TAIL) -> None:
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._room = head
        self._most = tail
        self._size = 0
        self.dropped = False
        self._begun: dict[int, bytes] = {}

    def take(self, source: int, data: bytes) -> None:
        """Bytes of one stream; a line counts when it is whole, so that two streams do not cut each other's lines."""
        whole, newline, rest = (self._begun.pop(source, b"") + data).rpartition(b"\n")
        if newline:
            self._keep(whole + newline)
        if len(rest) > LONGEST:
            self._keep(rest)
        elif rest:
            self._begun[source] = rest

    def chunks(self) -> Iterator[bytes]:
        """All that is left, for the diagnosis."""
        yield from self._head
        yield from self._tail
        for rest in self._begun.values():
            yield rest + b"\n"

    def _keep(self, lines: bytes) -> None:
        if self._room >= len(lines):
            self._room -= len(lines)
            self._head.append(lines)
            return
        self._room = 0
        self._tail.append(lines)
        self._size += len(lines)
        while self._size > self._most and len(self._tail) > 1:
            self._size -= len(self._tail.popleft())
            self.dropped = True


class _Way:
    """One stream from the program to ours."""

    def __init__(self, target: int, *, both: bool) -> None:
        self.target = target
        self.both = both
        self.terminal = os.isatty(target)
        self.source, self.child = pty.openpty() if self.terminal else os.pipe()
        if self.terminal:
            _like(self.child, target)

    def resize(self) -> None:
        """The program's terminal as large as ours."""
        with contextlib.suppress(OSError):
            size = fcntl.ioctl(self.target, termios.TIOCGWINSZ, b"\0" * 8)
            fcntl.ioctl(self.source, termios.TIOCSWINSZ, size)

    def close_child(self) -> None:
        """The end that the program has; ours would keep the stream open for ever."""
        os.close(self.child)


def _like(child: int, target: int) -> None:
    """A terminal with the settings of ours that changes nothing: what is written arrives there as it is."""
    with contextlib.suppress(OSError, termios.error):
        settings = termios.tcgetattr(target)
        settings[1] &= ~termios.OPOST
        termios.tcsetattr(child, termios.TCSANOW, settings)
        fcntl.ioctl(child, termios.TIOCSWINSZ, fcntl.ioctl(target, termios.TIOCGWINSZ, b"\0" * 8))


def run_through(argv: Sequence[str], *, env: Mapping[str, str], remembered: Remembered, watch: Callable[[bytes], None]) -> Ran:
    """Run the program until its output ends. ``watch`` is shown all bytes after they were passed on.

    Raises ``NotFound`` or ``CannotRun`` where it cannot be started.
    """
    ways = _ways()
    signals = (*PASSED_ON, signal.SIGWINCH)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # taken one by one between two looks at the streams
    try:
        child = _start(argv, env, ways, before)
        interrupted = _pump(child, ways, remembered, watch, signals)
    finally:
        for way in ways:
            with contextlib.suppress(OSError):
                os.close(way.source)
        with contextlib.suppress(OSError):
            while signal.sigtimedwait(signals, 0):
                pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    status = child.wait()
    ended_by = -status if status < 0 else 0
    return Ran(
        status=128 + ended_by if ended_by else status, interrupted=interrupted or ended_by in {signal.SIGINT, signal.SIGPIPE}
    )


def _ways() -> list[_Way]:
    """One for each of the two streams that is open; a single one where both lead to the same place."""
    there = {}
    for target in (OUT, ERR):
        with contextlib.suppress(OSError):
            there[target] = os.fstat(target)
    same = len(there) == 2 and os.path.samestat(there[OUT], there[ERR])
    return [_Way(OUT, both=True)] if same else [_Way(target, both=False) for target in there]


def _start(
    argv: Sequence[str], env: Mapping[str, str], ways: Sequence[_Way], mask: set[int | signal.Signals]
) -> subprocess.Popen[bytes]:
    ends = {way.target: way.child for way in ways}
    if any(way.both for way in ways):
        ends[ERR] = ends[OUT]
    try:
        return subprocess.Popen(
            list(argv),
            stdout=ends.get(OUT),
            stderr=ends.get(ERR),
            env=dict(env),
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask),  # noqa: PLW1509  # no thread runs here
        )
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"{argv[0]}: there is no such command.") from error
    except (OSError, ValueError) as error:
        raise CannotRun(f"{argv[0]} cannot be run: {getattr(error, 'strerror', None) or error}.") from error
    finally:
        for way in ways:
            way.close_child()


def _pump(
    child: subprocess.Popen[bytes],
    ways: Sequence[_Way],
    remembered: Remembered,
    watch: Callable[[bytes], None],
    signals: Sequence[signal.Signals],
) -> bool:
    """Pass everything on; whether somebody asked the program to end."""
    interrupted = False
    silent_since: Optional[float] = None
    with selectors.DefaultSelector() as selector:
        for way in ways:
            selector.register(way.source, selectors.EVENT_READ, way)
        while selector.get_map() or child.poll() is None:
            if not selector.get_map():
                time.sleep(TICK)
            ready = selector.select(TICK)
            for key, _ in ready:
                data = _read(key.fd)
                if not data or not _write(key.data.target, data):
                    selector.unregister(key.fileobj)
                    os.close(key.fd)
                    key.data.source = -1
                remembered.take(key.data.target, data)
                watch(data)
            interrupted |= _pass_on(child, ways, signals)
            if ready or child.poll() is None:
                silent_since = None
            elif silent_since is None:
                silent_since = time.monotonic()
            elif time.monotonic() - silent_since > LINGER:
                break
    return interrupted


def _read(source: int) -> bytes:
    try:
        return os.read(source, CHUNK)
    except OSError:  # a terminal whose other end is closed
        return b""


def _write(target: int, data: bytes) -> bool:
    """False where nobody takes it any more: the program then meets that too."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(target, rest) :]
        except BlockingIOError:
            _wait_to_write(target)
        except OSError:
            return False
    return True


def _wait_to_write(target: int) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(target, selectors.EVENT_WRITE)
        selector.select(TICK)


def _pass_on(child: subprocess.Popen[bytes], ways: Sequence[_Way], signals: Sequence[signal.Signals]) -> bool:
    """Hand on what was sent to caffeup alone; whether it was meant to end the program."""
    asked = False
    while (got := signal.sigtimedwait(signals, 0)) is not None:
        if got.si_signo == signal.SIGWINCH:
            for way in ways:
                if way.terminal and way.source >= 0:
                    way.resize()
        asked |= got.si_signo in {signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP}
        if got.si_code != _BY_KERNEL or got.si_signo == signal.SIGWINCH:
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(got.si_signo)
    return asked
