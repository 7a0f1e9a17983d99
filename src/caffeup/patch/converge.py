"""What has to change in a tree so that it holds exactly the wanted entries: a comparison, nothing is written.

For each path the ledger tells what stood there before caffeup. From that, the entries give what shall stand there,
and the difference to what stands there now is the change. So applying twice comes to nothing, an entry that is no
longer wanted is taken back, and a file that somebody changed since is recognised and left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.outcome import PatchEntry, PatchState
from caffeup.patch.edits import parse_edit, work_out
from caffeup.patch.images import HOME, UNDO, Disk, Image, digest
from caffeup.patch.ledger import EntryRecord, FileRecord, Ledger
from caffeup.patch.transaction import Change
from caffeup.patch.untangle import without
from caffeup.patch.wanted import CONFIG, Wanted

BEFORE = f"{CONFIG}.before-caffeup"
STAYS = "what was changed since stays, and only what caffeup put there goes"


@dataclass
class Worked:
    """What converging comes to."""

    entries: tuple[PatchEntry, ...] = ()
    changes: tuple[Change, ...] = ()
    ledger: Ledger = field(default_factory=Ledger)
    conflicts: tuple[Finding, ...] = ()


class Converge:
    """One comparison of a tree with the wanted entries."""

    def __init__(self, disk: Disk, ledger: Ledger, wanted: tuple[Wanted, ...]) -> None:
        self._disk = disk
        self._ledger = ledger
        self._wanted = wanted
        self._now: dict[str, Image] = {}
        self._base: dict[str, Image] = {}
        self._goal: dict[str, Image] = {}
        self._owners: dict[str, list[str]] = {}
        self._edited: set[str] = set()
        self._untangled: set[str] = set()
        self._conflicts: list[Finding] = []
        self._records: dict[str, EntryRecord] = {}

    def run(self) -> Worked:
        """Work everything out."""
        for record in self._ledger.files:
            self._look(record.path)
        entries = [self._entry(one) for one in self._wanted]
        changes = self._changes()
        changing = {change.path for change in changes}
        entries = [self._settled(entry, changing) for entry in entries]
        entries += self._obsolete()
        return Worked(tuple(entries), changes, self._new_ledger(), tuple(self._conflicts))

    def _look(self, path: str) -> None:
        """Read a path once, and tell from the ledger what it held before caffeup."""
        if path in self._now:
            return
        now = self._disk.read(path)
        self._now[path] = self._base[path] = self._goal[path] = now
        record = self._ledger.file(path)
        if record is None:
            return
        stamp = now.stamp()
        if stamp.same(record.after):
            self._base[path] = self._goal[path] = self._disk.kept(record.before)
        elif not stamp.same(record.before) and not now.absent:
            alone = self._without_ours(record, now)
            if alone is None:
                self._edited.add(path)
            else:
                self._base[path] = self._goal[path] = alone
                self._untangled.add(path)

    def _without_ours(self, record: FileRecord, now: Image) -> Optional[Image]:
        """A changed file less the edits that go, so that what they referred to may go too; None where that cannot be told."""
        wanted = {one.id for one in self._wanted}
        owners = [owner for owner in map(self._ledger.entry, record.entries) if owner is not None]
        before = self._disk.kept(record.before).data
        if before is None or now.data is None or any(one.kind != "edit" or one.id in wanted for one in owners):
            return None
        after = before
        for one in owners:
            try:
                spec = parse_edit(one.text)
            except ValueError:
                return None
            matches = {
                i: (record.path,) if record.path in self._matching(spot.files) else () for i, spot in enumerate(spec.spots)
            }
            beside = {
                i: tuple(self._now[path].data or b"" for path in self._matching(spot.where_in))
                for i, spot in enumerate(spec.spots)
            }
            after = work_out(spec, one.id, {record.path: after}, matches, beside).files.get(record.path, after)
        if digest(after) != record.after.sha256:
            return None
        data = without(before, after, now.data)
        return None if data is None else Image(data, mode=now.mode)

    def _entry(self, one: Wanted) -> PatchEntry:
        if one.kind == "config":
            return self._config(one)
        return self._edit(one) if one.spec is not None else self._whole(one)

    def _whole(self, one: Wanted) -> PatchEntry:
        files = tuple(path for path, _ in one.whole)
        for path in files:
            self._look(path)
        changed = next((path for path in files if path in self._edited), "")
        if changed:
            self._leave(one, files)
            return self._report(one, files, PatchState.EDITED, f"{changed} was changed since; it is left as it is", record=True)
        for path, image in one.whole:
            here = self._goal[path]
            ours = path.startswith(f"{HOME}/") or self._may_replace(one, path)
            if not here.absent and not here.same(image) and not ours:
                return self._conflict(one, files, _in_the_way(one, path))
            if not here.absent and here.link != image.link:
                return self._conflict(one, files, _in_the_way(one, path))
        if all(self._base[path].same(image) for path, image in one.whole):
            return self._report(one, files, PatchState.DONE, "it stands there already", by="tree")
        for path, image in one.whole:
            self._set(one, path, image)
        return self._report(one, files, PatchState.NEEDED, one.because, record=True)

    def _may_replace(self, one: Wanted, path: str) -> bool:
        """Whether it was asked for, now or when the file was replaced."""
        known = self._ledger.entry(one.id)
        return one.replaces or (known is not None and path in known.files and self._ledger.file(path) is not None)

    def _leave(self, one: Wanted, files: tuple[str, ...]) -> None:
        """Keep all files of an entry as they stand: where one was changed, the others belong to it as they are."""
        for path in files:
            if path not in self._edited:
                self._set(one, path, self._now[path])

    def _edit(self, one: Wanted) -> PatchEntry:
        assert one.spec is not None  # noqa: S101  (the caller has looked)
        matches = {index: self._matching(spot.files) for index, spot in enumerate(one.spec.spots)}
        paths = tuple(dict.fromkeys(path for found in matches.values() for path in found))
        beside = {
            index: tuple(self._goal[path].data or b"" for path in self._matching(spot.where_in))
            for index, spot in enumerate(one.spec.spots)
        }
        outcome = work_out(one.spec, one.id, {path: self._goal[path].data or b"" for path in paths}, matches, beside)
        known = self._ledger.entry(one.id)
        if outcome.state is PatchState.CONFLICTING and known is not None and self._edited.intersection(known.files):
            return self._changed_since(one, known)
        if outcome.state is PatchState.CONFLICTING:
            for finding in outcome.findings:
                self._conflicts.append(finding)
            return self._report(one, paths, outcome.state, outcome.because)
        for path in outcome.files:
            if not self._disk.writable(path):
                return self._conflict(one, paths, _read_only(one, path))
        for path, data in outcome.files.items():
            self._set(one, path, Image(data, mode=self._goal[path].mode))
        if known is not None and self._edited.intersection(known.files) and set(outcome.files) <= set(known.files):
            return self._changed_since(one, known)
        if outcome.state is PatchState.NEEDED:
            return self._report(one, tuple(outcome.files), outcome.state, one.because, record=True)
        return self._report(
            one, outcome.matched, outcome.state, outcome.because, by="tree" if outcome.state is PatchState.DONE else ""
        )

    def _changed_since(self, one: Wanted, known: EntryRecord) -> PatchEntry:
        """Whether it still stands there cannot be told by its place: where it is applied, that is gone."""
        changed = ", ".join(sorted(self._edited.intersection(known.files)))
        return self._report(one, known.files, PatchState.EDITED, f"{changed} was changed since; it is left as it is", record=True)

    def _matching(self, globs: tuple[str, ...]) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for pattern in globs:
            for place in sorted(self._disk.root.glob(pattern)):
                if place.is_file():
                    found[self._disk.resolve(str(place.relative_to(self._disk.root)))] = None
        for path in found:
            self._look(path)
        return tuple(found)

    def _config(self, one: Wanted) -> PatchEntry:
        _, image = one.whole[0]
        self._look(CONFIG)
        known = self._ledger.entry(one.id)
        if CONFIG in self._edited:
            if known is not None and known.fingerprint == one.fingerprint:
                return self._report(one, known.files, PatchState.EDITED, "you changed it since; it is left as it is", record=True)
            return self._conflict(one, (CONFIG,), _config_changed(one))
        record = self._ledger.file(CONFIG)
        if self._now[CONFIG].absent and record is not None:  # deleted: written anew, and the way back stays what it was
            self._base[CONFIG] = self._goal[CONFIG] = self._disk.kept(record.before)
        foreign = self._base[CONFIG]
        if foreign.same(image):
            return self._report(one, (CONFIG,), PatchState.DONE, "it holds these settings already", by="tree")
        files = [CONFIG]
        because = one.because
        if not foreign.absent:
            aside, before = self._set_aside(one, known, foreign)
            files += aside
            because = f"yours is kept as {before}"
        self._set(one, CONFIG, image)
        return self._report(one, tuple(files), PatchState.NEEDED, because, record=True)

    def _set_aside(self, one: Wanted, known: Optional[EntryRecord], foreign: Image) -> tuple[list[str], str]:
        """Keep the user's own configuration under another name; an earlier copy of it is used again."""
        earlier = [path for path in known.files if path != CONFIG] if known else []
        for path in earlier:
            self._look(path)
            if not self._now[path].absent and path not in self._edited:
                self._set(one, path, foreign)
            return [path], path
        number = 0
        while True:
            path = BEFORE if not number else f"{BEFORE}.{number}"
            self._look(path)
            if self._now[path].same(foreign):
                return [], path
            if self._now[path].absent:
                self._set(one, path, foreign)
                return [path], path
            number += 1

    def _set(self, one: Wanted, path: str, image: Image) -> None:
        if path in self._edited:
            self._edited.discard(path)  # from here on, what stands there is what revert goes back to
            self._base[path] = self._now[path]
        self._goal[path] = image
        owners = self._owners.setdefault(path, [])
        if one.id not in owners:
            owners.append(one.id)

    def _report(
        self, one: Wanted, files: tuple[str, ...], state: PatchState, because: str, *, by: str = "", record: bool = False
    ) -> PatchEntry:
        if record:
            known = self._ledger.entry(one.id)
            kept = known if known is not None and state is PatchState.EDITED else None
            self._records[one.id] = kept or EntryRecord(
                id=one.id, fix=one.fix, kind=one.kind, files=files, fingerprint=one.fingerprint, text=one.text, because=because
            )
        return PatchEntry(id=one.id, fix=one.fix, kind=one.kind, files=files, state=state, because=because, by=by)

    def _conflict(self, one: Wanted, files: tuple[str, ...], finding: Finding) -> PatchEntry:
        self._conflicts.append(finding)
        return self._report(one, files, PatchState.CONFLICTING, finding.title)

    def _changes(self) -> tuple[Change, ...]:
        return tuple(
            Change(path, self._now[path], goal)
            for path, goal in self._goal.items()
            if path not in self._edited and not goal.same(self._now[path])
        )

    def _settled(self, entry: PatchEntry, changing: set[str]) -> PatchEntry:
        """An entry that is worked out as needed and of which nothing is left to write is done, by caffeup."""
        if entry.state is not PatchState.NEEDED or changing.intersection(entry.files):
            return entry
        return PatchEntry(
            id=entry.id,
            fix=entry.fix,
            kind=entry.kind,
            files=entry.files,
            state=PatchState.DONE,
            because=entry.because,
            by="caffeup",
        )

    def _obsolete(self) -> list[PatchEntry]:
        wanted = {one.id for one in self._wanted}
        found = []
        for record in self._ledger.entries:
            if record.id in wanted:
                continue
            changed = sorted(self._edited.intersection(record.files))
            state = PatchState.EDITED if changed else PatchState.OBSOLETE
            because = "no longer needed here: the next apply takes it back"
            if self._untangled.intersection(record.files):
                because = STAYS
            if changed:
                self._records.setdefault(record.id, record)
                because = (
                    f"{', '.join(changed)} was changed since and is kept; what stood there before: {self._origin(changed[0])}"
                )
            found.append(
                PatchEntry(id=record.id, fix=record.fix, kind=record.kind, files=record.files, state=state, because=because)
            )
        return found

    def _origin(self, path: str) -> str:
        record = self._ledger.file(path)
        return f"{UNDO}/{record.before.sha256}" if record and record.before.sha256 else "nothing"

    def _new_ledger(self) -> Ledger:
        files = [record for record in self._ledger.files if record.path in self._edited]
        for path, owners in self._owners.items():
            base, goal = self._base[path], self._goal[path]
            if path not in self._edited and not base.same(goal):
                files.append(FileRecord(path=path, before=base.stamp(), after=goal.stamp(), entries=tuple(owners)))
        return Ledger(
            serial=self._ledger.serial + 1,
            entries=tuple(self._records.values()),
            files=tuple(files),
            folders=self._ledger.folders,
        )


