"""What caffeup made in a tree, how large it is, and its removal."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Optional

from caffeup.app.laying_out import cuda_home, remove_cuda
from caffeup.app.session import Session
from caffeup.app.state import FOLDER, exclusive, load_state
from caffeup.app.ui import Ui
from caffeup.build.came import kept, put_back
from caffeup.errors import CaffeupError, UsageError
from caffeup.model.base import Value
from caffeup.patch import engine
from caffeup.plan.wheels import size
from caffeup.source.checkout import tracked

_LOGS = ("logs", "tmp")


class Size(Value):
    """One thing that caffeup made."""

    what: str
    path: str
    bytes: int


def sizes(session: Session, root: Path) -> tuple[Size, ...]:
    """What was built, logs, the rest of what caffeup keeps, and the CUDA that all trees share."""
    home = root / FOLDER
    logs = sum(_size(home / name) for name in _LOGS)
    found = [Size(what="products", path=str(path), bytes=_size(path)) for path in _products(session, root)]
    found.append(Size(what="logs", path=str(home / "logs"), bytes=logs))
    found.append(Size(what="kept by caffeup", path=str(home), bytes=max(_size(home) - logs, 0)))
    found += [shared] if (shared := cuda_size(session)) is not None else []
    return tuple(one for one in found if one.bytes)


def cuda_size(session: Session) -> Optional[Size]:
    """What was laid out from NVIDIA's wheels, for all trees; None where there is nothing."""
    home = cuda_home(session)
    return Size(what="CUDA for all trees", path=str(home), bytes=_size(home)) if home is not None else None


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
    """Remove what is asked for, after a question; say what was removed."""
    if not (root / FOLDER).is_dir():
        raise UsageError(f"caffeup has made nothing in {root}.")
    what = (
        "everything that caffeup made"
        if everything
        else " and ".join(w for w, on in (("what was built", products), ("logs", logs)) if on)
    )
    _require_consent(ui, f"Remove {what} in {root}?")
    with exclusive(root):
        if products or everything:
            for path in _products(session, root):
                _remove(path)
                yield f"removed {path}"
            put_back(root, root / FOLDER)
            _prune(root / "distribute")
            for folder in (root / "python").glob("*/proto"):
                _prune(folder)
            for name in ("state.json", "fingerprint.json"):  # what is in the tree now is no product of these settings
                (root / FOLDER / name).unlink(missing_ok=True)
        if logs or everything:
            for name in _LOGS:
                _remove(root / FOLDER / name)
            yield f"removed logs in {root / FOLDER}"
        if everything:
            engine.revert(str(root))
            yield "took out everything that was put into the tree"
    if everything:
        _remove(root / FOLDER)
        yield f"removed {root / FOLDER}"


def _products(session: Session, root: Path) -> tuple[Path, ...]:
    """What caffeup's builds made; nothing outside the tree, nothing that came with it, and nothing where caffeup never built.

    The Makefile builds into a folder with a dot and makes ``build`` a link to it: a folder of that name is somebody else's.
    """
    if not (root / FOLDER / "fingerprint.json").is_file():
        return ()
    found = [*_built(root, session.tree(root).build_dir or "build"), *sorted((root / "python").glob("*/_caffe.so"))]
    found += _generated(root)
    if any(stage.name == "distribute" for stage in load_state(root).stages):
        found.append(root / "distribute")
    came = {*kept(root, root / FOLDER), *(root / name for name in tracked(root))}
    inside = [path for path in found if Path(os.path.realpath(path.parent)).is_relative_to(os.path.realpath(root))]
    return tuple(path for path in inside if path not in came and (path.is_symlink() or path.exists()))


def _built(root: Path, named: str) -> list[Path]:
    """Links and the folders that they lead to: that of the Makefile's name, and ``build``, which caffeup adds to it."""
    links, folders = [], []
    for name in dict.fromkeys((named, "build")):
        target = ""
        if (root / name).is_symlink():
            links.append(root / name)
            target = os.readlink(root / name)  # noqa: PTH115
        folders.append(root / (target if target.startswith(".") and "/" not in target else f".{name}_release"))
    return list(dict.fromkeys((*links, *folders)))


def _generated(root: Path) -> Iterator[Path]:
    """Python modules that protoc made, and the empty ``__init__.py`` that the Makefile puts beside them."""
    for module in sorted((root / "python").glob("*/proto/*_pb2.py")):
        yield module
        beside = module.with_name("__init__.py")
        if beside.is_file() and not beside.stat().st_size:
            yield beside


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


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink(missing_ok=True)
    elif path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
