"""What a net takes: the figure that Caffe itself prints, to the byte, and what it comes to on a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Optional

from caffeup.model.net_model import LayerMemory, PhaseMemory
from caffeup.net.model import DATA, INPUTS, Layer, Net, State, as_run
from caffeup.net.rules.base import Datum, Shape, count, text
from caffeup.net.shapes import LayerShapes, infer
from caffeup.net.workspace import workspace

BYTES = 4
_SHARING = frozenset({"Flatten", "Reshape", "Split"})
"""Layers whose tops are their bottom's bytes."""
_SHARING_DIFFS = frozenset({"Flatten", "Reshape"})
_NO_GRADIENT = frozenset({"Accuracy", "ArgMax", "DetectionEvaluate", "DetectionOutput", "PriorBox", "Silence"})


def shapes_at(
    net: Net,
    state: State,
    *,
    batch: Optional[int] = None,
    given: Optional[Mapping[str, Shape]] = None,
    data: Optional[Mapping[str, Datum]] = None,
) -> tuple[LayerShapes, ...]:
    """The shapes of a net, with another batch than the file says where one is given."""
    layers = as_run(net, state)
    shapes = infer(layers, phase=state.phase, given=given, data=data)
    other = _labels(shapes)
    if batch is not None:
        other.update((name, (batch, *shape[1:])) for name, shape in {**_batches(shapes), **other}.items())
    return infer(layers, phase=state.phase, given={**(given or {}), **other}, data=data) if other else shapes


def _labels(shapes: Sequence[LayerShapes]) -> dict[str, Shape]:
    """Labels of images whose shape a person gave, where it does not stand in the file."""
    found: dict[str, Shape] = {}
    for one in shapes:
        if one.layer.type in DATA and len(one.tops) == 2 and one.tops[0] and one.tops[1] is None:
            found[one.layer.tops[1]] = (1, 1, 1, 8) if one.layer.type == "AnnotatedData" else one.tops[0][:1]
    return found


def batch_of(shapes: Sequence[LayerShapes]) -> int:
    """Images at a time; 0 where no input tells."""
    return next((shape[0] for shape in _batches(shapes).values()), 0)


def _batches(shapes: Sequence[LayerShapes]) -> dict[str, Shape]:
    """The blobs that come from outside and hold something for each image."""
    found: dict[str, Shape] = {}
    for one in shapes:
        if one.layer.bottoms or one.layer.type not in DATA | INPUTS:
            continue
        tops = one.tops[:1] if one.layer.type == "AnnotatedData" else one.tops  # its boxes are of all images together
        for name, shape in zip(one.layer.tops, tops):
            base = next(iter(found.values()), shape)
            if shape and base and shape[0] == base[0]:
                found[name] = shape
    return found


def phase_memory(shapes: Sequence[LayerShapes], state: State, *, force_backward: bool = False, cudnn: bool = True) -> PhaseMemory:
    """All that a net allocates in a phase."""
    learns = state.phase == "TRAIN" or force_backward
    kept = _own_blobs(shapes, _SHARING)
    with_diffs = _backward(shapes, force=force_backward) if learns else frozenset()
    own_diffs = _own_blobs(shapes, _SHARING_DIFFS)
    shared: set[str] = set()
    layers = []
    for number, one in enumerate(shapes):
        sizes = [BYTES * count(top) if top is not None else 0 for top in one.tops]
        layers.append(
            LayerMemory(
                name=one.layer.name,
                type=one.layer.type,
                tops=tuple(text(top) if top is not None else "?" for top in one.tops),
                data=sum(sizes),
                own=sum(size for index, size in enumerate(sizes) if (number, index) in kept),
                diffs=sum(size for index, size in enumerate(sizes) if (number, index) in own_diffs & with_diffs),
                params=BYTES * _new_params(one, shared),
                workspace=workspace(one, state.phase, cudnn=cudnn),
                added=one.layer.added,
            )
        )
    params = sum(layer.params for layer in layers)
    return PhaseMemory(
        phase=state.phase,
        batch=batch_of(shapes),
        caffe_says=sum(layer.data for layer in layers),
        data=sum(layer.own for layer in layers),
        diffs=sum(layer.diffs for layer in layers),
        params=params,
        param_diffs=params if learns else 0,
        workspace=sum(layer.workspace for layer in layers),
        layers=tuple(layers),
        uncounted=tuple(_uncounted(shapes)),
        assumed=tuple(f"{one.layer.name}: {one.assumed}" for one in shapes if one.assumed),
    )


