"""What is missing, by this distribution's own names, and the one command that installs it. Decides only; nothing is run."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Optional, Protocol

from caffeup.facts.distros import DistroFile, Repository
from caffeup.facts.libraries import Kind, LibraryRow, Need, release_within
from caffeup.model.base import Value
from caffeup.model.machine import Python, PythonKind, System


class Tables(Protocol):
    """The facts that matter here."""

    @property
    def libraries(self) -> tuple[LibraryRow, ...]:
        """Rows of libraries.toml."""
        ...

    @property
    def distros(self) -> DistroFile:
        """distros.toml."""
        ...


class Unavailable(Value, kw_only=True):
    """Something wanted that the distribution's packages do not give."""

    row: str
    why: str
    commands: tuple[str, ...] = ()


class InstallPlan(Value, kw_only=True):
    """What would be installed."""

    manager: str = ""
    """Row of distros.toml; empty where the distribution is unknown."""
    rows: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    """By this distribution's own names, each once."""
    optional: tuple[str, ...] = ()
    """Those of them that may be left out where the package lists do not have them."""
    command: str = ""
    """The one command that a person pastes; empty where there is nothing to install."""
    first: tuple[str, ...] = ()
    """Commands that switch on the repositories the packages come from, where this distribution has them off."""
    unavailable: tuple[Unavailable, ...] = ()
    why_not: str = ""
    """Why there is no command."""
    root: bool = False
    sudo: bool = False
    """Whether ``sudo -n`` works."""
    otherwise: str = ""
    """The command that does without root, where there is one and nothing may be installed."""

    @property
    def allowed(self) -> bool:
        """Whether caffeup may install, once it has consent."""
        return bool(self.packages) and (self.root or self.sudo)


def install_plan(system: System, rows: Iterable[str], facts: Tables, python: Optional[Python] = None) -> InstallPlan:
    """Packages for rows of libraries.toml, for this distribution and for the Python that pycaffe is built for.

    ``KeyError`` for a row that does not exist.
    """
    known = {row.id: row for row in facts.libraries}
    wanted = [known[name] for name in dict.fromkeys(rows)]
    distro = facts.distros.distro_of(system.distro, system.distro_like)
    if distro is None:
        return _unknown(system, wanted)
    packages: dict[str, None] = {}
    needed: set[str] = set()
    unavailable: list[Unavailable] = []
    for row in wanted:
        other = _not_the_distributions(row, python)
        entry = row.entry_on(distro.id, system.distro, system.distro_version, python.version if python else None)
        if other is not None:
            unavailable.append(other)
        elif entry is None:
            why = f"{row.title} is not among the packages of {_called(system)}"
            unavailable.append(Unavailable(row=row.id, why=why, commands=_by_pip(row, python, user=True)))
        else:
            packages.update(dict.fromkeys(entry.names))
            needed |= set(entry.names) - set(entry.vanishing) if row.need is not Need.OPTIONAL else set()
    manager = facts.distros.manager_named(distro.manager)
    return InstallPlan(
        manager=manager.id,
        rows=tuple(row.id for row in wanted),
        packages=tuple(packages),
        optional=tuple(name for name in packages if name not in needed),
        command=paste(manager.paste, tuple(packages), root=system.root) if packages else "",
        first=_repositories(facts.distros.repository, system) if packages else (),
        unavailable=tuple(unavailable),
        root=system.root,
        sudo=system.sudo,
    )


def paste(commands: Sequence[str], packages: Sequence[str], *, root: bool) -> str:
    """One line for a shell: ``sudo apt-get update && sudo apt-get install …``."""
    prefix = "" if root else "sudo "
    return " && ".join(prefix + command for command in commands) + " " + " ".join(shlex.quote(name) for name in packages)


def _unknown(system: System, wanted: Sequence[LibraryRow]) -> InstallPlan:
    names = ", ".join(row.title for row in wanted)
    return InstallPlan(
        rows=tuple(row.id for row in wanted),
        why_not=f"the package names of {_called(system)} are not known; install the development packages of: {names}",
        root=system.root,
        sudo=system.sudo,
    )


def _not_the_distributions(row: LibraryRow, python: Optional[Python]) -> Optional[Unavailable]:
    """What must come from elsewhere for a Python that is not the distribution's own."""
    if row.kind is not Kind.PYTHON or python is None or python.kind is PythonKind.SYSTEM:
        return None
    if row.pip:
        why = f"{python.executable} does not see the distribution's packages"
        return Unavailable(row=row.id, why=why, commands=_by_pip(row, python))
    if python.kind is PythonKind.VENV and (not python.include or python.include.startswith("/usr/include/")):
        return None
    why = f"{row.title} of the distribution is made for its own Python, not for {python.executable}"
    return Unavailable(row=row.id, why=why)


def _by_pip(row: LibraryRow, python: Optional[Python], *, user: bool = False) -> tuple[str, ...]:
    if not row.pip or python is None:
        return ()
    return (shlex.join((python.executable, "-m", "pip", "install", *(("--user",) if user else ()), row.pip)),)


def _repositories(rows: Sequence[Repository], system: System) -> tuple[str, ...]:
    for row in rows:
        if system.distro in row.distros and (not row.releases or release_within(row.releases, system.distro_version)):
            return tuple(command.removeprefix("sudo ") if system.root else command for command in row.commands)
    return ()


def _called(system: System) -> str:
    return f"{system.distro} {system.distro_version}".strip()
