"""The lock of a tree: written at the end of ``up``, held to by ``up --locked``, compared, verified."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Optional

import msgspec

from caffeup import __version__
from caffeup.app.lock_contents import built, lock_of
from caffeup.app.obtain import resolve
from caffeup.app.planning import Planned, plan_for
from caffeup.app.session import Session, find_tree, looks_like_a_tree
from caffeup.app.state import LOCK, exclusive
from caffeup.app.treework import last_plan, require_built
from caffeup.disk import read_plain, write_atomically
from caffeup.errors import CaffeupError, LockDiffers, LockUnfit, UsageError
from caffeup.lock import compare, text
from caffeup.lock.make import request_of
from caffeup.model.lock import BUILT, Compared, Difference, Lock
from caffeup.model.machine import Machine
from caffeup.model.plan import Plan, Request
from caffeup.source.catalogue import trees

HERE = "here"
"""What ``lock diff`` calls this machine and tree as they are now."""


def read_lock(path: Path) -> Lock:
    """The lock in a file; raise ``UsageError`` where none can be read, and ``LockUnfit`` where it is none."""
    try:
        data = read_plain(path, text.LARGEST)
    except OSError as error:
        raise UsageError(
            f"There is no lock to be read: {path}: {error.strerror}.",
            advice="`up` writes one at its end; for a tree that is built:",
            commands=("caffeup lock write",),
        ) from error
    return text.read(data, str(path))


def is_ours(path: Path) -> bool:
    """Whether a lock that caffeup wrote stands there, and nobody changed it."""
    try:
        read_lock(path)
    except CaffeupError:
        return False
    return True


class Locked:
    """A lock that a run of ``up`` is held to."""

    def __init__(self, path: Path, allow: tuple[str, ...] = ()) -> None:
        self.path = path
        self.allow = allow
        self.lock = read_lock(path)

    def request(self, given: Request) -> Request:
        """What to ask for: the lock's own wishes."""
        try:
            return request_of(self.lock, given)
        except (msgspec.ValidationError, ValueError) as error:
            raise LockUnfit(f"{self.path} asks for what this caffeup does not know.", details=str(error)) from error

    def require_kind(self, machine: Machine) -> None:
        """Raise ``LockUnfit`` on a kind of machine for which the lock is not."""
        why = compare.other_machine(self.lock, machine)
        if why:
            raise LockUnfit(f"{self.path} cannot be built here: {why}.")

    def require(self, session: Session, planned: Planned) -> None:
        """Raise ``LockDiffers`` with every difference at once."""
        here = lock_of(session, planned)
        strange = compare.unused(self.allow, self.lock, here)
        if strange:
            raise UsageError(f"--allow {strange[0]}: neither the lock nor this machine has such a key.")
        here = msgspec.structs.replace(here, built={}, request=self.lock.request)
        found = (*compare.unmet(self.lock, planned.machine), *compare.differences(self.lock, here, needs=False))
        self._refuse(found, "that the lock says otherwise; nothing was changed")

    def require_built(self, plan: Plan) -> None:
        """After the build: raise ``LockDiffers`` where other bytes came of it."""
        made = built(plan)
        found = [
            Difference(key=f"{BUILT}.{key}", locked=value, here=made.get(key, ""), means="other bytes")
            for key, value in sorted(self.lock.built.items())
            if made.get(key) != value
        ]
        self._refuse(found, "built as the lock says gave other bytes")

    def _refuse(self, found: Iterable[Difference], what: str) -> None:
        left = [one for one in found if not compare.allowed(one.key, self.allow)]
        if not left:
            return
        command = ["caffeup", "up", "--locked", *(word for one in left[:3] for word in ("--allow", one.key))]
        raise LockDiffers(
            f"{len(left)} {'thing' if len(left) == 1 else 'things'} {what}.",
            details="\n".join(compare.lines(left)),
            advice="Make them equal, or accept one by its key or its table; `caffeup lock update` takes what is here.",
            commands=(shlex.join(command),) if len(left) <= 3 else ("caffeup lock diff",),
        )


def write_after(session: Session, planned: Planned) -> str:
    """Write the lock of what was just built, and say what is new in it; one that somebody changed stays."""
    path = planned.root / LOCK
    lock = lock_of(session, planned)
    before: Optional[Lock] = None
    if path.is_symlink() or path.exists():
        try:
            before = read_lock(path)
        except CaffeupError as error:
            return f"kept {LOCK} as it is: {error.brief} `caffeup lock update` writes it anew"
    fresh = text.write(lock)
    if before is not None and text.write(before) == fresh:
        return "as it was"
    write_atomically(path, fresh)
    if before is None:
        return f"wrote {LOCK}"
    keys = [one.key for one in compare.differences(before, lock)]
    return f"{LOCK}: {', '.join(keys[:4])}" + (f" and {len(keys) - 4} more" if len(keys) > 4 else "") + " changed"


def lock_here(session: Session, named: str) -> tuple[Planned, Lock]:
    """The lock of a tree as it is built; raise ``LockDiffers`` where the plan of now is not the one it was built by."""
    root = find_tree(named)
    require_built(last_plan(root))
    planned = plan_for(session, "", Request(), root=root)
    if _rests_on(planned.plan) != _rests_on(last_plan(root)):
        raise LockDiffers(
            "This machine, or caffeup, changed since the tree was built: a lock of now would not tell how.",
            advice="Build it first.",
            commands=(shlex.join(["caffeup", "up", str(root)]),),
        )
    return planned, lock_of(session, planned)


