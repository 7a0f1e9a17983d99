"""What the doctor says of the GPUs' condition: each finding ok, a note, a warning or a problem, with what was seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from msgspec.structs import replace

from caffeup.gpu.words import mib, sentence
from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.gpus import Card, GpuNow, Presence, Snapshot, Use

LITTLE = 1 << 30
"""Less than this, and a usual net does not fit beside context, cuBLAS and cuDNN."""
CLOSE = 5
"""Degrees below the slowdown."""


def condition(snapshot: Snapshot, *, uid: int) -> Iterator[Finding]:
    """Everything, GPU by GPU. ``uid``: who asks; only whose processes are proposed to be ended."""
    for gpu in snapshot.gpus:
        if gpu.card.error:
            continue  # a finding of the snapshot
        for check in (_ecc, _repairs, _heat, _persistence, _compute_mode, _parts):
            yield from check(gpu.card)
        yield from _memory(gpu, uid)


def _one(
    card: Card, name: str, severity: Severity, title: str, seen: str, *, why: str = "", remedy: Optional[Remedy] = None
) -> Finding:
    return Finding(
        id=f"gpu-{name}",
        severity=severity,
        title=f"GPU {card.index}: {title}",
        why=why,
        evidence=(Evidence(where=f"NVML, GPU {card.index}", text=seen),),
        affects=f"gpu{card.index}",
        remedies=() if remedy is None else (remedy,),
    )


def _memory(gpu: GpuNow, uid: int) -> Iterator[Finding]:
    """Free memory, and who holds the rest."""
    card, holders = gpu.card, [use for use in gpu.uses if use.kind.computes]
    if card.memory_free is None or card.instances:
        return
    seen = f"{mib(card.memory_free)} of {mib(card.memory_total)} free"
    if card.memory_free < LITTLE and not (card.memory_total is not None and card.memory_total < 2 * LITTLE):
        base = _one(
            card,
            "memory-taken",
            Severity.WARNING,
            f"only {mib(card.memory_free)} of its memory is free",
            seen,
            why="Caffe then ends with (2 vs. 0) out of memory, or cuDNN with CUDNN_STATUS_INTERNAL_ERROR or ALLOC_FAILED.",
            remedy=_give_back(holders, uid),
        )
        yield _with(base, holders)
        return
    if not holders:
        yield _one(card, "memory", Severity.OK, f"{mib(card.memory_free)} of {mib(card.memory_total)} are free", seen)
        return
    many = "1 process computes" if len(holders) == 1 else f"{len(holders)} processes compute"
    yield _with(_one(card, "shared", Severity.NOTE, f"{many} on it, {mib(card.memory_free)} are free", seen), holders)


def _give_back(holders: list[Use], uid: int) -> Remedy:
    mine = [
        str(use.pid) for use in holders if use.presence is Presence.HERE and use.process is not None and use.process.uid == uid
    ]
    if mine:
        return Remedy(
            text="End what you need no more.", commands=("caffeup gpu", f"caffeup gpu kill {' '.join(mine)}"), by_caffeup=True
        )
    return Remedy(
        text="Wait, or use another GPU.", commands=("caffeup gpu", "caffeup gpu free --need 2GiB --wait"), by_caffeup=True
    )


def _with(finding: Finding, holders: list[Use]) -> Finding:
    return replace(
        finding, evidence=(*finding.evidence, *(Evidence(where=finding.affects, text=sentence(use)) for use in holders))
    )


def _ecc(card: Card) -> Iterator[Finding]:
    if card.ecc_uncorrected is None:
        return
    seen = f"{card.ecc_corrected or 0} corrected, {card.ecc_uncorrected} uncorrected since the driver was loaded"
    if card.ecc_uncorrected:
        why = "Results of that time cannot be trusted. A restart puts one right; several mean that the card wears out."
        remedy = Remedy(text="Restart the machine; where they come again, have the card exchanged.")
        yield _one(
            card,
            "ecc-errors",
            Severity.WARNING,
            "its memory had errors that could not be corrected",
            seen,
            why=why,
            remedy=remedy,
        )
    else:
        yield _one(card, "ecc", Severity.OK, "no uncorrected memory errors", seen)


def _repairs(card: Card) -> Iterator[Finding]:
    if card.repair_failed:
        yield _one(
            card, "memory-worn", Severity.PROBLEM, "its memory can no longer be repaired", "a row could not be remapped",
            remedy=Remedy(text="Have the card exchanged."),
        )  # fmt: skip
    elif card.repair_pending:
        yield _one(
            card, "memory-repair", Severity.WARNING, "a bad row of its memory is to be put out of use", "repair pending",
            remedy=Remedy(text="Restart the machine when nothing runs on it."),
        )  # fmt: skip


def _heat(card: Card) -> Iterator[Finding]:
    hard = [why for why in card.slowed_by if why != "power cap"]
    limit = card.temperature_slowdown
    seen = f"{card.temperature} °C" + (f", slows down at {limit} °C" if limit else "")
    if hard or (card.temperature is not None and limit and card.temperature >= limit - CLOSE):
        title = f"it is slowed down: {', '.join(hard)}" if hard else f"it is {card.temperature} °C hot, close to its slowdown"
        remedy = Remedy(text="Look at fans, dust and the air in the case; at a power brake, at cables and power supply.")
        yield _one(
            card, "slowed", Severity.WARNING, title, seen, why="It computes right, and slower than it could.", remedy=remedy
        )
    elif card.slowed_by:
        yield _one(
            card, "power-cap", Severity.NOTE, "it runs at its power limit", f"{card.power_watts} of {card.power_limit_watts} W"
        )
    elif card.temperature is not None:
        yield _one(card, "temperature", Severity.OK, f"{card.temperature} °C, not slowed down", seen)


def _persistence(card: Card) -> Iterator[Finding]:
    if card.persistence is None:
        return
    if card.persistence or card.display_active:
        title = "persistence mode is on" if card.persistence else "a display keeps it awake"
        yield _one(card, "persistence", Severity.OK, title, f"persistence {'on' if card.persistence else 'off'}")
        return
    remedy = Remedy(
        text="Only where many short programs run: NVIDIA's service, by who runs the machine.",
        commands=("sudo systemctl enable --now nvidia-persistenced",),
    )
    why = "The first program waits a second or two until the GPU has woken. Nothing fails."
    yield _one(card, "persistence", Severity.NOTE, "persistence mode is off", "persistence off", why=why, remedy=remedy)


def _compute_mode(card: Card) -> Iterator[Finding]:
    if not card.compute_mode:
        return
    if card.compute_mode == "default":
        yield _one(card, "compute-mode", Severity.OK, "any program may compute on it", "compute mode default")
        return
    prohibited = card.compute_mode == "prohibited"
    title = "no program may compute on it" if prohibited else "only one process at a time may compute on it"
    remedy = Remedy(
        text="Somebody has set it so; ask who runs the machine.", commands=(f"sudo nvidia-smi -i {card.index} -c DEFAULT",)
    )
    severity = Severity.PROBLEM if prohibited else Severity.NOTE
    yield _one(card, "compute-mode", severity, title, f"compute mode {card.compute_mode}", remedy=remedy)


def _parts(card: Card) -> Iterator[Finding]:
    if not card.mig:
        return
    if not card.instances:
        why = "With MIG on, CUDA shows only parts."
        remedy = Remedy(text="Have parts made, or MIG turned off, by who runs the machine.", commands=("nvidia-smi mig -lgip",))
        yield _one(
            card, "mig-empty", Severity.PROBLEM, "MIG is on and has made no parts", "MIG on, 0 parts", why=why, remedy=remedy
        )
        return
    names = ", ".join(one.name.rpartition("MIG ")[2] for one in card.instances)
    why = "A program gets one part; CUDA takes the first unless CUDA_VISIBLE_DEVICES names another by its UUID."
    yield _one(card, "mig", Severity.NOTE, f"MIG divides it: {names}", f"{len(card.instances)} parts", why=why)
