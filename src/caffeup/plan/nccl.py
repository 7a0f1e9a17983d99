"""NCCL: only where there are several GPUs to train on."""

from __future__ import annotations

from caffeup.model.finding import Severity
from caffeup.plan.case import Case
from caffeup.plan.libraries import folder_lines, folders, missing, said
from caffeup.plan.part import Part, decision, line

SEVERAL = 2


def choose_nccl(case: Case, *, gpu: bool) -> Part:
    """On with two GPUs or more, where it is installed and the tree knows it."""
    if not gpu or not case.reads("USE_NCCL"):
        return Part()
    count = len(case.machine.graphics.gpus)
    if count < SEVERAL:
        return Part(decisions=(decision("nccl", "off", f"it is for several GPUs; there is {count or 'none'}"),))
    found = case.library("nccl")
    if found is None:
        because = f"there are {count} GPUs, but NCCL was not found: training uses one"
        row = case.row("nccl")
        notes = (missing(row, "Training on several GPUs needs it.", Severity.NOTE),) if row is not None else ()
        return Part(decisions=(decision("nccl", "off", because),), notes=notes)
    because = f"{count} GPUs; NCCL {said(found)}"
    place = folders(found, case)
    config = (line("USE_NCCL", "1", because=because), *folder_lines(place, because))
    return Part(
        decisions=(decision("nccl", str(found.version or "on"), because),),
        config=config,
        links=place.links,
        run_paths=place.run_paths,
    )
