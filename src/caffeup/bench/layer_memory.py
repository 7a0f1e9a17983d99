"""What one convolution takes of a GPU's memory: nets of a single layer, and the script that measures them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Optional

from caffeup.bench.edits import CONVOLUTION, Choice, chosen, convolutions, with_batch
from caffeup.net.depthwise import states
from caffeup.net.model import Layer, Net, as_run, read_net
from caffeup.net.rules.base import Shape
from caffeup.net.shapes import infer
from caffeup.net.text import parse, quoted

# Argument: a job as JSON. A line for each net, as Caffe ends the process where one cannot be made. Memory is what the
# driver counts, from before the net to after its passes: blobs, weights, and what the engine needs besides.
RUN = """\
import ctypes, gc, json, sys
import numpy as np
import caffe
driver = ctypes.CDLL('libcuda.so.1')

def taken():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    if driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)):
        sys.exit('the driver does not tell its memory')
    return total.value - free.value

job = json.loads(sys.argv[1])
caffe.set_device(0)
caffe.set_mode_gpu()
for name in job['nets']:
    gc.collect()
    before = taken()
    net = caffe.Net(name, caffe.TEST)
    net.forward()
    if job['training']:
        net.backward()
    print('caffeup:' + json.dumps(max(0, taken() - before)))
    sys.stdout.flush()
    del net
"""


def bottoms(net: Net, batch: int) -> dict[int, Shape]:
    """The shape that each layer reads at a batch size, by the layer's place in the file; those that can be told."""
    again = read_net(parse(net.document.edited(with_batch(net, batch)), net.document.name))
    starts = {one.start: layer.start for one, layer in zip(again.layers, net.layers)}
    found: dict[int, Shape] = {}
    for state in states(again):
        for one in infer(as_run(again, state), phase=state.phase):
            if one.layer.start in starts and not one.layer.added and one.bottoms and one.bottoms[0] is not None:
                found.setdefault(starts[one.layer.start], one.bottoms[0])
    return found


def alone(net: Net, layer: Layer, shape: Shape, choice: Choice) -> Optional[bytes]:
    """A net of this layer only, computed in the chosen way; None where its layer cannot stand alone."""
    field = next(
        (field for name in ("layer", "layers") for field in net.document.root.all(name) if field.start == layer.start), None
    )
    if field is None or len(layer.bottoms) != 1:
        return None
    dims = " ".join(f"dim: {size}" for size in shape)
    head = f"force_backward: true\ninput: {quoted(layer.bottoms[0])}\ninput_shape {{ {dims} }}\n".encode()
    one = read_net(parse(head + net.document.data[field.start : field.end] + b"\n", net.document.name))
    found = convolutions(one)
    if len(found.depthwise) + len(found.others) != 1:
        return None
    return one.document.edited(chosen(one, {one.layers[0].start: choice}))


def ways(depthwise_type: str, *, depthwise: bool, cudnn: bool) -> Iterator[tuple[str, Choice]]:
    """The ways in which a layer can be computed, by the names that ``tuning`` has for them."""
    yield "CAFFE", Choice(CONVOLUTION, "CAFFE")
    if cudnn:
        yield "CUDNN", Choice(CONVOLUTION, "CUDNN")
    if depthwise and depthwise_type:
        yield "depthwise", Choice(depthwise_type)


def answers(output: str) -> Iterable[int]:
    """What the script told, net by net, until it ended."""
    for line in output.splitlines():
        text = line.removeprefix("caffeup:")
        if text != line and text.isdigit():
            yield int(text)
