"""The last build that passed its checks, kept while the next one is made, and the way back to it.

It lies in ``.caffeup/previous`` as it lay in the tree, so that it runs from there too: its run paths are relative.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Optional

import msgspec

from caffeup.app.planning import Planned
from caffeup.app.session import Session, find_tree, require_tree
from caffeup.app.state import FOLDER, State, exclusive, load_state, save_state
from caffeup.app.treework import environment, keep_plan, last_plan, verify_tree
from caffeup.app.ui import Ui
from caffeup.build import products as made
from caffeup.disk import read_plain, write_atomically
from caffeup.errors import CaffeupError, NotBuilt, VerifyFailed
from caffeup.model.base import Value, from_json, to_json
from caffeup.model.outcome import Check
from caffeup.model.plan import Plan
from caffeup.patch import engine
from caffeup.render import render_config

KEPT = "previous"
_NEW, _OLD = f"{KEPT}.new", f"{KEPT}.old"
FOLDERS = (KEPT, _NEW, _OLD)
_LIST = "kept.json"
"""Written last: a folder without it is half a copy."""
_ROOM = 64 << 20
"""What must stay free on the disk beside the copy."""


class Kept(Value, kw_only=True):
    """What is kept of one build."""

    plan: Plan
    files: dict[str, str]
    """SHA-256 of each file, by its path in the tree; of a link what it leads to, behind ``->``."""
    checks: tuple[Check, ...] = ()


def keep(root: Path, plan: Optional[Plan]) -> bool:
    """Before a build begins: keep the one that is there, where it passed its checks. Killed at any point, the older one stays.

    Nothing is kept, and no build is stopped, where the disk has no room for it.
    """
    state = load_state(root)
    if plan is None or not any(one.name == "verify" for one in state.stages) or not all(check.ok for check in state.checks):
        return False
    home = root / FOLDER
    _settle(home)
    paths = tuple(_products(root, plan))
    size = sum(path.lstat().st_size for path in paths)
    if not paths or shutil.disk_usage(home).free < size + _ROOM:
        return False
    new = home / _NEW
    try:
        files = {path.relative_to(root).as_posix(): _copy(path, new / path.relative_to(root)) for path in paths}
        for path in _beside(root):
            _copy(path, new / path.relative_to(root))
        for link in plan.links:
            place = new / FOLDER / link.name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(link.target)
        write_atomically(new / _LIST, to_json(Kept(plan=plan, files=files, checks=state.checks)))
    except OSError:
        shutil.rmtree(new, ignore_errors=True)
        return False
    _swap(home)
    return True


def plan_before(root: Path) -> Optional[Plan]:
    """The plan of what is built now, read before another takes its place."""
    with suppress(CaffeupError):
        return last_plan(root)
    return None


def kept(root: Path) -> Optional[Kept]:
    """What is kept of the build before; None where there is none, or only half."""
    with suppress(OSError, msgspec.MsgspecError, ValueError):
        found = from_json(read_plain(root / FOLDER / KEPT / _LIST), Kept)
        if all(_inside(root, name) for name in found.files):
            return msgspec.structs.replace(found, plan=msgspec.structs.replace(found.plan, tree=str(root)))
    return None


def way_back(root: Path) -> tuple[str, ...]:
    """The command that returns to the build before; nothing where none is kept."""
    return (shlex.join(["caffeup", "rollback", str(root)]),) if kept(root) is not None else ()


def roll_back(session: Session, ui: Ui, named: str) -> tuple[Check, ...]:
    """Put the build before back into its place, with its settings and shims, and check it again.

    Killed in between, the same command goes on: what is kept stays until the next build that passes its checks begins.
    """
    root = find_tree(named)
    require_tree(root)
    with exclusive(root):
        _settle(root / FOLDER)
        engine.recover(str(root))
        found = kept(root)
        if found is None:
            raise NotBuilt(
                f"No earlier build is kept in {root}.",
                advice="One is kept when a build that passed its checks is made anew.",
                commands=(shlex.join(["caffeup", "up", str(root)]),),
            )
        _require_whole(root, found)
        _forget_build(root)
        engine.apply(str(root), found.plan, session.facts, render_config(found.plan), host=session.host)
        for name, is_ in found.files.items():
            _put(root / FOLDER / KEPT / name, root / name, is_)
        keep_plan(found.plan)
        tree = session.tree(root)
        machine = session.machine(found.plan.request.prefixes, found.plan.request.python, found.plan.request.cuda)
        checks = verify_tree(session, Planned(root, machine, tree, found.plan), ui)
    bad = [check for check in checks if not check.ok]
    if bad:
        raise VerifyFailed(
            f"The earlier build is back, but {len(bad)} of {len(checks)} checks fail: what it was built with may be gone.",
            details="\n".join(f"{check.name}: {check.result}" for check in bad),
            findings=tuple(check.finding for check in bad if check.finding is not None),
            commands=(shlex.join(["caffeup", "up", str(root)]),),
        )
    return checks


def in_place(root: Path) -> tuple[tuple[str, str], ...]:
    """Variables of a shell that uses the kept build where it lies, while another is made."""
    found = kept(root)
    if found is None:
        return ()
    plan = msgspec.structs.replace(found.plan, tree=str(root / FOLDER / KEPT))
    return tuple((name, ":".join(folders)) for name, folders in environment(plan))


def _products(root: Path, plan: Plan) -> Iterator[Path]:
    """Libraries, programs and modules, with their links; no tests, no archives."""
    build = Path(os.path.realpath(root / plan.build_dir))
    if not build.is_relative_to(os.path.realpath(root)):
        return
    build = root / build.relative_to(os.path.realpath(root))
    yield from (path for path, kind in made.files(build) if kind == "link" and path.suffix not in {".a", ".testbin"})
    yield from made.links(build)
    if (root / plan.build_dir).is_symlink():
        yield root / plan.build_dir
    yield from made.modules(root)
    yield from made.generated(root)


def _beside(root: Path) -> Iterator[Path]:
    """Python files that a module needs to be imported; the tree's own, which nothing here ever writes back."""
    yield from (path for path in sorted((root / "python").rglob("*.py")) if path.is_file() and not path.is_symlink())


