"""The messages of a ``caffe.proto``: which fields there are, of which type, and with which default."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Optional

import msgspec

NET = "NetParameter"
SOLVER = "SolverParameter"
LABEL_MAP = "LabelMap"

_TOKEN = re.compile(
    r"""[\s]+|//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)
    |(?P<token>[A-Za-z_.][\w.]*|[-+]?[0-9][\w.+-]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|(?s:.))""",
    re.VERBOSE,
)
_LABELS = {"optional", "required", "repeated"}
_INTEGERS = ("int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64")
_SCALARS = frozenset({*_INTEGERS, "double", "float", "bool", "string", "bytes"})


class FieldType(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a message."""

    name: str
    number: int
    type: str
    """``uint32``, ``string`` …, or the full name of a message or enum (``PoolingParameter.PoolMethod``)."""
    repeated: bool = False
    required: bool = False
    default: str = ""
    """As written: ``0.5``, ``true``, ``MAX``; a string without quotes."""
    trees: tuple[str, ...] = ()
    """The trees that have it, where the schema is made of several."""


class Schema(msgspec.Struct, frozen=True, kw_only=True):
    """All messages and enums, by full name without the package."""

    messages: Mapping[str, Mapping[str, FieldType]]
    enums: Mapping[str, Mapping[str, int]]
    layers: Mapping[str, tuple[str, ...]] = {}
    """Layer types, each with the trees that have it; empty where only a proto was read."""
    trees: tuple[str, ...] = ()
    """The trees it is made of; none for a schema of one tree."""
    commands: Mapping[str, str] = {}
    """What gets each of these trees."""

    def field(self, message: str, name: str) -> Optional[FieldType]:
        """A field of a message."""
        return self.messages.get(message, {}).get(name)

    def holders(self, name: str) -> tuple[str, ...]:
        """The messages that have a field of this name."""
        return tuple(message for message, fields in self.messages.items() if name in fields)


def read_proto(text: str) -> Schema:
    """Read a proto2 file; what is no message or enum is passed over. ``ValueError`` where it makes no sense."""
    return _Reader(text).read()


def registered_types(sources: Iterator[str]) -> set[str]:
    """The layer types that C++ sources register."""
    found = set()
    for text in sources:
        found |= {match.group(1) for match in _REGISTERED.finditer(text)}
    return found


# Not in a comment, and not the macro's own definition, whose argument is in small letters.
_REGISTERED = re.compile(r"^[ \t]*REGISTER_LAYER_(?:CLASS|CREATOR)\w*\(\s*(?!type\b)(\w+)", re.MULTILINE)


class _Reader:
    def __init__(self, text: str) -> None:
        found = (match.group("token") for match in _TOKEN.finditer(text))
        self._tokens: list[str] = [token for token in found if token]
        self._at = 0
        self._messages: dict[str, dict[str, FieldType]] = {}
        self._enums: dict[str, dict[str, int]] = {}

    def read(self) -> Schema:
        """All of it; types are resolved at the end, for a field may name what stands further down."""
        scope: list[str] = []
        """Names of the messages around; an empty one for a oneof."""
        while self._at < len(self._tokens):
            word = self._take()
            if word == "}":
                if not scope:
                    raise ValueError("a } too many")
                scope.pop()
            elif word in {"message", "oneof"} and self._peek(1) == "{":
                name = self._take()
                self._expect("{")
                scope.append(name if word == "message" else "")
                self._messages.setdefault(_joined(scope), {})
            elif word == "enum" and self._peek(1) == "{":
                self._enum(_joined([*scope, self._take()]))
            elif word == ";":
                continue
            elif scope and (word in _LABELS or not scope[-1]):
                self._field(_joined(scope), word)
            else:
                self._skip_statement()
        if scope:
            raise ValueError(f"message {_joined(scope)} is not closed")
        return Schema(messages=self._resolved(), enums=self._enums)

    def _field(self, message: str, word: str) -> None:
        label = word if word in _LABELS else "optional"
        kind = self._take() if word in _LABELS else word
        name = self._take()
        self._expect("=")
        number = int(self._take(), 0)
        default = self._options()
        self._messages.setdefault(message, {})[name] = FieldType(
            name=name, number=number, type=kind, repeated=label == "repeated", required=label == "required", default=default
        )

    def _options(self) -> str:
        """The default of a field, from its options."""
        default = ""
        while (word := self._take()) != ";":
            if word == "{":
                self._at -= 1
                self._skip_statement()
                break
            if word == "default":
                self._expect("=")
                default = self._take()
                if default in "-+":
                    default += self._take()
                if default[0] in "\"'":
                    default = default[1:-1]
        return default

    def _enum(self, name: str) -> None:
        self._expect("{")
        values = self._enums.setdefault(name, {})
        while (word := self._take()) != "}":
            if word in {"option", "reserved"}:
                self._skip_statement()
            elif word != ";":
                self._expect("=")
                values[word] = int(self._take(), 0)
                self._options()

    def _skip_statement(self) -> None:
        """To its semicolon, or behind its block."""
        deep = 0
        while True:
            word = self._take()
            deep += (word == "{") - (word == "}")
            if deep <= 0 and word in {";", "}"}:
                return

    def _resolved(self) -> dict[str, dict[str, FieldType]]:
        return {
            message: {
                name: msgspec.structs.replace(field, type=self._full(message, field.type)) for name, field in fields.items()
            }
            for message, fields in self._messages.items()
        }

    def _full(self, message: str, kind: str) -> str:
        """A type's full name, looked for from the inside out as protobuf does."""
        if kind in _SCALARS:
            return kind
        kind = kind.removeprefix(".").removeprefix("caffe.")
        around = message.split(".")
        for depth in range(len(around), -1, -1):
            name = ".".join((*around[:depth], kind))
            if name in self._messages or name in self._enums:
                return name
        return kind

    def _take(self) -> str:
        if self._at >= len(self._tokens):
            raise ValueError("it ends in the middle of a statement")
        self._at += 1
        return self._tokens[self._at - 1]

    def _peek(self, ahead: int) -> str:
        return self._tokens[self._at + ahead] if self._at + ahead < len(self._tokens) else ""

    def _expect(self, word: str) -> None:
        if (found := self._take()) != word:
            raise ValueError(f"expected {word} and not {found[:40]}")


def _joined(scope: list[str]) -> str:
    return ".".join(name for name in scope if name)
