"""Layers that slide a window over an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from caffeup.net.rules.base import Case, Out, Shape, Wrong, axis_of, count, legacy, text
from caffeup.net.text import Block


def convolution(case: Case) -> Out:
    """Convolution, in any number of dimensions."""
    block, axis, channels = _convolved(case)
    many, group = block.integer("num_output"), block.integer("group", 1)
    _check_groups(channels, many, group)
    window = Window(block, len(case.first) - axis - 1)
    tops = tuple((*shape[:axis], many, *window.reduced(shape[axis + 1 :])) for shape in case.bottoms)
    return Out(tops=tops, params=_with_bias(block, (many, channels // group, *window.kernel), many))


def deconvolution(case: Case) -> Out:
    """The transposed convolution."""
    block, axis, channels = _convolved(case)
    many, group = block.integer("num_output"), block.integer("group", 1)
    _check_groups(channels, many, group)
    window = Window(block, len(case.first) - axis - 1)
    tops = tuple((*shape[:axis], many, *window.enlarged(shape[axis + 1 :])) for shape in case.bottoms)
    return Out(tops=tops, params=_with_bias(block, (channels, many // group, *window.kernel), many))


def depthwise(case: Case) -> Out:
    """Convolution of each channel with kernels of its own; group and num_output are those of the channels where missing."""
    block, axis, channels = _convolved(case)
    many, group = block.integer("num_output", channels), block.integer("group", channels)
    if group != channels:
        raise Wrong(f"it needs as many groups as channels, {channels}, and group is {group}", "group")
    _check_groups(channels, many, group)
    window = Window(block, len(case.first) - axis - 1)
    tops = tuple((*shape[:axis], many, *window.reduced(shape[axis + 1 :])) for shape in case.bottoms)
    return Out(tops=tops, params=_with_bias(block, (many, 1, *window.kernel), many))


def im2col(case: Case) -> Out:
    """Each place of the window as a column."""
    case.need(1)
    block = case.layer.block.block("convolution_param")
    axis = axis_of(case.first, block.integer("axis", 1))
    window = Window(block, len(case.first) - axis - 1)
    tops = tuple(
        (*shape[:axis], shape[axis] * count(window.kernel), *window.reduced(shape[axis + 1 :])) for shape in case.bottoms
    )
    return Out(tops=tops)


def _convolved(case: Case) -> tuple[Block, int, int]:
    case.need(1)
    block = case.layer.block.block("convolution_param")
    axis = axis_of(case.first, block.integer("axis", 1))
    if any(shape != case.first for shape in case.bottoms):
        raise Wrong(f"all its bottoms must have the shape of the first, {text(case.first)}", "bottom")
    if len(case.layer.tops) != len(case.bottoms):
        raise Wrong("it has one top for each bottom", "top")
    return block, axis, case.first[axis]


def _check_groups(channels: int, many: int, group: int) -> None:
    if many <= 0:
        raise Wrong("num_output must be positive", "num_output")
    if group <= 0 or channels % group:
        raise Wrong(f"its {channels} input channels are no multiple of group, {group}", "group")
    if many % group:
        raise Wrong(f"num_output, {many}, is no multiple of group, {group}", "num_output")


def _with_bias(block: Block, weights: Shape, many: int) -> tuple[Shape, ...]:
    return (weights, (many,)) if block.flag("bias_term", default=True) else (weights,)


class Window:
    """Kernel, stride, pad and dilation along each spatial axis."""

    def __init__(self, block: Block, axes: int) -> None:
        self.kernel = _sizes(block, "kernel_size", "kernel", axes, None)
        self.stride = _sizes(block, "stride", "stride", axes, 1)
        self.pad = _sizes(block, "pad", "pad", axes, 0)
        self.dilation = _sizes(block, "dilation", "", axes, 1)
        if min(self.kernel, default=1) <= 0:
            raise Wrong("the kernel must be larger than 0", "kernel_size")
        if min(self.stride, default=1) <= 0:
            raise Wrong("the stride must be larger than 0", "stride")

    def _extents(self) -> list[int]:
        return [dilation * (kernel - 1) + 1 for kernel, dilation in zip(self.kernel, self.dilation)]

    def reduced(self, sizes: Sequence[int]) -> Shape:
        """Spatial sizes behind a convolution."""
        result = []
        for size, extent, stride, pad in zip(sizes, self._extents(), self.stride, self.pad):
            if size + 2 * pad < extent:
                raise Wrong(f"its window of {extent} is larger than its input, {size} with pads of {pad}", "kernel_size")
            result.append((size + 2 * pad - extent) // stride + 1)
        return tuple(result)

    def enlarged(self, sizes: Sequence[int]) -> Shape:
        """Spatial sizes behind a deconvolution."""
        result = tuple(
            stride * (size - 1) + extent - 2 * pad
            for size, extent, stride, pad in zip(sizes, self._extents(), self.stride, self.pad)
        )
        if min(result, default=1) <= 0:
            raise Wrong("its pads are larger than what it makes", "pad")
        return result


def _sizes(block: Block, name: str, short: str, axes: int, default: Optional[int]) -> Shape:
    """A size for each spatial axis: given once, once each, or by _h and _w."""
    several = block.integers(name)
    if short and (block.has(f"{short}_h") or block.has(f"{short}_w")):
        if axes != 2 or several:
            raise Wrong(f"{short}_h and {short}_w are for two dimensions, and not beside {name}", name)
        return block.integer(f"{short}_h", default or 0), block.integer(f"{short}_w", default or 0)
    if not several and default is not None:
        return (default,) * axes
    if len(several) == 1:
        return (several[0],) * axes
    if len(several) != axes:
        what = f"{name} is missing" if not several else f"{name} stands {len(several)} times, for {axes} spatial axes"
        raise Wrong(what, name)
    return tuple(several)


def pooling(case: Case) -> Out:
    """The largest or the average of each window; rounded up, as Caffe does."""
    case.need(1, 1)
    block = case.layer.block.block("pooling_param")
    if len(case.first) != 4:
        raise Wrong(f"it takes 4 axes and its bottom has {text(case.first)}", "bottom")
    top = (*case.first[:2], *pooled(block, case.first[2:]))
    return Out(tops=(top,) * len(case.layer.tops))


def pooled(block: Block, sizes: Shape) -> Shape:
    """Spatial sizes behind a pooling."""
    if block.flag("global_pooling"):
        if any(block.has(name) for name in ("kernel_size", "kernel_h", "kernel_w")):
            raise Wrong("global_pooling allows no kernel", "global_pooling")
        kernel = sizes
    else:
        kernel = _pair(block, "kernel_size", "kernel", 0)
    stride, pad = _pair(block, "stride", "stride", 1), _pair(block, "pad", "pad", 0)
    if min(kernel) <= 0 or min(stride) <= 0:
        raise Wrong("kernel and stride must be larger than 0", "kernel_size" if min(kernel) <= 0 else "stride")
    if any(edge >= size for edge, size in zip(pad, kernel)):
        raise Wrong("the pad must be smaller than the kernel", "pad")
    up = block.string("round_mode", "CEIL") in {"CEIL", "0"} and block.flag("ceil_mode", default=True)
    return tuple(_pooled_one(*numbers, up=up, padded=any(pad)) for numbers in zip(sizes, kernel, stride, pad))


def _pooled_one(size: int, kernel: int, stride: int, pad: int, *, up: bool, padded: bool) -> int:
    room = size + 2 * pad - kernel
    if room < 0 and not up:
        raise Wrong(f"its window of {kernel} is larger than its input, {size}", "kernel_size")
    steps = -(-room // stride) if up else room // stride
    if steps < 0:
        raise Wrong(f"its window of {kernel} is larger than its input, {size}", "kernel_size")
    many = steps + 1
    return many - 1 if padded and (many - 1) * stride >= size + pad else many


def _pair(block: Block, name: str, short: str, default: int) -> tuple[int, int]:
    if block.has(f"{short}_h") or block.has(f"{short}_w"):
        return block.integer(f"{short}_h", default), block.integer(f"{short}_w", default)
    if not block.has(name) and short == "kernel":
        raise Wrong("kernel_size is missing", name)
    both = block.integer(name, default)
    return both, both


def spp(case: Case) -> Out:
    """Poolings of 1, 2, 4 … windows a side, one behind the other."""
    case.need(1, 1)
    levels = case.layer.block.block("spp_param").integer("pyramid_height")
    if not 1 <= levels <= 16:
        raise Wrong("pyramid_height must be given, and reasonable", "pyramid_height")
    sizes = (legacy(case.first, 2), legacy(case.first, 3))
    areas = [_spp_level(1 << level, sizes) for level in range(levels)]
    if levels == 1:
        return Out(tops=((*case.first[:2], *areas[0]),))
    return Out(tops=((case.first[0], case.first[1] * sum(count(area) for area in areas)),))


def _spp_level(bins: int, sizes: tuple[int, int]) -> Shape:
    result = []
    for size in sizes:
        kernel = -(-size // bins)
        pad = (kernel * bins - size + 1) // 2
        if pad >= kernel:
            raise Wrong(f"an input of {size} is too small for {bins} windows", "pyramid_height")
        result.append(_pooled_one(size, kernel, kernel, pad, up=True, padded=pad > 0))
    return tuple(result)
