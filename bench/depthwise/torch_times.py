"""Times PyTorch's depthwise convolution for the layers that `bench --json` wrote, the same way: medians of CUDA graph replays."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any, Callable

import torch
from torch.nn import functional


def measure(launch: Callable[[int], Any], sets: int) -> float:
    """Microseconds a call of launch(set), which runs on one of `sets` sets of tensors."""
    for i in range(2):
        launch(i % sets)
    torch.cuda.synchronize()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    launch(0)
    end.record()
    end.synchronize()
    wanted = min(64, max(4, int(0.5 / max(begin.elapsed_time(end), 1e-3))))
    launches = -(-wanted // sets) * sets
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = [launch(i % sets) for i in range(launches)]  # so that no result's memory is used twice
    times = []
    for _ in range(12):
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    del kept
    return float(1e3 * statistics.median(times[3:]) / launches)


def layer_times(row: dict[str, Any]) -> list[float]:
    """Forward, backward-data and backward-weights (with bias), in microseconds."""
    channels, size, kernel, stride = row["channels"], row["size"], row["kernel"], row["stride"]
    pad, sets = kernel // 2, row["sets"]
    out = (size + 2 * pad - kernel) // stride + 1
    bottoms = [torch.rand(row["batch"], channels, size, size, device="cuda") - 0.5 for _ in range(sets)]
    diffs = [torch.rand(row["batch"], channels, out, out, device="cuda") - 0.5 for _ in range(sets)]
    weight, bias = torch.rand(channels, 1, kernel, kernel, device="cuda"), torch.rand(channels, device="cuda")

    def forward(i: int) -> Any:
        return functional.conv2d(bottoms[i], weight, bias, stride, pad, 1, channels)

    def backward(i: int, mask: list[bool]) -> Any:
        transposed = False
        return torch.ops.aten.convolution_backward(
            diffs[i], bottoms[i], weight, [channels], [stride] * 2, [pad] * 2, [1, 1], transposed, [0, 0], channels, mask
        )

    return [
        measure(forward, sets),
        measure(lambda i: backward(i, [True, False, False]), sets),
        measure(lambda i: backward(i, [False, True, True]), sets),
    ]


def main() -> None:
    """Writes each row again, with "torch" added."""
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    rows = [json.loads(line) for line in source.read_text().splitlines()]
    with torch.no_grad(), target.open("w") as file:
        for row in rows:
            row["torch"] = layer_times(row)
            row["torch_version"] = torch.__version__
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
