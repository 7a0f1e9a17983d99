"""What every decision looks at: the machine, the tree, the request and the facts."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cached_property
from posixpath import dirname
from typing import Optional

from caffeup.facts.libraries import LibraryRow
from caffeup.facts.tables import Facts
from caffeup.model.machine import Library, Machine, Program, PythonKind, ToolkitLayout
from caffeup.model.plan import Request
from caffeup.model.tree import Tree

USER = "user"
"""The word for packages in the user's own folder (``--deps user``)."""

# Keys of Makefile.config that some old forks set in their Makefile: there only `override` reaches them. Folders of the
# build are not among them, since the Makefile must go on changing those itself.
_MAY_OVERRIDE = frozenset(
    (
        "BLAS",
        "CPU_ONLY",
        "CUDA_ARCH",
        "CUDA_DIR",
        "CUSTOM_CXX",
        "OPENCV_VERSION",
        "PYTHON_LIBRARIES",
        "USE_CUDNN",
        "USE_HDF5",
        "USE_LEVELDB",
        "USE_LMDB",
        "USE_NCCL",
        "USE_OPENCV",
        "WITH_PYTHON_LAYER",
    )
)


@dataclass(frozen=True)
class Case:
    """The inputs of the plan."""

    machine: Machine
    tree: Tree
    request: Request
    facts: Facts
    lay_out: str = ""
    """Release of NVIDIA's wheels that is in ``machine`` and not yet on the disk."""

    def reads(self, key: str) -> bool:
        """Whether this tree's Makefile reads the key; one that it does not read is never written."""
        return key in self.tree.config_keys or self.must_override(key)

    def must_override(self, key: str) -> bool:
        """Whether the Makefile sets this key of Makefile.config itself before it reads it."""
        return key in _MAY_OVERRIDE and key in self.tree.overridable and key not in self.tree.config_keys

    @cached_property
    def conda_roots(self) -> tuple[str, ...]:
        """Environments of conda. Their include and lib folders hold copies of much that the system has too."""
        roots = [dirname(dirname(one.executable)) for one in self.machine.pythons if one.kind is PythonKind.CONDA]
        roots += [one.root for one in self.machine.toolkits if one.layout is ToolkitLayout.CONDA]
        return tuple(dict.fromkeys(root for root in roots if root not in self.machine.prefixes))

    def mixed(self, directory: str) -> bool:
        """Whether a folder is one of conda's that hold everything; naming it would bring conda's copies in."""
        return any(directory.rstrip("/") in (f"{root}/include", f"{root}/lib", f"{root}/lib64") for root in self.conda_roots)

    def libraries(self, name: str) -> tuple[Library, ...]:
        """The candidates: those of --prefix first, in the user's order; conda's only where conda is named so."""
        found = [one for one in self.machine.libraries if one.name == name and not self.in_conda(one)]
        order = {prefix: at for at, prefix in enumerate(self.machine.prefixes)}
        return tuple(sorted(found, key=lambda one: order.get(one.prefix, len(order))))

    def in_conda(self, library: Library) -> bool:
        """Whether a library lies among conda's others."""
        return any(self.mixed(path) for path in (*library.include_dirs, *library.library_dirs))

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
        """Whether packages can be installed without asking for a password, or unpacked in the user's folder."""
        return self.machine.system.root or self.machine.system.sudo or self.unpacks

    @property
    def unpacks(self) -> bool:
        """Whether missing packages go into the user's folder."""
        return self.request.deps == USER and bool(self.unpacking_manager)

    @property
    def unpacking_manager(self) -> str:
        """The package manager whose packages caffeup unpacks here; empty where it does not."""
        distros, system = self.facts.distros, self.machine.system
        distro = distros.distro_of(system.distro, system.distro_like)
        return distro.manager if distro is not None and distros.manager_named(distro.manager).unpack_with else ""

    def again(self, *options: str) -> str:
        """The command that runs caffeup on this source again with other options."""
        into = ["--into", self.request.into] if self.request.into else []
        return shlex.join(["caffeup", "up", self.request.source, *into, *options])
