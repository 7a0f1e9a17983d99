"""VGG-SSD: the sixteen layers of VGG made convolutional, and six sources of boxes, or seven for large images."""

from __future__ import annotations

from collections.abc import Iterator

from caffeup.net.make.detector import Order, Source, Style, beginning, ending, fillers, heads, learned
from caffeup.net.make.spelling import Bare, Fields, Value, layer

STYLE = Style(kernel=3, filler="xavier", mean=(104.0, 117.0, 123.0), scale=None, clip=False, location_rate=1.0)
LEAST = 257
"""Smaller images leave nothing for the last layers."""
LARGE = 400
"""From here on it has a seventh source, as the well-known net for images of 512."""
_BLOCKS = ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))
"""Convolutions and channels of each block of VGG."""
_NORM = "conv4_3_norm"
_NORM_SCALE = 20.0


def vgg_ssd(order: Order) -> Fields:
    """The whole net."""
    normed = layer(_NORM, "Normalize", ["conv4_3"], [_NORM], ("norm_param", _norm()))
    body = [*_vgg(order), *_extras(order)]
    return [("name", "VGG-SSD"), *beginning(order, STYLE), *body, normed, *heads(order, STYLE, sources(order)), *ending(order)]


def _norm() -> Fields:
    filler: Fields = [("type", "constant"), ("value", _NORM_SCALE)]
    return [("across_spatial", False), ("scale_filler", filler), ("channel_shared", False)]


def sources(order: Order) -> tuple[Source, ...]:
    """Where boxes come from, how large they are, and how far apart."""
    large = order.size >= LARGE
    first, least, step = (7, 15, 15) if large else (10, 20, 17)
    blobs = (_NORM, "fc7", *(f"conv{number}_2" for number in range(6, 11 if large else 10)))
    percents = [first, *(least + step * index for index in range(len(blobs)))]
    few = {0, len(blobs) - 1, len(blobs) - 2}
    maps = _maps(order)
    return tuple(
        Source(
            blob,
            round(order.size * percents[index] / 100, 2),
            round(order.size * percents[index + 1] / 100, 2),
            (2.0,) if index in few else (2.0, 3.0),
            float(8 << index) if index < 4 else round(order.size / max(1, maps[index]), 2),
        )
        for index, blob in enumerate(blobs)
    )


def _maps(order: Order) -> list[int]:
    """Sides of the sources."""
    side = order.size
    for _ in range(3):
        side = -(-side // 2)
    sides = [side]
    for _ in range(3):
        side = -(-side // 2)
        sides.append(side)
    if order.size >= LARGE:
        sides += [-(-side // 2), -(-side // 4)]
        return [*sides, max(1, sides[-1] + 2 - 4 + 1)]
    return [*sides, side - 2, side - 4]


def _convolution(
    order: Order,
    name: str,
    bottom: str,
    many: int,
    *,
    relu: str,
    kernel: int = 3,
    pad: int = 1,
    stride: int = 1,
    dilation: int = 1,
) -> Iterator[tuple[str, Value]]:
    settings: Fields = [
        ("num_output", many),
        *([("pad", pad)] if pad else []),
        ("kernel_size", kernel),
        *([("stride", stride)] if stride > 1 else []),
        *fillers("xavier"),
        *([("dilation", dilation)] if dilation > 1 else []),
    ]
    yield layer(name, "Convolution", [bottom], [name], *learned(order), ("convolution_param", settings))
    yield layer(relu, "ReLU", [name], [name])


def _vgg(order: Order) -> Iterator[tuple[str, Value]]:
    before = "data"
    for block, (many, channels) in enumerate(_BLOCKS, 1):
        for number in range(1, many + 1):
            yield from _convolution(order, f"conv{block}_{number}", before, channels, relu=f"relu{block}_{number}")
            before = f"conv{block}_{number}"
        last = block == len(_BLOCKS)
        window: Fields = [("kernel_size", 3), ("stride", 1), ("pad", 1)] if last else [("kernel_size", 2), ("stride", 2)]
        yield layer(f"pool{block}", "Pooling", [before], [f"pool{block}"], ("pooling_param", [("pool", Bare("MAX")), *window]))
        before = f"pool{block}"
    yield from _convolution(order, "fc6", before, 1024, relu="relu6", pad=6, dilation=6)
    yield from _convolution(order, "fc7", "fc6", 1024, relu="relu7", kernel=1, pad=0)


def _extras(order: Order) -> Iterator[tuple[str, Value]]:
    large, before = order.size >= LARGE, "fc7"
    for number, (narrow, wider) in enumerate(((256, 512), *[(128, 256)] * (4 if large else 3)), 6):
        first, second = f"conv{number}_1", f"conv{number}_2"
        yield from _convolution(order, first, before, narrow, relu=f"{first}_relu", kernel=1, pad=0)
        halves = number < 8 or (large and number < 10)
        kernel, pad, stride = (3, 1, 2) if halves else (4, 1, 1) if large else (3, 0, 1)
        yield from _convolution(order, second, first, wider, relu=f"{second}_relu", kernel=kernel, pad=pad, stride=stride)
        before = second
