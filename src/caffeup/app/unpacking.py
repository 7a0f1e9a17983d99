"""``--deps user``: the distribution's packages, unpacked in the user's data folder, as a stage that needs no root."""

from __future__ import annotations

import shutil
import time
from contextlib import closing
from pathlib import Path
from typing import Optional

from caffeup.app.installing import Watched
from caffeup.app.missing import to_install
from caffeup.app.session import Session
from caffeup.app.stages import Stages
from caffeup.app.ui import Ui
from caffeup.build.progress import Status
from caffeup.deps.alone import begun, is_empty, remove_all
from caffeup.deps.system import InstallPlan
from caffeup.deps.user import Size, Work, make_set
from caffeup.detect.roots import triplet_of
from caffeup.detect.unpacked import MARK, is_unpacked, unpacked_home, unpacked_root
from caffeup.errors import CaffeupError, DependencyError
from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.machine import Machine
from caffeup.model.plan import Plan, Request
from caffeup.model.tree import Tree
from caffeup.plan.case import USER
from caffeup.plan.packages import required
from caffeup.plan.wheels import size
from caffeup.source.progress import silent


def with_unpacked(session: Session, machine: Machine, tree: Tree, plan: Plan) -> tuple[Machine, Plan]:
    """Machine and plan with what was unpacked for such a plan before; as they are where nothing was."""
    request = plan.request
    if request.deps != USER or not plan.packages or machine.unpacked:
        return machine, plan
    root = _root(session, machine, to_install(session, machine, plan, plan.packages))
    if not is_unpacked(session.host, root):
        return machine, plan
    again = _detect(session, machine, request, root)
    return again, session.plan(again, tree, request)


def unpack_missing(session: Session, ui: Ui, stages: Stages, machine: Machine, plan: Plan, rows: tuple[str, ...]) -> Machine:
    """Download and unpack what the plan misses, and detect again; raise ``DependencyError`` where a build still needs something.

    What only adds something never stops the run.
    """
    if "git" in rows:
        raise _no_git()
    needed = required(plan) if rows == plan.packages else rows
    if machine.unpacked:
        if needed:
            raise _still_missing(machine, needed)
        return machine
    wanted = to_install(session, machine, plan, rows)
    root = _root(session, machine, wanted)
    if not root:
        raise DependencyError("There is no home folder to unpack packages into.", advice="Set HOME or XDG_DATA_HOME.")
    with stages.step("dependencies", "unpacking …") as say:
        try:
            _unpack(session, ui, machine, wanted, Path(root))
        except CaffeupError as error:
            if needed:
                raise
            say(f"going on without {', '.join(rows)}: {error.brief}")
            return machine
        say(f"{len(wanted.packages)} packages and what they need, in {root}")
    return _detect(session, machine, plan.request, root)


def deps_home(session: Session) -> Optional[Path]:
    """The folder with all that was unpacked, or begun; None where there is nothing."""
    home = unpacked_home(session.host)
    return Path(home) if home and not is_empty(Path(home)) else None


def remove_deps(home: Path) -> str:
    """Remove all of it; say so."""
    remove_all(home, MARK, silent)
    return f"removed {home}"


def half_unpacked(session: Session) -> tuple[Finding, ...]:
    """What a run that was ended left: it takes space until it is gone on with."""
    home = deps_home(session)
    left = begun(home) if home is not None else ()
    if not left:
        return ()
    return (
        Finding(
            id="deps-user-begun",
            severity=Severity.NOTE,
            title="packages were begun to be unpacked in your data folder, and are not whole",
            why="Nothing uses them. The next run that needs them goes on where the last one ended.",
            evidence=tuple(Evidence(where=str(path)) for path in left),
            remedies=(
                Remedy(text="go on", commands=("caffeup up --deps user",), by_caffeup=True),
                Remedy(text="or remove them", commands=("caffeup clean --deps",), by_caffeup=True),
            ),
        ),
    )


def _root(session: Session, machine: Machine, wanted: InstallPlan) -> str:
    return unpacked_root(session.host, machine.system, wanted.packages) if wanted.packages else ""


def _detect(session: Session, machine: Machine, request: Request, root: str) -> Machine:
    return session.machine((*machine.prefixes, root), request.python, request.cuda)


def _no_git() -> DependencyError:
    """It looks for its parts in the system's folders; what needs none can be built all the same."""
    return DependencyError(
        "git is missing, and --deps user does not bring it.",
        advice="Name a tree that comes without git, an archive or a folder; or let somebody with root install git.",
        commands=("caffeup up brocolli --deps user", "caffeup up --list"),
    )


def _still_missing(machine: Machine, needed: tuple[str, ...]) -> DependencyError:
    return DependencyError(
        f"The unpacked packages lack what a build needs: {', '.join(needed)}.",
        details=machine.unpacked,
        advice="The system or its packages may have changed since: unpack them anew.",
        commands=("caffeup clean --deps", "caffeup up --deps user"),
    )


def _unpack(session: Session, ui: Ui, machine: Machine, wanted: InstallPlan, root: Path) -> None:
    for one in wanted.unavailable:
        ui.say(f"{one.row}: {one.why}")
    ui.say(f"missing, and unpacked without root into {root}:\n  {' '.join(wanted.packages)}")

    def ask(told: Size) -> bool:
        ui.say(
            f"{told.packages} packages with what they need: {size(told.download_bytes)} to download, {size(told.disk_bytes)} on "
            "the disk, once for all trees"
        )
        return ui.ask("Download and unpack?")

    shown, start = ui.progress("dependencies"), time.monotonic()

    def show(what: str, done: int, total: int) -> None:
        shown.show(Status(done=done, total=total or None, current=what, elapsed=time.monotonic() - start))

    with closing(Watched(session.host.env, shown, ui.say)) as run:
        work = Work(host=session.host, run=run, ask=ask, free_bytes=lambda folder: shutil.disk_usage(folder).free, progress=show)
        try:
            notes = make_set(root, wanted, triplet_of(machine.system), session.facts.distros, work)
        except CaffeupError as error:
            error.log = error.log or run.log
            raise
    for note in notes:
        ui.say(note)
