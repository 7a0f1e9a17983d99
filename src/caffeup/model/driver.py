"""What NVIDIA's own libraries say about the GPUs, before it is judged."""

from __future__ import annotations

from typing import Optional

from caffeup.model.base import Value

NO_ANSWER = "no answer"
"""How the error of a driver that hangs begins."""


class Device(Value):
    """One GPU as NVIDIA's libraries describe it."""

    name: str
    compute_capability: Optional[tuple[int, int]] = None
    memory_bytes: Optional[int] = None
    mig: bool = False
    uuid: str = ""


class DriverAnswer(Value):
    """What one of NVIDIA's own libraries said."""

    library: str = ""
    """The file that was loaded."""
    error: str = ""
    """Its own words where it gave no devices."""
    release: str = ""
    """Release of the driver: ``580.65.06``."""
    cuda: int = 0
    """Newest CUDA it supports, as the library says it: 13000."""
    devices: tuple[Device, ...] = ()
