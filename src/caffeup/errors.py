"""The errors that a user can meet, each with an exit code of its own. Only ``cli.main`` catches them."""

from __future__ import annotations

from typing import ClassVar

from caffeup.model.finding import Finding


class CaffeupError(Exception):
    """An expected problem: what happened, what the tool in question said, what to do about it."""

    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        brief: str,
        *,
        details: str = "",
        commands: tuple[str, ...] = (),
        advice: str = "",
        log: str = "",
        findings: tuple[Finding, ...] = (),
    ) -> None:
        super().__init__(brief)
        self.brief = brief
        self.details = details
        self.commands = commands
        self.advice = advice
        self.log = log
        self.findings = findings


class UsageError(CaffeupError):
    """Arguments or files given by the user make no sense."""

    exit_code = 2


class CannotBuild(CaffeupError):
    """The plan has conflicts; all are listed."""

    exit_code = 3


class PatchFailed(CaffeupError):
    """A patch does not fit; nothing is half-applied."""

    exit_code = 4


class BuildFailed(CaffeupError):
    """make failed."""

    exit_code = 5


class VerifyFailed(CaffeupError):
    """It was built, but a check failed."""

    exit_code = 6


class SourceError(CaffeupError):
    """Not a Caffe tree, or one that cannot be had."""

    exit_code = 7


class DependencyError(CaffeupError):
    """Libraries are missing and were not, or could not be, installed."""

    exit_code = 8


class TestsFailed(CaffeupError):
    """Tests failed that are not known of this tree."""

    __test__ = False
    exit_code = 9


class DiskError(CaffeupError):
    """The disk is full, or a folder cannot be written."""

    exit_code = 10


class Busy(CaffeupError):
    """Another caffeup works in this tree."""

    exit_code = 11


class NotBuilt(CaffeupError):
    """The tree is one, but nothing is built in it yet."""

    exit_code = 12


class NoGpu(CaffeupError):
    """No NVIDIA GPU is here, or none is shown to this process."""

    exit_code = 13


class NoDriver(CaffeupError):
    """A GPU without a driver."""

    exit_code = 14


class DriverSilent(CaffeupError):
    """A driver that does not answer."""

    exit_code = 15


class NoRoom(CaffeupError):
    """No GPU has the room that is needed."""

    exit_code = 16


class NotEnded(CaffeupError):
    """A process that was to be ended was not."""

    exit_code = 17


class LockDiffers(CaffeupError):
    """What a lock says and what is here, or what was built, are not the same; all differences are listed."""

    exit_code = 19


class LockUnfit(CaffeupError):
    """No lock, one that was changed since it was written, or one for another kind of machine."""

    exit_code = 20


class CannotRun(CaffeupError):
    """The command of ``run`` is there and cannot be run; the code is the shell's."""

    exit_code = 126


class NotFound(CaffeupError):
    """There is no such command; the code is the shell's."""

    exit_code = 127


WARNINGS = 18
"""Exit code of ``doctor`` where the worst that it found is a warning."""

BUG = 70
"""Exit code for a fault of caffeup itself."""

INTERRUPTED = 130
"""Exit code after Ctrl-C."""

CLOSED_PIPE = 141
"""Exit code where whoever read the output has gone, as of other programs that SIGPIPE ends."""
