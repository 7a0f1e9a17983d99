"""What caffeup made in a tree, how large it is, and its removal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Optional

from caffeup.app.laying_out import cuda_home, remove_cuda
from caffeup.app.locking import is_ours
from caffeup.app.removal import Removal
from caffeup.app.rollback import FOLDERS as PREVIOUS
from caffeup.app.session import Session, require_tree
from caffeup.app.state import FOLDER, LOCK, State, exclusive, load_state, require_own_folder, save_state
from caffeup.app.treework import last_plan
from caffeup.app.ui import Ui
from caffeup.app.unpacking import deps_home, remove_deps
from caffeup.app.words import size
from caffeup.build import products as made
from caffeup.build.came import KEPT, forget, kept, put_back
from caffeup.errors import CaffeupError
from caffeup.model.base import Value
from caffeup.model.outcome import PatchState
from caffeup.patch import engine
from caffeup.source.checkout import read_checkout, tracked
from caffeup.source.origin import FILE as ORIGIN
from caffeup.source.origin import recorded_origin

_LOGS = ("logs", "tmp")
_FOR_THE_WAY_BACK = ("ledger.json", "undo")
_OURS = (
    *(*_LOGS, *_FOR_THE_WAY_BACK, *PREVIOUS, KEPT, f"{KEPT}.new", "ccache", "fingerprint.json", "journal.json"),
    *("plan.json", "state.json", "tests-left-out.json", "tests-left-out.settings", "times.json"),
)
"""What caffeup keeps in its folder; what else lies there is not caffeup's, or in the ledger."""
_CAME = frozenset((ORIGIN, ".gitignore", "lock", "holder"))
"""What a tree that caffeup fetched came with, and what is there while caffeup works in it."""


class Size(Value):
    """One thing that caffeup made."""

    what: str
    path: str
    bytes: int


def sizes(session: Session, root: Path) -> tuple[Size, ...]:
    """What was built, logs, the rest of what caffeup keeps, and the CUDA and packages that all trees share."""
    require_tree(root)
    home = root / FOLDER
    logs = sum(_size(home / name) for name in _LOGS)
    found = [Size(what="products", path=str(path), bytes=_size(path)) for path in _built(session, root)]
    found.append(Size(what="logs", path=str(home / "logs"), bytes=logs))
    found.append(Size(what="kept by caffeup", path=str(home), bytes=sum(map(_size, _of_runs(home))) - logs))
    found += [shared for shared in (cuda_size(session), deps_size(session)) if shared is not None]
    return tuple(one for one in found if one.bytes)


def _of_runs(home: Path) -> tuple[Path, ...]:
    """What lies in caffeup's folder and was not there when the tree came."""
    return tuple(path for path in sorted(home.glob("*")) if path.name not in _CAME)


def cuda_size(session: Session) -> Optional[Size]:
    """What was laid out from NVIDIA's wheels, for all trees; None where there is nothing."""
    home = cuda_home(session)
    return Size(what="CUDA for all trees", path=str(home), bytes=_size(home)) if home is not None else None


def deps_size(session: Session) -> Optional[Size]:
    """What was unpacked without root, for all trees; None where there is nothing."""
    home = deps_home(session)
    return Size(what="packages for all trees", path=str(home), bytes=_size(home)) if home is not None else None


def clean_deps(session: Session, ui: Ui) -> Iterator[str]:
    """Remove it after a question; trees that were built with it stop working."""
    shared = deps_size(session)
    if shared is None:
        yield "no packages were unpacked"
    else:
        _require_consent(ui, f"Remove {shared.path} ({size(shared.bytes)})? Trees that were built with it need it to run.")
        yield remove_deps(Path(shared.path))


def clean_cuda(session: Session, ui: Ui) -> Iterator[str]:
    """Remove it after a question; trees that were built with it stop working."""
    shared = cuda_size(session)
    if shared is None:
        yield "nothing was laid out from NVIDIA's wheels"
    else:
        _require_consent(ui, f"Remove {shared.path} ({size(shared.bytes)})? Trees that were built with it need it to run.")
        yield remove_cuda(Path(shared.path))


def _require_consent(ui: Ui, question: str) -> None:
    if not ui.ask(question):
        raise CaffeupError("Nothing was removed: no consent was given.")


