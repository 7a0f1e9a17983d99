"""Shapes of all blobs and weights of a net, from its prototxt alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Optional

import msgspec

from caffeup.net.model import LOSSES, Layer
from caffeup.net.rules.base import LARGEST, Case, Datum, Out, Shape, Untold, Wrong, count
from caffeup.net.rules.table import rule_for


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Why a layer's shapes are not known."""

    what: str
    wrong: bool
    """Whether Caffe stops here; otherwise it is only from here that it cannot be told."""
    field: str = ""
    """The field to blame, where there is one."""


class LayerShapes(msgspec.Struct, frozen=True, kw_only=True):
    """One layer's blobs; ``None`` where a shape cannot be told."""

    layer: Layer
    bottoms: tuple[Optional[Shape], ...] = ()
    tops: tuple[Optional[Shape], ...] = ()
    params: tuple[Shape, ...] = ()
    assumed: str = ""
    """What was taken for granted, since it stands in the data."""
    trouble: Optional[Trouble] = None
    """Its own; a layer behind one with trouble has none."""


def infer(
    layers: Iterable[Layer],
    *,
    phase: str = "TEST",
    given: Optional[Mapping[str, Shape]] = None,
    data: Optional[Mapping[str, Datum]] = None,
) -> tuple[LayerShapes, ...]:
    """Shapes of each layer, in the order given (``model.as_run``).

    ``given``: shapes of blobs by name, which win over what a rule says. ``data``: the first entry of a source, by its
    path in the prototxt.
    """
    blobs: dict[str, Optional[Shape]] = {}
    result = []
    for layer in layers:
        one = _of_layer(layer, tuple(blobs.get(name) for name in layer.bottoms), phase, given or {}, data or {})
        blobs.update(zip(layer.tops, one.tops))
        result.append(one)
    return tuple(result)


def blobs_of(shapes: Sequence[LayerShapes]) -> dict[str, Optional[Shape]]:
    """Each blob's shape at the end of the net."""
    return {name: shape for one in shapes for name, shape in zip(one.layer.tops, one.tops)}


def _of_layer(
    layer: Layer, bottoms: tuple[Optional[Shape], ...], phase: str, given: Mapping[str, Shape], data: Mapping[str, Datum]
) -> LayerShapes:
    out, trouble = Out(), None
    known = tuple(shape for shape in bottoms if shape is not None)
    rule = rule_for(layer.type)
    if rule is None:
        trouble = Trouble(what=f"what {layer.type or 'a layer without a type'} makes is not known", wrong=False)
    elif len(known) == len(bottoms):
        try:
            out = _checked(layer, rule(Case(layer=layer, bottoms=known, phase=phase, datum=data.get(source_of(layer)))))
        except Wrong as error:
            trouble = Trouble(what=error.what, wrong=True, field=error.field)
        except Untold as error:
            trouble = Trouble(what=error.what, wrong=False)
    tops: list[Optional[Shape]] = [*out.tops, *[None] * (len(layer.tops) - len(out.tops))]
    tops = [given.get(name, shape) for name, shape in zip(layer.tops, tops)]
    if trouble and not trouble.wrong and tops and None not in tops:
        trouble = None
    return LayerShapes(layer=layer, bottoms=bottoms, tops=tuple(tops), params=out.params, assumed=out.assumed, trouble=trouble)


def _checked(layer: Layer, out: Out) -> Out:
    if len(out.tops) < len(layer.tops):
        raise Wrong(f"it makes {len(out.tops)} top{'s' if len(out.tops) != 1 else ''}, not {len(layer.tops)}", "top")
    weights = len(layer.loss_weights) or int(layer.type in LOSSES)
    if weights and weights != len(layer.tops):
        raise Wrong(f"it has {len(layer.tops)} tops, and a loss_weight is given for {weights}", "loss_weight")
    for shape in (*out.tops, *out.params):
        if count(shape) > LARGEST:
            raise Wrong("a blob has more than 2147483647 elements, which Caffe cannot count")
    return out


def source_of(layer: Layer) -> str:
    """The path of a data layer's source."""
    for name in ("data_param", "image_data_param", "window_data_param", "hdf5_data_param"):
        if layer.block.has(name):
            return layer.block.block(name).string("source")
    return ""
