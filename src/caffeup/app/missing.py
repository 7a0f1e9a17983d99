"""What a plan misses, told together and with the command that installs it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Optional

import msgspec

from caffeup.app.session import Session
from caffeup.deps.system import InstallPlan, install_plan
from caffeup.errors import CannotBuild, DependencyError
from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.machine import Machine, Python
from caffeup.model.plan import Plan
from caffeup.plan.case import USER
from caffeup.plan.packages import required

_IDS = ("missing-library", "missing-python-part", "library-incomplete")


def to_install(session: Session, machine: Machine, plan: Plan, rows: Sequence[str]) -> InstallPlan:
    """Packages for these rows, for the Python that the plan has chosen."""
    wanted = install_plan(machine.system, rows, session.facts, _python(machine, plan))
    may = wanted.allowed and plan.request.deps != USER
    if may or not wanted.manager or not session.facts.distros.manager_named(wanted.manager).unpack_with:
        return wanted
    command = shlex.join(["caffeup", "up", plan.request.source, "--deps", USER])
    return msgspec.structs.replace(wanted, otherwise=command)


def told_together(session: Session, machine: Machine, plan: Plan) -> Plan:
    """The plan with two findings in place of one for each missing thing: what every build needs, and what only adds something."""
    needed = required(plan)
    known = {row.id for row in session.facts.libraries}
    told = tuple(
        one for one in plan.notes if one.affects in known and one.id in _IDS
    )  # those too that are left out as nobody here may install
    others = tuple(dict.fromkeys(one.affects for one in told if one.affects not in needed))
    found = (
        _finding(session, machine, plan, needed, Severity.PROBLEM),
        _finding(session, machine, plan, others, Severity.NOTE),
    )
    rest = tuple(one for one in plan.notes if one not in told)
    return msgspec.structs.replace(plan, notes=(*(one for one in found if one is not None), *rest))


def code_of(plan: Plan) -> int:
    """The exit code of a command that only shows the plan: whether a build could begin now."""
    if plan.conflicts:
        return CannotBuild.exit_code
    return DependencyError.exit_code if required(plan) else 0


def without_git(plan: Plan) -> Plan:
    """The plan for a tree that has to be fetched where there is no git."""
    absent = Finding(
        id="missing-library", severity=Severity.PROBLEM, title="git is missing", why="it fetches the tree", affects="git"
    )
    return msgspec.structs.replace(plan, packages=("git", *plan.packages), notes=(absent, *plan.notes))


def _finding(session: Session, machine: Machine, plan: Plan, rows: Sequence[str], severity: Severity) -> Optional[Finding]:
    if not rows:
        return None
    seen = tuple(
        Evidence(where=one.title.removesuffix(" is missing"), text=one.why.rstrip("."))
        for one in plan.notes
        if one.affects in rows
    )
    many = f"{len(seen)} things" if len(seen) != 1 else "1 thing"
    what = "that a build needs" if severity is Severity.PROBLEM else "that would add something"
    verb = "is" if len(seen) == 1 else "are"
    return Finding(
        id="missing-needed" if severity is Severity.PROBLEM else "missing-optional",
        severity=severity,
        title=f"{many} {what} {verb} missing",
        evidence=seen,
        remedies=_remedies(to_install(session, machine, plan, rows), unpacks=plan.request.deps == USER),
    )


def _remedies(wanted: InstallPlan, *, unpacks: bool) -> tuple[Remedy, ...]:
    if unpacks and wanted.otherwise:
        text = "caffeup unpacks them in your data folder, after a question"
        return (Remedy(text=text, commands=(wanted.otherwise,), by_caffeup=True), *_elsewhere(wanted))
    text = "install them (caffeup up does, after a question)" if wanted.allowed else "install them"
    found = [Remedy(text=text, commands=(*wanted.first, wanted.command))]
    if not wanted.command:
        found = [Remedy(text=wanted.why_not)] if wanted.why_not else []
    if wanted.otherwise:
        found.append(Remedy(text="or without root, in your data folder", commands=(wanted.otherwise,), by_caffeup=True))
    return (*found, *_elsewhere(wanted))


def _elsewhere(wanted: InstallPlan) -> tuple[Remedy, ...]:
    """Ways to what is not among the distribution's packages."""
    return tuple(Remedy(text=one.why, commands=one.commands) for one in wanted.unavailable)


def _python(machine: Machine, plan: Plan) -> Optional[Python]:
    return next((one for one in machine.pythons if one.executable == plan.python), None)
