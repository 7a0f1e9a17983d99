"""What the stages need of whoever watches: a terminal, a log, or a test."""

from __future__ import annotations

from typing import Protocol

from caffeup.build.progress import Progress
from caffeup.model.outcome import StageOutcome
from caffeup.model.plan import Plan


class Ui(Protocol):
    """Everything said to a person goes through this; nothing else prints."""

    def begin(self, stage: str, about: str = "") -> None:
        """A stage begins."""

    def end(self, outcome: StageOutcome) -> None:
        """A stage ended."""

    def say(self, text: str, commands: tuple[str, ...] = ()) -> None:
        """One line of news, and commands that belong to it."""

    def show_plan(self, plan: Plan) -> None:
        """What was decided, and why, before it is done."""

    def ask(self, question: str) -> bool:
        """Consent: True with --yes, the answer on a terminal, False elsewhere."""
        ...

    def progress(self, title: str) -> Progress:
        """A progress display for a long stage."""
        ...
