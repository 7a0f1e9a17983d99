"""Every field, value and layer type of a file against a schema: what the parser of a tree would refuse."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator

import msgspec

from caffeup.model.finding import Severity
from caffeup.net.findings import Findings
from caffeup.net.known import ADDED
from caffeup.net.model import V1_TYPES, Layer
from caffeup.net.schema import FieldType, Schema
from caffeup.net.text import Block, Field, Scalar, printable

# Where a field or layer stands only in some trees: the id under which a log of the same mistake is explained.
_IDS = {
    "bvlc": "newer-parameter-unknown",
    "ssd": "ssd-parameter-unknown",
    "fast-rcnn": "fast-rcnn-parameter-unknown",
    "segnet": "segnet-parameter-unknown",
    "mobilenet-yolo": "yolo-parameter-unknown",
    "brocolli": "brocolli-parameter-unknown",
    "microsoft": "rfcn-parameter-unknown",
}
_BOOLS = {"true", "false", "True", "False", "t", "f", "0", "1"}
PLACEHOLDER = re.compile(r"cls([1-9]\d*)x\Z")
"""In the templates of MobileNet-SSD: so many times the number of classes."""


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """A field that a file uses."""

    message: str
    field: Field
    type: FieldType


class Checker:
    """Goes through a file with a schema; ``known`` is the union of all known trees, to say where a name is at home."""

    def __init__(self, found: Findings, schema: Schema, known: Schema, tree: str) -> None:
        self.found = found
        self.schema = schema
        self.known = known
        self.tree = tree
        """Whose schema it is, for people; empty: that of all known trees."""
        self.placeholders: list[Scalar] = []
        self.uses: dict[tuple[str, str], Use] = {}
        """The first use of each field of each message."""
        self._homes: dict[tuple[str, ...], dict[str, int]] = {}

    def message(self, root: Block, name: str) -> None:
        """Check a message and all within it."""
        waiting = [(root, name)]
        while waiting:
            block, message = waiting.pop()
            seen: dict[str, Field] = {}
            inner: list[tuple[Block, str]] = []
            kinds = self.schema.messages.get(message, {})
            for field in block.fields:
                kind = kinds.get(field.name)
                if kind is None:
                    self._unknown_field(message, field)
                    continue
                if (message, field.name) not in self.uses:
                    self.uses[message, field.name] = Use(message=message, field=field, type=kind)
                if field.name in seen and not kind.repeated:
                    self._twice(field)
                seen[field.name] = field
                inner += self._value(field, kind)
            waiting += reversed(inner)

    def _value(self, field: Field, kind: FieldType) -> Iterator[tuple[Block, str]]:
        value = field.value
        if isinstance(value, Block):
            if kind.type in self.schema.messages:
                yield value, kind.type
            else:
                self._bad(field, f"{field.name} takes {_wanted(kind.type, self.schema)} and no block")
        elif kind.type in self.schema.messages:
            self._bad(field, f"{field.name} takes a block in {{ }}, not {printable(value.text, 40)}")
        elif kind.type in self.schema.enums:
            self._enum(field, value, kind)
        elif (problem := _scalar_problem(value, kind.type)) is not None:
            if value.kind == "word" and PLACEHOLDER.match(value.text):
                self.placeholders.append(value)
            else:
                self._bad(
                    field, f"{field.name} takes {_wanted(kind.type, self.schema)}, not {printable(value.text, 40)}{problem}"
                )

    def _bad(self, field: Field, title: str) -> None:
        self.found.add("prototxt-syntax", title, field.value.start, remedy="write a value of that kind")

    def _twice(self, field: Field) -> None:
        self.found.add(
            "prototxt-syntax",
            f"{field.name} stands twice in one block",
            field.start,
            why="The parser refuses a field that is given twice and may be there once.",
            remedy="keep one of the two",
        )

    def _enum(self, field: Field, value: Scalar, kind: FieldType) -> None:
        names = self.schema.enums[kind.type]
        if value.kind == "word" and value.text in names:
            return
        number = value.number()
        if value.kind == "number" and number in names.values():
            return
        near = self._near(value.value, names)
        like = f"write {near}" if near else f"write one of {', '.join(list(names)[:12])}"
        written = printable(value.text, 40)
        quoted = "an enum stands without quotes: " if value.kind == "string" else ""
        self.found.add("prototxt-enumeration", f"{field.name} has no value {written}", value.start, remedy=f"{quoted}{like}")

    def _unknown_field(self, message: str, field: Field) -> None:
        shown = printable(field.name, 60)
        home = self.known.field(message, field.name)
        if home is not None and home.trees:
            self._elsewhere(shown, home.trees, field.start)
            return
        near = self._near(field.name, self.schema.messages.get(message, {}))
        holders = [holder for holder in self.schema.holders(field.name) if holder != message][:3]
        if near:
            advice = f"{near} is meant?"
        elif holders:
            advice = f"{' and '.join(holders)} {'have' if len(holders) > 1 else 'has'} it: it stands in the wrong block"
        else:
            advice = "no tree that caffeup knows has it here: take the tree that the file's author names, or drop the line"
        whose = f"{self.tree}'s {message}" if self.tree else message
        self.found.add("prototxt-field-unknown", f"{whose} has no field {shown}", field.start, remedy=advice)

    def _elsewhere(self, name: str, trees: tuple[str, ...], place: int) -> None:
        names = self._homes.setdefault(trees, {})
        names[name] = min(place, names.get(name, place))

    def _near(self, name: str, names: Iterable[str]) -> str:
        """The name that is meant, as far as it can be told."""
        if self.found.crowded:
            return ""
        names = list(names)
        exact = [one for one in names if one.lower() == name.lower()]
        close = exact or difflib.get_close_matches(name, names, 1, 0.75)
        return close[0] if close else ""

    def strangers(self) -> None:
        """One finding for all that is at home in the same trees and not in this one."""
        left = dict(self._homes)
        while left:
            best = max(self.known.trees, key=lambda tree: sum(len(names) for trees, names in left.items() if tree in trees))
            names = {name: place for trees, some in left.items() if best in trees for name, place in some.items()}
            left = {trees: some for trees, some in left.items() if best not in trees}
            ordered = sorted(names, key=lambda name: names[name])
            title = f"this net needs the {best} tree: {self.tree or 'this one'} has no {_listed(ordered)}"
            for place in names.values():
                self.found.add(
                    _IDS.get(best, "prototxt-field-unknown"),
                    title,
                    place,
                    remedy=f"build the {best} tree and use its programs and its python folder",
                    commands=(self.known.commands[best],),
                )

    def layer_types(self, layers: Iterable[Layer]) -> None:
        """Types that no factory makes."""
        for layer in layers:
            scalar = layer.block.scalar("type")
            if scalar is None:
                self.found.add("layer-without-type", "a layer has no type", layer.start, remedy='give it one: type: "…"')
            elif not layer.v1 and layer.type not in self.schema.layers:
                self._unknown_type(layer.type, scalar.start)

    def _unknown_type(self, kind: str, place: int) -> None:
        shown = printable(kind, 60)
        twin = next((other for other in ADDED if other != kind and other in self.schema.layers), "")
        if kind in ADDED and twin:
            self.found.add(
                "unknown-layer-type",
                f"{self.tree} has no layer {kind}, but {twin}, which is the same under another name",
                place,
                remedy=f'write type: "{twin}"; the weights fit',
            )
            return
        if kind in ADDED:
            self.found.add(
                "unknown-layer-type",
                f"{self.tree} has no layer {kind} yet",
                place,
                why="caffeup puts it into a tree.",
                remedy="put it in and build",
                commands=(f"caffeup up {self.tree}",),
            )
            return
        if kind in self.known.layers and kind not in self.schema.layers:
            self._elsewhere(kind, self.known.layers[kind], place)
            return
        if kind in V1_TYPES:
            advice = f'{V1_TYPES[kind]} is the name of {kind} in layer {{ }}: type: "{V1_TYPES[kind]}"'
        elif near := self._near(kind, self.schema.layers):
            advice = f"{near} is meant?"
        else:
            advice = (
                "its tree is the one that the file's author names; DepthwiseConvolution is added to a tree by caffeup up TREE"
            )
        here = f"{self.tree} has" if self.tree else "No tree that caffeup knows has"
        self.found.add(
            "unknown-layer-type", f"{here} {'no' if self.tree else 'a'} layer of the type {shown}", place, remedy=advice
        )

    def trees(self, layers: Iterable[Layer]) -> tuple[str, ...]:
        """Known trees that have every field and layer that the file uses."""
        left = list(self.known.trees)
        for use in self.uses.values():
            home = self.known.field(use.message, use.field.name)
            if home is not None and home.trees and len(home.trees) < len(self.known.trees):
                left = [tree for tree in left if tree in home.trees]
        for layer in layers:
            if not layer.v1 and layer.type in self.known.layers:
                left = [tree for tree in left if tree in self.known.layers[layer.type]]
        return tuple(left)

    def needs(self, layers: Iterable[Layer]) -> None:
        """Say which tree it needs, where that is not every one."""
        layers = list(layers)
        trees = self.trees(layers)
        first = self.known.trees[:1]
        if not first or first[0] in trees:
            return
        places: dict[str, int] = {}
        for use in self.uses.values():
            if first[0] not in (use.type.trees or first):
                places.setdefault(use.field.name, use.field.start)
        for layer in layers:
            if layer.type in self.known.layers and first[0] not in self.known.layers[layer.type]:
                scalar = layer.block.scalar("type")
                places.setdefault(layer.type, scalar.start if scalar else layer.start)
        if not places:
            return
        names = sorted(places, key=lambda name: (name[:1].islower(), places[name]))
        if trees:
            title = f"this net needs the {trees[0]} tree" + (f" (or {', '.join(trees[1:])})" if trees[1:] else "")
            advice = f"build the {trees[0]} tree"
        else:
            title = "no tree that caffeup knows has all that this net uses"
            advice = "take the tree that the file's author names"
        self.found.add(
            "net-needs-tree",
            title,
            places[names[0]],
            why=f"{first[0]} has no {_listed(names)}.",
            remedy=advice,
            commands=tuple(self.known.commands[tree] for tree in trees[:1]),
            severity=Severity.NOTE,
        )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 6} more" if len(names) > 7 else ""
    return ", ".join(names[: 6 if more else 7]) + more


def _wanted(kind: str, schema: Schema) -> str:
    if kind in schema.enums:
        return "a word"
    if kind in {"string", "bytes"}:
        return "a string in quotes"
    if kind == "bool":
        return "true or false"
    return "a number" if kind in {"float", "double"} else "a whole number"


def _scalar_problem(value: Scalar, kind: str) -> str | None:
    """Nothing where the value is of the kind; more about it, or an empty text, where it is not."""
    if kind in {"string", "bytes"}:
        return None if value.kind == "string" else ""
    if kind == "bool":
        return None if value.kind != "string" and value.text in _BOOLS else ""
    number = value.number()
    if number is None:
        return ""
    if kind in {"float", "double"}:
        return None
    if not isinstance(number, int):
        return ""
    least = 0 if kind.startswith(("uint", "fixed")) else -(2 ** (63 if "64" in kind else 31))
    most = 2 ** ((64 if least == 0 else 63) if "64" in kind else (32 if least == 0 else 31))
    return None if least <= number < most else f" (it is out of the range of {kind})"
