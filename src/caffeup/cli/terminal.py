"""What a person watching sees: words on stderr, so that stdout stays for results."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO

from caffeup.build.progress import Bar, Plain, Progress
from caffeup.cli import show
from caffeup.cli.called import as_typed, draws, prompted
from caffeup.model.outcome import StageOutcome
from caffeup.model.plan import Plan


class Terminal:
    """The ``Ui`` of the program: a live line on a terminal, plain lines in a log."""

    def __init__(self, *, yes: bool = False, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stderr
        self._yes = yes
        self._asks = self._stream.isatty()
        self._live = self._asks and draws()

    @property
    def watched(self) -> bool:
        """Whether who reads the results on stdout saw what was said here."""
        return self._asks and sys.stdout is not None and sys.stdout.isatty()

    def begin(self, stage: str, about: str = "") -> None:
        """Name the stage; on a terminal the line is overwritten when it ends."""
        text = f"{stage:<13}{about or '…'}"
        self._write(f"\r\x1b[K{text}" if self._live else "")

    def end(self, outcome: StageOutcome) -> None:
        """One line a stage: what came of it and how long it took."""
        took = f"  ({show.duration(outcome.seconds)})" if outcome.seconds >= 0.05 and outcome.state == "done" else ""
        word = "" if outcome.state == "done" else f"{outcome.state}: " if outcome.summary else outcome.state
        self._write(
            ("\r\x1b[K" if self._live else "") + self._fitted(f"{outcome.name:<13}{word}{as_typed(outcome.summary)}{took}", 13)
        )

    def say(self, text: str, commands: tuple[str, ...] = ()) -> None:
        """One line of news, and commands that belong to it."""
        lines = (self._fitted(as_typed(text), 0), *(f"  {prompted(command)}\n" for command in commands))
        self._write(("\r\x1b[K" if self._live else "") + "".join(lines))

    def show_plan(self, plan: Plan) -> None:
        """Decisions with reasons."""
        self._lines(show.plan(plan))

    def ask(self, question: str) -> bool:
        """Consent."""
        if self._yes:
            self.say(f"{question} yes (--yes)")
            return True
        if not (self._asks and sys.stdin is not None and sys.stdin.isatty()):
            self.say(f"{question} no (not a terminal; --yes answers for you)")
            return False
        self._write(("\r\x1b[K" if self._live else "") + f"{as_typed(question)} [y/N] ")
        return sys.stdin.readline().strip().lower() in {"y", "yes"}

    def progress(self, title: str) -> Progress:
        """A bar on a terminal, lines elsewhere."""
        return Bar(title, self._stream) if self._live else Plain(title, self._write)

    def _fitted(self, text: str, under: int) -> str:
        """Lines for this terminal; in a log they are whole."""
        lines = text.split("\n")
        return "".join(f"{part}\n" for line in lines for part in (show.fitted(line, under) if self._asks else [line]))

    def _lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.say(line)

    def _write(self, text: str) -> None:
        if text:
            self._stream.write(text)
            self._stream.flush()
