"""Answers about a plan: why a setting is as it is, and why a GPU is not served."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator

from caffeup.facts.tables import Facts
from caffeup.model.base import ComputeCapability
from caffeup.model.machine import Machine
from caffeup.model.plan import ConfigLine, Decision, Plan
from caffeup.plan.wheels import WHEELS


def explain(plan: Plan, key: str) -> str:
    """Everything the plan says about a decision, a variable of Makefile.config, a fix or a conflict; empty: nothing."""
    wanted = key.strip().lower()
    lines: list[str] = []
    for decision in plan.decisions:
        if decision.key.lower() == wanted:
            lines += _decision(decision)
    for config in plan.config:
        if config.key.lower() in (wanted, f"export {wanted}"):
            lines.append(f"{setting(config)}")
            lines.append(f"  because: {config.because}")
    for fix in plan.fixes:
        if fix.id.lower() == wanted:
            lines.append(f"fix {fix.id}: {fix.because}")
    for finding in (*plan.conflicts, *plan.notes):
        if wanted in (finding.id.lower(), finding.affects.lower()):
            lines.append(f"{finding.id} ({finding.severity}): {finding.title}")
            lines += [f"  {finding.why}"] if finding.why else []
            for way in finding.remedies:
                lines.append(f"  way out: {way.text}")
                lines += [f"    {command}" for command in way.commands]
    return "\n".join(lines)


def explain_all(plan: Plan) -> str:
    """Every decision with its reason and what was not taken, conflicts first."""
    lines: list[str] = []
    for finding in plan.conflicts:
        lines += explain_conflict(plan, finding.id)
    for decision in plan.decisions:
        lines += _decision(decision)
    lines += [f"fix {fix.id}: {fix.because}" for fix in plan.fixes]
    lines += [f"install {', '.join(plan.packages)}"] if plan.packages else []
    return "\n".join(lines) + "\n"


def explain_conflict(plan: Plan, name: str) -> list[str]:
    """One conflict with its ways out."""
    lines = []
    for finding in plan.conflicts:
        if finding.id == name:
            lines.append(f"CONFLICT {finding.id}: {finding.title}")
            for way in finding.remedies:
                lines.append(f"  way out: {way.text}")
                lines += [f"    {command}" for command in way.commands]
    return lines


def keys(plan: Plan) -> tuple[str, ...]:
    """Everything that can be asked about."""
    names = [one.key for one in plan.decisions] + [one.key.removeprefix("export ") for one in plan.config]
    names += [one.id for one in plan.fixes] + [one.id for one in (*plan.conflicts, *plan.notes)]
    return tuple(dict.fromkeys(names))


def alike(plan: Plan, key: str) -> str:
    """What was likely meant by a key that the plan does not have; empty: nothing is near."""
    named = {one.lower(): one for one in keys(plan)}
    near = difflib.get_close_matches(key.strip().lower(), named, n=1, cutoff=0.7)
    return named[near[0]] if near else ""


def setting(config: ConfigLine) -> str:
    """A line as it stands in Makefile.config, before make's escapes."""
    return f"{'override ' if config.override else ''}{config.key} {config.operator} {' '.join(config.value)}"


def why_not(plan: Plan, machine: Machine, facts: Facts, cc: ComputeCapability) -> tuple[str, ...]:
    """Every reason why this compute capability gets no SASS; empty: it does."""
    if cc in plan.sass:
        return ()
    reasons = []
    if not facts.known(cc):
        reasons.append(f"{cc} is not a compute capability that the facts know")
    if not plan.gpu:
        return (
            *reasons,
            "this is a build without CUDA: " + next((one.because for one in plan.decisions if one.key == "mode"), ""),
            *_with_cuda(plan, machine, facts, cc),
        )
    wanted = facts.toolkits_for(cc)
    toolkit = next(
        (
            one
            for one in machine.toolkits
            if any(d.key == "toolkit" and d.value.endswith(f" in {one.root}") for d in plan.decisions)
        ),
        None,
    )
    if toolkit is None:
        reasons.append("there is no toolkit")
    elif cc not in (toolkit.sass or facts.compute_capabilities(toolkit.version)):
        need = f": it needs CUDA {wanted.words()}" if wanted else ""
        reasons.append(f"CUDA {toolkit.version} does not compile for it{need}")
        others = [
            one for one in machine.toolkits if one is not toolkit and cc in (one.sass or facts.compute_capabilities(one.version))
        ]
        reasons += [f"CUDA {one.version} in {one.root} does, but was not chosen" for one in others]
    last = facts.last_driver_for(cc)
    driver = machine.graphics.driver
    if last is not None and driver is not None and driver.release is not None and driver.release.major > last:
        reasons.append(f"driver {driver.release} does not support it: the last branch for {facts.family(cc)} is {last}")
    here = [gpu for gpu in machine.graphics.gpus if gpu.compute_capability == cc]
    if not here:
        reasons.append(
            "no GPU of this machine has it"
            + (", and --arch does not ask for it" if plan.request.arch else f"; ask for it with --arch {cc}")
        )
    if plan.ptx is not None and plan.ptx <= cc:
        reasons.append(f"it can run all the same: the driver compiles the PTX of {plan.ptx} for it at the first start")
    return tuple(reasons)


def _with_cuda(plan: Plan, machine: Machine, facts: Facts, cc: ComputeCapability) -> Iterator[str]:
    """What to do for a build with CUDA where this one is without."""
    if not facts.known(cc):
        return
    wheels = facts.cuda_from_wheels(machine.system.arch, machine.system.glibc) if machine.wheels_root else None
    if any(one.nvcc and not one.missing for one in machine.toolkits):
        yield f"with the toolkit that is here: caffeup up {shlex.quote(plan.request.source)} --arch {cc}, without --cpu"
    elif wheels is not None and cc in facts.compute_capabilities(wheels.cuda):
        command = f"caffeup up {shlex.quote(plan.request.source)} --cuda {WHEELS} --arch {cc}"
        yield f"caffeup can lay out CUDA {wheels.cuda} from NVIDIA's wheels in your folder: {command}"
    else:
        wanted = facts.toolkits_for(cc)
        yield f"it needs a CUDA toolkit{f', {wanted.words()}' if wanted else ''}"


def _decision(one: Decision) -> list[str]:
    return [f"{one.key}: {one.value}", f"  because: {one.because}"] + [
        f"  not {other.value}: {other.because}" for other in one.rejected
    ]