def clean_tree(session: Session, ui: Ui, root: Path, *, products: bool, logs: bool, everything: bool) -> Iterator[str]:
    """Remove what is asked for, after a question; say what was removed, and what was not as somebody else made it.

    Killed at any point, the next run goes on with what is left. What cannot be removed is a ``DiskError`` at the end.
    """
    require_tree(root)
    require_own_folder(root)
    if not _of_runs(root / FOLDER):
        yield f"caffeup has made nothing in {root}"
        return
    what = (
        "everything that caffeup made"
        if everything
        else " and ".join(w for w, on in (("what was built", products), ("logs", logs)) if on)
    )
    removal = Removal(root)
    with exclusive(root):  # first: nobody is asked about a tree in which another caffeup is at work
        told = _going(session, root, products=products or everything, logs=logs or everything, kept=everything)
        for line in told:
            ui.say(line)
        _require_consent(ui, f"Remove {what} in {root}?")
        if products or everything:
            yield from _remove_products(session, root, removal)
        if logs or everything:
            for name in _LOGS:
                removal.whole(root / FOLDER / name)
            yield f"removed logs in {root / FOLDER}"
        if everything and not removal.refused:
            yield from _take_out(root, removal)
    removal.require_done()


def _going(session: Session, root: Path, *, products: bool, logs: bool, kept: bool) -> Iterator[str]:
    """What would go, with its size: a line each."""
    wanted = {"products": products, "logs": logs, "kept by caffeup": kept}
    for one in sizes(session, root):
        if wanted.get(one.what):
            yield f"  {one.what:<17}{size(one.bytes):>10}  {one.path}"
    if kept:
        with suppress(CaffeupError):
            entries = engine.status(str(root))
            if entries:
                yield f"  {'patches':<17}{len(entries):>10}  put into the tree (caffeup patch status)"


def _remove_products(session: Session, root: Path, removal: Removal) -> Iterator[str]:
    """The state is forgotten first, or the next run would take half of a build for a whole one; the fingerprint goes last."""
    state = load_state(root)
    with_distribute = tuple(stage for stage in state.stages if stage.name == "distribute")
    save_state(root, State(request=state.request, stages=with_distribute))
    came = {root / name for name in tracked(root)}
    for path in _built(session, root):
        if path.is_dir() and not _is_link_to_build(path):
            yield from removal.of(path, _copies(path, root) if path.name == "distribute" else _made(path))
        else:
            yield from removal.whole(path)
    _prune(root / "distribute")
    if (root / FOLDER / "fingerprint.json").is_file():
        removal.quietly(path for path in made.bytecode(root) if path not in came)
    for folder in (root / "python").glob("*/proto"):
        _prune(folder)
    if removal.refused:
        return
    yield from _elsewhere(root, _build_name(session, root))
    checkout = read_checkout(root)
    touched = {*checkout.changed, *checkout.missing} if checkout else set()
    put_back(root, root / FOLDER, leave=tuple(root / name for name in tracked(root) - touched))
    _prune(root / "distribute")
    save_state(root, State(request=state.request))
    (root / FOLDER / "fingerprint.json").unlink(missing_ok=True)
    forget(root / FOLDER)


def _take_out(root: Path, removal: Removal) -> Iterator[str]:
    """Patches, then what caffeup keeps; the way back stays where a patched file was changed since, and so is kept."""
    changed = sorted({path for one in engine.revert(str(root)) if one.state is PatchState.EDITED for path in one.files})
    yield "took out everything that was put into the tree" + (", but for what was changed since:" if changed else "")
    yield from (f"  kept {path}" for path in changed)
    home = root / FOLDER
    fetched = recorded_origin(root) is not None  # the tree came with it, and up knows the tree by it
    if is_ours(root / LOCK) and LOCK not in map(str, tracked(root)):
        removal.whole(root / LOCK)
    for name in (*_OURS, *(() if fetched else (ORIGIN,))):
        if not (changed and name in _FOR_THE_WAY_BACK):
            removal.whole(home / name)
    for folder in ("include", "lib"):
        _prune(home / folder)
    others = [path.name for path in _of_runs(home)]
    if changed:
        yield f"kept {home}: it has what stood there before (caffeup patch status)"
    elif others:
        yield f"kept {home}: somebody put {', '.join(others)} there"
    else:
        for name in ("holder", "lock") if fetched else (".gitignore", "holder", "lock"):
            removal.whole(home / name)
        if fetched:
            yield f"kept {home / ORIGIN}: it says where the tree was fetched from"
            return
        home.rmdir()
        yield f"removed {home}"


