"""What the device nodes that a process has open tell: whether it holds a GPU, and which."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBERED = re.compile(r"/dev/nvidia(\d{1,4})")
_UNNUMBERED = re.compile(r"/dev/(nvidia-uvm|dxg|nvhost-\S*gpu\S*|nvgpu/\S+|nvhost-as-gpu|nvmap)")
"""CUDA's unified memory; WSL2's way to the GPU; a Jetson's."""


def minors(nodes: Iterable[str]) -> tuple[int, ...]:
    """The numbers of the GPUs whose own node is open."""
    found = (_NUMBERED.fullmatch(node) for node in nodes)
    return tuple(sorted(int(one[1]) for one in found if one))


def holds_gpu(nodes: Iterable[str]) -> bool:
    """Whether a GPU is held; the control node alone is what any look at the driver opens."""
    return any(_NUMBERED.fullmatch(node) or _UNNUMBERED.fullmatch(node) for node in nodes)
