"""One stage at a time: whether it has to run at all, how long it took, what is remembered of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Callable, Optional

import msgspec

from caffeup.app.state import StageRecord, State, load_state, save_state
from caffeup.app.ui import Ui
from caffeup.model.outcome import StageOutcome


def digest(*parts: str) -> str:
    """One key of many texts."""
    together = sha256()
    for part in parts:
        together.update(part.encode("utf-8", "surrogateescape") + b"\0")
    return together.hexdigest()


class Stages:
    """Runs stages, tells the person, and remembers what is done in the tree's state."""

    def __init__(self, ui: Ui) -> None:
        self._ui = ui
        self._root: Optional[Path] = None
        self.state = State()
        self.outcomes: list[StageOutcome] = []

    def remember_in(self, root: Path) -> None:
        """From now on the state of this tree is read and written."""
        self._root = root
        self.state = load_state(root)

    def update(self, **changes: object) -> None:
        """Change what is remembered."""
        self.state = msgspec.structs.replace(self.state, **changes)
        if self._root is not None:
            save_state(self._root, self.state)

    @contextmanager
    def step(self, name: str, about: str = "") -> Iterator[Callable[[str], None]]:
        """A stage that always runs; call what is given with its summary."""
        self._ui.begin(name, about)
        begun = time.monotonic()
        said: list[str] = []
        yield said.append
        self._end(StageOutcome(name=name, state="done", seconds=time.monotonic() - begun, summary=said[-1] if said else ""))

    def once(
        self,
        name: str,
        key: str,
        work: Callable[[], StageOutcome],
        *,
        still_there: Callable[[], bool],
        parts: Optional[Mapping[str, str]] = None,
        more: Callable[[str], str] = lambda _: "",
    ) -> StageOutcome:
        """A stage that runs unless it was completed for the same inputs and its products are still there.

        ``parts`` is what the key is made of: where the stage was done before, what differs is told, with ``more`` of it.
        """
        record = next((one for one in self.state.stages if one.name == name), None)
        if record is not None and record.key == key and still_there():
            outcome = msgspec.structs.replace(record.outcome, state="unchanged", seconds=0.0)
        else:
            if record is not None and parts is not None:
                changed = [part for part, value in parts.items() if record.parts.get(part, value) != value]
                why = ", ".join(f"{part}{more(part)}" for part in changed) if record.key != key else "what was built is gone"
                if why:
                    self._ui.say(f"{name} again: {why}")
            self._ui.begin(name)
            self.forget(name)
            begun = time.monotonic()
            outcome = msgspec.structs.replace(work(), name=name, seconds=time.monotonic() - begun)
            kept = tuple(one for one in self.state.stages if one.name != name)
            self.update(stages=(*kept, StageRecord(name=name, key=key, outcome=outcome, parts=dict(parts or {}))))
        return self._end(outcome)

    def forget(self, name: str) -> None:
        """A stage that begins is not done, whatever happens next."""
        self.update(stages=tuple(one for one in self.state.stages if one.name != name))

    def skip(self, name: str, why: str) -> None:
        """A stage that has nothing to do here."""
        self._end(StageOutcome(name=name, state="skipped", summary=why))

    def _end(self, outcome: StageOutcome) -> StageOutcome:
        self.outcomes.append(outcome)
        self._ui.end(outcome)
        return outcome
