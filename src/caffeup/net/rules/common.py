"""Layers that rearrange, combine or weight blobs."""

from __future__ import annotations

from caffeup.net.rules.base import Case, Out, Shape, Wrong, axis_of, count, four, legacy, text
from caffeup.net.text import Block


def same(case: Case) -> Out:
    """Every top is as large as the first bottom."""
    case.need(1)
    return Out(tops=(case.first,) * len(case.layer.tops))


def each(case: Case) -> Out:
    """Each top is as large as the bottom that stands in its place."""
    case.need(len(case.layer.tops))
    return Out(tops=case.bottoms[: len(case.layer.tops)])


def nothing(case: Case) -> Out:
    """No top."""
    if case.layer.tops:
        raise Wrong("it makes no top", "top")
    return Out()


def mvn(case: Case) -> Out:
    """As large as the bottom, with four axes."""
    case.need(1, 1)
    return Out(tops=(four(case.first),))


def eltwise(case: Case) -> Out:
    """All bottoms of one shape."""
    case.need(2)
    for number, shape in enumerate(case.bottoms[1:], 1):
        if shape != case.first:
            raise Wrong(f"its bottoms differ in shape: {_named(case, 0)} and {_named(case, number)}", "bottom")
    weights = case.layer.block.block("eltwise_param").numbers("coeff")
    if weights and len(weights) != len(case.bottoms):
        raise Wrong(f"it has {len(weights)} coefficients for {len(case.bottoms)} bottoms", "coeff")
    return Out(tops=(case.first,))


def concat(case: Case) -> Out:
    """Bottoms one after the other along an axis."""
    case.need(1)
    block = case.layer.block.block("concat_param")
    axis = axis_of(case.first, block.integer("concat_dim") if block.has("concat_dim") else block.integer("axis", 1))
    for number, shape in enumerate(case.bottoms[1:], 1):
        if len(shape) != len(case.first) or shape[:axis] + shape[axis + 1 :] != case.first[:axis] + case.first[axis + 1 :]:
            raise Wrong(f"its bottoms differ in more than axis {axis}: {_named(case, 0)} and {_named(case, number)}", "bottom")
    return Out(tops=(_with(case.first, axis, sum(shape[axis] for shape in case.bottoms)),))


