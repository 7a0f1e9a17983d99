"""The tree that is meant: here already, or fetched; and what is offered where it cannot be had."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Optional

import msgspec

from caffeup.app.session import Session
from caffeup.app.stages import Stages
from caffeup.app.ui import Ui
from caffeup.build.progress import Status
from caffeup.disk import as_path
from caffeup.errors import UsageError
from caffeup.facts.forks import Fork
from caffeup.facts.tables import Facts
from caffeup.model.plan import Request
from caffeup.model.tree import Origin, Tree
from caffeup.source.catalogue import named, substitute_for
from caffeup.source.fetch import default_folder, fetch, reach, require_free
from caffeup.source.origin import recorded_origin, told
from caffeup.source.problems import Unreachable

_QUICK = 2.0
"""Seconds that a fetch may take without a word about its progress."""


class Wanted(msgspec.Struct, frozen=True):
    """What a request's source comes to."""

    source: str
    folder: Path
    here: bool
    """Whether the tree is in its folder already."""
    assumed: Tree
    """What is known of it before it is here: enough for a first plan."""
    needs_git: bool
    unreached: Optional[Unreachable] = None
    """Why it cannot be fetched now; a plan can be made all the same."""


def resolve(request: Request, facts: Facts) -> Wanted:
    """Find out what is meant, without touching anything; ``UsageError`` for a folder that shall go into another."""
    folder = as_path(request.into or default_folder(request.source, facts)).absolute()
    row = named(request.source, facts)
    _require_one_folder(request, folder, facts)
    here = folder.is_dir() and (row is None or recorded_origin(folder) is not None)
    if not here and row is not None:
        stand_in = _stand_in(request, facts)
        if stand_in is not None:
            folder, here = stand_in, True
    assumed = Tree(
        root=str(folder), fork=row.id if row else "unknown", origin=Origin(kind="git"), config_keys=USUAL_KEYS, seen=False
    )
    return Wanted(request.source, folder, here, assumed, needs_git=row.sdist is None if row else not here)


def _require_one_folder(request: Request, folder: Path, facts: Facts) -> None:
    own = Path(default_folder(request.source, facts))
    if request.into and own.is_absolute() and own != folder:
        raise UsageError(
            f"{own} is a folder, and is used where it is: --into {request.into} does not move it.",
            advice="Leave --into out, or copy the tree and name the copy.",
            commands=(f"cp -a {shlex.quote(str(own))} {shlex.quote(request.into)}",),
        )


def _stand_in(request: Request, facts: Facts) -> Optional[Path]:
    """The folder of a tree that was taken in place of this one earlier."""
    other = substitute_for(request.source, facts)
    if other is None or request.into:
        return None
    folder = Path(default_folder(other.id, facts)).absolute()
    origin = recorded_origin(folder)
    return folder if origin is not None and origin.asked_for == request.source else None


def obtain(session: Session, ui: Ui, stages: Stages, request: Request, wanted: Wanted) -> Path:
    """The folder with the tree, fetched where it is not here; the substitute only after a question."""
    if wanted.here:
        origin = recorded_origin(wanted.folder)
        with stages.step("fetch") as say:
            taken = f", taken in place of {origin.asked_for}" if origin and origin.asked_for else ""
            say(f"the tree is here: {wanted.folder}{taken}")
        return wanted.folder
    try:
        return _fetch(session, ui, stages, wanted.source, wanted.folder, "")
    except Unreachable as error:
        other = substitute_for(wanted.source, session.facts)
        if other is None:
            raise
        into = as_path(request.into or default_folder(other.id, session.facts)).absolute()
        ui.say(f"{error.brief}")
        require_free(other.id, into, session.facts)  # or the answer would be asked for in vain
        if not ui.ask(f"{_offer(wanted.source, other)}\nTake {other.id} in its place?"):
            raise
        return _fetch(session, ui, stages, other.id, into, wanted.source)


def look_ahead(session: Session, ui: Ui, request: Request) -> Wanted:
    """What ``obtain`` would bring, told beforehand; the substitute where the host of the wanted one cannot be reached.

    A source that is wrong in itself is refused as ``obtain`` refuses it.
    """
    wanted = resolve(request, session.facts)
    if wanted.here:
        return wanted
    try:
        address = reach(wanted.source, wanted.folder, session.facts, session.host)
    except Unreachable as error:
        other = substitute_for(wanted.source, session.facts)
        if other is None:
            return msgspec.structs.replace(wanted, unreached=error)
        ui.say(error.brief)
        ui.say(_offer(wanted.source, other))
        instead = resolve(msgspec.structs.replace(request, source=other.id), session.facts)
        require_free(other.id, instead.folder, session.facts)
        return instead
    ui.say(f"would fetch {address} into {wanted.folder}")
    return wanted


def _offer(source: str, other: Fork) -> str:
    lacks = f" It lacks: {'; '.join(other.lacks)}." if other.lacks else ""
    return f"{other.id} can be had instead of {source}: {other.title}.{lacks}"


def _fetch(session: Session, ui: Ui, stages: Stages, source: str, folder: Path, asked_for: str) -> Path:
    with stages.step("fetch", f"{source} …") as say:
        shown, begun = ui.progress("fetch"), time.monotonic()

        def show(what: str, done: int, total: int) -> None:
            elapsed = time.monotonic() - begun
            if total and elapsed > _QUICK:
                shown.show(Status(current=f"{what}, {100 * done // total} %", elapsed=elapsed))

        try:
            origin = fetch(source, folder, session.facts, session.host, progress=show, asked_for=asked_for)
        finally:
            shown.close()
        say(f"{told(origin)} into {folder}")
    return folder


USUAL_KEYS = (
    "ALLOW_LMDB_NOLOCK",
    "BLAS",
    "BLAS_INCLUDE",
    "BLAS_LIB",
    "BUILD_DIR",
    "COMMON_FLAGS",
    "CPU_ONLY",
    "CUDA_ARCH",
    "CUDA_DIR",
    "CUSTOM_CXX",
    "CXXFLAGS",
    "DEBUG",
    "DISTRIBUTE_DIR",
    "INCLUDE_DIRS",
    "LDFLAGS",
    "LIBRARY_DIRS",
    "LINKFLAGS",
    "NVCCFLAGS",
    "OPENCV_VERSION",
    "PYTHON_LIBRARIES",
    "Q",
    "TEST_GPUID",
    "USE_CUDNN",
    "USE_LEVELDB",
    "USE_LMDB",
    "USE_OPENCV",
    "USE_PKG_CONFIG",
    "WITH_PYTHON_LAYER",
)
"""What the Makefiles of nearly all trees read: for a plan before the tree is here."""
