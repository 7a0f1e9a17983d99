"""The patch list of one tree: preview, apply, revert, status, diff, recover.

Nothing here locks; whoever calls holds ``.caffeup/lock``.
"""

from __future__ import annotations

import difflib
import os
import posixpath
from collections.abc import Callable
from contextlib import suppress
from typing import Optional

import msgspec

from caffeup.errors import DiskError, PatchFailed
from caffeup.facts.tables import Facts
from caffeup.host import Host
from caffeup.model.outcome import PatchEntry, PatchState
from caffeup.model.plan import Plan
from caffeup.patch import transaction
from caffeup.patch.checks import Begins, Checked, Checker, Target, finding_of
from caffeup.patch.converge import STAYS, Converge, Worked
from caffeup.patch.images import HOME, UNDO, Disk, Image
from caffeup.patch.ledger import Ledger, load_ledger
from caffeup.patch.transaction import Change, Recovery, transact
from caffeup.patch.wanted import INCLUDE, LIB, Wanted, entry_of, wanted_entries

Report = Callable[[tuple[Checked, ...]], None]


def preview(
    tree_root: str, plan: Plan, facts: Facts, config_text: Optional[str] = None, only: tuple[str, ...] = ()
) -> tuple[PatchEntry, ...]:
    """The state of every entry of the plan in this tree, and of what is applied and no longer wanted; nothing is written."""
    disk = _settled(tree_root)
    ledger = load_ledger(disk)
    return _work_out(disk, ledger, plan, facts, config_text, only).entries


def apply(
    tree_root: str,
    plan: Plan,
    facts: Facts,
    config_text: Optional[str] = None,
    *,
    host: Optional[Host] = None,
    only: tuple[str, ...] = (),
    on_checked: Optional[Report] = None,
    begins: Begins = lambda *_: None,
) -> tuple[PatchEntry, ...]:
    """Make the tree hold what the plan calls for, all of it or nothing; entries no longer wanted are taken back.

    With a host, each touched file is compiled alone afterwards, as ``begins`` hears. ``PatchFailed`` carries a finding
    per conflict.
    """
    disk = Disk(tree_root)
    _require_writable(disk)
    recover(tree_root)
    ledger = load_ledger(disk)
    worked = _work_out(disk, ledger, plan, facts, config_text, only)
    if worked.conflicts:
        count = len(worked.conflicts)
        raise PatchFailed(
            f"{count} {'entry does' if count == 1 else 'entries do'} not fit this tree; nothing was changed",
            details="\n".join(finding.title for finding in worked.conflicts),
            commands=tuple(command for finding in worked.conflicts for remedy in finding.remedies for command in remedy.commands),
            findings=worked.conflicts,
        )
    wanted = wanted_entries(plan, facts, config_text)
    targets = _targets(wanted, worked) if host is not None else ()

    def verify() -> None:
        if host is not None and targets:
            _verify(Checker(host, plan, tree_root), targets, on_checked, begins)

    _write(disk, ledger, worked, verify)
    return tuple(_applied(entry) for entry in worked.entries)


def revert(tree_root: str, ids: Optional[tuple[str, ...]] = None) -> tuple[PatchEntry, ...]:
    """Take back the named entries (all: None), bytes, modes and times.

    Of a file that was changed since only what caffeup put there goes; where that cannot be told, it is kept and reported.

    A name is an entry's id, or a fix's id for all of its entries.
    """
    disk = Disk(tree_root)
    _require_writable(disk)
    recover(tree_root)
    ledger = load_ledger(disk)
    gone = {record.id for record in ledger.entries if ids is None or record.id in ids or (record.fix and record.fix in ids)}
    known = {name for record in ledger.entries for name in (record.id, record.fix)}
    unknown = [name for name in ids or () if name not in known]
    if unknown:
        raise PatchFailed(f"not applied here: {', '.join(unknown)}", commands=("caffeup patch list",))
    staying = tuple(entry_of(record, disk) for record in ledger.entries if record.id not in gone)
    worked = Converge(disk, ledger, staying).run()
    if worked.conflicts:
        raise PatchFailed("what remains does not fit this tree; nothing was changed", findings=worked.conflicts)
    _write(disk, ledger, worked, lambda: None)
    return tuple(_applied(entry) for entry in worked.entries if entry.id in gone)


def status(
    tree_root: str, plan: Optional[Plan] = None, facts: Optional[Facts] = None, config_text: Optional[str] = None
) -> tuple[PatchEntry, ...]:
    """With a plan, the same as ``preview``; without, what the ledger says is applied, and what was changed since."""
    if plan is not None and facts is not None:
        return preview(tree_root, plan, facts, config_text)
    disk = _settled(tree_root)
    ledger = load_ledger(disk)
    return Converge(disk, ledger, tuple(entry_of(record, disk) for record in ledger.entries)).run().entries


def diff(tree_root: str, plan: Optional[Plan] = None, facts: Optional[Facts] = None, config_text: Optional[str] = None) -> str:
    """A unified diff: without a plan, of all that was changed in the tree; with one, of what applying would still change."""
    disk = _settled(tree_root)
    ledger = load_ledger(disk)
    if plan is not None and facts is not None:
        changes = _work_out(disk, ledger, plan, facts, config_text, ()).changes
    else:
        changes = tuple(Change(record.path, disk.kept(record.before), disk.read(record.path)) for record in ledger.files)
    return "".join(_unified(change) for change in sorted(changes, key=lambda change: change.path))