Top = tuple[int, int]
"""A top: the number of its layer, and its number among that layer's tops."""


def _own_blobs(shapes: Sequence[LayerShapes], sharing: frozenset[str]) -> frozenset[Top]:
    """Tops with bytes of their own: not made in place, and by no layer that hands its bottom on."""
    return frozenset(
        (number, index)
        for number, one in enumerate(shapes)
        for index, name in enumerate(one.layer.tops)
        if name not in one.layer.bottoms and one.layer.type not in sharing
    )


def _new_params(one: LayerShapes, shared: set[str]) -> int:
    """Elements of its weights, without those that an earlier layer has under the same name."""
    names = [param.string("name") for param in one.layer.block.blocks("param")] or one.layer.block.strings("param")
    many = 0
    for index, shape in enumerate(one.params):
        name = names[index] if index < len(names) else ""
        many += 0 if name and name in shared else count(shape)
        shared.update({name} - {""})
    return many


def _backward(shapes: Sequence[LayerShapes], *, force: bool) -> frozenset[Top]:
    """Tops to which a gradient comes: weights to be learned lie before them, and a loss behind."""
    makers: dict[str, Top] = {}
    read: list[list[Optional[Top]]] = []
    needing: set[Top] = set()
    for number, one in enumerate(shapes):
        read.append([makers.get(name) for name in one.layer.bottoms])
        learning = force or _learns(one) or any(top in needing for top in read[-1])
        for index, name in enumerate(one.layer.tops):
            makers[name] = (number, index)
            if learning and one.layer.type not in _NO_GRADIENT:
                needing.add((number, index))
    wanted: set[Top] = set()
    for number in range(len(shapes) - 1, -1, -1):
        layer = shapes[number].layer
        tops = [(number, index) for index in range(len(layer.tops))]
        losses = {top for top in tops if layer.loss_weight(top[1])}
        wanted |= losses
        if layer.type not in _NO_GRADIENT and (force or any(top in wanted for top in tops)):
            wanted |= {top for index, top in enumerate(read[number]) if top is not None and _goes_down(layer, index)}
    return frozenset(needing & wanted)


def _goes_down(layer: Layer, bottom: int) -> bool:
    flags = layer.block.strings("propagate_down")
    return bottom >= len(flags) or flags[bottom] in {"true", "True", "t", "1"}


def _learns(one: LayerShapes) -> bool:
    """Whether any of its weights has a rate of learning."""
    if not one.params:
        return False
    block = one.layer.block
    rates = block.numbers("blobs_lr") if one.layer.v1 else [param.number("lr_mult", 1.0) for param in block.blocks("param")]
    return len(rates) < len(one.params) or any(rates)


def _uncounted(shapes: Sequence[LayerShapes]) -> list[str]:
    """Layers whose own trouble keeps a shape from being known."""
    found = [f"{one.layer.name} ({one.layer.type}): {one.trouble.what}" for one in shapes if one.trouble]
    blind = [one.layer for one in shapes if None in one.tops and not one.trouble]
    if blind and not found:
        return [f"{blind[0].name} ({blind[0].type}): no layer makes its bottom"]
    return [*found, *([f"{len(blind)} layers behind {'it' if len(found) == 1 else 'them'}"] if blind else [])]
