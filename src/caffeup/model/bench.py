"""Times of nets: what ``bench`` and ``net tune`` measured, and what ``demo`` saw. Milliseconds a pass, and bytes."""

from __future__ import annotations

from typing import Optional

from caffeup.model.base import SCHEMA, Value
from caffeup.model.finding import Finding


class LayerTime(Value, kw_only=True):
    """One layer, as ``caffe time`` prints it."""

    name: str
    forward: float
    backward: float = 0.0
    forward_spread: float = 0.0
    """From the fastest to the slowest run."""
    backward_spread: float = 0.0


class GpuDuring(Value, kw_only=True):
    """The GPU while a net ran on it; None is what it does not tell."""

    clock_mhz: Optional[int] = None
    """The median of the moments in which it worked."""
    clock_lowest_mhz: Optional[int] = None
    clock_max_mhz: Optional[int] = None
    """What the card can reach."""
    temperature: Optional[int] = None
    """The highest."""
    power_watts: Optional[float] = None
    """The highest."""
    slowed_by: tuple[str, ...] = ()
    samples: int = 0


class Row(Value, kw_only=True):
    """One variant at one batch size."""

    variant: str
    title: str
    batch: int
    forward: Optional[float] = None
    """Median of the runs; None where it failed."""
    backward: Optional[float] = None
    forward_runs: tuple[float, ...] = ()
    backward_runs: tuple[float, ...] = ()
    depthwise_forward: float = 0.0
    """Of which in layers with a group for each channel."""
    depthwise_backward: float = 0.0
    ratio: Optional[float] = None
    """Forward and backward against those of the first variant that ran at this batch size: 0.5 is twice as fast."""
    iterations: int = 0
    memory_bytes: Optional[int] = None
    memory_of: str = ""
    """``process``: what the driver lists for it; ``gpu``: by how much the GPU filled up; ``host``: its own resident memory."""
    gpu: Optional[GpuDuring] = None
    layers: tuple[LayerTime, ...] = ()
    failed: str = ""
    """Why there are no times."""
    findings: tuple[Finding, ...] = ()
    """What its output says to the diagnosis."""

    @property
    def total(self) -> Optional[float]:
        """Forward and backward."""
        return None if self.forward is None or self.backward is None else self.forward + self.backward


class Told(Value, kw_only=True):
    """A line of what was measured on: its title, its value, and why where that was decided."""

    title: str
    value: str
    because: str = ""


class BenchReport(Value, kw_only=True):
    """All that ``bench`` measured."""

    schema: int = SCHEMA
    tree: str
    net: str
    """Its file; empty for the net that is made here."""
    name: str = ""
    device: str
    """``CPU``, or the GPU's name."""
    phase: str = "TRAIN"
    repeat: int = 1
    machine: tuple[Told, ...] = ()
    decisions: tuple[Told, ...] = ()
    rows: tuple[Row, ...] = ()
    convolutions: tuple[str, ...] = ()
    """Names of the net's convolutions."""
    depthwise: tuple[str, ...] = ()
    """Those with a group for each channel."""
    left_out: tuple[Told, ...] = ()
    """Variants that this tree or device cannot run, and why."""
    disturbed: tuple[str, ...] = ()
    """What else was at work meanwhile."""
    stopped: bool = False
    """Whether somebody stopped it before all was measured."""
    seconds: float = 0.0


class Candidate(Value, kw_only=True):
    """One way to compute a convolution."""

    way: str
    """``CAFFE``, ``CUDNN``, ``depthwise``, or ``as written``."""
    forward: float
    backward: float = 0.0
    forward_spread: float = 0.0
    backward_spread: float = 0.0
    memory_bytes: Optional[int] = None
    """Of the GPU, by the layer alone: its blobs and weights, and what the engine needs besides."""


class Tuned(Value, kw_only=True):
    """One convolution, and how it is computed best."""

    layer: str
    line: int
    kind: str
    """``depthwise``, ``1x1``, ``3x3`` …"""
    candidates: tuple[Candidate, ...]
    winner: str
    before: str
    """What the file says."""
    changed: bool
    because: str


class TuneReport(Value, kw_only=True):
    """All that ``net tune`` measured and wrote."""

    schema: int = SCHEMA
    tree: str
    net: str
    written: str = ""
    """Empty where nothing was to be changed."""
    device: str
    batch: int
    training: bool = False
    """Whether forward and backward count; otherwise forward alone."""
    layers: tuple[Tuned, ...] = ()
    left: tuple[Told, ...] = ()
    """Convolutions that were left, and why."""
    ways: tuple[Row, ...] = ()
    """The whole net with each engine."""
    before: Optional[Row] = None
    after: Optional[Row] = None
    left_out: tuple[Told, ...] = ()
    disturbed: tuple[str, ...] = ()
    seconds: float = 0.0


class Box(Value, kw_only=True):
    """One object that was found; its corners in pixels of the image."""

    label: str
    score: float
    left: float
    top: float
    right: float
    bottom: float


class Seen(Value, kw_only=True):
    """One image that was looked at."""

    image: str
    written: str = ""
    width: int = 0
    height: int = 0
    milliseconds: tuple[float, ...] = ()
    """Of the forward passes, in order; the first one sets up."""
    boxes: tuple[Box, ...] = ()
    failed: str = ""


class DemoReport(Value, kw_only=True):
    """What ``demo`` saw."""

    schema: int = SCHEMA
    tree: str
    net: str
    model: str = ""
    """Empty: the weights are random, and the boxes mean nothing."""
    device: str
    threshold: float
    seen: tuple[Seen, ...] = ()
