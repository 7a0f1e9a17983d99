"""What the commands on nets with their weights answer."""

from __future__ import annotations

from typing import Optional

from caffeup.model.base import SCHEMA, Value
from caffeup.model.finding import Finding
from caffeup.model.net import NetChange


class Written(Value, kw_only=True):
    """Files that were made."""

    schema: int = SCHEMA
    prototxt: str = ""
    model: str = ""
    labels: str = ""
    picture: str = ""
    about: tuple[str, ...] = ()
    """What is worth knowing of them."""


class Difference(Value, kw_only=True):
    """How far the blobs of two nets are from each other, for the same input by chance."""

    blobs: int
    """That both have."""
    worst: float
    """The largest difference, as a part of the largest value of its blob."""
    where: str
    same: bool
    """Whether that is no more than rounding."""


class MergeReport(Value, kw_only=True):
    """Normalisations folded into weights."""

    schema: int = SCHEMA
    source: str
    written: tuple[str, ...] = ()
    changes: tuple[NetChange, ...] = ()
    left: tuple[NetChange, ...] = ()
    difference: Optional[Difference] = None
    """Where a tree was given to compare with."""
    findings: tuple[Finding, ...] = ()


class CutReport(Value, kw_only=True):
    """A detector cut to some of its classes."""

    schema: int = SCHEMA
    source: str
    written: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    """In the order of their new numbers; the first is the background."""
    changes: tuple[NetChange, ...] = ()
    difference: Optional[Difference] = None
    findings: tuple[Finding, ...] = ()


class LayerMemory(Value, kw_only=True):
    """One layer's bytes."""

    name: str
    type: str
    tops: tuple[str, ...] = ()
    """Shapes."""
    data: int = 0
    """Of its tops, as Caffe counts them."""
    own: int = 0
    """Of its tops, without those that share the bytes of others."""
    diffs: int = 0
    params: int = 0
    workspace: int = 0
    added: bool = False
    """Whether Caffe adds it: a split, the layer of the inputs."""

    @property
    def total(self) -> int:
        """All that it makes the net larger by, on a GPU."""
        return self.own + self.diffs + self.params + self.workspace


class MemoryFit(Value, kw_only=True):
    """Whether a net fits in the memory that is free."""

    where: str
    free: int
    fits: bool
    largest_batch: Optional[int] = None
    """None: the net does not take another batch, for the reason given."""
    because: str = ""


class PhaseMemory(Value, kw_only=True):
    """A net in one phase."""

    phase: str
    batch: int
    caffe_says: int
    """``Memory required for data``."""
    data: int
    diffs: int
    params: int
    param_diffs: int
    workspace: int
    layers: tuple[LayerMemory, ...] = ()
    uncounted: tuple[str, ...] = ()
    """Layers of which it is not known what they make, and why."""
    assumed: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """All of it."""
        return self.data + self.diffs + self.params + self.param_diffs + self.workspace


class MemoryReport(Value, kw_only=True):
    """What a net takes."""

    schema: int = SCHEMA
    source: str
    phases: tuple[PhaseMemory, ...] = ()
    solver: str = ""
    history: int = 0
    """Of the solver."""
    reserved: int = 0
    """What the GPU needs besides: CUDA's context and cuDNN's workspace."""
    total: int = 0
    fit: Optional[MemoryFit] = None
    no_gpu: str = ""
    """Why it is not said whether it fits."""
