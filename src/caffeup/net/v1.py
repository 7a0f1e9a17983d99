"""Nets of ``layers { }`` as ``layer { }``, which alone can name a layer type that is no member of the old enum; and back."""

from __future__ import annotations

from typing import NoReturn

from caffeup.errors import UsageError
from caffeup.model.finding import Finding, Remedy, Severity
from caffeup.model.net import NetChange
from caffeup.net.marks import LAYERS, Edit, commented_out, newline_of, replaced
from caffeup.net.model import V1_TYPES, Net
from caffeup.net.text import Block, Document, Field, Scalar

_DATA = ("data_param", "image_data_param", "window_data_param")
_MOVED = ("scale", "mean_file", "crop_size", "mirror")
"""Fields of ``_DATA`` that a new net has in another block."""
_OLD_NAMES = {new: old for old, new in V1_TYPES.items()}


def upgraded(net: Net, changes: list[NetChange], *, taken: set[int]) -> list[Edit]:
    """Edits that make all layers new; at the places ``taken`` there is one already.

    ``UsageError`` where fields would have to move from one block to another.
    """
    document = net.document
    start = 3 if document.data.startswith(b"\xef\xbb\xbf") else 0
    edits: list[Edit] = [(start, start, f"{LAYERS}{newline_of(document)}".encode())]
    for field in document.root.all("layers"):
        if isinstance(field.value, Block):
            edits.append((field.start, field.start + len("layers"), b"layer"))
            edits += _layer(document, field.value, taken)
    changes.append(NetChange(line=1, what="layers { } → layer { }, as the old form has no name for the depthwise layer"))
    return edits


def _layer(document: Document, block: Block, taken: set[int]) -> list[Edit]:
    for name in ("param", "blob_share_mode"):
        if block.has(name):
            _refuse(document, block.all(name)[0])
    for moved in (field for name in _DATA for field in block.block(name).fields if field.name in _MOVED):
        _refuse(document, moved)
    edits: list[Edit] = []
    kind = block.scalar("type")
    if kind is None or kind.value not in _OLD_NAMES.values():
        _refuse(document, block.all("type")[0] if kind else Field("type", block.start, block))
    if kind.start not in taken:
        edits.append((kind.start, kind.end, f'"{V1_TYPES[kind.value]}"'.encode()))
    rates, decays = block.all("blobs_lr"), block.all("weight_decay")
    if len(decays) > len(rates):
        _refuse(document, decays[-1])
    for number, rate in enumerate(rates):
        parts = [f"lr_mult: {_text(rate)}", *[f"decay_mult: {_text(decay)}" for decay in decays[number : number + 1]]]
        if rate.listed or "\n" in document.text[rate.start : rate.end]:
            _refuse(document, rate)
        edits.append(replaced(document, rate.start, rate.end, f"param {{ {' '.join(parts)} }}"))
    for decay in decays:
        if decay.listed or "\n" in document.text[decay.start : decay.end]:
            _refuse(document, decay)
        edits.append(commented_out(document, decay))
    return edits


def _text(field: Field) -> str:
    return field.value.text if isinstance(field.value, Scalar) else ""


def _refuse(document: Document, field: Field) -> NoReturn:
    what = f"its old layers hold {field.name} in a form that new ones have in another block"
    finding = Finding(
        id="layers-need-upgrade",
        severity=Severity.PROBLEM,
        title=what,
        why="The depthwise layer has no name in the old form (layers { }), so all layers must become new ones (layer { }).",
        evidence=(document.evidence(field.start),),
        remedies=(
            Remedy(
                text="let a tree's own tool make new layers of them (it drops comments), and convert what it writes",
                commands=("build/tools/upgrade_net_proto_text OLD NEW",),
            ),
        ),
    )
    raise UsageError(f"{document.name} cannot be converted as it is.", findings=(finding,))


def downgraded(document: Document, *, taken: set[int]) -> list[Edit]:
    """Edits that make all layers old again; at the places ``taken`` there is one already."""
    edits: list[Edit] = []
    for field in document.root.all("layer"):
        edits.append((field.start, field.start + len("layer"), b"layers"))
        kind = field.value.scalar("type") if isinstance(field.value, Block) else None
        if kind is None or kind.start in taken:
            continue
        if kind.value not in _OLD_NAMES:
            raise UsageError(
                f"{document.name} has a layer of type {kind.value} now, which the old form has no name for.",
                details=str(document.evidence(kind.start)),
                advice="Take that layer out first, or keep the new form.",
            )
        edits.append((kind.start, kind.end, _OLD_NAMES[kind.value].encode()))
    return edits
