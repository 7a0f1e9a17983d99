"""What a run's output, or a prototxt, tells of its nets: convolutions with groups, and the memory of the blobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Optional

from caffeup.diagnose.suspects import Grouped
from caffeup.model.base import Value

_OPENS = re.compile(r"^\s*layers?\s*\{")
_FIELD = re.compile(r'\b(name|type|group|engine)\s*:\s*"?(\w[\w/.:-]*)"?')
_MEMORY = re.compile(r"\] Memory required for data: (\d+)")
_SHAPE = re.compile(r"\] Top shape: (\d+)(?: \d+)+ \(\d+\)")
_CONVOLUTIONS = {"Convolution", "CONVOLUTION"}


class Need(Value, kw_only=True):
    """What the nets that were set up take for their blobs."""

    blobs: int
    """Bytes, of all nets; training takes as much again for the gradients."""
    batch: Optional[int] = None
    """The first dimension of the largest net's first blob."""


def grouped(lines: Iterable[str]) -> Optional[tuple[Grouped, ...]]:
    """Convolutions with groups that are left to cuDNN; None where no layer stands there."""
    found: list[Grouped] = []
    seen = False
    for block in _layers(lines):
        seen = True
        fields = dict(_FIELD.findall(block))
        groups = fields.get("group", "1")
        if fields.get("type") in _CONVOLUTIONS and fields.get("engine") != "CAFFE" and groups.isdigit() and int(groups) > 1:
            name = next((value for key, value in _FIELD.findall(block) if key == "name"), "")
            found.append(Grouped(layer=name, groups=int(groups[:9])))
    return tuple(found) if seen else None


def _layers(lines: Iterable[str]) -> Iterator[str]:
    """The text of each layer; a brace within quotes or behind # does not count."""
    depth, block = 0, []
    for line in lines:
        if not depth and not _OPENS.match(line):
            continue
        plain = re.sub(r'"[^"]*"', lambda quoted: re.sub(r"[{}#]", "", quoted[0]), line).partition("#")[0]
        block.append(plain)
        depth += plain.count("{") - plain.count("}")
        if depth <= 0:
            yield "\n".join(block)
            depth, block = 0, []


def need(lines: Iterable[str]) -> Optional[Need]:
    """The sum over the nets of what Caffe counted up while it set them up."""
    nets: list[tuple[int, Optional[int]]] = []
    last, batch = 0, None
    for line in lines:
        memory = _MEMORY.search(line)
        if memory and int(memory[1]) < last:
            nets.append((last, batch))
            last, batch = 0, None
        if memory:
            last = int(memory[1])
        elif batch is None and (shape := _SHAPE.search(line)):
            batch = int(shape[1])
    nets.append((last, batch))
    largest = max(nets, key=lambda one: one[0])
    total = sum(size for size, _ in nets)
    return Need(blobs=total, batch=largest[1]) if total else None


def fitting_batch(wanted: Need, free: int, *, training: bool) -> Optional[int]:
    """The largest batch whose blobs fit into this memory, by what one image takes; None where the batch is not known."""
    if not wanted.batch:
        return None
    each = wanted.blobs * (2 if training else 1) / wanted.batch
    return min(int(free / each), wanted.batch)
