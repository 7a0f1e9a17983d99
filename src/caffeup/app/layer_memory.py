"""The GPU memory that each convolution takes with each engine, by the tree's own pycaffe."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from caffeup.app.bench_run import Device, Site
from caffeup.app.demonstrating import python_env
from caffeup.app.session import Session
from caffeup.bench.caffe_time import shown
from caffeup.bench.edits import Convolutions
from caffeup.bench.layer_memory import RUN, alone, answers, bottoms, ways
from caffeup.net.model import Net
from caffeup.stream import run_capture

Memory = Mapping[tuple[str, str], int]
"""By layer and way."""
_SECONDS = 120.0


def layer_memory(
    session: Session, site: Site, device: Device, folder: Path, net: Net, found: Convolutions, *, batch: int, training: bool
) -> Memory:
    """What can be told; nothing without pycaffe, and nothing of a way that ends the process."""
    if site.plan is None or not site.plan.python or not device.on_gpu:
        return {}
    shapes = bottoms(net, batch)
    jobs: dict[str, list[tuple[str, bytes]]] = {}
    cudnn = site.ability(on_gpu=True).cudnn
    for layers, depthwise in ((found.depthwise, True), (found.others, False)):
        for layer in layers:
            for way, choice in ways(site.depthwise, depthwise=depthwise, cudnn=cudnn):
                text = alone(net, layer, shapes[layer.start], choice) if layer.start in shapes else None
                if text is not None:
                    jobs.setdefault(way, []).append((shown(layer.name), text))
    result: dict[tuple[str, str], int] = {}
    for way, nets in jobs.items():  # a process each: where one way ends it, the others are told
        paths = _written(folder, way, nets)
        got = run_capture(
            (site.plan.python, "-c", RUN, json.dumps({"nets": paths, "training": training})),
            cwd=str(Path.cwd()),
            env={**python_env(session, site, device, str(folder)), "CAFFE_AUTO_DEPTHWISE": "0"},
            timeout=_SECONDS,
        )
        result.update({(name, way): size for (name, _), size in zip(nets, answers(got.output))})
    return result


def _written(folder: Path, way: str, nets: Sequence[tuple[str, bytes]]) -> list[str]:
    paths = []
    for number, (_, text) in enumerate(nets):
        path = folder / f"layer-{way}-{number}.prototxt"
        path.write_bytes(text)
        paths.append(str(path))
    return paths
