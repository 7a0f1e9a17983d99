"""How the layers of a net are connected, and whether they fit: what Caffe refuses when it sets a net up."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from caffeup.model.finding import Severity
from caffeup.net.classes import PARAMS, Makers, mismatch
from caffeup.net.findings import Findings
from caffeup.net.model import DATA, INPUTS, Layer, Net, State, filtered
from caffeup.net.rules.base import text
from caffeup.net.shapes import LayerShapes, Trouble
from caffeup.net.text import Block, Scalar, printable


def phases(net: Net) -> tuple[State, ...]:
    """The states worth looking at: both phases where they differ, and only those in which the net has data."""
    states = [net.state(phase) for phase in ("TRAIN", "TEST")]
    layers = [filtered(net, state) for state in states]
    if set(map(id, layers[0])) <= set(map(id, layers[1])):
        return (states[1],)
    fed = [state for state, some in zip(states, layers) if net.inputs or any(not layer.bottoms and layer.tops for layer in some)]
    return tuple(fed or states)


def check_rules(net: Net, found: Findings) -> None:
    """``include`` beside ``exclude``."""
    for layer in net.layers:
        if layer.block.has("include") and layer.block.has("exclude"):
            found.add(
                "rules-of-both-kinds",
                f"the layer {printable(layer.name)} has include and exclude rules, which Caffe refuses",
                layer.start,
                remedy="keep one kind",
            )


def check_blobs(net: Net, state: State, found: Findings) -> bool:
    """Bottoms that nobody makes, tops that are made twice; whether all is well."""
    layers = filtered(net, state)
    makers = _first_makers(net.layers), _first_makers(layers)
    made: dict[str, Layer] = dict.fromkeys(net.inputs, Layer(name="input", type="Input", block=Block(0), start=0))
    names: dict[str, Layer] = {}
    well = True
    for layer in layers:
        for name in layer.bottoms:
            if name not in made:
                well = False
                advice = _meant(name, state, made, makers, found)
                reader = f"that the layer {printable(layer.name)} reads (phase {state.phase})"
                title = f"no layer makes the blob {printable(name)} {reader}"
                found.add("unknown-bottom-blob", title, _place(layer, "bottom", name), remedy=advice)
        for index, name in enumerate(layer.tops):
            in_place = layer.bottoms[index : index + 1] == (name,)
            if name in made and not in_place:
                well = False
                _made_twice(layer, index, made[name], found)
            made[name] = layer
        if layer.name and layer.name in names:
            _same_name(layer, found)
        names[layer.name] = layer
    return well


def _first_makers(layers: Iterable[Layer]) -> dict[str, Layer]:
    makers: dict[str, Layer] = {}
    for layer in layers:
        for name in layer.tops:
            makers.setdefault(name, layer)
    return makers


def _meant(
    name: str, state: State, made: dict[str, Layer], makers: tuple[dict[str, Layer], dict[str, Layer]], found: Findings
) -> str:
    """What mends a bottom that nobody makes before it is read."""
    anywhere, here = makers
    if name in here:
        return f"put the layer {printable(here[name].name)}, which makes it, before this one"
    if name in anywhere:
        maker = printable(anywhere[name].name)
        return f"the layer {maker} makes it, but not in the phase {state.phase}: look at its include rules"
    near = [] if found.crowded else difflib.get_close_matches(name, made, 1, 0.75)
    return f"{printable(near[0])} is meant?" if near else "compare the layer's bottom with the tops of the layers above it"


def _made_twice(layer: Layer, index: int, first: Layer, found: Findings) -> None:
    name = layer.tops[index]
    found.add(
        "blob-made-twice",
        f"the blob {printable(name)} is made by {printable(first.name)} and again by {printable(layer.name)}",
        _place(layer, "top", name),
        why="Two layers may have one top only where the second works in place: its bottom of the same number has that name.",
        remedy="give it another name, or make the layer's bottom and top the same",
    )


def _same_name(layer: Layer, found: Findings) -> None:
    found.add(
        "layer-name-twice",
        f"two layers are called {printable(layer.name)}",
        _place(layer, "name", layer.name),
        why="Weights are found by the layer's name: both would be given the same ones, or loading fails.",
        remedy="give one of them another name",
        severity=Severity.WARNING,
    )


def check_shapes(shapes: tuple[LayerShapes, ...], found: Findings) -> None:
    """What does not fit."""
    ends = [one for one in shapes if one.layer.type in PARAMS]
    makers = Makers(shapes if ends else ())
    told = {number for one in ends for number in _classes(one, makers, found)}
    for one in shapes:
        if one.trouble is None or not one.trouble.wrong or id(one) in told:
            continue
        trouble, layer = one.trouble, one.layer
        kind = {"batch_size": "batch-zero", "num_classes": "ssd-class-count"}.get(trouble.field, "shapes-do-not-fit")
        found.add(
            kind,
            f"the layer {printable(layer.name)} ({printable(layer.type)}) cannot be set up: {trouble.what}",
            _blamed(layer, trouble),
            why=_bottoms(one),
            remedy="correct this layer, or those above it",
        )


def check_inputs(shapes: tuple[LayerShapes, ...], found: Findings) -> None:
    """Inputs with a dimension of 0."""
    for one in shapes:
        if one.layer.type in INPUTS | DATA and any(shape is not None and 0 in shape for shape in one.tops):
            found.add(
                "batch-zero",
                f"an input has a dimension of 0: {', '.join(text(shape) for shape in one.tops if shape is not None)}",
                one.layer.start,
                remedy="write a batch of 1 or more",
            )


def _bottoms(one: LayerShapes) -> str:
    known = [f"{printable(name)} is {text(shape)}" for name, shape in zip(one.layer.bottoms, one.bottoms) if shape is not None]
    return f"{', '.join(known[:4])}." if known else ""


def _blamed(layer: Layer, trouble: Trouble) -> int:
    """The place of the field that is to blame; the layer's where it is not there."""
    if layer.block.has(trouble.field):
        return layer.block.all(trouble.field)[0].start
    for field in layer.block.fields:
        if isinstance(field.value, Block) and field.value.has(trouble.field):
            return field.value.all(trouble.field)[0].start
    return layer.start


def _place(layer: Layer, field: str, value: str) -> int:
    for one in layer.block.all(field):
        if isinstance(one.value, Scalar) and one.value.value == value:
            return one.value.start
    return layer.start


def _classes(one: LayerShapes, makers: Makers, found: Findings) -> set[int]:
    """Tell where the number of classes differs; the layers in which nothing more need be told."""
    wrong = mismatch(one, makers)
    if wrong is None:
        return set()
    field = one.layer.block.block(PARAMS[one.layer.type]).field("num_classes")
    name = printable(one.layer.name)
    for place in (field.start if field else one.layer.start, *wrong.places):
        found.add(
            "ssd-class-count",
            f"the number of classes is not the same in the whole net: {name} has {wrong.classes}, other layers do not",
            place,
            why="It counts the background. A head has as many outputs as priors at a place times classes.",
            remedy="make these agree: num_output of each conf layer, the dim of the reshape behind them, and num_classes of "
            "loss, detection_out and detection_eval",
        )
    return {id(layer) for layer in wrong.through}


def outputs(layers: Iterable[Layer]) -> list[str]:
    """Blobs that no layer reads."""
    last: dict[str, None] = {}
    for layer in layers:
        for name in layer.bottoms:
            last.pop(name, None)
        last.update(dict.fromkeys(layer.tops))
    return list(last)