def slices(case: Case) -> Out:
    """The bottom cut along an axis."""
    case.need(1, 1)
    block, tops = case.layer.block.block("slice_param"), len(case.layer.tops)
    axis = axis_of(case.first, block.integer("slice_dim") if block.has("slice_dim") else block.integer("axis", 1))
    size, points = case.first[axis], block.integers("slice_point")
    if points:
        ends = [0, *points, size]
        sizes = [after - before for before, after in zip(ends, ends[1:])]
        if len(points) != tops - 1 or min(sizes) <= 0:
            raise Wrong(f"its slice points {points} do not cut {size} into {tops} parts", "slice_point")
    elif not tops or size % tops:
        raise Wrong(f"{size} cannot be cut into {tops} equal parts", "top")
    else:
        sizes = [size // tops] * tops
    return Out(tops=tuple(_with(case.first, axis, part) for part in sizes))


def flatten(case: Case) -> Out:
    """Several axes become one."""
    case.need(1, 1)
    block = case.layer.block.block("flatten_param")
    first, last = axis_of(case.first, block.integer("axis", 1)), axis_of(case.first, block.integer("end_axis", -1), "end_axis")
    return Out(tops=((*case.first[:first], count(case.first[first : last + 1]), *case.first[last + 1 :]),))


def reshape(case: Case) -> Out:
    """Other axes, the same elements."""
    case.need(1, 1)
    block, shape = case.layer.block.block("reshape_param"), case.first
    start, many = block.integer("axis"), block.integer("num_axes", -1)
    start = start if start >= 0 else len(shape) + start + 1
    end = len(shape) if many == -1 else start + many
    if not 0 <= start <= end <= len(shape):
        raise Wrong(f"axis and num_axes are out of range for a bottom of {text(shape)}", "axis")
    wanted = block.block("shape").integers("dim")
    new = [_copied(shape, start + index) if size == 0 else size for index, size in enumerate(wanted)]
    if new.count(-1) > 1 or any(size < -1 for size in new):
        raise Wrong("at most one dim can be -1, and none less", "dim")
    rest = count([size for size in new if size != -1])
    elements = count(shape[start:end])
    if (elements % rest if -1 in new else elements != rest) if rest else elements:
        raise Wrong(f"{text(shape)} cannot be given the dims {wanted}: {elements} elements are none of {rest}", "dim")
    filled = [elements // rest if size == -1 else size for size in new]
    return Out(tops=((*shape[:start], *filled, *shape[end:]),))


def _copied(shape: Shape, axis: int) -> int:
    if axis >= len(shape):
        raise Wrong(f"a dim of 0 copies axis {axis}, which a bottom of {text(shape)} does not have", "dim")
    return shape[axis]


def inner_product(case: Case) -> Out:
    """A matrix product."""
    case.need(1, 1)
    block = case.layer.block.block("inner_product_param")
    many, axis = block.integer("num_output"), axis_of(case.first, block.integer("axis", 1))
    if many <= 0:
        raise Wrong("num_output must be positive", "num_output")
    inputs = count(case.first[axis:])
    weights = (inputs, many) if block.flag("transpose") else (many, inputs)
    return Out(
        tops=((*case.first[:axis], many),), params=(weights, (many,)) if block.flag("bias_term", default=True) else (weights,)
    )


def embed(case: Case) -> Out:
    """A row of a table for each number."""
    case.need(1, 1)
    block = case.layer.block.block("embed_param")
    many, inputs = block.integer("num_output"), block.integer("input_dim")
    if many <= 0 or inputs <= 0:
        raise Wrong("num_output and input_dim must be positive", "num_output" if many <= 0 else "input_dim")
    params = ((inputs, many), (many,)) if block.flag("bias_term", default=True) else ((inputs, many),)
    return Out(tops=((*case.first, many),), params=params)


def scale(case: Case) -> Out:
    """A factor, and a bias where asked for, along some axes."""
    case.need(1, 2)
    block = case.layer.block.block("scale_param")
    shape = _along(case, block)
    learned = (shape,) if len(case.bottoms) == 1 else ()
    return Out(tops=(case.first,), params=(*learned, shape) if block.flag("bias_term") else learned)


def bias(case: Case) -> Out:
    """A summand along some axes."""
    case.need(1, 2)
    shape = _along(case, case.layer.block.block("bias_param"))
    return Out(tops=(case.first,), params=(shape,) if len(case.bottoms) == 1 else ())


def _along(case: Case, block: Block) -> Shape:
    """The shape of what is multiplied or added."""
    if len(case.bottoms) == 2:
        other = case.bottoms[1]
        axis = 0 if not other else axis_of(case.first, block.integer("axis", 1))
        if case.first[axis : axis + len(other)] != other:
            raise Wrong(f"its second bottom {text(other)} does not fit axis {axis} and on of {text(case.first)}", "bottom")
        return other
    many = block.integer("num_axes", 1)
    if many == 0:
        return ()
    axis = axis_of(case.first, block.integer("axis", 1))
    end = len(case.first) if many == -1 else axis + many
    if not axis <= end <= len(case.first):
        raise Wrong(f"axis and num_axes are out of range for a bottom of {text(case.first)}", "num_axes")
    return case.first[axis:end]


def batch_norm(case: Case) -> Out:
    """Mean, variance and their factor."""
    case.need(1, 1)
    if len(case.first) < 2:
        raise Wrong(f"it takes at least 2 axes and its bottom has {text(case.first)}", "bottom")
    return Out(tops=(case.first,), params=((case.first[1],), (case.first[1],), (1,)))


def prelu(case: Case) -> Out:
    """A slope for each channel, or one."""
    case.need(1, 1)
    if len(case.first) < 2:
        raise Wrong(f"it takes at least 2 axes and its bottom has {text(case.first)}", "bottom")
    shared = case.layer.block.block("prelu_param").flag("channel_shared")
    return Out(tops=(case.first,), params=(() if shared else (case.first[1],),))


def reduction(case: Case) -> Out:
    """The last axes are summed up."""
    case.need(1, 1)
    axis = case.layer.block.block("reduction_param").integer("axis")
    return Out(tops=(case.first[: axis_of(case.first, axis)],))


def argmax(case: Case) -> Out:
    """The largest of an axis, or of each image."""
    case.need(1, 1)
    block, shape = case.layer.block.block("argmax_param"), case.first
    best = block.integer("top_k", 1)
    if block.has("axis"):
        axis = axis_of(shape, block.integer("axis"))
        among = shape[axis]
        top = _with(shape, axis, best)
    else:
        among = count(shape[1:])
        top = (shape[0], 2 if block.flag("out_max_val") else 1, best, *[1] * (len(shape) - 3))
    if not 1 <= best <= among:
        raise Wrong(f"top_k is {best}, and there are {among} to choose from", "top_k")
    return Out(tops=(top,))


def tile(case: Case) -> Out:
    """The bottom several times along an axis."""
    case.need(1, 1)
    block = case.layer.block.block("tile_param")
    axis, tiles = axis_of(case.first, block.integer("axis", 1)), block.integer("tiles")
    if tiles <= 0:
        raise Wrong("tiles must be positive", "tiles")
    return Out(tops=(_with(case.first, axis, case.first[axis] * tiles),))


def crop(case: Case) -> Out:
    """The first bottom cut to the size of the second."""
    case.need(2, 2)
    block, (shape, like) = case.layer.block.block("crop_param"), case.bottoms
    axis, offsets = axis_of(shape, block.integer("axis", 2)), block.integers("offset")
    if len(shape) != len(like):
        raise Wrong(f"its bottoms differ in axes: {_named(case, 0)} and {_named(case, 1)}", "bottom")
    if len(offsets) > 1 and axis + len(offsets) != len(shape):
        raise Wrong(f"it takes one offset, or {len(shape) - axis}", "offset")
    for index in range(axis, len(shape)):
        offset = offsets[index - axis if len(offsets) > 1 else 0] if offsets else 0
        if shape[index] - offset < like[index]:
            raise Wrong(f"{like[index]} from {offset} on cannot be cut out of {shape[index]} (axis {index})", "offset")
    return Out(tops=((*shape[:axis], *like[axis:]),))


def batch_reindex(case: Case) -> Out:
    """Items of the first bottom, chosen by the second."""
    case.need(2, 2)
    if len(case.bottoms[1]) != 1:
        raise Wrong(f"its second bottom has one axis, not {text(case.bottoms[1])}", "bottom")
    return Out(tops=((case.bottoms[1][0], *case.first[1:]),))


def filters(case: Case) -> Out:
    """Items that the last bottom selects; all of them before the net has run."""
    case.need(2)
    if len(case.layer.tops) != len(case.bottoms) - 1:
        raise Wrong("it has one top for each bottom but the last", "top")
    return Out(tops=case.bottoms[:-1])


def permute(case: Case) -> Out:
    """Axes in another order."""
    case.need(1, 1)
    order = case.layer.block.block("permute_param").integers("order")
    if len(set(order)) != len(order) or any(not 0 <= axis < len(case.first) for axis in order):
        raise Wrong(f"the order {order} is none of the axes of {text(case.first)}", "order")
    order += [axis for axis in range(len(case.first)) if axis not in order]
    return Out(tops=(tuple(case.first[axis] for axis in order),))


def parameter(case: Case) -> Out:
    """A blob that is learned."""
    shape = tuple(case.layer.block.block("parameter_param").block("shape").integers("dim"))
    return Out(tops=(shape,), params=(shape,))


def normalize(case: Case) -> Out:
    """Divided by its norm and multiplied by a factor for each channel, or one."""
    case.need(1, 1)
    if len(case.first) < 2:
        raise Wrong(f"it takes at least 2 axes and its bottom has {text(case.first)}", "bottom")
    shared = case.layer.block.block("norm_param").flag("channel_shared", default=True)
    return Out(tops=(case.first,), params=(() if shared else (legacy(case.first, 1),),))


def _with(shape: Shape, axis: int, size: int) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _named(case: Case, number: int) -> str:
    return f"{case.layer.bottoms[number]} {text(case.bottoms[number])}"
