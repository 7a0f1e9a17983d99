"""The checks of ``caffeup doctor``: everything known to be wrong, without a failure."""

from __future__ import annotations

from caffeup.app.laying_out import half_laid_out
from caffeup.app.missing import told_together
from caffeup.app.obtain import resolve
from caffeup.app.planning import plan_for
from caffeup.app.session import Session, find_tree
from caffeup.model.finding import Finding
from caffeup.model.plan import Request


def examine(session: Session, named: str, request: Request) -> tuple[Finding, ...]:
    """Findings about the machine and what a build lacks on it; where a tree is named, about the tree and its plan too."""
    if not named:
        return _machine_alone(session, request)
    planned = plan_for(session, named, request, root=find_tree(named))
    plan = told_together(session, planned.machine, planned.plan)
    return _once(*planned.machine.findings, *planned.tree.findings, *plan.conflicts, *plan.notes, *half_laid_out(session))


def _machine_alone(session: Session, request: Request) -> tuple[Finding, ...]:
    """As for a usual tree; of its plan only what stands in the way, and what is missing."""
    machine = session.machine(request.prefixes, request.python, request.cuda)
    plan = session.plan(machine, resolve(request, session.facts).assumed, request)
    missing = (one for one in told_together(session, machine, plan).notes if one.id.startswith(("missing-", "cuda-wheels")))
    return _once(*machine.findings, *plan.conflicts, *missing, *half_laid_out(session))


def _once(*findings: Finding) -> tuple[Finding, ...]:
    return tuple({one.id + one.title: one for one in findings}.values())
