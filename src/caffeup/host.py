"""The only owner of programs, environment and file reads for detection.

Everything that looks at the machine goes through a ``Host``, so that a machine can be recorded into a
folder (``RecordingHost``) and played back in tests, and so that nothing else in caffeup depends on where it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Optional, Protocol

from caffeup.model.base import Value


class Output(Value):
    """What a program gave. ``status`` is its exit code; 124: ran out of time; 126: not executable."""

    status: int
    stdout: str = ""
    stderr: str = ""


class Host(Protocol):
    """The machine as seen by the probes. None means "not there"; nothing here raises for an absent thing."""

    @property
    def env(self) -> Mapping[str, str]:
        """The environment, as it was when the host was made."""
        ...

    def read_text(self, path: str) -> Optional[str]:
        """The file as text (undecodable bytes replaced); None where it is absent or unreadable."""
        ...

    def read_bytes(self, path: str, limit: int = 1 << 20) -> Optional[bytes]:
        """At most ``limit`` bytes from the start of the file."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder (links followed)."""
        ...

    def glob(self, pattern: str) -> tuple[str, ...]:
        """Sorted absolute paths that match."""
        ...

    def real_path(self, path: str) -> Optional[str]:
        """The path with all links resolved; None where nothing stands there."""
        ...

    def which(self, name: str) -> tuple[str, ...]:
        """All executables of that name on PATH, in PATH's order."""
        ...

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0, stdin: str = "") -> Optional[Output]:
        """Run a program with LC_ALL=C and no terminal; None where there is no such program."""
        ...
