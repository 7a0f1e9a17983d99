"""What the commands do to, or read from, one tree."""

from __future__ import annotations

import itertools
import shlex
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from caffeup.app.planning import Planned, read_plan
from caffeup.app.session import Session
from caffeup.app.state import FOLDER, at_work, busy, exclusive
from caffeup.app.ui import Ui
from caffeup.build.progress import Status
from caffeup.build.run import Build
from caffeup.disk import read_plain, write_atomically
from caffeup.errors import CaffeupError, CannotBuild, DependencyError, NotBuilt, PatchFailed
from caffeup.model.base import to_json
from caffeup.model.machine import Machine
from caffeup.model.outcome import Check, PatchEntry
from caffeup.model.plan import Plan
from caffeup.patch import engine
from caffeup.plan.wheels import WHEELS
from caffeup.render import render_config

PROGRAM, MODULE = "caffe", "_caffe.so"
"""What a build gives that a shell's variables lead to."""


def build_of(session: Session, plan: Plan, machine: Machine) -> Build:
    """What the build stages need."""
    programs = {program.name: program.path for program in reversed(machine.programs)}
    return Build(
        root=plan.tree,
        plan=plan,
        env=dict(session.host.env),
        ccache=programs.get("ccache", ""),
        make=programs.get("make", "make"),
    )


def require_buildable(plan: Plan) -> None:
    """Raise ``CannotBuild`` with all conflicts at once."""
    if plan.conflicts:
        count = len(plan.conflicts)
        raise CannotBuild(f"{count} {'thing stands' if count == 1 else 'things stand'} in the way.", findings=plan.conflicts)


def put_in_place(session: Session, planned: Planned, ui: Ui) -> tuple[PatchEntry, ...]:
    """Write Makefile.config, shims, files and edits: all or nothing, and compile what was touched, which is shown."""
    require_buildable(planned.plan)
    if planned.plan.lay_out:
        raise DependencyError(
            "This plan wants CUDA from NVIDIA's wheels, which is not laid out yet.",
            commands=(shlex.join(["caffeup", "up", str(planned.root), "--cuda", WHEELS]),),
        )
    with exclusive(planned.root):
        done = apply_shown(session, planned, ui)
        keep_plan(planned.plan)
        return done


def apply_shown(session: Session, planned: Planned, ui: Ui) -> tuple[PatchEntry, ...]:
    """``engine.apply``; to compile what was touched takes half a minute, so that is shown."""
    shown, begun, one_at_a_time = ui.progress("configure"), time.monotonic(), threading.Lock()

    def begins(what: str, number: int, total: int) -> None:
        with one_at_a_time:
            shown.show(Status(done=number, total=total, current=f"compiling {what} alone", elapsed=time.monotonic() - begun))

    config = render_config(planned.plan)
    try:
        return engine.apply(str(planned.root), planned.plan, session.facts, config, host=session.host, begins=begins)
    finally:
        shown.close()


def preview_patches(session: Session, planned: Planned) -> tuple[PatchEntry, ...]:
    """What ``put_in_place`` would do."""
    return engine.preview(str(planned.root), planned.plan, session.facts, render_config(planned.plan))


def patch_status(session: Session, planned: Planned) -> tuple[PatchEntry, ...]:
    """What is in place."""
    return engine.status(str(planned.root), planned.plan, session.facts, render_config(planned.plan))


def patch_diff(root: Path) -> str:
    """All that was changed in the tree."""
    return engine.diff(str(root))


def revert_patches(root: Path, ids: tuple[str, ...]) -> tuple[PatchEntry, ...]:
    """Take out the named entries, or all."""
    with exclusive(root):
        return engine.revert(str(root), ids or None)


def verify_tree(session: Session, planned: Planned, ui: Ui) -> tuple[Check, ...]:
    """Prove that what was built works, and say what is being looked at; raise ``NotBuilt`` where nothing was."""
    require_built(planned.plan)
    from caffeup.verify import number_of_checks, verify  # noqa: PLC0415  # reads ELF files: only where something is verified

    gpus = planned.machine.graphics.gpus
    total = number_of_checks(planned.plan, gpus)
    shown, begun, done = ui.progress("verify"), time.monotonic(), itertools.count()

    def begins(check: str) -> None:
        shown.show(Status(done=next(done), total=total, current=check, elapsed=time.monotonic() - begun))

    try:
        return verify(build_of(session, planned.plan, planned.machine), gpus=gpus, begins=begins)
    finally:
        shown.close()


def environment(plan: Plan) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Variables a shell needs to use what is built of the tree, each with the folders to put in front."""
    root = Path(plan.tree)
    folders = {"PATH": (str(root / plan.build_dir / "tools"),), "PYTHONPATH": (str(root / "python"), *plan.python_paths)}
    there = {"PATH": PROGRAM, "PYTHONPATH": MODULE}
    built = {path.name for path in products(plan)}
    return tuple((name, value) for name, value in folders.items() if there[name] in built)


def missing_of(plan: Plan) -> tuple[str, ...]:
    """What to know before what is built is used, in words: what is not there, and what was taken out of the tree since."""
    built = {path.name for path in products(plan)}
    absent = {PROGRAM: "the program caffe", MODULE: "pycaffe" if plan.python else ""}
    told = [f"{what} is not built" for name, what in absent.items() if what and name not in built]
    with suppress(PatchFailed):
        if plan.fixes and not engine.status(plan.tree):
            told.append("what the tree needs to compile and run here was taken out of it (caffeup patch apply puts it in again)")
    return tuple(told)


def last_plan(root: Path) -> Plan:
    """The plan that the tree was last configured by; raise ``NotBuilt`` where it never was."""
    path = root / FOLDER / "plan.json"
    if not path.is_file():
        raise not_built(root, "up")
    return msgspec.structs.replace(read_plan(str(path)), tree=str(root))


def products(plan: Plan) -> tuple[Path, ...]:
    """What a build gives: program, library, Python module, as far as they are there."""
    root = Path(plan.tree)
    built = root / plan.build_dir
    wanted = (built / "tools" / PROGRAM, built / "lib" / "libcaffe.so", root / "python" / "caffe" / MODULE)
    return tuple(path for path in wanted if path.exists())


def require_built(plan: Plan) -> None:
    """Raise ``NotBuilt`` for a tree in which nothing is built yet; ``Busy`` where another caffeup is about to."""
    if not products(plan):
        root = Path(plan.tree)
        raise not_built(root, "build" if (root / FOLDER / "plan.json").is_file() else "up")


def not_built(root: Path, command: str) -> CaffeupError:
    """What to raise where nothing is built in the tree; a command that builds it would be refused while another is at work."""
    who = at_work(root)
    if who:
        return busy(root, f"{who}; nothing is built yet")
    return NotBuilt(
        f"Nothing is built in {root} yet.", advice="This builds it:", commands=(f"caffeup {command} {shlex.quote(str(root))}",)
    )


def keep_plan(plan: Plan) -> None:
    """Remember the plan that the tree is configured by."""
    path = Path(plan.tree) / FOLDER / "plan.json"
    text = to_json(plan)
    if not path.is_file() or read_plain(path) != text.encode():
        write_atomically(path, text)
