"""What every decision looks at: the machine, the tree, the request and the facts."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Optional

from caffeup.facts.libraries import LibraryRow
from caffeup.facts.tables import Facts
from caffeup.model.machine import Library, Machine, Program
from caffeup.model.plan import Request
from caffeup.model.tree import Tree


@dataclass(frozen=True)
class Case:
    """The inputs of the plan."""

    machine: Machine
    tree: Tree
    request: Request
    facts: Facts

    def reads(self, key: str) -> bool:
        """Whether this tree's Makefile reads the key; one that it does not read is never written."""
        return key in self.tree.config_keys

    def libraries(self, name: str) -> tuple[Library, ...]:
        """The candidates: those of --prefix first, in the user's order."""
        found = [one for one in self.machine.libraries if one.name == name]
        order = {prefix: at for at, prefix in enumerate(self.machine.prefixes)}
        return tuple(sorted(found, key=lambda one: order.get(one.prefix, len(order))))

    def library(self, name: str) -> Optional[Library]:
        """The candidate that is taken."""
        return next(iter(self.libraries(name)), None)

    def programs(self, name: str) -> tuple[Program, ...]:
        """Programs of that name, PATH's order."""
        return tuple(one for one in self.machine.programs if one.name == name)

    @cached_property
    def rows(self) -> tuple[LibraryRow, ...]:
        """The table of libraries."""
        return self.facts.libraries

    def row(self, name: str) -> Optional[LibraryRow]:
        """One row of the table of libraries."""
        return next((row for row in self.rows if row.id == name), None)

    @property
    def may_install(self) -> bool:
        """Whether system packages can be installed without asking for a password."""
        return self.machine.system.root or self.machine.system.sudo

    def again(self, *options: str, instead: Iterable[str] = ()) -> str:
        """The command that runs caffeup on this source again with other options."""
        return shlex.join(["caffeup", "up", self.request.source, *options, *instead])
