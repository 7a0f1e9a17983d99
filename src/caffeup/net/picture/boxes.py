"""Layers that belong together as one box: a convolution with its normalisation and activation, a head with its reshaping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Optional

import msgspec

from caffeup.net.model import Layer
from caffeup.net.rules.base import Shape, text
from caffeup.net.text import printable

_JOINING = frozenset(
    {
        *("AbsVal", "BN", "BNLL", "BatchNorm", "Bias", "Clip", "Dropout", "ELU", "Exp", "Flatten", "HardSigmoid", "HardSwish"),
        *("LRN", "Log", "Mish", "Normalize", "PReLU", "Permute", "Power", "ReLU", "ReLU6", "Reshape", "Scale", "Sigmoid"),
        *("ShuffleChannel", "Softmax", "Swish", "TanH", "Threshold"),
    }
)
"""Types that are drawn in the box of the layer before them, where nobody else reads in between."""
_KINDS = {
    **dict.fromkeys(("AnnotatedData", "Data", "DummyData", "HDF5Data", "ImageData", "Input", "MemoryData", "WindowData"), "data"),
    **dict.fromkeys(("ConvolutionDepthwise", "DepthwiseConvolution"), "depthwise"),
    **dict.fromkeys(("Convolution", "Deconvolution", "Im2col"), "convolution"),
    **dict.fromkeys(("Embed", "InnerProduct", "LSTM", "RNN"), "product"),
    **dict.fromkeys(("Pooling", "SPP"), "pooling"),
    **dict.fromkeys(("Concat", "Crop", "Eltwise", "Slice", "Tile"), "joining"),
    **dict.fromkeys(("Accuracy", "DetectionEvaluate", "DetectionOutput"), "result"),
    "PriorBox": "prior",
}
_SIZES_ONLY = 1
"""The bottom of a PriorBox of which only the size is read: drawn, it would cross everything."""


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """One box."""

    name: str
    lines: tuple[str, ...]
    kind: str
    about: str
    """All of it, for a tooltip."""


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """Boxes, in the order of the net, and which is read by which."""

    boxes: tuple[Box, ...]
    edges: tuple[tuple[int, int], ...]


def picture(layers: Sequence[Layer], shapes: Mapping[str, Optional[Shape]]) -> Picture:
    """The boxes of a net in one phase; ``shapes`` of its blobs."""
    read, readers = _connections(layers)
    home: list[int] = []
    members: list[list[Layer]] = []
    for number, layer in enumerate(layers):
        makers = read[number]
        if layer.type in _JOINING and len(makers) == 1 and readers[makers[0]] == 1 and _last_of(members, home, makers[0], layers):
            home.append(home[makers[0]])
            members[home[-1]].append(layer)
        else:
            home.append(len(members))
            members.append([layer])
    edges = {
        (home[maker], home[number]): None for number, makers in enumerate(read) for maker in makers if home[maker] != home[number]
    }
    return Picture(boxes=tuple(_box(some, shapes) for some in members), edges=tuple(edges))


def _last_of(members: Sequence[Sequence[Layer]], home: Sequence[int], maker: int, layers: Sequence[Layer]) -> bool:
    return members[home[maker]][-1] is layers[maker]


def _connections(layers: Sequence[Layer]) -> tuple[list[list[int]], list[int]]:
    """Whom each layer reads, and how many read it."""
    makers: dict[str, int] = {}
    read: list[list[int]] = []
    readers = [0] * len(layers)
    for number, layer in enumerate(layers):
        names = layer.bottoms[:_SIZES_ONLY] if layer.type == "PriorBox" else layer.bottoms
        read.append(list(dict.fromkeys(makers[name] for name in names if name in makers)))
        for maker in read[-1]:
            readers[maker] += 1
        makers.update(dict.fromkeys(layer.tops, number))
    return read, readers


def _box(some: Sequence[Layer], shapes: Mapping[str, Optional[Shape]]) -> Box:
    first = some[0]
    more = " · ".join(layer.type for layer in some[1:])
    tops = [shapes.get(top) for top in some[-1].tops]
    sizes = ", ".join(text(shape) if shape is not None else "?" for shape in tops[:3])
    kind = "loss" if first.type.endswith("Loss") else _KINDS.get(first.type, "other")
    group = first.block.block("convolution_param").integer("group", 1)
    if kind == "convolution" and group > 1 and group == first.block.block("convolution_param").integer("num_output"):
        kind = "depthwise"
    lines = [_settings(first), *([more] if more else []), *([sizes] if sizes else [])]
    about = [f"{layer.name} ({layer.type}): {', '.join(layer.bottoms)} → {', '.join(layer.tops)}" for layer in some]
    return Box(
        name=printable(first.name or "?", 60),
        lines=tuple(printable(line, 60) for line in lines),
        kind=kind,
        about="\n".join(printable(line, 200) for line in about),
    )


def _settings(layer: Layer) -> str:
    """The type, with what says most."""
    block = layer.block.block("convolution_param")
    words = [layer.type or "?"]
    if layer.block.has("pooling_param"):
        block = layer.block.block("pooling_param")
        words = [f"{block.string('pool', 'MAX').lower()} pooling"]
        if block.flag("global_pooling"):
            return f"{words[0]}, global"
    kernel = block.integers("kernel_size") or [block.integer(f"kernel_{axis}") for axis in "hw" if block.has(f"kernel_{axis}")]
    if kernel:
        words.append("x".join(map(str, kernel * 2 if len(kernel) == 1 else kernel)))
    words += [
        f"{short}{block.integer(name)}"
        for name, short in (("stride", "/"), ("group", "g"), ("dilation", "d"))
        if block.integer(name, 1) > 1
    ]
    if layer.block.has("eltwise_param"):
        words.append(layer.block.block("eltwise_param").string("operation", "SUM").lower())
    return " ".join(words)
