"""Layers where blobs come from."""

from __future__ import annotations

from typing import Optional

from caffeup.net.rules.base import Case, Out, Shape, Untold, Wrong
from caffeup.net.text import Block

CHANNELS = 3
"""What is taken for granted of images that cannot be looked at."""


def inputs(case: Case) -> Out:
    """Shapes that stand in the prototxt: one for all tops, or one each."""
    shapes = case.layer.shapes or _shapes(case.layer.block.block("input_param"))
    return Out(tops=_spread(case, shapes, "shape" if not case.layer.added else "input_shape"))


def dummy(case: Case) -> Out:
    """Filled with what the prototxt says."""
    block = case.layer.block.block("dummy_data_param")
    shapes = _shapes(block)
    if not shapes:
        sizes = [block.integers(name) for name in ("num", "channels", "height", "width")]
        many = max((len(each) for each in sizes), default=0)
        if any(len(each) not in {1, many} for each in sizes):
            raise Wrong("num, channels, height and width stand once, or once for each top", "num")
        shapes = tuple(tuple(each[0] if len(each) == 1 else each[at] for each in sizes) for at in range(many))
    return Out(tops=_spread(case, shapes, "shape"))


def _shapes(block: Block) -> tuple[Shape, ...]:
    return tuple(tuple(shape.integers("dim")) for shape in block.blocks("shape"))


def _spread(case: Case, shapes: tuple[Shape, ...], field: str) -> tuple[Shape, ...]:
    tops = len(case.layer.tops)
    if len(shapes) == 1 and not case.layer.added:
        shapes *= tops
    if not shapes:
        raise Wrong("no shape is given", field)
    if len(shapes) != tops:
        raise Wrong(f"{len(shapes)} shapes are given for {tops} tops", field)
    if any(size < 0 for shape in shapes for size in shape):
        raise Wrong("a dimension is negative", field)
    return shapes


def memory(case: Case) -> Out:
    """Given by the program that runs the net."""
    block = case.layer.block.block("memory_data_param")
    batch, *sizes = (block.integer(name) for name in ("batch_size", "channels", "height", "width"))
    if min(batch, *sizes) <= 0:
        raise Wrong("batch_size, channels, height and width must be given", "memory_data_param")
    return Out(tops=((batch, *sizes), (batch,))[: len(case.layer.tops)])


def database(case: Case) -> Out:
    """Data: images from LMDB or LevelDB, with labels."""
    batch = _batch(case.layer.block.block("data_param"))
    image, assumed = _image(case, case.layer.block.block("data_param"))
    return Out(tops=((batch, *image), (batch,))[: len(case.layer.tops)], assumed=assumed)


def annotated(case: Case) -> Out:
    """AnnotatedData: images with boxes; the boxes of all images of a batch are rows of one blob."""
    batch = _batch(case.layer.block.block("data_param"))
    image, assumed = _image(case, case.layer.block.block("data_param"))
    boxes = max(case.datum.boxes, 1) if case.datum else 1
    if case.datum is None and len(case.layer.tops) > 1:
        assumed = f"{assumed}; one box" if assumed else "one box"
    return Out(tops=((batch, *image), (1, 1, boxes, 8))[: len(case.layer.tops)], assumed=assumed)


def video(case: Case) -> Out:
    """VideoData: frames."""
    batch = _batch(case.layer.block.block("data_param"))
    image, assumed = _image(case, Block(0))
    return Out(tops=((batch, *image), (batch,))[: len(case.layer.tops)], assumed=assumed)


def images(case: Case) -> Out:
    """ImageData: image files, with labels."""
    block = case.layer.block.block("image_data_param")
    batch = _batch(block)
    high, wide = block.integer("new_height"), block.integer("new_width")
    size = (high, wide) if high > 0 and wide > 0 else None
    image, assumed = _image(case, block, size=size, channels=3 if block.flag("is_color", default=True) else 1)
    return Out(tops=((batch, *image), (batch,))[: len(case.layer.tops)], assumed=assumed)


def windows(case: Case) -> Out:
    """WindowData: windows of images, all of the size of the crop."""
    block = case.layer.block.block("window_data_param")
    crop = case.layer.block.block("transform_param").integer("crop_size") or block.integer("crop_size")
    if crop <= 0:
        raise Wrong("crop_size must be given", "window_data_param")
    channels = case.datum.channels if case.datum else CHANNELS
    batch = _batch(block)
    assumed = "" if case.datum else f"{channels} channels"
    return Out(tops=((batch, channels, crop, crop), (batch,))[: len(case.layer.tops)], assumed=assumed)


def hdf5(case: Case) -> Out:
    """HDF5Data: any shapes, which stand in the files."""
    raise Untold(f"the shapes of {', '.join(case.layer.tops)} stand in the HDF5 files")


def _batch(block: Block) -> int:
    batch = block.integer("batch_size") or block.integer("batchsize")
    if batch <= 0:
        raise Wrong("batch_size must be larger than 0", "batch_size")
    return batch


def _image(
    case: Case, block: Block, *, size: Optional[tuple[int, int]] = None, channels: Optional[int] = None
) -> tuple[Shape, str]:
    """Channels, height and width behind the transformation, and what had to be assumed for that."""
    transform = case.layer.block.block("transform_param")
    crop = transform.integer("crop_size") or block.integer("crop_size") or block.integer("cropsize")
    cut = (crop, crop) if crop else (transform.integer("crop_h"), transform.integer("crop_w"))
    if size is None and case.datum is not None:
        size = (case.datum.height, case.datum.width)
    size = _resized(transform.block("resize_param"), size)
    high, wide = (wanted or (size[axis] if size else 0) for axis, wanted in enumerate(cut))
    if not high or not wide:
        raise Untold("the size of the images stands in the data, and neither crop_size nor a resize_param sets it")
    if size and (size[0] < high or size[1] < wide):
        raise Wrong(f"a crop of {high}x{wide} is larger than the images, {size[0]}x{size[1]}", "crop_size")
    known = _colour(transform, case) or channels
    return (known or CHANNELS, high, wide), "" if known else f"{CHANNELS} channels"


def _colour(transform: Block, case: Case) -> Optional[int]:
    if transform.flag("force_color"):
        return 3
    if transform.flag("force_gray"):
        return 1
    return case.datum.channels if case.datum else None


def _resized(block: Block, size: Optional[tuple[int, int]]) -> Optional[tuple[int, int]]:
    """Height and width behind the SSD tree's resize_param."""
    high, wide = block.integer("height"), block.integer("width")
    mode = block.string("resize_mode", "WARP")
    if mode not in {"FIT_SMALL_SIZE", "3"}:
        return (high, wide) if high > 0 and wide > 0 else size
    if size is None or not high or not wide:
        return None
    aspect = size[1] / size[0]
    return (high, int(high * aspect)) if aspect > wide / high else (int(wide / aspect), wide)
