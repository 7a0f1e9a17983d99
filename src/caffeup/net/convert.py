"""Depthwise convolutions to the depthwise layer and back; everything else in the file stays byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Optional

import msgspec

from caffeup.errors import UsageError
from caffeup.model.net import NetChange
from caffeup.net import marks
from caffeup.net.depthwise import TYPES, Depthwise, grouped
from caffeup.net.marks import Edit
from caffeup.net.model import Layer, Net
from caffeup.net.rules.base import Datum, Shape
from caffeup.net.text import Document, Field, Scalar
from caffeup.net.v1 import downgraded, upgraded

DEPTHWISE = "DepthwiseConvolution"
ENGINES = {"caffe": "CAFFE", "cudnn": "CUDNN", "default": "DEFAULT"}


class Rewritten(msgspec.Struct, frozen=True, kw_only=True):
    """A net as it is to be written, and what changed in it."""

    data: bytes
    changes: tuple[NetChange, ...] = ()
    left: tuple[NetChange, ...] = ()
    """Layers that were looked at and left, with the reason."""


def convert(
    net: Net, *, names: bool = False, given: Optional[Mapping[str, Shape]] = None, data: Optional[Mapping[str, Datum]] = None
) -> Rewritten:
    """Every depthwise Convolution becomes a DepthwiseConvolution, and its engine is commented out."""
    document, left = net.document, _already(net)
    edits: list[Edit] = []
    changes: list[NetChange] = []
    for one in grouped(net, names=names, given=given, data=data):
        problem = one.because or _unwritable(document, one.layer)
        if problem:
            left.append(_change(document, one.layer, problem))
            continue
        edits += _to_depthwise(document, one, changes)
    if net.v1 and edits:
        edits += upgraded(net, changes, taken={edit[0] for edit in edits})
    return Rewritten(data=document.edited(edits), changes=tuple(changes), left=tuple(left))


def _to_depthwise(document: Document, one: Depthwise, changes: list[NetChange]) -> list[Edit]:
    kind = _scalar(one.layer, "type")
    quote = kind.text[0] if kind.kind == "string" else '"'
    edits = [marks.replaced(document, kind.start, kind.end, f"{quote}{DEPTHWISE}{quote}")]
    changes.append(_change(document, one.layer, f"type {kind.value} → {DEPTHWISE}", kind.start))
    for field in _engines(one.layer):
        edits.append(marks.commented_out(document, field))
        changes.append(_change(document, one.layer, f"engine: {_word(field)} commented out", field.start))
    return edits


def switch_engine(
    net: Net,
    engine: str,
    *,
    names: bool = False,
    given: Optional[Mapping[str, Shape]] = None,
    data: Optional[Mapping[str, Datum]] = None,
) -> Rewritten:
    """The engine of every depthwise Convolution; their type stays."""
    document, left, wanted = net.document, _already(net), ENGINES[engine]
    edits: list[Edit] = []
    changes: list[NetChange] = []
    for one in grouped(net, names=names, given=given, data=data):
        problem = one.because or _unwritable(document, one.layer)
        if problem:
            left.append(_change(document, one.layer, problem))
            continue
        edits += _with_engine(document, one.layer, wanted, changes)
    return Rewritten(data=document.edited(edits), changes=tuple(changes), left=tuple(left))


def _with_engine(document: Document, layer: Layer, wanted: str, changes: list[NetChange]) -> list[Edit]:
    present = _engines(layer)
    if wanted == "DEFAULT":
        changes += [_change(document, layer, f"engine: {_word(field)} commented out", field.start) for field in present]
        return [marks.commented_out(document, field) for field in present]
    if not present:
        last = layer.block.block("convolution_param").fields[-1]
        changes.append(_change(document, layer, f"engine: {wanted} added", last.start))
        return [marks.added_behind(document, last, f"engine: {wanted}")]
    edits = []
    for field in present:
        value = field.value
        if isinstance(value, Scalar) and value.value not in {wanted, _NUMBERS[wanted]}:
            edits.append(marks.replaced(document, value.start, value.end, wanted))
            changes.append(_change(document, layer, f"engine: {value.value} → {wanted}", field.start))
    return edits


_NUMBERS = {"CAFFE": "1", "CUDNN": "2"}
"""An enum may also be written as its number."""


def revert(document: Document) -> Rewritten:
    """Take back what convert did, and nothing else; where nobody changed the file since, it is the one from before."""
    undone = list(marks.undoing(document))
    edits = [edit for undo in undone for edit in undo.edits]
    if any(document.data.startswith(marks.LAYERS.encode(), undo.start) for undo in undone):
        edits += downgraded(document, taken={edit[0] for edit in edits})
    changes: list[NetChange] = []
    left: list[NetChange] = []
    for undo in undone:
        (changes if undo.edits else left).append(NetChange(line=document.position(undo.start)[0], what=undo.what))
    try:
        data = document.edited(edits)
    except ValueError as error:
        raise UsageError(
            f"{document.name} was changed in the lines that caffeup marked, and cannot be taken back.",
            advice="Take the file from before, or edit these lines by hand.",
        ) from error
    return Rewritten(data=data, changes=tuple(changes), left=tuple(left))


def _engines(layer: Layer) -> list[Field]:
    return layer.block.block("convolution_param").all("engine")


def _word(field: Field) -> str:
    return field.value.value if isinstance(field.value, Scalar) else "…"


def _scalar(layer: Layer, name: str) -> Scalar:
    found = layer.block.scalar(name)
    assert found is not None  # noqa: S101  # the layer has a type, or it would be no Convolution
    return found


def _unwritable(document: Document, layer: Layer) -> str:
    """Why the layer cannot be edited: no net that anybody writes."""
    if len(layer.block.all("type")) != 1 or len(layer.block.all("convolution_param")) != 1:
        return "its type or its convolution_param stands twice"
    if not all(marks.takes_edit(document, field.start, field.end) for field in _engines(layer)):
        return "its engine is spread over several lines"
    kind = _scalar(layer, "type")
    if not re.fullmatch(r"\"\w+\"|'\w+'|\w+", kind.text):
        return "its type is written with escapes or in pieces"
    return ""


def _already(net: Net) -> list[NetChange]:
    return [_change(net.document, layer, f"it is a {layer.type} already") for layer in net.layers if layer.type in TYPES]


def _change(document: Document, layer: Layer, what: str, place: Optional[int] = None) -> NetChange:
    return NetChange(line=document.position(layer.start if place is None else place)[0], layer=layer.name, what=what)


def named(changes: Iterable[NetChange]) -> list[str]:
    """The layers of some changes, each once."""
    return list(dict.fromkeys(change.layer for change in changes if change.layer))
