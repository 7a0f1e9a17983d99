"""The checks of ``caffeup doctor``: everything known to be wrong, without a failure; and what was looked at and is right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Optional

from caffeup.app.doctor_build import build_findings
from caffeup.app.doctor_tree import tree_findings
from caffeup.app.gpus import looking
from caffeup.app.laying_out import half_laid_out
from caffeup.app.missing import told_together
from caffeup.app.obtain import resolve
from caffeup.app.planning import Planned, plan_for
from caffeup.app.session import Session, find_tree
from caffeup.app.unpacking import half_unpacked, with_unpacked
from caffeup.detect.cudnn import agree
from caffeup.errors import CaffeupError
from caffeup.facts.tables import Facts
from caffeup.gpu.access import code_cache, device_nodes, node_paths, toolkit_folders
from caffeup.gpu.checks import condition
from caffeup.gpu.cuda_start import cuda_starts
from caffeup.live import Live
from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.gpus import Snapshot
from caffeup.model.machine import GpuState, Machine
from caffeup.model.plan import Plan, Request
from caffeup.plan.case import Case
from caffeup.plan.fitness import driver_too_old

SILENT = "gpu-driver-silent"


def examine(session: Session, named: str, request: Request, live: Optional[Live] = None) -> tuple[Finding, ...]:
    """About the machine and what a build lacks on it; about the tree that is named or here, its plan and its build too."""
    planned: Optional[Planned] = None
    root = find_tree(named) if named else _tree_here()
    if root is not None:
        planned = plan_for(session, named, request, root=root)
        machine, plan = planned.machine, told_together(session, planned.machine, planned.plan)
        found = (*machine.findings, *planned.tree.findings, *plan.conflicts, *plan.notes)
    else:
        machine = session.machine(request.prefixes, request.python, request.cuda)
        plan, found = _machine_alone(session, machine, request)
    more = [*found, *half_laid_out(session), *half_unpacked(session), *_build_needs(plan), *_cudnn(machine)]
    if machine.graphics.state is GpuState.NONE:
        more.append(_no_gpu(machine))
    else:
        more += _of_gpus(session, machine, live)
        more += _driver_and_toolkits(machine, planned, request, session.facts, session)
    if planned is not None:
        more += [*tree_findings(session, planned), *build_findings(planned)]
    return _once(*more)


def _tree_here() -> Optional[Path]:
    """The tree in or below the current folder, where there is just one."""
    try:
        return find_tree("")
    except (CaffeupError, OSError):
        return None


def _machine_alone(session: Session, machine: Machine, request: Request) -> tuple[Plan, tuple[Finding, ...]]:
    """As for a usual tree; of its plan only what stands in the way, and what is missing."""
    tree = resolve(request, session.facts).assumed
    machine, plan = with_unpacked(session, machine, tree, session.plan(machine, tree, request))
    plan = told_together(session, machine, plan)
    missing = (one for one in plan.notes if one.id.startswith(("missing-", "cuda-wheels")))
    return plan, (*machine.findings, *plan.conflicts, *missing)


def _once(*findings: Finding) -> tuple[Finding, ...]:
    """Each once; what the driver's library says of its silence takes the place of the general words."""
    told = {one.id + one.title: one for one in findings}
    if any(one.id.startswith("gpu-driver-") and one.severity is Severity.PROBLEM for one in told.values()):
        told = {key: one for key, one in told.items() if one.id != SILENT}
    return tuple(told.values())


# --- the machine's parts -----------------------------------------------------------------------------------


def _no_gpu(machine: Machine) -> Finding:
    return Finding(
        id="gpu-none",
        severity=Severity.NOTE,
        title="there is no NVIDIA GPU here: builds are for the CPU",
        evidence=tuple(Evidence(where=one.where, text=one.outcome) for one in machine.graphics.tried),
    )


def _build_needs(plan: Plan) -> Iterator[Finding]:
    """Nothing of what a build needs is missing, where that is so."""
    if plan.conflicts or plan.packages or any(one.id == "missing-needed" for one in plan.notes):
        return
    seen = tuple(
        Evidence(where=key, text=plan.decision(key).value)
        for key in ("compiler", "blas", "opencv", "python")
        if any(one.key == key for one in plan.decisions)
    )
    yield Finding(id="build-needs", severity=Severity.OK, title="all that a build needs is installed", evidence=seen)


