"""What a long stage tells whoever watches: an interface, and its renderers for a terminal, a log, and nobody."""

from __future__ import annotations

import time
from typing import IO, TYPE_CHECKING, Callable, Optional, Protocol

import msgspec

from caffeup.model.base import Value

if TYPE_CHECKING:
    from rich.progress import Progress as RichBar


_WIDE = 100
"""Columns from which on a bar has room beside its words."""
_LONG = 600
_LEAST = 12
"""Of a name fewer letters tell nothing."""


class Status(Value):
    """How far a stage is."""

    done: int = 0
    total: Optional[int] = None
    """None: not known."""
    current: str = ""
    """What is being made now."""
    elapsed: float = 0.0
    left: Optional[float] = None
    """Expected seconds that remain; None: cannot be told yet."""
    failed: int = 0
    """Tests that failed so far and are not known to."""
    share: Optional[float] = None
    """How full a bar is, from 0 to 1, where ``done`` is counted anew for each of several phases."""


class Pace:
    """Expected time from a smoothed rate: what was done in the last minutes counts, and a pause slows it down gently."""

    HALF = 45.0
    """Seconds after which work done counts half."""
    LONGEST = 48 * 3600.0
    """Nobody is helped by a longer time than this."""

    def __init__(self, *, work: float = 0.0, seconds: float = 0.0) -> None:
        """What is expected beforehand: so much work in so many seconds, which counts as if it had been seen."""
        self._work = work
        self._seconds = seconds
        self._done = 0.0
        self._at = 0.0

    def left(self, done: float, ahead: float, elapsed: float) -> Optional[float]:
        """Seconds for the work that is ahead, after so much was done; None where that cannot be told."""
        passed = elapsed - self._at
        if passed > 0:
            fade = 0.5 ** (passed / self.HALF)
            self._work = self._work * fade + max(done - self._done, 0.0)
            self._seconds = self._seconds * fade + passed
            self._done, self._at = done, elapsed
        if self._work <= 0 or self._seconds <= 0:
            return None
        left = ahead * self._seconds / self._work
        return left if left < self.LONGEST else None


class Progress(Protocol):
    """Shows a stage. ``show`` comes about ten times a second, ``close`` once and always."""

    def show(self, status: Status) -> None:
        """The newest state."""
        ...

    def close(self) -> None:
        """The stage ended, well or not."""
        ...


class Silent:
    """Shows nothing."""

    def show(self, status: Status) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


def short_time(seconds: float) -> str:
    """``4 s``, ``3 min 05 s``, ``2 h 10 min``."""
    whole = max(round(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def _roughly(seconds: float) -> str:
    """Without the seconds where nobody can tell them."""
    return short_time(seconds) if seconds < _LONG else short_time(seconds).partition(" min")[0] + " min"


def plain_line(title: str, status: Status) -> str:
    """One line for a log: ``build: 40 of 139, 1 min 20 s, about 3 min 05 s left: CXX src/…``."""
    count = f"{status.done} of {status.total}, " if status.total is not None else f"{status.done}, " if status.done else ""
    words = [f"{title}: {count}{short_time(status.elapsed)}"]
    if status.left is not None:
        words.append(f"about {_roughly(status.left)} left")
    if status.failed:
        words.append(f"{status.failed} failed")
    line = ", ".join(words)
    return f"{line}: {status.current}" if status.current else line


def short_line(status: Status, room: int) -> str:
    """The same in so many columns: of a path that is too long its end is shown, which tells it from others."""
    head = plain_line("", msgspec.structs.replace(status, current="")).removeprefix(": ")
    if not status.current:
        return head
    if status.left is not None and len(head) + len(": ") + len(status.current) > room:
        head = head.replace(f"{short_time(status.elapsed)}, ", "", 1)  # what is left says more
    left = room - len(head) - len(": ")
    if len(status.current) <= left:
        return f"{head}: {status.current}"
    kind, _, name = status.current.partition(" ")
    kept = left - len(kind) - len(" …")
    return (
        f"{head}: {kind} …{name[-kept:]}" if name and kept >= _LEAST else f"{head}: …{status.current[-max(left - 1, _LEAST) :]}"
    )


class Plain:
    """A line now and then, without control characters: for logs and CI."""

    LEAST = 10.0
    """Seconds between two lines."""

    def __init__(self, title: str, write: Callable[[str], object], *, seconds: float = 30.0, share: float = 0.1) -> None:
        self._title = title
        self._write = write
        self._seconds = seconds
        self._share = share
        self._said_at = 0.0
        self._said_done = -1
        self._last: Optional[Status] = None

    def show(self, status: Status) -> None:
        """Say it if enough has happened, or enough time has passed."""
        if not status.total and not status.current:
            return  # nothing to do, or nothing known yet
        self._last = status
        step = max(int((status.total or 0) * self._share), 1) if status.total else 0
        moved = bool(step) and status.done >= self._said_done + step and status.elapsed >= self._said_at + self.LEAST
        if self._said_done < 0 or moved or status.elapsed >= self._said_at + self._seconds:
            self._say(status)

    def close(self) -> None:
        """Say where it ended, unless that was said."""
        if self._last is not None and self._last.done != self._said_done:
            self._say(self._last)

    def _say(self, status: Status) -> None:
        self._said_at, self._said_done = status.elapsed, status.done
        self._write(plain_line(self._title, status) + "\n")


class Bar:
    """A bar on a terminal. The bar is rich's; it is loaded when the first state comes."""

    def __init__(self, title: str, stream: IO[str]) -> None:
        self._title = title
        self._stream = stream
        self._bar: Optional[RichBar] = None
        self._shown = 0.0
        self._room = 0

    def _open(self) -> RichBar:
        from rich.console import Console  # noqa: PLC0415  # takes longer to load than most commands run
        from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415
        from rich.table import Column  # noqa: PLC0415

        console = Console(file=self._stream, highlight=False)
        wide = 24 if console.width >= _WIDE else 8
        self._room = console.width - len(self._title) - wide - len("  ")
        bar = Progress(
            TextColumn("{task.fields[title]}"),
            BarColumn(bar_width=wide),
            TextColumn("{task.fields[text]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
            console=console,
            auto_refresh=False,
            expand=True,
            transient=True,
        )
        self._stream.write("\r\x1b[K")  # the line that names the stage is not ended yet
        bar.add_task("", title=self._title, text="", total=None)
        bar.start()
        return bar

    def show(self, status: Status) -> None:
        """Draw the bar, at most five times a second."""
        if not status.total and not status.current:
            return
        if self._bar is None:
            self._bar = self._open()
        elif time.monotonic() < self._shown + 0.2:
            return
        self._shown = time.monotonic()
        done, total = (status.done, status.total) if status.share is None else (status.share, 1)
        text = short_line(status, self._room)
        self._bar.update(self._bar.task_ids[0], completed=done, total=total, text=text, refresh=True)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
