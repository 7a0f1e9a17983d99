"""What every value has in common: frozen, strict, and convertible to and from JSON and TOML."""

from __future__ import annotations

import sys
from enum import Enum
from typing import Any, TypeVar

import msgspec
from packaging.version import InvalidVersion, Version
from typing_extensions import dataclass_transform

T = TypeVar("T")

SCHEMA = 1
"""Number of the JSON form; raised when a reader of the old form would misread the new one."""


class Word(str, Enum):
    """A closed set of words that prints as itself (``StrEnum`` for Python 3.9)."""

    def __str__(self) -> str:
        return str(self.value)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all values."""


class ComputeCapability(msgspec.Struct, frozen=True, order=True, array_like=True):
    """A GPU's compute capability as an integer pair; never a float and never a string of digits ("12.0" is not "1.20")."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> ComputeCapability:
        """Read ``8.6`` or nvcc's ``86``, ``sm_86``, ``compute_120``; raise ``ValueError`` for anything else."""
        digits = text.strip().lower()
        for prefix in ("sm_", "compute_"):
            digits = digits.removeprefix(prefix)
        major, dot, minor = digits.partition(".")
        if not dot:
            major, minor = digits[:-1], digits[-1:]
        if not (major.isascii() and major.isdigit() and minor.isascii() and minor.isdigit()):
            raise ValueError(f"not a compute capability: {text!r} (write it as 8.6)")
        return cls(int(major), int(minor))

    @property
    def code(self) -> str:
        """The digits that nvcc wants: ``86`` for 8.6, ``120`` for 12.0."""
        return f"{self.major}{self.minor}"

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


def _encode(value: object) -> object:
    if isinstance(value, Version):
        return str(value)
    raise NotImplementedError(f"no JSON form for {type(value).__name__}")


def _decode(kind: type, value: object) -> object:
    if kind is Version and isinstance(value, str):
        try:
            return Version(value)
        except InvalidVersion as error:
            raise ValueError(str(error)) from error
    raise NotImplementedError(f"cannot read a {kind.__name__}")


def to_json(value: object, *, indent: int = 2) -> str:
    """Encode any value; the same value always gives the same text."""
    encoded = msgspec.json.encode(value, enc_hook=_encode, order="sorted")
    if sys.version_info < (3, 10) and isinstance(value, Value):
        # There an empty tuple is not always the one that is a field's default, and would be written out.
        encoded = msgspec.json.encode(from_json(encoded, type(value)), enc_hook=_encode, order="sorted")
    return msgspec.json.format(encoded, indent=indent).decode() + "\n"


def from_json(text: str | bytes, kind: type[T]) -> T:
    """Decode what ``to_json`` wrote; raise ``msgspec.ValidationError`` or ``msgspec.DecodeError`` otherwise."""
    return msgspec.json.decode(text, type=kind, dec_hook=_decode)


def from_toml(text: str | bytes, kind: type[T]) -> T:
    """Decode a table of facts strictly: a misspelt key is an error."""
    return msgspec.toml.decode(text, type=kind, dec_hook=_decode)


def schema_of(kind: type) -> dict[str, Any]:
    """The JSON schema of a value."""
    return msgspec.json.schema(kind, schema_hook=lambda t: {"type": "string"} if t is Version else None)  # type: ignore[arg-type,return-value]
