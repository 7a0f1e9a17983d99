"""Which fields, values and layer types each tree's nets may have: rows of nets.toml, written by bench/net_facts.py."""

from __future__ import annotations

from caffeup.model.base import Value


class NetTree(Value, kw_only=True):
    """One tree."""

    id: str
    url: str = ""
    """Where it is to be had; empty where ``caffeup up`` knows it by its id."""

    @property
    def command(self) -> str:
        """What gets it."""
        return f"caffeup up {self.url or self.id}"


class MessageRow(Value, kw_only=True):
    """One message of caffe.proto."""

    id: str
    fields: str
    """A line each: ``name number type``, ``*`` behind a repeated type, ``=default``, ``@trees`` where not all have it."""
    trees: str = ""
    """Those that have the message; empty: all."""


class EnumRow(Value, kw_only=True):
    """One enum of caffe.proto."""

    id: str
    values: str
    """A line each: ``NAME number @trees``."""


class LayerRow(Value, kw_only=True):
    """One layer type."""

    id: str
    trees: str = ""
    """Those that have it; empty: all."""


class NetFile(Value, kw_only=True):
    """nets.toml."""

    tree: tuple[NetTree, ...] = ()
    message: tuple[MessageRow, ...] = ()
    enum: tuple[EnumRow, ...] = ()
    layer: tuple[LayerRow, ...] = ()
