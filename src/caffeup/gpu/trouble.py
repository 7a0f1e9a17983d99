"""Why the driver's library gives no answer, by its own number of the error, and what mends it."""

from __future__ import annotations

from typing import Optional

from caffeup.model.base import Value
from caffeup.model.driver import NO_ANSWER
from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.gpus import Card, Reading
from caffeup.model.machine import GpuState

RESTART = Remedy(text="Restart the machine.")


class Trouble(Value, kw_only=True):
    """One kind of answer that is none."""

    id: str
    title: str
    why: str
    remedy: Remedy
    state: GpuState = GpuState.DRIVER_SILENT


TROUBLES = {
    18: Trouble(
        id="gpu-driver-mismatch",
        title="The driver's module and its libraries are of two releases",
        why="The driver was updated, and the kernel still has the old module loaded.",
        remedy=Remedy(text="Restart the machine: it then loads the new module."),
    ),
    9: Trouble(
        id="gpu-driver-not-loaded",
        title="The driver's module is not loaded in the kernel",
        why="It was not built for this kernel (usual after an update), secure boot refused it, or another driver has the GPU.",
        remedy=Remedy(
            text="Load it and see what the kernel says; where there is no such module, install the driver again.",
            commands=("sudo modprobe nvidia",),
        ),
        state=GpuState.NO_DRIVER,
    ),
    4: Trouble(
        id="gpu-no-permission",
        title="This user may not use the GPU's device nodes",
        why="They belong to a group that this user is not in.",
        remedy=Remedy(text="Join the group that owns them, then log in again; `caffeup doctor` names it."),
    ),
    15: Trouble(
        id="gpu-lost",
        title="The GPU has fallen off the bus",
        why="Overheating, a power supply that is too weak, or a loose card. No program can use it before a restart.",
        remedy=Remedy(
            text="Restart the machine; where it comes back, look at power, cooling and slot.", commands=("sudo dmesg",)
        ),
    ),
    16: Trouble(
        id="gpu-reset-required",
        title="The GPU has to be reset before it can be used again",
        why="It met an error that it cannot clear by itself.",
        remedy=Remedy(text="End what uses it, then restart the machine."),
    ),
}


def trouble_of(reading: Optional[Reading]) -> Optional[Trouble]:
    """What the error means; None where there is none, or one that is only known by its words."""
    if reading is None or not reading.error:
        return None
    if reading.error.startswith(NO_ANSWER):
        return Trouble(
            id="gpu-driver-hangs",
            title="The NVIDIA driver does not answer",
            why="A GPU that hangs holds up every question to the driver; programs that wait for it cannot even be killed.",
            remedy=RESTART,
        )
    return TROUBLES.get(reading.code)


def finding_of(reading: Reading, release_of_module: str) -> Optional[Finding]:
    """As a finding; ``release_of_module``: what /proc/driver/nvidia/version names."""
    trouble = trouble_of(reading)
    if trouble is None:
        return None
    seen = [Evidence(where=reading.library or "libnvidia-ml.so.1", text=reading.error)]
    if release_of_module:
        seen.append(Evidence(where="/proc/driver/nvidia/version", text=release_of_module))
    return Finding(
        id=trouble.id,
        severity=Severity.PROBLEM,
        title=trouble.title,
        why=trouble.why,
        evidence=tuple(seen),
        remedies=(trouble.remedy,),
    )


def lost(card: Card) -> Optional[Finding]:
    """A GPU that does not answer while others do."""
    if not card.error:
        return None
    by_words = next((one for one in TROUBLES.values() if one.id == "gpu-lost" and "lost" in card.error.lower()), None)
    return Finding(
        id=by_words.id if by_words else "gpu-does-not-answer",
        severity=Severity.PROBLEM,
        title=f"GPU {card.index} does not answer: {card.error}",
        why=by_words.why if by_words else "",
        evidence=(Evidence(where=f"GPU {card.index}", text=card.error),),
        remedies=(by_words.remedy if by_words else RESTART,),
    )


def without_figures(reading: Reading) -> Finding:
    """The GPUs are known from another source, and the library that tells their figures does not answer."""
    trouble = trouble_of(reading)
    return Finding(
        id="gpu-figures-missing",
        severity=Severity.WARNING,
        title=f"NVIDIA's management library does not answer ({reading.error}): only the names of the GPUs are known",
        why=trouble.why if trouble is not None else "",
        evidence=(Evidence(where=reading.library or "libnvidia-ml.so.1", text=reading.error),),
        remedies=(trouble.remedy if trouble is not None else Remedy(text="Restart the machine where it goes on."),),
    )
