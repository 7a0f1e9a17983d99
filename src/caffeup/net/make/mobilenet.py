"""MobileNet-SSD: depthwise and pointwise convolutions, each with its normalisation, and six sources of boxes."""

from __future__ import annotations

from collections.abc import Iterator

from caffeup.net.make.detector import Order, Source, Style, beginning, ending, fillers, heads, learned
from caffeup.net.make.spelling import Fields, Value, layer, several

RATE = 0.1
"""The body learns slower than the heads: it is trained already, on ImageNet."""
STYLE = Style(kernel=1, filler="msra", mean=(127.5, 127.5, 127.5), scale=0.007843, clip=False, location_rate=RATE)
_PAIRS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))
"""Channels of each pair of convolutions, and the stride of its depthwise one."""
_EXTRAS = (256, 512), (128, 256), (128, 256), (64, 128)
"""Channels of the two convolutions of each further stage, of which the second halves the size."""
_SOURCES = ("conv11", "conv13", "conv14_2", "conv15_2", "conv16_2", "conv17_2")
_FIRST, _STEP, _LAST = 0.2, 0.15, 1.0
"""Sizes of boxes, as parts of the image."""


def mobilenet_ssd(order: Order) -> Fields:
    """The whole net."""
    return [
        ("name", "MobileNet-SSD"),
        *beginning(order, STYLE),
        *_body(order),
        *heads(order, STYLE, sources(order)),
        *ending(order),
    ]


def sources(order: Order) -> tuple[Source, ...]:
    """Where boxes come from, and how large they are."""
    sizes = [round(order.size * (_FIRST + _STEP * index), 2) for index in range(len(_SOURCES))]
    larger = [*sizes[1:], float(order.size) * _LAST]
    first, *others = zip(_SOURCES, sizes, larger)
    return (Source(first[0], first[1], None, (2.0,)), *(Source(blob, least, most, (2.0, 3.0)) for blob, least, most in others))


def _body(order: Order) -> Iterator[tuple[str, Value]]:
    yield from _convolution(order, "conv0", "data", 32, kernel=3, stride=2)
    before, channels = "conv0", 32
    for number, (wider, stride) in enumerate(_PAIRS, 1):
        yield from _convolution(order, f"conv{number}/dw", before, channels, kernel=3, stride=stride, group=channels)
        yield from _convolution(order, f"conv{number}", f"conv{number}/dw", wider)
        before, channels = f"conv{number}", wider
    for number, (narrow, wider) in enumerate(_EXTRAS, len(_PAIRS) + 1):
        yield from _convolution(order, f"conv{number}_1", before, narrow)
        yield from _convolution(order, f"conv{number}_2", f"conv{number}_1", wider, kernel=3, stride=2)
        before = f"conv{number}_2"


def _convolution(
    order: Order, name: str, bottom: str, many: int, *, kernel: int = 1, stride: int = 1, group: int = 1
) -> Iterator[tuple[str, Value]]:
    biased = order.merged
    settings: Fields = [
        ("num_output", many),
        *([] if biased else [("bias_term", False)]),
        *([("pad", kernel // 2)] if kernel > 1 else []),
        ("kernel_size", kernel),
        *([("stride", stride)] if stride > 1 else []),
        *([("group", group)] if group > 1 else []),
        *fillers("msra", biased=biased),
    ]
    rates = learned(order, RATE, biased=biased)
    yield layer(name, "Convolution", [bottom], [name], *rates, ("convolution_param", settings))
    if not biased:
        yield from _normalised(order, name)
    yield layer(f"{name}/relu", "ReLU", [name], [name])


def _normalised(order: Order, name: str) -> Iterator[tuple[str, Value]]:
    still: Fields = several("param", [[("lr_mult", 0), ("decay_mult", 0)]] * 3) if order.training else []
    rates: list[Value] = [[("lr_mult", RATE), ("decay_mult", 0.0)], [("lr_mult", 2 * RATE), ("decay_mult", 0.0)]]
    settings: Fields = [("filler", [("value", 1.0)]), ("bias_term", True), ("bias_filler", [("value", 0.0)])]
    yield layer(f"{name}/bn", "BatchNorm", [name], [name], *still)
    learning = several("param", rates) if order.training else []
    yield layer(f"{name}/scale", "Scale", [name], [name], *learning, ("scale_param", settings))
