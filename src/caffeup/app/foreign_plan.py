"""A plan that comes from a file is data: it names only what is on this machine, and nothing that make or the shell would run."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

import msgspec

from caffeup.errors import UsageError
from caffeup.model.machine import Machine
from caffeup.model.plan import ConfigLine, Plan
from caffeup.render import SETTINGS

_PLAIN = re.compile(r"(?:[\w./+=,:@%~-]|\\\$ORIGIN)*")
"""What settings are made of; the shell that runs a recipe takes none of it for its own."""
_OUR_PATH = "$(CURDIR)/.caffeup/bin:$(PATH)"
_PATHS = re.compile(r"(?:^(?:-[A-Za-z]+)?|[=,:])(/[^=,:]*)")
"""Absolute paths in a word: by themselves, after an option, or in a list."""


def require_of_here(plan: Plan, machine: Machine) -> None:
    """Raise ``UsageError`` with all that the plan names and this machine, as it was detected, does not have."""
    odd = [f"{one.key} {one.operator} {' '.join(one.value)}" for one in plan.config if not _is_setting(one, plan)]
    odd += [f"{name}={value}" for name, value in plan.make_env]
    if odd:
        raise UsageError("This plan has settings that no plan of caffeup has.", details="\n".join(odd))
    here = {*_found(machine), *(posixpath.dirname(toolkit.nvcc) for toolkit in machine.toolkits if toolkit.nvcc)}
    strange = [f"{what}: {path}" for what, path in _named(plan) if path not in here and not _inside(path)]
    if strange:
        raise UsageError(
            "This plan names what was not found on this machine.",
            details="\n".join(dict.fromkeys(strange)),
            advice="Install it, name it with --prefix, --python or --cuda, or make a plan for this machine.",
            commands=("caffeup plan --json",),
        )


def _inside(path: str) -> bool:
    """Whether it stays in the tree, whose own Makefile can do as much."""
    return not path.startswith("/") and ".." not in path.split("/")


def _is_setting(line: ConfigLine, plan: Plan) -> bool:
    if line.key not in SETTINGS:
        return False
    if line.raw:
        return (line.key, line.value) == ("export PATH", (_OUR_PATH,))
    if line.key == "CUSTOM_CXX":
        return line.value == (plan.compiler,)
    return line.value == ("@",) if line.key == "Q" else all(map(_PLAIN.fullmatch, line.value))


def _named(plan: Plan) -> Iterator[tuple[str, str]]:
    """Every program and folder outside the tree that a build by this plan would use."""
    for what, path in (("compiler", plan.compiler), ("protoc", plan.protoc), ("python", plan.python)):
        if path:
            yield what, path
    for link in plan.links:
        yield f"link {link.name}", link.target
    for folder in (*plan.python_paths, *plan.run_paths):
        yield "folder", folder
    for line in plan.config:
        for word in line.value:
            for path in _PATHS.findall(word):
                yield line.key, path


def _found(machine: Machine) -> Iterator[str]:
    """All paths that detection found."""
    pending: list[object] = [msgspec.to_builtins(machine, enc_hook=str)]
    while pending:
        one = pending.pop()
        if isinstance(one, dict):
            pending += one.values()
        elif isinstance(one, (list, tuple)):
            pending += one
        elif isinstance(one, str) and one.startswith("/"):
            yield one