def _built(session: Session, root: Path) -> tuple[Path, ...]:
    """What caffeup's builds made; nothing outside the tree, nothing that came with it, and nothing where caffeup never built.

    The Makefile builds into a folder with a dot and makes ``build`` a link to it: a folder of that name is somebody else's.
    """
    if not (root / FOLDER / "fingerprint.json").is_file():
        return ()
    found: list[Path] = []
    if any(stage.name == "distribute" for stage in load_state(root).stages):
        found.append(root / "distribute")  # first: it holds copies, which are told by what they are copies of
    found += [*_folders(root, _build_name(session, root)), *made.modules(root), *_generated(root)]
    came = {*kept(root, root / FOLDER), *(root / name for name in tracked(root))}
    inside = [path for path in found if _in(root, path)]
    return tuple(path for path in inside if path not in came and (path.is_symlink() or path.exists()))


def _in(root: Path, path: Path) -> bool:
    """Whether it stands in the tree, and a folder's content too."""
    top = os.path.realpath(root)
    lies = path if path.is_dir() and not _is_link_to_build(path) else path.parent
    return Path(os.path.realpath(lies)).is_relative_to(top)


def _build_name(session: Session, root: Path) -> str:
    """What the Makefile calls its link to the products; the plan still tells where the tree is no longer whole."""
    with suppress(CaffeupError):
        return last_plan(root).build_dir
    with suppress(CaffeupError):
        return session.tree(root).build_dir or "build"
    return "build"


def _folders(root: Path, named: str) -> list[Path]:
    """The folders that a Makefile builds into, that of its name and of ``build``, and the links to them."""
    links, folders = [], []
    for name in dict.fromkeys((named, "build")):
        if _is_link_to_build(root / name):
            links.append(root / name)
            folders.append(root / os.readlink(root / name))  # noqa: PTH115
        else:
            folders.append(root / f".{name}_release")
    return list(dict.fromkeys((*folders, *links)))


def _is_link_to_build(path: Path) -> bool:
    """Whether make made it: make's own are relative, to a folder with a dot beside it."""
    target = os.readlink(path) if path.is_symlink() else ""  # noqa: PTH115
    return target.startswith(".") and "/" not in target


def _elsewhere(root: Path, named: str) -> Iterator[str]:
    """Folders of the build that somebody put elsewhere, by a link."""
    for path in _folders(root, named):
        if path.is_symlink() and not _in(root, path):
            yield f"kept {path}: it leads out of the tree, to {os.path.realpath(path)}"


def _made(build: Path) -> Iterator[Path]:
    yield from (path for path, _ in made.files(build))
    yield from made.links(build)


def _copies(distribute: Path, root: Path) -> Iterator[Path]:
    """Of what lies in the folder to distribute, what is a product or stands in the tree too."""
    yield from _made(distribute)
    for place, _, names in os.walk(distribute):
        for name in names:
            path = Path(place, name)
            inside = path.relative_to(distribute)
            if (root / inside).is_file() or (root / "src" / "caffe" / inside).is_file() or name.endswith((".pyc", "_pb2.py")):
                yield path


def _generated(root: Path) -> Iterator[Path]:
    """Python modules that protoc made, after the empty ``__init__.py`` that the Makefile puts beside them."""
    for module in made.generated(root):
        beside = module.with_name("__init__.py")
        if beside.is_file() and not beside.stat().st_size:
            yield beside
        yield module


def _prune(folder: Path) -> None:
    """Remove the empty folders that the Makefile makes before anything else; whatever holds a file stays."""
    if folder.is_symlink():
        return
    for place, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            Path(place).rmdir()


def _size(path: Path) -> int:
    if path.is_symlink() or path.is_file():
        return path.lstat().st_size
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118
            except OSError:
                continue
    return total