def _copy(path: Path, to: Path) -> str:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, to, follow_symlinks=False)
    return _what(to)


def _what(path: Path) -> str:
    if path.is_symlink():
        return f"->{os.readlink(path)}"  # noqa: PTH115
    return sha256(path.read_bytes()).hexdigest()


def _put(source: Path, place: Path, is_: str) -> None:
    """Copy, then rename over what stands there: whoever runs it goes on with what they opened. Its time stays its own."""
    with suppress(OSError):
        if _what(place) == is_:
            return
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f".{place.name}.{os.getpid()}.new")
    try:
        shutil.copy2(source, beside, follow_symlinks=False)
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)


def _require_whole(root: Path, found: Kept) -> None:
    for name, is_ in found.files.items():
        try:
            same = _what(root / FOLDER / KEPT / name) == is_
        except OSError:
            same = False
        if not same:
            raise CaffeupError(
                f"The earlier build cannot be put back: {root / FOLDER / KEPT / name} is not what was kept.",
                commands=(shlex.join(["caffeup", "up", str(root)]),),
            )


def _inside(root: Path, name: str) -> bool:
    """Whether a name means a file of the tree, and no link leads its folder out of it."""
    if not name or name.startswith("/") or ".." in name.split("/") or name.split("/", maxsplit=1)[0] in {FOLDER, ".git"}:
        return False
    return Path(os.path.realpath((root / name).parent)).is_relative_to(os.path.realpath(root))


def _forget_build(root: Path) -> None:
    """The stages that made the other build are not done for this one: the next ``up`` builds anew what differs."""
    state = load_state(root)
    left = tuple(one for one in state.stages if one.name not in {"build", "test", "pycaffe", "verify"})
    save_state(root, State(request=state.request, stages=left))


def _swap(home: Path) -> None:
    shutil.rmtree(home / _OLD, ignore_errors=True)
    with suppress(FileNotFoundError):
        (home / KEPT).rename(home / _OLD)
    (home / _NEW).rename(home / KEPT)
    shutil.rmtree(home / _OLD, ignore_errors=True)


def _settle(home: Path) -> None:
    """After a kill between two renames: a whole new copy takes its place, else the old one returns; halves go."""
    if not (home / KEPT / _LIST).is_file():
        for name in (_NEW, _OLD):
            if (home / name / _LIST).is_file():
                shutil.rmtree(home / KEPT, ignore_errors=True)
                (home / name).rename(home / KEPT)
                break
    for name in (_NEW, _OLD):
        shutil.rmtree(home / name, ignore_errors=True)
