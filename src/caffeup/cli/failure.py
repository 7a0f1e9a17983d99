"""How a command ends when something is wrong: what, why, the command that mends it, the log; and an exit code."""

from __future__ import annotations

import errno
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

from caffeup import __version__
from caffeup.cli import show
from caffeup.errors import BUG, INTERRUPTED, CaffeupError, DiskError

_DISK = {
    errno.ENOSPC: "The disk is full",
    errno.EDQUOT: "Your disk quota is used up",
    errno.EROFS: "The file system is read-only",
}


def code_for(error: BaseException) -> int:
    """Say what went wrong on stderr; return the exit code."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if isinstance(error, KeyboardInterrupt):
        _say(["", "Stopped. Nothing is lost: run the same command again to go on."])
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        sys.stderr.close()
        return 0
    if isinstance(error, OSError) and error.errno in _DISK:
        where = f": {error.filename}" if error.filename else ""
        error = DiskError(
            f"{_DISK[error.errno]}{where}.",
            advice="Free some space (caffeup clean shows what caffeup made), then run this again.",
        )
    if isinstance(error, CaffeupError):
        _say(_expected(error))
        return error.exit_code
    _say(_bug(error))
    return BUG


def _say(lines: Iterator[str] | list[str]) -> None:
    sys.stderr.write("\n".join(lines) + "\n")


def _expected(error: CaffeupError) -> Iterator[str]:
    yield ""
    yield f"caffeup: {error.brief}"
    if error.details:
        yield from (f"    {line}" for line in error.details.rstrip().splitlines()[:15])
    if error.findings:
        yield from show.findings(error.findings)
    if error.advice:
        yield f"  {error.advice}"
    for command in error.commands:
        yield f"  $ {command}"
    if error.log:
        yield f"  full log: {error.log}"


def _bug(error: BaseException) -> Iterator[str]:
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    path = Path(tempfile.mkdtemp(prefix="caffeup-")) / "crash.txt"
    path.write_text(f"caffeup {__version__}, Python {sys.version}\n{sys.argv[1:]}\n\n{text}", encoding="utf-8")
    yield ""
    yield f"caffeup: this is a fault of caffeup itself: {type(error).__name__}: {error}"
    yield f"  Please report it with this file: {path}"