def _cudnn(machine: Machine) -> Iterator[Finding]:
    """A header and a library of one release; detection tells where they are not."""
    for header in machine.cudnn_headers:
        for library in machine.cudnn_libraries:
            if library.linkable and agree(header.version, library.version):
                yield Finding(
                    id="cudnn-agree",
                    severity=Severity.OK,
                    title=f"cuDNN's header and library are both {header.version}",
                    evidence=(
                        Evidence(where=f"{header.directory}/cudnn.h", text=str(header.version)),
                        Evidence(where=library.file, text=str(library.version)),
                    ),
                )
                return


def _driver_and_toolkits(
    machine: Machine, planned: Optional[Planned], request: Request, facts: Facts, session: Session
) -> Iterator[Finding]:
    """The driver against the CUDA run time of each toolkit: a problem where it runs none, or not the one that the plan takes."""
    driver = machine.graphics.driver
    if driver is None or not machine.toolkits:
        return
    tree = planned.tree if planned is not None else resolve(request, session.facts).assumed
    case = Case(machine=machine, tree=tree, request=request, facts=facts)
    too_old = {one.root: needed for one in machine.toolkits if (needed := driver_too_old(one, case))}
    seen = (Evidence(where=driver.evidence or driver.via, text=f"CUDA up to {driver.cuda}" if driver.cuda else ""),)
    if not too_old:
        words = ", ".join(dict.fromkeys(f"CUDA {one.version}" for one in machine.toolkits))
        yield Finding(id="driver-and-runtime", severity=Severity.OK, title=f"the driver is new enough for {words}", evidence=seen)
        return
    fits = [one for one in machine.toolkits if one.root not in too_old]
    for one in machine.toolkits:
        if one.root in too_old:
            remedy = Remedy(
                text=f"Take CUDA {fits[0].version}: {fits[0].root}" if fits else f"Install driver {too_old[one.root]} or newer."
            )
            yield Finding(
                id="driver-and-runtime",
                severity=Severity.WARNING if fits else Severity.PROBLEM,
                title=f"the driver is too old for CUDA {one.version} in {one.root}",
                why="What it builds ends with (35 vs. 0) CUDA driver version is insufficient for CUDA runtime version.",
                evidence=(*seen, Evidence(where=one.root, text=f"needs driver {too_old[one.root]}")),
                remedies=(remedy,),
            )


# --- the GPUs as they are now ------------------------------------------------------------------------------


def _of_gpus(session: Session, machine: Machine, live: Optional[Live]) -> Iterator[Finding]:
    """What the driver, CUDA and the device nodes say this moment."""
    with looking(session, live) as looker:
        snapshot = looker.look()
        yield from (one for one in snapshot.findings if one.id not in {known.id for known in machine.findings})
        yield from _shown(snapshot)
        system = machine.system
        cards = tuple(gpu.card for gpu in snapshot.gpus)
        if cards or machine.graphics.state is GpuState.DRIVER_SILENT:
            nodes = [looker.live.node(path) for path in node_paths(cards, system)]
            yield from device_nodes(nodes, system)
        folders = [looker.live.node(path) for path in _cuda_folders(session, machine)]
        yield from toolkit_folders(folders)
        cache = session.host.env.get("CUDA_CACHE_PATH") or f"{session.host.env.get('HOME', '')}/.nv/ComputeCache"
        yield from code_cache(looker.live.node(cache))
        if snapshot.gpus:
            yield from cuda_starts(looker.live.cuda())
        yield from condition(snapshot, uid=looker.live.uid)


def _shown(snapshot: Snapshot) -> Iterator[Finding]:
    """The GPUs that answer."""
    answering = [gpu.card for gpu in snapshot.gpus if not gpu.card.error]
    if not answering:
        return
    release = f"driver {snapshot.release}" if snapshot.release else "the driver"
    cuda = f", CUDA up to {snapshot.cuda}" if snapshot.cuda else ""
    yield Finding(
        id="gpu-driver-answers",
        severity=Severity.OK,
        title=f"{release} answers{cuda}",
        evidence=tuple(Evidence(where=f"GPU {card.index}", text=f"{card.name} {card.bus}".strip()) for card in answering),
    )


def _cuda_folders(session: Session, machine: Machine) -> tuple[str, ...]:
    """Where CUDA is, also where detection could not read it."""
    named = [session.host.env.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    usual = session.host.glob("/usr/local/cuda*")
    found = [folder for one in machine.toolkits for folder in (one.root, *one.include_dirs, *one.library_dirs)]
    return tuple(dict.fromkeys(path for path in (*named, *usual, *found) if path.startswith("/")))