def recover(tree_root: str) -> Recovery:
    """Repair a tree in which a run was killed: rolled back, or closed where it was all but done."""
    disk = Disk(tree_root)
    try:
        return transaction.recover(disk)
    except OSError as error:
        raise DiskError(
            f"{error.filename or tree_root} cannot be written: {error.strerror}", commands=("caffeup patch status",)
        ) from error


def _settled(tree_root: str) -> Disk:
    """The tree, for reading; ``PatchFailed`` where a run is half through, of which nothing true can be said."""
    disk = Disk(tree_root)
    if not disk.read(transaction.JOURNAL).absent:
        raise PatchFailed(
            "a run that changes this tree is half through, or was killed",
            advice="If none is at work, the next apply or revert repairs the tree first.",
            commands=("caffeup patch apply",),
        )
    return disk


def _work_out(disk: Disk, ledger: Ledger, plan: Plan, facts: Facts, config: Optional[str], only: tuple[str, ...]) -> Worked:
    wanted = wanted_entries(plan, facts, config)
    if only:
        known = {name for one in wanted for name in (one.id, one.fix)}
        unknown = [name for name in only if name not in known]
        if unknown:
            raise PatchFailed(f"the plan has no such entry: {', '.join(unknown)}", commands=("caffeup patch list",))
        wanted = tuple(one for one in wanted if one.id in only or one.fix in only)
    names = {one.id for one in wanted}
    carried = tuple(
        entry_of(record, disk)
        for record in ledger.entries
        if record.id not in names and (only or (record.kind == "config" and config is None))
    )
    return Converge(disk, ledger, (*carried, *wanted)).run()


def _write(disk: Disk, ledger: Ledger, worked: Worked, verify: Callable[[], None]) -> None:
    """Write what was worked out; where nothing differs, nothing is touched."""
    new = worked.ledger
    if not worked.changes and (new.entries, new.files) == (ledger.entries, ledger.files):
        return
    folders = dict.fromkeys((*ledger.folders, *(name for one in worked.changes for name in disk.missing_folders(one.path))))
    new = msgspec.structs.replace(new, folders=tuple(folders))
    transact(disk, worked.changes, new, verify)
    disk.prune(tuple(folders))
    if not new.entries and not new.files:
        _sweep(disk)


def _sweep(disk: Disk) -> None:
    """Nothing is applied any more: remove what was kept for the way back, and our folder where it is empty."""
    with suppress(OSError):
        for kept in disk.locate(UNDO).iterdir():
            kept.unlink()
    others = [
        path.name for path in disk.locate(HOME).iterdir() if path.name not in (".gitignore", "undo", "include", "lib", "lock")
    ]
    if not others:
        disk.put(transaction.IGNORE, Image())
    disk.prune((UNDO, INCLUDE, LIB, HOME))


def _require_writable(disk: Disk) -> None:
    if not disk.root.is_dir():
        raise PatchFailed(f"no such folder: {disk.root}")
    if not os.access(disk.root, os.W_OK):
        raise DiskError(
            f"{disk.root} cannot be written", commands=(f"ls -ld {disk.root}",), advice="Copy the tree to a folder of yours."
        )


def _targets(wanted: tuple[Wanted, ...], worked: Worked) -> tuple[Target, ...]:
    """What has to be compiled: what this run changes."""
    changing = {change.path: change for change in worked.changes}
    entries = {entry.id: entry for entry in worked.entries}
    found: dict[str, Target] = {}
    for one in wanted:
        paths: tuple[str, ...] = ()
        if one.spec is not None and one.spec.compiles:
            paths = entries[one.id].files
        elif one.kind == "file":
            # A test that does not compile is left out of the tests, and is no reason to do without the layer.
            paths = tuple(
                path for path, _ in one.whole if path.endswith(".cpp") and not posixpath.basename(path).startswith("test_")
            )
        for path in paths:
            if path in changing:
                found.setdefault(path, Target(one.id, path=path, was=changing[path].before.data or b""))
        headers = tuple(header for header in one.headers if f"{INCLUDE}/{header}" in changing)
        if headers:
            found[one.id] = Target(one.id, headers=headers)
    return tuple(found.values())


def _verify(checker: Checker, targets: tuple[Target, ...], on_checked: Optional[Report], begins: Begins) -> None:
    checked = checker.check(targets, begins)
    if on_checked is not None:
        on_checked(checked)
    failed = [one for one in checked if one.ok is False]
    if failed:
        raise PatchFailed(
            f"{len(failed)} of {len(checked)} touched files do not compile; everything was taken back",
            details="\n".join(failed[0].said.splitlines()[:15]),
            findings=tuple(finding_of(one) for one in failed),
        )


def _applied(entry: PatchEntry) -> PatchEntry:
    if entry.state is PatchState.NEEDED:
        return msgspec.structs.replace(entry, state=PatchState.DONE, by="caffeup")
    if entry.state is PatchState.OBSOLETE:
        because = entry.because if entry.because == STAYS else "the tree holds what it held before"
        return msgspec.structs.replace(entry, state=PatchState.REVERTED, because=because)
    return entry


def _unified(change: Change) -> str:
    before = "/dev/null" if change.before.absent else f"a/{change.path}"
    after = "/dev/null" if change.after.absent else f"b/{change.path}"
    lines = list(difflib.unified_diff(_lines(change.before), _lines(change.after), before, after))
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(image: Image) -> list[str]:
    if image.link:
        return [f"link to {image.link}\n"]
    text = (image.data or b"").decode("utf-8", "replace")
    return [f"{line}\n" for line in text.split("\n")[:-1]] + ([last] if (last := text.rpartition("\n")[2]) else [])