def _rests_on(plan: Plan) -> tuple[object, ...]:
    return (
        tuple((one.key, one.operator, one.value) for one in plan.config),
        tuple((one.key, one.value) for one in plan.decisions if one.key not in {"jobs", "tests"}),
        tuple(sorted(one.id for one in plan.fixes)),
    )


def write_lock(session: Session, named: str, into: str = "") -> tuple[Path, Lock]:
    """Write the lock of a tree as it is built; raise ``UsageError`` where something else stands in its place."""
    planned, lock = lock_here(session, named)
    path = Path(into).absolute() if into else planned.root / LOCK
    if path.is_symlink() or path.exists():
        try:
            read_lock(path)
        except CaffeupError as error:
            raise UsageError(
                f"{path} is there, and is no lock that caffeup wrote: {error.brief}",
                advice="Move it away, or write this one in its place:",
                commands=("caffeup lock update",),
            ) from error
    with exclusive(planned.root):
        write_atomically(path, text.write(lock))
    return path, lock


def update_lock(session: Session, named: str, keys: tuple[str, ...] = ()) -> tuple[Path, tuple[Difference, ...]]:
    """Take what is built here into the lock, or only the keys or tables named; what changed in it."""
    planned, here = lock_here(session, named)
    path = planned.root / LOCK
    try:
        before = read_lock(path)
    except LockUnfit:
        if keys:
            raise
        before = Lock()
    taken = _merged(before, here, keys) if keys else here
    with exclusive(planned.root):
        write_atomically(path, text.write(taken))
    return path, compare.differences(before, taken)


def _merged(before: Lock, here: Lock, keys: tuple[str, ...]) -> Lock:
    strange = compare.unused(keys, before, here)
    if strange:
        raise UsageError(f"{strange[0]}: neither the lock nor this machine has such a key.")
    tables: dict[str, Mapping[str, object]] = {}
    for key in keys:
        table, _, name = key.partition(".")
        old, new = tables.get(table, getattr(before, table)), getattr(here, table)
        if name:
            tables[table] = {**{k: v for k, v in old.items() if k != name}, **({name: new[name]} if name in new else {})}
        else:
            tables[table] = new
    return msgspec.structs.replace(before, caffeup=__version__, **tables)


def diff_locks(session: Session, first: str, second: str, named: str) -> Compared:
    """Two locks compared; each is a file, or ``here``; nothing given: the tree's own against here."""
    one = first or str(find_tree(named) / LOCK)
    other = second or HERE
    return Compared(
        first=one, second=other, differences=compare.differences(_named(session, one, named), _named(session, other, named))
    )


def _named(session: Session, name: str, tree: str) -> Lock:
    if name != HERE:
        return read_lock(Path(name))
    root = find_tree(tree)
    return lock_of(session, plan_for(session, "", Request(), root=root))


def verify_lock(named: str, path: str = "") -> Compared:
    """Hash what is built and compare it with the lock."""
    root = find_tree(named)
    file = Path(path) if path else root / LOCK
    lock = read_lock(file)
    if not lock.built:
        raise LockUnfit(f"{file} was written before anything was built: there is nothing to compare.")
    made: dict[str, str] = {}
    with suppress(CaffeupError):
        made = built(last_plan(root))
    found = tuple(
        Difference(key=f"{BUILT}.{key}", locked=value, here=made.get(key, ""), means="" if key in made else "it is not there")
        for key, value in sorted(lock.built.items())
        if made.get(key) != value
    )
    return Compared(first=str(file), second=HERE, differences=found)


def require_same(found: Compared) -> None:
    """Raise ``LockDiffers`` where what is built is not what the lock says."""
    if found.differences:
        raise LockDiffers(
            f"What is built is not what {found.first} says: {len(found.differences)} of it.",
            details="\n".join(compare.lines(found.differences)),
            advice="Build it again as the lock says, or take what is here into the lock.",
            commands=("caffeup up --locked", "caffeup lock update"),
        )


def locked_for(
    session: Session, request: Request, *, locked: bool, file: str, allow: tuple[str, ...], given: bool
) -> tuple[Request, Optional[Locked]]:
    """The lock that a run is held to, and what it is asked for: where no source is given, the tree that the lock lies in."""
    if not (locked or file):
        if allow:
            raise UsageError("--allow accepts a difference from a lock: it goes with --locked.")
        return request, None
    path = Path(file).absolute() if file else None
    if not given:
        folder = _tree_of(path) if path is not None else find_tree("")
        source = str(folder) if folder is not None else ""
        if path is not None and not source:
            source = _named_source(read_lock(path), session)
        request = msgspec.structs.replace(request, source=source)
    held = Locked(path or resolve(request, session.facts).folder / LOCK, allow)
    return request, held


def _tree_of(path: Path) -> Optional[Path]:
    folder = path.parent
    return folder if looks_like_a_tree(folder) and path.name == LOCK else None


def _named_source(lock: Lock, session: Session) -> str:
    """A source that may be fetched without a question: one that the catalogue knows; an address is the user's to type."""
    source = lock.tree.get("source", "")
    for row in trees(session.facts):
        if source in (row.id, row.url):
            return row.id
    raise UsageError(
        "This lock does not lie in a tree, and is not of one that caffeup knows by name.",
        details=f"It was made of: {source or 'a folder'}",
        advice="Name the tree, if you trust where it comes from:",
        commands=(shlex.join(["caffeup", "up", source or "FOLDER", "--lock", "caffeup.lock"]),),
    )
