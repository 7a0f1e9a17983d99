"""The ledger: what caffeup did to a tree, and the way back. It is the file ``.caffeup/ledger.json``."""

from __future__ import annotations

from typing import Optional

import msgspec

from caffeup.errors import PatchFailed
from caffeup.model.base import SCHEMA, Value, from_json, to_json
from caffeup.patch.images import HOME, UNDO, Disk, Image, Stamp

LEDGER = f"{HOME}/ledger.json"


class FileRecord(Value, kw_only=True):
    """One touched path."""

    path: str
    before: Stamp
    """What stood there before caffeup; its bytes are kept in ``.caffeup/undo/<sha256>``."""
    after: Stamp
    entries: tuple[str, ...]
    """Ids of the entries that touched it, in order."""


class EntryRecord(Value, kw_only=True):
    """One applied entry."""

    id: str
    fix: str
    kind: str
    files: tuple[str, ...]
    fingerprint: str
    """Hash of what was to be written, to tell whether it would be the same today."""
    text: str = ""
    """The edit itself, so that others on the same file can be taken back alone."""
    because: str = ""


class Ledger(Value, kw_only=True):
    """Everything applied to one tree."""

    schema: int = SCHEMA
    serial: int = 0
    """Counts the runs that changed something: two ledgers are never the same by accident."""
    entries: tuple[EntryRecord, ...] = ()
    files: tuple[FileRecord, ...] = ()
    folders: tuple[str, ...] = ()
    """Folders that were made for it."""

    def file(self, path: str) -> Optional[FileRecord]:
        """The record of a path."""
        return next((record for record in self.files if record.path == path), None)

    def entry(self, name: str) -> Optional[EntryRecord]:
        """The record of an entry."""
        return next((record for record in self.entries if record.id == name), None)


def load_ledger(disk: Disk) -> Ledger:
    """The tree's ledger; an empty one where there is none; ``PatchFailed`` for one that cannot be read."""
    data = disk.read(LEDGER).data
    if data is None:
        return Ledger()
    try:
        found = from_json(data, Ledger)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _unreadable(disk, str(error)) from error
    if found.schema != SCHEMA:
        raise _unreadable(disk, f"its form is {found.schema}; this caffeup knows {SCHEMA}")
    return found


def _unreadable(disk: Disk, why: str) -> PatchFailed:
    return PatchFailed(
        f"the ledger of this tree cannot be read: {LEDGER}",
        details=why,
        advice=f"Without it caffeup does not know what it changed. The original files are in {UNDO}; git can restore them too. "
        "When the tree is as you want it, move the ledger away.",
        commands=(f"git -C {disk.root} status", f"mv {disk.root}/{LEDGER} {disk.root}/{LEDGER}.damaged"),
    )


def ledger_image(ledger: Ledger) -> Image:
    """The ledger as a file; nothing where it is empty."""
    if not ledger.entries and not ledger.files:
        return Image()
    return Image(to_json(ledger).encode())
