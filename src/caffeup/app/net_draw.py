"""A net's picture."""

from __future__ import annotations

from caffeup.app.net_files import require_free, write_pieces
from caffeup.app.netdata import data_of
from caffeup.app.nets import read_net_file
from caffeup.disk import as_path
from caffeup.errors import UsageError
from caffeup.model.net_model import Written
from caffeup.net.model import Layer, as_run, filtered
from caffeup.net.picture.boxes import picture
from caffeup.net.picture.svg import drawn
from caffeup.net.shapes import blobs_of, infer
from caffeup.net.text import Block, printable
from caffeup.net.wiring import phases


def draw_net(name: str, *, output: str = "", phase: str = "") -> Written:
    """Write the picture; one that is there is not overwritten."""
    net = read_net_file(name)
    target = as_path(output) if output else as_path(name).with_suffix(".svg")
    require_free(target)
    state = next((one for one in reversed(phases(net)) if phase in {"", one.phase}), None)
    if state is None:
        raise UsageError(f"{net.document.name} has no data for {phase}.")
    layers = filtered(net, state)
    shapes = infer(as_run(net, state), phase=state.phase, data=data_of(layers))
    inputs = (Layer(name=each, type="Input", tops=(each,), block=Block(0), start=0) for each in net.inputs)
    made = picture((*inputs, *layers), blobs_of(shapes))
    title = printable(net.name or name, 200)
    write_pieces(target, (f"{line}\n".encode("utf-8", "replace") for line in drawn(made, title)))
    return Written(picture=str(target), about=(f"{len(made.boxes)} boxes for {len(layers)} layers, phase {state.phase}",))
