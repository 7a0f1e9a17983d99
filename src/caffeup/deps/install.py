"""Installs system packages, with consent, after a look at what exactly would happen.

Order: a look with the lists that are here, consent, package lists, simulation, refusal of what must not happen, disk space,
installation. Where the look told nothing, or much less than there is, the sizes are asked about after the simulation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Callable, Optional, Protocol

from caffeup.deps.system import InstallPlan
from caffeup.deps.transaction import Transaction, parse_transaction
from caffeup.errors import DependencyError, DiskError
from caffeup.facts.distros import DistroFile, Manager
from caffeup.host import Output
from caffeup.model.base import Value
from caffeup.model.finding import Evidence, Finding, Remedy, Severity

MARGIN = 200 << 20
"""Bytes that must be left on the disk afterwards."""
UPDATE_SECONDS = 600.0
SIMULATE_SECONDS = 180.0
INSTALL_SECONDS = 3600.0
TAIL = 30


class Runner(Protocol):
    """Runs a program to its end and returns what it printed; the caller decides what is shown and logged meanwhile."""

    def __call__(self, argv: tuple[str, ...], *, timeout: float, packages: int = 0) -> Optional[Output]:
        """None where there is no such program. ``packages``: how many this installs, where it installs any."""
        ...


class Installed(Value, kw_only=True):
    """What was done."""

    transaction: Transaction
    notes: tuple[str, ...] = ()


def install(
    plan: InstallPlan,
    distros: DistroFile,
    *,
    run: Runner,
    ask: Callable[[str], bool],
    free_bytes: Callable[[str], Optional[int]],
) -> Installed:
    """Install the plan's packages, or raise ``DependencyError`` (``DiskError``) with what to do; nothing is half-decided.

    ``ask`` puts a question, before anything runs that changes anything; with ``--yes`` it is ``lambda _: True``.
    ``free_bytes`` gives the free space of a folder, None where it cannot be told.
    """
    if not plan.manager or not plan.packages:
        raise DependencyError("nothing can be installed here", details=plan.why_not, commands=_commands(plan))
    if not plan.allowed:
        raise DependencyError(
            f"{_count(plan.packages)} missing, and caffeup may not install here",
            details=" ".join(plan.packages),
            advice="This needs root, or sudo without a password" + ("; the last line needs neither:" if plan.otherwise else ":"),
            commands=(*_commands(plan), *((plan.otherwise,) if plan.otherwise else ())),
        )
    manager = distros.manager_named(plan.manager)
    expected = _look(plan, manager, distros, run)
    fetching = f"Fetch the package lists, to see what {_count(plan.packages)} and what they need take?"
    _require(ask, f"Install {_told(expected)}?" if expected else fetching if manager.update else "", plan)
    notes = _update(plan, manager, run)
    transaction, packages = _simulate(plan, manager, distros, run)
    left_out = tuple(name for name in plan.packages if name not in packages)
    if left_out:
        notes = (*notes, f"not among the packages here, and left out: {' '.join(left_out)}")
    if transaction.empty:
        return Installed(transaction=transaction, notes=notes)
    findings = refusals(transaction, distros)
    if findings:
        raise DependencyError(
            "the package manager would do more than install: refused",
            details="\n".join(finding.title for finding in findings),
            advice="Nothing was changed. Look at the transaction yourself, and decide:",
            commands=_commands(plan),
            findings=findings,
        )
    _check_space(transaction, free_bytes)
    if expected is None or len(transaction.touched) > len(expected.touched) * 1.1:
        _require(ask, f"Install {_told(transaction)}?", plan)
    output = run(
        _as_root(plan, manager, (*manager.install, *packages)), timeout=INSTALL_SECONDS, packages=len(transaction.touched)
    )
    if output is None or output.status != 0:
        raise _failed(plan, manager, distros, output, "the installation failed")
    return Installed(transaction=transaction, notes=notes)


def _require(ask: Callable[[str], bool], question: str, plan: InstallPlan) -> None:
    if question and not ask(question):
        raise DependencyError("not installed: no consent was given", commands=_commands(plan))


def _look(plan: InstallPlan, manager: Manager, distros: DistroFile, run: Runner) -> Optional[Transaction]:
    """What would happen by the lists that are here; None where they are not, or where only root may look."""
    if manager.simulate_as_root:
        return None
    try:
        transaction = _simulate(plan, manager, distros, run)[0]
    except DependencyError:
        return None
    return None if transaction.empty else transaction


def _told(transaction: Transaction) -> str:
    """``490 packages, with all that they need: 312 MB to download, 1,402 MB on the disk``."""
    sizes = [f"{_megabytes(transaction.download_bytes)} to download"] if transaction.download_bytes else []
    disk = transaction.disk_bytes or 0
    sizes += [f"{_megabytes(disk)} on the disk"] if disk > 0 else []
    many = _count(transaction.touched)
    return f"{many}, with all that they need" + (f": {', '.join(sizes)}" if sizes else "")


def refusals(transaction: Transaction, distros: DistroFile) -> tuple[Finding, ...]:
    """What must not happen: removals, downgrades, changes of held packages, anything of the driver."""
    found = []
    for name, word, packages, why in (
        ("remove", "remove", transaction.remove, "Something else on this machine needs them."),
        ("downgrade", "downgrade", transaction.downgrade, "They are newer on purpose, or come from another repository."),
        ("held", "change, though they are held,", transaction.held, "Somebody pinned their version."),
    ):
        if packages:
            found.append(_refusal(f"packages-{name}", f"it would {word} {' '.join(packages)}", why, packages))
    for guard in distros.guard:
        packages = tuple(name for name in dict.fromkeys(transaction.touched) if guard.holds(name.partition(":")[0]))
        if packages:
            found.append(
                _refusal(
                    "packages-driver",
                    f"it would touch {' '.join(packages)}",
                    f"{guard.why[:1].upper()}{guard.why[1:]}.",
                    packages,
                )
            )
    return tuple(found)


def _refusal(name: str, title: str, why: str, packages: Sequence[str]) -> Finding:
    return Finding(
        id=name,
        severity=Severity.PROBLEM,
        title=title,
        why=why,
        evidence=(Evidence(where="simulated transaction", text=" ".join(packages)),),
        remedies=(
            Remedy(text="Run the command yourself if this is what you want, or build with --prefix and unpacked libraries."),
        ),
    )


def _update(plan: InstallPlan, manager: Manager, run: Runner) -> tuple[str, ...]:
    """A repository that does not answer need not be one that is needed: the simulation tells."""
    if not manager.update:
        return ()
    output = run(_as_root(plan, manager, manager.update), timeout=UPDATE_SECONDS)
    if output is not None and output.status == 0:
        return ()
    return (f"{' '.join(manager.update[:1])} could not fetch all package lists: {_last_line(output)}",)


def _simulate(plan: InstallPlan, manager: Manager, distros: DistroFile, run: Runner) -> tuple[Transaction, tuple[str, ...]]:
    """What would happen, and the packages that it is about: those that may be left out are, where nobody has them."""
    packages = plan.packages
    while True:
        argv = (*manager.simulate, *packages)
        command = _as_root(plan, manager, argv) if manager.simulate_as_root else ("env", *manager.env, *argv)
        output = run(command, timeout=SIMULATE_SECONDS)
        text = f"{output.stdout}\n{output.stderr}" if output is not None else ""
        transaction = parse_transaction(manager.id, text, output.status if output is not None else 1)
        unknown = {name for match in re.finditer(manager.unknown, text, re.MULTILINE) for name in match.groups() if name}
        fewer = tuple(name for name in packages if name not in unknown or name not in plan.optional)
        if unknown and unknown <= set(plan.optional) and 0 < len(fewer) < len(packages):
            packages = fewer
            continue
        if refusals(transaction, distros) or (transaction.understood and not unknown):
            return transaction, packages
        raise _failed(plan, manager, distros, output, "these packages cannot be installed")


def _check_space(transaction: Transaction, free_bytes: Callable[[str], Optional[int]]) -> None:
    download = transaction.download_bytes or 0
    needed = download + max(0, transaction.disk_bytes or 0) + MARGIN
    free = free_bytes("/usr")
    if free is not None and free < needed:
        raise DiskError(
            f"the packages need {_megabytes(needed)}, and {_megabytes(free)} are free below /usr",
            advice="Nothing was installed. Make room and run it again.",
            commands=("df -h /usr /var",),
        )
    cache = free_bytes("/var")
    if cache is not None and cache < download + MARGIN:
        raise DiskError(
            f"the download needs {_megabytes(download + MARGIN)}, and {_megabytes(cache)} are free below /var",
            advice="Nothing was installed. Make room and run it again.",
            commands=("df -h /usr /var",),
        )


def _as_root(plan: InstallPlan, manager: Manager, argv: tuple[str, ...]) -> tuple[str, ...]:
    """Through ``env``, since sudo drops the environment."""
    command = ("env", *manager.env, *argv)
    return command if plan.root else ("sudo", "-n", *command)


def _failed(plan: InstallPlan, manager: Manager, distros: DistroFile, output: Optional[Output], brief: str) -> DependencyError:
    if output is None:
        return DependencyError(
            f"{manager.program} is not here", advice="Install these yourself:", details=" ".join(plan.packages)
        )
    lines = [line for line in f"{output.stdout}\n{output.stderr}".splitlines() if line.strip()]
    for trouble in distros.trouble:
        said = next((line for line in lines if re.search(trouble.pattern, line)), None)
        if said is not None:
            commands = trouble.commands or (manager.refresh if trouble.id == "unknown-package" else ())
            return DependencyError(
                f"{brief}: {said.strip()}",
                details="\n".join(lines[-TAIL:]),
                advice=f"{trouble.advice[:1].upper()}{trouble.advice[1:]}.",
                commands=(*commands, *_commands(plan)),
            )
    return DependencyError(f"{brief} (exit {output.status})", details="\n".join(lines[-TAIL:]), commands=_commands(plan))


def _commands(plan: InstallPlan) -> tuple[str, ...]:
    return (*plan.first, plan.command) if plan.command else ()


def _count(packages: Sequence[str]) -> str:
    return "1 package" if len(packages) == 1 else f"{len(packages)} packages"


def _last_line(output: Optional[Output]) -> str:
    lines = [line for line in (output.stderr or output.stdout).splitlines() if line.strip()] if output is not None else []
    return lines[-1].strip() if lines else "no such program"


def _megabytes(number: int) -> str:
    return f"{number / 1e6:,.0f} MB" if number >= 1e7 else f"{number / 1e6:.1f} MB"
