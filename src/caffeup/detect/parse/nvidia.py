"""What the driver's programs and files say, and what CUDA_VISIBLE_DEVICES leaves of the GPUs."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import Optional

from packaging.version import Version

from caffeup.model.base import ComputeCapability, Value
from caffeup.model.machine import Gpu

SMI_FIELDS = ("name", "memory.total", "driver_version", "uuid")
"""Fields that nvidia-smi has known since long; newer ones are asked for separately."""
SMI_NEW_FIELDS = ("compute_cap", "mig.mode.current")


class SmiRow(Value):
    """One GPU as nvidia-smi prints it."""

    name: str
    memory_bytes: Optional[int] = None
    release: str = ""
    uuid: str = ""
    compute_capability: Optional[ComputeCapability] = None
    mig: bool = False


def parse_smi_rows(text: str, fields: Sequence[str]) -> tuple[SmiRow, ...]:
    """Rows of ``nvidia-smi --query-gpu=… --format=csv,noheader,nounits``; other lines are skipped."""
    rows = []
    for cells in csv.reader(text.replace("\0", "").splitlines(), skipinitialspace=True):
        if len(cells) == len(fields):
            row = dict(zip(fields, (cell.strip() for cell in cells)))
            rows.append(_smi_row(row))
    return tuple(rows)


def _smi_row(row: dict[str, str]) -> SmiRow:
    memory = row.get("memory.total", "")
    try:
        capability = ComputeCapability.parse(row.get("compute_cap", ""))
    except ValueError:
        capability = None
    return SmiRow(
        name=row.get("name", ""),
        memory_bytes=int(memory) << 20 if re.fullmatch(r"[0-9]{1,9}", memory) else None,
        release=row.get("driver_version", ""),
        uuid=row.get("uuid", ""),
        compute_capability=capability,
        mig=row.get("mig.mode.current") == "Enabled",
    )


def parse_smi_cuda(text: str) -> Optional[Version]:
    """``12.4`` of the banner's ``CUDA Version: 12.4``."""
    found = re.search(r"CUDA(?: UMD)? Version\s*:\s*([0-9]{1,3}\.[0-9]{1,3})", text)
    return Version(found[1]) if found else None


def parse_proc_version(text: str) -> str:
    """Release of the loaded module as NVIDIA writes it (``580.65.06``), closed or open; empty where it says none."""
    found = re.search(r"NVRM version:.*?\s([0-9]{2,4}\.[0-9]{1,4}(?:\.[0-9]{1,4})?)\b", text)
    return found[1] if found else ""


def cuda_of_number(number: int) -> Optional[Version]:
    """``12.4`` of 12040."""
    return Version(f"{number // 1000}.{number % 1000 // 10}") if 1000 <= number < 1_000_000 else None


def visible(gpus: tuple[Gpu, ...], setting: Optional[str]) -> tuple[Gpu, ...]:
    """The GPUs that CUDA shows with this CUDA_VISIBLE_DEVICES: it stops at the first entry that names none."""
    if setting is None:
        return gpus
    shown: list[Gpu] = []
    for entry in (part.strip() for part in setting.split(",")):
        named = [gpu for gpu in gpus if _names(entry, gpu)]
        if not named:
            break
        shown += [gpu for gpu in named if gpu not in shown]
    return tuple(shown)


def _names(entry: str, gpu: Gpu) -> bool:
    if re.fullmatch(r"[0-9]{1,4}", entry):
        return gpu.index == int(entry)
    if entry.startswith("MIG-"):
        return gpu.mig
    return entry.startswith("GPU-") and gpu.uuid.startswith(entry)
