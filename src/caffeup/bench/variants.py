"""The ways in which the convolutions of a net can be computed as a whole."""

from __future__ import annotations

from collections.abc import Iterable

from caffeup.bench.edits import CONVOLUTION, Choice, Convolutions, chosen, with_batch
from caffeup.errors import UsageError
from caffeup.model.base import Value
from caffeup.model.bench import Told
from caffeup.net.model import Net

AUTO = "CAFFE_AUTO_DEPTHWISE"
"""Of the environment: whether a Convolution without an engine may be computed by caffeup's depthwise layer."""


class Variant(Value, kw_only=True):
    """One way. An engine of ``""`` names none, and the tree chooses."""

    id: str
    title: str
    depthwise_layer: bool = False
    """Whether the depthwise layers are computed by the depthwise layer; otherwise as a Convolution, by ``groups``."""
    groups: str = "CAFFE"
    others: str = "CAFFE"
    as_written: bool = False

    @property
    def cudnn(self) -> bool:
        """Whether it names cuDNN."""
        return not self.as_written and "CUDNN" in (self.others, "" if self.depthwise_layer else self.groups)


ALL = (
    Variant(id="group", title="groups in a loop, engine CAFFE"),
    Variant(id="group-cudnn", title="groups in a loop, others cuDNN", others="CUDNN"),
    Variant(id="cudnn", title="groups and others by cuDNN", groups="CUDNN", others="CUDNN"),
    Variant(id="depthwise", title="depthwise layer, others CAFFE", depthwise_layer=True),
    Variant(id="depthwise-cudnn", title="depthwise layer, others cuDNN", depthwise_layer=True, others="CUDNN"),
    Variant(id="as-built", title="as written, engines by the tree", as_written=True),
)
_BY_ID = {variant.id: variant for variant in ALL}


class Ability(Value, kw_only=True):
    """What a tree and a device can do."""

    cudnn: bool = False
    """Built with cuDNN, and on a GPU."""
    depthwise: str = ""
    """The type of its depthwise layer; empty where it has none."""
    no_cudnn_because: str = ""


def named(ids: Iterable[str]) -> tuple[Variant, ...]:
    """Those that a person names; ``UsageError`` for one that there is not."""
    found = []
    for name in ids:
        if name not in _BY_ID:
            raise UsageError(f"There is no variant {name!r}.", advice=f"There are {', '.join(_BY_ID)}.")
        found.append(_BY_ID[name])
    return tuple(dict.fromkeys(found))


def fitting(wanted: Iterable[Variant], can: Ability, found: Convolutions) -> tuple[tuple[Variant, ...], tuple[Told, ...]]:
    """Those that this tree and net can have, and why not the others."""
    kept, left = [], []
    for variant in wanted:
        why = _why_not(variant, can, found)
        if why:
            left.append(Told(title=variant.id, value=variant.title, because=why))
        else:
            kept.append(variant)
    return tuple(kept), tuple(left)


def _why_not(variant: Variant, can: Ability, found: Convolutions) -> str:
    if variant.cudnn and not can.cudnn:
        return can.no_cudnn_because or "this tree is built without cuDNN"
    if variant.depthwise_layer and not can.depthwise:
        return "this tree has no depthwise layer"
    if not found.depthwise and variant.depthwise_layer:
        return "no convolution of this net is depthwise"
    if not found.depthwise and variant.id == "group-cudnn":
        return "no convolution of this net is depthwise, so it is the same as cudnn"
    return ""


def text_of(net: Net, found: Convolutions, variant: Variant, can: Ability, batch: int) -> bytes:
    """The net of a variant, as a prototxt."""
    edits = with_batch(net, batch)
    if not variant.as_written:
        own = Choice(can.depthwise) if variant.depthwise_layer else Choice(CONVOLUTION, variant.groups)
        choices = {layer.start: own for layer in found.depthwise}
        choices |= {layer.start: Choice(CONVOLUTION, variant.others) for layer in found.others}
        edits += chosen(net, choices)
    return net.document.edited(edits)
