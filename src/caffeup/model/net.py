"""What the net commands answer."""

from __future__ import annotations

from caffeup.model.base import SCHEMA, Value
from caffeup.model.finding import Finding


class NetChange(Value, kw_only=True):
    """One thing that was changed in a net's file, or left for a reason."""

    line: int
    """In the file that was read, from 1."""
    layer: str = ""
    what: str


class NetRewrite(Value, kw_only=True):
    """A net's file that was written anew."""

    schema: int = SCHEMA
    source: str
    written: str = ""
    """The file that was written; empty where nothing had to be."""
    changes: tuple[NetChange, ...] = ()
    left: tuple[NetChange, ...] = ()
    """Layers that were looked at and left, with the reason."""
    findings: tuple[Finding, ...] = ()
    """What else was seen."""


class NetPhase(Value, kw_only=True):
    """A net as it is in one phase."""

    phase: str
    layers: int
    inputs: tuple[str, ...] = ()
    """``data 1x3x300x300``."""
    outputs: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    """What was taken for granted, for it stands in the data."""
    untold: tuple[str, ...] = ()
    """Layers from which on shapes cannot be told, and why."""


class NetReport(Value, kw_only=True):
    """What was found in a net's file."""

    schema: int = SCHEMA
    source: str
    kind: str
    """``net``, ``solver``, ``label-map`` or ``template``."""
    name: str = ""
    checked_against: str = ""
    """The tree whose caffe.proto it was read with; empty: all known trees."""
    trees: tuple[str, ...] = ()
    """Known trees that have every field and layer of it."""
    phases: tuple[NetPhase, ...] = ()
    findings: tuple[Finding, ...] = ()
