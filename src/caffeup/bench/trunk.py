"""A net to measure where none is given: depthwise and pointwise convolutions by turns, as MobileNet-SSD has them.

The same sizes as its trunk and heads at 300 x 300, without layers that only some trees have.
"""

from __future__ import annotations

NAME = "caffeup_trunk"
SIZE = 300
_TRUNK = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1), (512, 1), (512, 1), (512, 1))
_END = ((1024, 2), (1024, 1))
_EXTRA = ((256, 512), (128, 256), (128, 256), (64, 128))
"""Behind the trunk: a 1x1 that narrows, and a 3x3 that halves the map."""
_BOXES = (3, 6, 6, 6, 6, 6)
_CLASSES = 21


def trunk(batch: int = 1) -> str:
    """Its prototxt."""
    lines = [
        f'name: "{NAME}"',
        'layer { name: "data" type: "Input" top: "data"',
        f"  input_param {{ shape {{ dim: {batch} dim: 3 dim: {SIZE} dim: {SIZE} }} }} }}",
    ]
    top = _conv(lines, "conv0", "data", 32, kernel=3, stride=2)
    channels, heads = 32, []
    for number, (width, stride) in enumerate((*_TRUNK, *_END), start=1):
        top = _conv(lines, f"conv{number}/dw", top, channels, kernel=3, stride=stride, group=channels)
        top = _conv(lines, f"conv{number}", top, width, kernel=1)
        channels = width
        if number in {len(_TRUNK), len(_TRUNK) + len(_END)}:
            heads.append(top)
    for number, (narrow, width) in enumerate(_EXTRA, start=len(_TRUNK) + len(_END) + 1):
        top = _conv(lines, f"conv{number}_1", top, narrow, kernel=1)
        top = _conv(lines, f"conv{number}_2", top, width, kernel=3, stride=2)
        heads.append(top)
    for head, boxes in zip(heads, _BOXES):
        _conv(lines, f"{head}_loc", head, 4 * boxes, kernel=1, relu=False)
        _conv(lines, f"{head}_conf", head, _CLASSES * boxes, kernel=1, relu=False)
    return "\n".join(lines) + "\n"


def _conv(
    lines: list[str], name: str, bottom: str, width: int, *, kernel: int, stride: int = 1, group: int = 1, relu: bool = True
) -> str:
    """A convolution with its bias, and a ReLU in place; the name of its top."""
    parameters = [f"num_output: {width}", f"kernel_size: {kernel}"]
    parameters += [f"pad: {kernel // 2}"] if kernel > 1 else []
    parameters += [f"stride: {stride}"] if stride > 1 else []
    parameters += [f"group: {group}"] if group > 1 else []
    lines.append(f'layer {{ name: "{name}" type: "Convolution" bottom: "{bottom}" top: "{name}"')
    lines.append(f'  convolution_param {{ {" ".join(parameters)} weight_filler {{ type: "msra" }} }} }}')
    if relu:
        lines.append(f'layer {{ name: "{name}/relu" type: "ReLU" bottom: "{name}" top: "{name}" }}')
    return name
