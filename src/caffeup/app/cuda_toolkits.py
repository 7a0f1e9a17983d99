"""CUDA toolkits side by side: which there are, which one a tree uses and why, and what would break without one."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Optional

import msgspec

from caffeup.app.known_trees import known_trees
from caffeup.app.planning import Planned, plan_for
from caffeup.app.session import Session, find_tree
from caffeup.app.state import exclusive, load_state, save_state
from caffeup.app.treework import last_plan
from caffeup.errors import CaffeupError, CannotBuild, UsageError
from caffeup.model.base import SCHEMA, Value
from caffeup.model.machine import Machine, Toolkit, ToolkitLayout
from caffeup.model.plan import Decision, Request

_LINK = "/usr/local/cuda"
_OWNERS = (
    (("dpkg-query", "-S"), "sudo apt-get remove --autoremove"),
    (("rpm", "-qf", "--qf", "%{NAME}\\n"), "sudo dnf remove"),
    (("pacman", "-Qqo"), "sudo pacman -Rs"),
)


class Side(Value, kw_only=True):
    """One toolkit, and who uses it."""

    version: str
    root: str
    layout: str
    compiles: bool
    """Whether it has nvcc."""
    linked: bool = False
    """Whether /usr/local/cuda leads to it."""
    trees: tuple[str, ...] = ()
    """Trees built with it, as far as caffeup knows of them."""


class Sides(Value, kw_only=True):
    """All of them."""

    schema: int = SCHEMA
    toolkits: tuple[Side, ...] = ()


class Leaving(Value, kw_only=True):
    """What removing a toolkit would mean. Nothing is removed."""

    schema: int = SCHEMA
    toolkit: Side
    commands: tuple[str, ...] = ()
    """The distribution's own way, or that of who laid it out."""
    advice: str = ""
    others: tuple[str, ...] = ()
    """Toolkits that would be left."""


class Reason(Value, kw_only=True):
    """Which toolkit a tree uses, and why."""

    schema: int = SCHEMA
    tree: str
    decision: Decision


def toolkits(session: Session) -> Sides:
    """Every toolkit here."""
    return Sides(toolkits=_sides(session, session.machine()))


def why(session: Session, named: str) -> Reason:
    """Why a tree uses the one that it uses; raise ``UsageError`` where it uses none."""
    planned = plan_for(session, named, Request())
    for one in planned.plan.decisions:
        if one.key == "toolkit":
            return Reason(tree=str(planned.root), decision=one)
    mode = next((one.because for one in planned.plan.decisions if one.key == "mode"), "it is built without CUDA")
    raise UsageError(f"{planned.root} uses no CUDA toolkit: {mode}.")


def use(session: Session, wanted: str, named: str) -> Planned:
    """From the next build on a tree uses this toolkit; raise ``CannotBuild`` where it cannot. Nothing is built."""
    root = find_tree(named)
    planned = plan_for(session, "", Request(cuda=wanted), root=root)
    if planned.plan.conflicts:
        raise CannotBuild(f"{root} cannot be built with CUDA {wanted}; nothing was changed.", findings=planned.plan.conflicts)
    with exclusive(root):
        state = load_state(root)
        request = msgspec.structs.replace(state.request or Request(source=str(root)), cuda=wanted, cpu=False)
        save_state(root, msgspec.structs.replace(state, request=request))
    return planned


def remove(session: Session, wanted: str) -> Leaving:
    """What would break, and the command that removes it; runs nothing."""
    machine = session.machine()
    sides = _sides(session, machine)
    one = _named(wanted, sides)
    toolkit = next(found for found in machine.toolkits if found.root == one.root)
    commands, advice = _way(session, toolkit)
    return Leaving(
        toolkit=one,
        commands=commands,
        advice=advice,
        others=tuple(f"CUDA {other.version} in {other.root}" for other in sides if other != one and other.compiles),
    )


def _named(wanted: str, sides: tuple[Side, ...]) -> Side:
    found = [one for one in sides if wanted.rstrip("/") in (one.root.rstrip("/"), one.version)]
    found = found or [one for one in sides if one.version.startswith(f"{wanted}.")]
    if len(found) == 1:
        return found[0]
    what = "There are several such toolkits; name its folder" if found else f"There is no CUDA {wanted} here"
    raise UsageError(f"{what}.", details="\n".join(f"{one.version}  {one.root}" for one in found or sides))


def _sides(session: Session, machine: Machine) -> tuple[Side, ...]:
    used = _used(known_trees(session.host.env))
    linked = os.path.realpath(_LINK)
    return tuple(
        Side(
            version=str(one.version),
            root=one.root,
            layout=str(one.layout),
            compiles=bool(one.nvcc),
            linked=Path(_LINK).is_symlink() and os.path.realpath(one.root) == linked,
            trees=tuple(tree for tree, root in used if root == os.path.realpath(one.root)),
        )
        for one in machine.toolkits
    )


def _used(trees: Iterable[Path]) -> tuple[tuple[str, str], ...]:
    """Trees with the root of the toolkit that they were built with."""
    found = []
    for tree in trees:
        root: Optional[str] = None
        with suppress(CaffeupError, OSError):
            plan = last_plan(tree)
            taken = next((one.value for one in plan.decisions if one.key == "toolkit"), "")
            root = taken.partition(" in ")[2]
        if root:
            found.append((str(tree), os.path.realpath(root)))
    return tuple(found)


def _way(session: Session, toolkit: Toolkit) -> tuple[tuple[str, ...], str]:
    """How it is removed, by who put it there."""
    root = toolkit.root
    if toolkit.layout is ToolkitLayout.LAID_OUT:
        return ("caffeup clean --cuda",), "caffeup laid it out from NVIDIA's wheels."
    if toolkit.layout in {ToolkitLayout.WHEELS, ToolkitLayout.SPLIT_WHEELS}:
        return (), f"It is in a Python environment, {root}: its pip uninstalls it."
    if toolkit.layout is ToolkitLayout.CONDA:
        return (shlex.join(["conda", "remove", "--prefix", root, "cuda-toolkit"]),), "conda installed it."
    for name in ("cuda-uninstaller", f"uninstall_cuda_{toolkit.version}.pl"):
        program = f"{root}/bin/{name}"
        if session.host.exists(program):
            return (f"sudo {shlex.quote(program)}",), "NVIDIA's installer put it there and has a program that removes it."
    owner = _owner(session, toolkit)
    if owner is not None:
        return owner, "It came with packages of the distribution, or of NVIDIA's repository for it."
    return (), f"No package has it and no installer left a program to remove it: it is whatever lies in {root}."


def _owner(session: Session, toolkit: Toolkit) -> Optional[tuple[str, ...]]:
    for asked, command in _OWNERS:
        answer = session.host.run((*asked, toolkit.nvcc or toolkit.root))
        if answer is None or answer.status != 0 or not answer.stdout.strip():
            continue
        package = answer.stdout.splitlines()[0].partition(":")[0].strip()
        # NVIDIA's packages carry the release at their ends: the toolkit is all of them, and nvcc's alone would leave most.
        tail = package.rpartition("cuda-nvcc-")[2] if "cuda-nvcc-" in package else ""
        return (f"{command} {shlex.quote(f'cuda-toolkit-{tail}' if tail else package)}",)
    return None
