"""How a command ends when something is wrong: what, why, the command that mends it, the log; and an exit code."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from caffeup import __version__
from caffeup.cli import show
from caffeup.cli.called import as_typed, prompted
from caffeup.errors import BUG, CLOSED_PIPE, INTERRUPTED, CaffeupError, DiskError, UsageError

_DISK = {
    errno.ENOSPC: "The disk is full",
    errno.EDQUOT: "Your disk quota is used up",
    errno.EROFS: "The file system is read-only",
}
_REFUSED = {
    *(errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ELOOP),
    *(errno.ENAMETOOLONG, errno.EIO, errno.ESTALE, errno.EFBIG, errno.EBUSY, errno.ETXTBSY, errno.EINVAL, errno.EMFILE),
}
"""What a file or folder may be the matter with, above all where somebody else changes it at the same time."""
_LONG = 200


def code_for(error: BaseException) -> int:
    """Say what went wrong on stderr; return the exit code."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if isinstance(error, KeyboardInterrupt):
        _say(["", "Stopped. Nothing is lost: run the same command again to go on."])
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return CLOSED_PIPE
    if isinstance(error, OSError):
        error = _of_disk(error)
    if isinstance(error, CaffeupError):
        _say(_expected(error))
        return error.exit_code
    _say(_bug(error))
    return BUG


def _of_disk(error: OSError) -> BaseException:
    """What the file system refused, in words; anything else is left as it is."""
    if error.errno in _DISK:
        where = f": {error.filename}" if error.filename else ""
        free = "Free some space (caffeup clean shows what caffeup made), then run this again."
        return DiskError(
            f"{_DISK[error.errno]}{where}.",
            advice="Work on a copy where you can write." if error.errno == errno.EROFS else free,
        )
    if error.filename is not None and error.errno in _REFUSED:
        shown = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else str(error.filename)
        return DiskError(
            f"{shown if len(shown) < _LONG else shown[:_LONG] + '…'}: {error.strerror}.", advice="Look at this path."
        )
    if error.errno == errno.ENOENT and not _folder_is_here():
        return UsageError("The current folder is gone.", commands=("cd",))
    return error


def _folder_is_here() -> bool:
    try:
        Path.cwd()
    except OSError:
        return False
    return True


def _say(lines: Iterable[str]) -> None:
    if sys.stderr is None:
        return
    with suppress(OSError, ValueError):  # nobody can be told; the exit code remains
        sys.stderr.write("\n".join(lines) + "\n")
        sys.stderr.flush()


def _expected(error: CaffeupError) -> Iterator[str]:
    yield ""
    yield f"caffeup: {as_typed(error.brief)}"
    if error.details:
        yield from (f"    {line}" for line in error.details.rstrip().splitlines()[:15])
    if error.findings:
        yield from show.findings(error.findings)
    if error.advice:
        yield f"  {as_typed(error.advice)}"
    for command in error.commands:
        yield f"  {prompted(command)}"
    if error.log:
        yield f"  full log: {error.log}"


def _bug(error: BaseException) -> Iterator[str]:
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    yield ""
    yield f"caffeup: this is a fault of caffeup itself: {type(error).__name__}: {error}"
    try:
        path = Path(tempfile.mkdtemp(prefix="caffeup-")) / "crash.txt"
        path.write_text(
            f"caffeup {__version__}, Python {sys.version}\n{sys.argv[1:]}\n\n{text}", encoding="utf-8", errors="backslashreplace"
        )
    except OSError:
        yield f"  Please report it with this:\n{text}"
    else:
        yield f"  Please report it with this file: {path}"
