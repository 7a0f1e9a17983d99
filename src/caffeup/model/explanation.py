"""The long story of a finding."""

from __future__ import annotations

from caffeup.model.base import SCHEMA, Value
from caffeup.model.finding import Remedy


class Explained(Value, kw_only=True):
    """A row of findings.toml: a finding that is no row of fixes/. An id that ends with ``*`` stands for all that begin so."""

    id: str
    title: str
    why: str
    """What it is, and how it comes about."""
    looks: str = ""
    """What a person sees of it elsewhere."""
    mend: str
    commands: tuple[str, ...] = ()
    source: tuple[str, ...] = ()


class ExplainedFile(Value):
    """findings.toml."""

    finding: tuple[Explained, ...] = ()


class Explanation(Value, kw_only=True):
    """What ``caffeup explain`` tells of one id."""

    schema: int = SCHEMA
    id: str
    title: str
    why: str
    when: str = ""
    """Under which conditions it happens."""
    looks: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    """Lines nearby that speak for it."""
    unsure: bool = False
    """Whether the reports leave the cause open."""
    decides: str = ""
    alike: tuple[str, ...] = ()
    """Ids of causes that a log may show in the same words."""
    remedies: tuple[Remedy, ...] = ()
    sources: tuple[str, ...] = ()