def _problem(one: Wanted, id_: str, title: str, why: str, path: str, *commands: str, advice: str) -> Finding:
    remedies = (Remedy(text=advice, commands=commands),)
    return Finding(
        id=id_,
        severity=Severity.PROBLEM,
        title=title,
        why=why,
        affects=one.id,
        evidence=(Evidence(where=path),),
        remedies=remedies,
    )


def _in_the_way(one: Wanted, path: str) -> Finding:
    return _problem(
        one,
        "patch-file-in-the-way",
        f"{path} is there already, and it is not caffeup's",
        f"{one.id} puts its own {path} there; yours is never overwritten.",
        path,
        f"mv {path} {path}.mine",
        advice="Move it away where it is not needed, or leave this entry out.",
    )


def _read_only(one: Wanted, path: str) -> Finding:
    return _problem(
        one,
        "patch-read-only",
        f"{path} is read-only",
        f"{one.id} has to change it.",
        path,
        f"chmod u+w {path}",
        advice="Make it writable.",
    )


def _config_changed(one: Wanted) -> Finding:
    return _problem(
        one,
        "config-edited",
        f"{CONFIG} was changed after caffeup wrote it, and the plan has changed too",
        "Writing the new settings would lose your changes.",
        CONFIG,
        "caffeup patch diff",
        f"mv {CONFIG} {CONFIG}.mine",
        advice="Look at the difference, then move your version away; caffeup writes the new one.",
    )
