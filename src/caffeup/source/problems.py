"""What can go wrong while a tree is fetched, each with its next command."""

from __future__ import annotations

import errno
import shlex
from pathlib import Path

from caffeup.errors import DiskError, SourceError


class Unreachable(SourceError):
    """The host cannot be reached; another source may serve."""


class NotFetched(SourceError):
    """The host answered, and the answer is no: no such repository, branch or commit, or no access."""


class NoAccess(NotFetched):
    """The host asks for a name and password, or forbids it."""


class BadArchive(SourceError):
    """An archive that is corrupt, hostile, or no archive."""


class Occupied(SourceError):
    """The target folder is taken by something else."""


MARK = ".caffeup-part-"
"""In the name of a folder beside the target, where a tree is made."""
FULL = (errno.ENOSPC, errno.EDQUOT)


def disk_error(error: OSError, folder: Path) -> DiskError:
    """An ``OSError`` of writing, as something to act on; our own folder beside the target is named by its parent."""
    if MARK in folder.name:
        folder = folder.parent
    shown = shlex.quote(str(folder))
    if error.errno in FULL:
        return DiskError(
            f"the disk is full: {folder}",
            details=error.strerror or "",
            advice="A Caffe tree takes up to 100 MB, its build 1 GB. Free some space, or name another folder with --into.",
            commands=(f"df -h {shown}",),
        )
    return DiskError(
        f"cannot write in {folder}",
        details=str(error),
        advice="Name a folder that you may write with --into.",
        commands=(f"ls -ld {shown}",),
    )
