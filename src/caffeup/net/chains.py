"""Which normalisations of a net can be folded into the layer before them, and why the others cannot: from the prototxt alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from caffeup.net.depthwise import states
from caffeup.net.model import Layer, Net, State, filtered

PARAMS = {
    "Convolution": "convolution_param",
    "ConvolutionDepthwise": "convolution_param",
    "Deconvolution": "convolution_param",
    "DepthwiseConvolution": "convolution_param",
    "InnerProduct": "inner_product_param",
}
"""Layers with weights that can take a factor and a summand for each channel, and where their settings stand."""
AFFINE = frozenset({"BatchNorm", "BN", "Bias", "Scale"})
"""Layers that are nothing but a factor and a summand for each channel, once a net is trained."""


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """A layer and what follows it and can be folded into it."""

    root: Layer
    steps: tuple[Layer, ...]

    @property
    def top(self) -> str:
        """The blob that comes out of the whole."""
        return self.steps[-1].tops[0]


class Chains(msgspec.Struct, frozen=True, kw_only=True):
    """All of a net."""

    chains: tuple[Chain, ...]
    left: tuple[tuple[Layer, str], ...]
    """Layers that stay, and why."""


def find_chains(net: Net) -> Chains:
    """Look at the net in each of its phases: a layer can go only where it can in all of them."""
    roots: dict[int, Layer] = {}
    reasons: dict[int, str] = {}
    for state in states(net):
        for layer, root, why in _looked_at(net, state):
            if why:
                reasons.setdefault(layer.start, why)
            elif roots.setdefault(layer.start, root).start != root.start:
                reasons.setdefault(layer.start, "it follows another layer in another phase")
    affine = [layer for layer in net.layers if layer.type in AFFINE]
    chains = []
    for root in {each.start: each for each in roots.values()}.values():
        steps = [layer for layer in affine if layer.start in roots and roots[layer.start].start == root.start]
        _stop_at_first(steps, reasons, _phases_of(net, root), net)
        going = tuple(layer for layer in steps if layer.start not in reasons)
        if going:
            chains.append(Chain(root=root, steps=going))
    left = tuple((layer, reasons[layer.start]) for layer in affine if layer.start in reasons)
    return Chains(chains=tuple(chains), left=left)


def _stop_at_first(steps: Sequence[Layer], reasons: dict[int, str], phases: tuple[State, ...], net: Net) -> None:
    """What stands behind a layer that stays has to stay too."""
    for number, layer in enumerate(steps):
        if layer.start not in reasons and _phases_of(net, layer) != phases:
            reasons[layer.start] = "it is in some phases only"
        if layer.start in reasons:
            for later in steps[number + 1 :]:
                reasons.setdefault(later.start, f"{layer.name} before it stays")


def _phases_of(net: Net, wanted: Layer) -> tuple[State, ...]:
    return tuple(state for state in states(net) if any(layer.start == wanted.start for layer in filtered(net, state)))


def _looked_at(net: Net, state: State) -> Iterator[tuple[Layer, Layer, str]]:
    """Each affine layer of a state with the layer that it could be folded into, or with why it cannot."""
    layers = filtered(net, state)
    makers: dict[str, int] = {}
    readers: dict[int, list[Layer]] = {}
    made_by: list[list[int]] = []
    for number, layer in enumerate(layers):
        made_by.append([makers.get(name, -1) for name in layer.bottoms])
        for maker in set(made_by[-1]):
            readers.setdefault(maker, []).append(layer)
        makers.update(dict.fromkeys(layer.tops, number))
    shared = _shared_names(layers)
    roots: dict[int, int] = {}
    for number, layer in enumerate(layers):
        if layer.type not in AFFINE:
            continue
        maker = made_by[number][0] if made_by[number] else -1
        why = _why_not(layer) or _why_not_after(layers, maker, readers.get(maker, []), layer, folded=maker in roots)
        root = roots.get(maker, maker)
        if not why:
            why = _why_no_root(layers[root], shared) or _why_renaming_harms(layers, root, number)
        if not why:
            roots[number] = root
        yield layer, layers[root] if root >= 0 else layer, why


def _why_not(layer: Layer) -> str:
    """What its own settings say against it."""
    if len(layer.bottoms) != 1:
        return "what it multiplies or adds is another blob" if layer.bottoms else "it has no bottom"
    if len(layer.tops) != 1:
        return "it has several tops"
    if any(layer.loss_weights):
        return "its top is a loss"
    if layer.type == "BatchNorm" and not layer.block.block("batch_norm_param").flag("use_global_stats", default=True):
        return "it normalises by what the batch itself holds (use_global_stats: false)"
    if layer.type in {"Bias", "Scale"}:
        block = layer.block.block(f"{layer.type.lower()}_param")
        if block.integer("axis", 1) != 1 or block.integer("num_axes", 1) != 1:
            return "it has more than one number a channel, or along another axis"
    return ""


def _why_not_after(layers: Sequence[Layer], maker: int, readers: Sequence[Layer], layer: Layer, *, folded: bool) -> str:
    """What the layer before it says against it."""
    if maker < 0:
        return "it reads an input of the net"
    before = layers[maker]
    if before.type not in PARAMS and not folded:
        what = "which stays" if before.type in AFFINE else "and no convolution or inner product"
        return f"it follows {before.name} ({before.type}), {what}"
    others = [one.name for one in readers if one is not layer]
    if others:
        return f"{layer.bottoms[0]} is also read by {', '.join(others[:3])}"
    return "its bottom is a loss as well" if any(before.loss_weights) else ""


def _why_no_root(root: Layer, shared: frozenset[str]) -> str:
    """What speaks against changing a layer's weights."""
    block = root.block.block(PARAMS[root.type])
    if len(root.bottoms) != 1 or len(root.tops) != 1:
        return f"{root.name} has several bottoms or tops"
    if block.integer("axis", 1) != 1:
        return f"{root.name} has its channels along another axis"
    if any(param.string("name") in shared for param in root.block.blocks("param")):
        return f"{root.name} shares its weights with another layer"
    if root.v1 and any(name in shared for name in root.block.strings("param")):
        return f"{root.name} shares its weights with another layer"
    if len(root.block.all(PARAMS[root.type])) > 1 or len(root.block.all("top")) != 1:
        return f"{root.name} has settings that stand twice"
    return ""


def _shared_names(layers: Sequence[Layer]) -> frozenset[str]:
    """Names of weights that several layers have."""
    names = [
        name
        for layer in layers
        for name in {*(param.string("name") for param in layer.block.blocks("param")), *layer.block.strings("param")}
    ]
    return frozenset(name for name in names if name and names.count(name) > 1)


def _why_renaming_harms(layers: Sequence[Layer], root: int, last: int) -> str:
    """The blob gets its last name as soon as it is made: nobody in between may mean another blob by it."""
    name = layers[last].tops[0]
    if name == layers[root].tops[0]:
        return ""
    between = layers[root + 1 : last]
    other = next((one for one in between if one.type not in AFFINE and name in (*one.bottoms, *one.tops)), None)
    return f"{other.name} means another blob by {name}" if other is not None else ""
