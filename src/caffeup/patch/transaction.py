"""All or nothing: a set of changes is written as a whole or not at all, also when the run is killed in its midst.

The order: pre-images are kept, the journal says what is coming, the paths are changed one by one, the new ledger
is written (from here on it counts), the journal is removed. A journal that is found later is rolled back, or, where
the ledger it announces is in place, simply closed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from caffeup.errors import PatchFailed
from caffeup.model.base import SCHEMA, Value, from_json, to_json
from caffeup.patch.images import HOME, UNDO, Disk, Image, Stamp, digest, disk_error
from caffeup.patch.ledger import LEDGER, Ledger, ledger_image

JOURNAL = f"{HOME}/journal.json"
IGNORE = f"{HOME}/.gitignore"


@dataclass(frozen=True)
class Change:
    """One path, from what stands there to what shall stand there."""

    path: str
    before: Image
    after: Image


class Op(Value, kw_only=True):
    """One change as the journal tells it."""

    path: str
    before: Stamp
    after: Stamp


class Journal(Value, kw_only=True):
    """What a run was about to do."""

    schema: int = SCHEMA
    ops: tuple[Op, ...]
    folders: tuple[str, ...] = ()
    was: str = ""
    """SHA-256 of the ledger before; empty: there is none."""
    ledger: str = ""
    """SHA-256 of the ledger that closes it; empty: the ledger is removed."""


class Recovery(Value, kw_only=True):
    """What was done about a run that did not come to its end."""

    restored: tuple[str, ...] = ()
    """Paths that hold what they held before that run."""
    kept: tuple[str, ...] = ()
    """Paths that somebody changed in between; they are left alone."""
    finished: bool = False
    """Whether that run had done everything but its last step."""


def transact(disk: Disk, changes: tuple[Change, ...], ledger: Ledger, verify: Callable[[], None]) -> None:
    """Write the changes, call ``verify``, write the ledger; whatever is raised on the way, nothing stays changed."""
    closing = ledger_image(ledger)
    folders = _new_folders(disk, changes)
    journal = Journal(
        ops=tuple(Op(path=one.path, before=one.before.stamp(), after=one.after.stamp()) for one in changes),
        folders=folders,
        was=_sha(disk.read(LEDGER)),
        ledger=_sha(closing),
    )
    try:
        _prepare(disk, changes)
        disk.put(JOURNAL, Image(to_json(journal).encode()))
        for one in changes:
            disk.put(one.path, one.after)
        verify()
        disk.put(LEDGER, closing)
    except BaseException as error:
        recover(disk)
        if isinstance(error, OSError):
            raise disk_error(error, str(disk.root)) from error
        raise
    disk.put(JOURNAL, Image())


def _sha(image: Image) -> str:
    return digest(image.data) if image.data is not None else ""


def _prepare(disk: Disk, changes: tuple[Change, ...]) -> None:
    if disk.read(IGNORE).absent:
        disk.put(IGNORE, Image(b"*\n"))
    for one in changes:
        disk.keep(one.before)


def _new_folders(disk: Disk, changes: tuple[Change, ...]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for one in changes:
        if not one.after.absent:
            found.update(dict.fromkeys(disk.missing_folders(one.path)))
    return tuple(found)


def recover(disk: Disk) -> Recovery:
    """Bring a tree in which a run was killed to the state before it, or close a run that was all but done."""
    data = disk.read(JOURNAL).data
    if data is None:
        return Recovery()
    try:
        journal = from_json(data, Journal)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise PatchFailed(
            f"the journal of a killed run cannot be read: {disk.root}/{JOURNAL}",
            details=str(error),
            advice=f"Compare the tree with git; the original files are in {UNDO}. Then remove the journal.",
            commands=(f"git -C {disk.root} status", f"rm {disk.root}/{JOURNAL}"),
        ) from error
    for path in (*(op.path for op in journal.ops), LEDGER, JOURNAL):
        with suppress(FileNotFoundError, NotADirectoryError):
            disk.scratch(path).unlink()
    if journal.was != journal.ledger == _sha(disk.read(LEDGER)):
        disk.put(JOURNAL, Image())
        return Recovery(finished=True)
    return _roll_back(disk, journal)


def _roll_back(disk: Disk, journal: Journal) -> Recovery:
    restored: list[str] = []
    kept: list[str] = []
    for op in reversed(journal.ops):
        now = disk.read(op.path).stamp()
        if now.same(op.before):
            continue
        if now.same(op.after):
            disk.put(op.path, disk.kept(op.before))
            restored.append(op.path)
        else:
            kept.append(op.path)
    disk.put(JOURNAL, Image())
    disk.prune(journal.folders)
    return Recovery(restored=tuple(restored), kept=tuple(kept))
