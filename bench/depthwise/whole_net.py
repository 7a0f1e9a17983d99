"""Times a whole net with `caffe time`, its depthwise layers and its other convolutions computed in each way, as one table.

    python3 whole_net.py build/tools/caffe deploy.prototxt --gpu 0 [--other OTHER/build/tools/caffe] [--batch 1 32]

Layers that cannot be timed (DetectionOutput has no backward pass) are left out.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

LEFT_OUT = ("DetectionOutput",)
AUTO = "CAFFE_AUTO_DEPTHWISE"


@dataclass(frozen=True)
class Way:
    """How the net is computed: the engine of the depthwise layers ("": caffeup's layer) and that of the other convolutions."""

    name: str
    depthwise: str = ""
    rest: str = ""
    type: str = "Convolution"
    other: bool = False


WAYS = (
    Way("in groups, CAFFE", depthwise="CAFFE", rest="CAFFE"),
    Way("in groups, cuDNN", depthwise="CUDNN", rest="CUDNN"),
    Way("the other's layer, rest CAFFE", rest="CAFFE", type="DepthwiseConvolution", other=True),
    Way("the other's layer, rest cuDNN", rest="CUDNN", type="DepthwiseConvolution", other=True),
    Way("caffeup's layer, rest CAFFE", rest="CAFFE"),
    Way("caffeup's layer, rest cuDNN", rest="CUDNN"),
    Way("caffeup's layer, rest as Caffe chooses"),
)


@dataclass(frozen=True)
class Times:
    """Milliseconds: whole forward and backward pass, and what of them the depthwise layers take."""

    forward: float
    backward: float
    depthwise_forward: float
    depthwise_backward: float


def blocks(text: str) -> Iterator[str]:
    """The net cut into its layers and what stands between them."""
    at = 0
    for start in re.finditer(r"^\s*layers?\s*:?\s*\{", text, re.MULTILINE):
        if start.start() < at:
            continue
        yield text[at : start.start()]
        end, depth = start.end(), 1
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        yield text[start.start() : end]
        at = end
    yield text[at:]


def value(block: str, key: str) -> str:
    """The first value of the key in a layer."""
    found = re.search(rf'\b{key}\s*:\s*"?([\w/.-]+)', block)
    return found.group(1) if found else ""


def is_depthwise(block: str) -> bool:
    """Whether it is a convolution in groups of one channel, as far as a prototxt tells."""
    groups = value(block, "group")
    conv = value(block, "type") in ("Convolution", "DepthwiseConvolution", "ConvolutionDepthwise")
    return conv and groups.isdigit() and int(groups) > 1 and int(value(block, "num_output") or 0) % int(groups) == 0


def with_engine(block: str, engine: str) -> str:
    """The layer with that engine and no other."""
    block = re.sub(r"\bengine\s*:\s*\w+", "", block)
    return re.sub(r"(convolution_param\s*:?\s*\{)", rf"\1 engine: {engine}", block) if engine else block


def changed(block: str, way: Way) -> str:
    """A layer as that way wants it; nothing where it cannot be timed."""
    kind = value(block, "type") if re.match(r"\s*layer", block) else ""
    if kind in LEFT_OUT:
        return ""
    if kind and is_depthwise(block):
        named = re.sub(r'\btype\s*:\s*"\w*Convolution\w*"', f'type: "{way.type}"', block, count=1)
        return with_engine(named, way.depthwise)
    return with_engine(block, way.rest) if kind == "Convolution" else block


def rewritten(text: str, way: Way, batch: int) -> str:
    """The net as that way wants it, for so many images."""
    text = re.sub(r"#.*", "", text)
    text = re.sub(r"((?:input_shape|shape)\s*:?\s*\{\s*dim\s*:\s*|\binput_dim\s*:\s*)\d+", rf"\g<1>{batch}", text, count=1)
    return "".join(changed(block, way) for block in blocks(text))


def parse(log: str, depthwise: set[str]) -> Optional[Times]:
    """The averages that `caffe time` prints."""
    whole = {key: re.search(rf"Average {key} pass: ([\d.e+-]+) ms", log) for key in ("Forward", "Backward")}
    if not all(whole.values()):
        return None
    sums = {"forward": 0.0, "backward": 0.0}
    for name, direction, spent in re.findall(r"\]\s+(\S+)\t(forward|backward): ([\d.e+-]+) ms", log):
        if name in depthwise:
            sums[direction] += float(spent)
    forward, backward = (float(found.group(1)) for found in whole.values() if found)
    return Times(forward, backward, sums["forward"], sums["backward"])


def measure(caffe: str, net: str, way: Way, options: argparse.Namespace, batch: int) -> tuple[Optional[Times], str]:
    """One run of `caffe time`; where it fails, what it said."""
    text = rewritten(net, way, batch)
    depthwise = {value(block, "name") for block in blocks(net) if is_depthwise(block)}
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "net.prototxt")
        model.write_text(text)
        command = [caffe, "time", f"-model={model}", f"-iterations={options.iterations or (100 if batch == 1 else 20)}"]
        command += [f"-gpu={options.gpu}"] if options.gpu is not None else []
        env = {**os.environ, AUTO: "0" if way.depthwise else "1", "GLOG_logtostderr": "1"}
        try:
            done = subprocess.run(
                command, env=env, check=False, capture_output=True, text=True, errors="replace", timeout=options.limit
            )
        except subprocess.TimeoutExpired:
            return None, f"not done after {options.limit} s"
    times = parse(done.stderr, depthwise)
    said = [line for line in done.stderr.splitlines() if line.startswith("F") or "rror" in line]
    return times, said[0][-100:] if said else f"exit code {done.returncode}"


def main() -> int:
    """The table for the net and the binaries named on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("caffe", help="a built caffe that has caffeup's layer")
    parser.add_argument("net", help="its prototxt")
    parser.add_argument("--other", help="a caffe with another layer of the type DepthwiseConvolution")
    parser.add_argument("--gpu", type=int, help="the GPU's number; without it the CPU computes")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--iterations", type=int, help="100 at batch 1 and 20 otherwise")
    parser.add_argument("--limit", type=int, default=300, help="seconds for one run")
    options = parser.parse_args()
    net = Path(options.net).read_text()
    ways = [way for way in WAYS if (not way.other or options.other) and ("cuDNN" not in way.name or options.gpu is not None)]
    for batch in options.batch:
        print(f"batch {batch}, ms{'forward':>34s} {'backward':>9s} {'of it depthwise':>19s} {'times slower than the best':>27s}")
        measured = [(way, *measure(options.other if way.other else options.caffe, net, way, options, batch)) for way in ways]
        best = [min((getattr(t, key) for _, t, _ in measured if t), default=1.0) for key in ("forward", "backward")]
        for way, times, why in measured:
            if times is None:
                print(f"  {way.name:40s} -  {why}")
                continue
            depthwise = f"{times.depthwise_forward:9.3f} {times.depthwise_backward:9.3f}"
            slower = f"{times.forward / best[0]:13.2f} {times.backward / best[1]:9.2f}"
            print(f"  {way.name:38s} {times.forward:7.2f} {times.backward:9.2f} {depthwise} {slower}")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
