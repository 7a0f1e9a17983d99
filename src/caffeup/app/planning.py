"""From a tree's folder and a request to a plan, for the commands that work on a tree that is here."""

from __future__ import annotations

from pathlib import Path
from typing import Optional, TypeVar

import msgspec

from caffeup.app.session import Session, find_tree, remembered_request
from caffeup.app.unpacking import with_unpacked
from caffeup.errors import SourceError, UsageError
from caffeup.model.base import SCHEMA, ComputeCapability, from_json
from caffeup.model.machine import Machine
from caffeup.model.plan import Plan, Request
from caffeup.model.tree import Tree

T = TypeVar("T")


class Planned(msgspec.Struct, frozen=True):
    """A plan, and what it was made from."""

    root: Path
    machine: Machine
    tree: Tree
    plan: Plan
    unreached: Optional[SourceError] = None
    """Why the tree that the plan is for cannot be fetched now."""


def plan_for(session: Session, named: str, given: Request, *, root: Optional[Path] = None) -> Planned:
    """Plan for a tree that is here: what it was last built with, and over that the options given now."""
    root = root or find_tree(named)
    request = merged(remembered_request(root), given)
    machine = session.machine(request.prefixes, request.python, request.cuda)
    tree = session.tree(root)
    machine, plan = with_unpacked(session, machine, tree, session.plan(machine, tree, request))
    return Planned(root, machine, tree, plan)


def merged(remembered: Request, given: Request) -> Request:
    """The options given now, put over those of the last run."""
    plain = Request()
    changed = {
        name: getattr(given, name)
        for name in Request.__struct_fields__
        if name not in {"source", "into"} and getattr(given, name) != getattr(plain, name)
    }
    return msgspec.structs.replace(remembered, **changed)


def read_plan(path: str) -> Plan:
    """A plan made earlier, perhaps on another machine; raise ``UsageError`` where it is none."""
    plan = _read(path, Plan, "a plan (caffeup plan --json)")
    if plan.schema != SCHEMA:
        raise UsageError(f"{path} is a plan of form {plan.schema}; this caffeup knows {SCHEMA}.")
    if Path(plan.build_dir).is_absolute() or ".." in Path(plan.build_dir).parts or not plan.build_dir.strip("./"):
        raise UsageError(f"{path} would build outside the tree, in {plan.build_dir!r}.")
    return plan


def read_machine(path: str) -> Machine:
    """A machine detected earlier, perhaps another one."""
    return _read(path, Machine, "a machine (caffeup detect --json)")


def _read(path: str, kind: type[T], what: str) -> T:
    try:
        return from_json(Path(path).read_bytes(), kind)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    except (msgspec.MsgspecError, ValueError) as error:
        raise UsageError(f"{path} is not {what}.", details=str(error)) from error


def parse_capability(text: str) -> ComputeCapability:
    """A compute capability as a person writes it; raise ``UsageError`` otherwise."""
    try:
        return ComputeCapability.parse(text)
    except ValueError as error:
        raise UsageError(f"{error}.") from None
