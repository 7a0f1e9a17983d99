"""Package managers at work: all that they say in one log, what they do now on the screen."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Callable, Optional

from caffeup.build.progress import Progress
from caffeup.deps.said import Said
from caffeup.errors import CaffeupError
from caffeup.host import Output
from caffeup.stream import run_stream

_KEPT = 1 << 24
"""Characters of the output that are looked at afterwards."""


def _open_log() -> Optional[IO[bytes]]:
    """The log of this installation, among the user's own files; the one before is kept beside it. None: nowhere to write it."""
    from platformdirs import user_log_path  # noqa: PLC0415  # only where something is installed

    path = Path(user_log_path("caffeup")) / "packages.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            path.replace(path.with_name(f"{path.name}.1"))
        return path.open("wb", buffering=0)
    except OSError:
        return None


class Watched:
    """Runs package managers for ``deps.install``; ``close`` it."""

    def __init__(self, env: Mapping[str, str], progress: Progress, say: Callable[[str], None]) -> None:
        self._env = env
        self._say = say
        self._progress = progress
        self._begun = time.monotonic()
        self._log: Optional[IO[bytes]] = None
        self._opened = False

    def close(self) -> None:
        """End the display and the log."""
        self._progress.close()
        if self._log is not None:
            self._log.close()

    def rest(self) -> None:
        """End the display until the next program runs, for a question."""
        self._progress.close()

    @property
    def log(self) -> str:
        """Path of the log; empty where nothing ran, or where it could not be written."""
        return str(self._log.name) if self._log is not None else ""

    def __call__(self, argv: tuple[str, ...], *, timeout: float, packages: int = 0) -> Optional[Output]:
        """Run one to its end; None where there is no such program."""
        said, kept, size = Said(packages), [], 0
        deadline = time.monotonic() + timeout
        self._note(argv)

        def hear(line: str) -> None:
            nonlocal size
            size += len(line) + 1
            if size <= _KEPT:
                kept.append(line)
            said.hear(line)

        def tick() -> bool:
            now = time.monotonic()
            self._progress.show(said.status(now - self._begun))
            return now > deadline

        try:
            ended = run_stream(
                argv, cwd="/", env=self._env, log=self._log, on_line=hear, stop=tick, finishing=self._wait if packages else None
            )
        except CaffeupError as error:
            if error.exit_code != CaffeupError.exit_code:
                raise
            return None
        return Output(status=124 if ended.stopped else ended.status, stdout="\n".join(kept))

    def _wait(self) -> None:
        self._progress.close()
        self._say("waiting for the package manager to end what it has begun; Ctrl-C once more ends it at once")

    def _note(self, argv: tuple[str, ...]) -> None:
        if not self._opened:
            self._log, self._opened = _open_log(), True
        if self._log is not None:
            with suppress(OSError):
                self._log.write(f"caffeup: {' '.join(argv)}\n".encode("utf-8", "surrogateescape"))
