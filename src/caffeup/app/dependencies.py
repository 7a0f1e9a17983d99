"""The dependencies stage: what is missing is shown, installed with consent, and looked for again."""

from __future__ import annotations

import shutil
from contextlib import closing

from caffeup.app.installing import Watched
from caffeup.app.missing import to_install
from caffeup.app.session import Session
from caffeup.app.stages import Stages
from caffeup.app.ui import Ui
from caffeup.app.unpacking import unpack_missing
from caffeup.deps.install import install
from caffeup.deps.system import InstallPlan
from caffeup.errors import CaffeupError, DependencyError
from caffeup.model.machine import Machine
from caffeup.model.plan import Plan
from caffeup.plan.case import USER
from caffeup.plan.packages import required


def install_missing(
    session: Session, ui: Ui, stages: Stages, machine: Machine, plan: Plan, *, only: tuple[str, ...] = ()
) -> Machine:
    """Install what the plan misses, or only the rows named; raise ``DependencyError`` where a build needs what is still missing.

    What only adds something (pycaffe's extras, ccache) never stops the run.
    """
    rows = only or plan.packages
    if plan.request.deps == USER:
        return unpack_missing(session, ui, stages, machine, plan, rows)
    needed = set(only or required(plan))
    wanted = to_install(session, machine, plan, rows)
    if not wanted.packages and not needed:
        return machine
    with stages.step("dependencies", "installing …") as say:
        try:
            said = _install(session, ui, wanted)
        except CaffeupError:
            if needed:
                raise
            said = f"going on without {', '.join(rows)}"
        say(said)
    return session.machine(machine.prefixes, plan.request.python, plan.request.cuda)


def _install(session: Session, ui: Ui, wanted: InstallPlan) -> str:
    for one in wanted.unavailable:
        ui.say(f"{one.row}: {one.why}")
    if not wanted.packages and wanted.unavailable:
        raise DependencyError(
            "Something a build needs is not among this distribution's packages.",
            details="\n".join(f"{one.row}: {one.why}" for one in wanted.unavailable),
            commands=tuple(command for one in wanted.unavailable for command in one.commands),
        )
    if wanted.command:
        ui.say("missing; this installs it:", (" && ".join((*wanted.first, wanted.command)),))
    with closing(Watched(session.host.env, ui.progress("dependencies"), ui.say)) as run:

        def ask(question: str) -> bool:
            run.rest()
            return ui.ask(question)

        try:
            done = install(
                wanted,
                session.facts.distros,
                run=run,
                ask=ask,
                free_bytes=lambda folder: shutil.disk_usage(folder).free,
            )
        except CaffeupError as error:
            error.log = error.log or run.log
            raise
    for note in done.notes:
        ui.say(note)
    many = len(done.transaction.touched)
    return f"{many} {'package' if many == 1 else 'packages'} installed"
