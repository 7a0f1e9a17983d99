"""What has to be installed, and what of it nothing can be built without."""

from __future__ import annotations

from caffeup.model.finding import Severity
from caffeup.model.plan import Plan
from caffeup.plan.case import Case
from caffeup.plan.part import Part, note

_PROGRAMS = ("make",)


def missing_programs(case: Case) -> Part:
    """Programs that every build calls."""
    lacking = tuple(name for name in _PROGRAMS if not case.programs(name))
    notes = tuple(
        note("missing-library", f"{name} is missing", "every build calls it", severity=Severity.PROBLEM, affects=name)
        for name in lacking
    )
    return Part(packages=lacking, notes=notes)


def required(plan: Plan) -> tuple[str, ...]:
    """The rows of ``plan.packages`` without which nothing can be built; the others only add something."""
    needed = {one.affects for one in plan.notes if one.severity is Severity.PROBLEM}
    return tuple(name for name in plan.packages if name in needed)
