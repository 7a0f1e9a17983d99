"""Times PyTorch's depthwise convolution on the CPU, forward, for the layers of MobileNet-SSD; bench_layer.cpp does Caffe's.

python torch_cpu.py [BATCH] [THREADS]
"""

from __future__ import annotations

import re
import statistics
import sys
import time
from pathlib import Path

import torch
from torch.nn import functional

LAYER = re.compile(r'\{"ssd300", "([^"]+)", (\d+), (\d+), (\d+), (\d+)\}')
REPEATS = 15


def milliseconds(channels: int, size: int, kernel: int, stride: int, batch: int) -> float:
    """A forward pass with bias, in milliseconds."""
    bottom = torch.rand(batch, channels, size, size) - 0.5
    weight, bias = torch.rand(channels, 1, kernel, kernel), torch.rand(channels)
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        functional.conv2d(bottom, weight, bias, stride, kernel // 2, 1, channels)
        times.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(times)


def main() -> None:
    """A line a layer, and their sum."""
    batch, threads = (int(one) for one in (*sys.argv[1:], *"11"[len(sys.argv) - 1 :]))
    torch.set_num_threads(threads)
    print(f"PyTorch {torch.__version__}, batch {batch}, {threads} thread(s), forward, ms")
    together = 0.0
    with torch.no_grad():
        for name, *numbers in LAYER.findall((Path(__file__).parent / "layers.hpp").read_text()):
            channels, size, kernel, stride = (int(one) for one in numbers)
            taken = milliseconds(channels, size, kernel, stride, batch)
            together += taken
            print(f"{name:12s} {taken:8.3f}")
    print(f"together: {together:.2f}")


if __name__ == "__main__":
    main()
