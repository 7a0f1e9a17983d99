"""The checks of ``caffeup doctor``: everything known to be wrong, without a failure."""

from __future__ import annotations

from caffeup.app.planning import plan_for
from caffeup.app.session import Session, find_tree
from caffeup.model.finding import Finding
from caffeup.model.plan import Request


def examine(session: Session, named: str, request: Request) -> tuple[Finding, ...]:
    """Findings about the machine and, where a tree is named, about the tree and its plan."""
    if not named:
        return session.machine(request.prefixes, request.python, request.cuda).findings
    planned = plan_for(session, named, request, root=find_tree(named))
    found = (*planned.machine.findings, *planned.tree.findings, *planned.plan.conflicts, *planned.plan.notes)
    return tuple({one.id + one.title: one for one in found}.values())
