"""The parts of whole_net.sh that are text: the prototxt with other engines and batch, and the rows of its table."""

from __future__ import annotations

import re
import statistics
import sys
from pathlib import Path
from typing import Optional

CONVOLUTION = re.compile(r"^\s*type\s*:\s*\"(?:Convolution|DepthwiseConvolution|ConvolutionDepthwise)\"", re.MULTILINE)
INPUT = re.compile(r"^\s*type\s*:\s*\"Input\"", re.MULTILINE)
OWN_TYPE = re.compile(r"\"(?:DepthwiseConvolution|ConvolutionDepthwise)\"")
NAME = re.compile(r"^\s*name\s*:\s*\"([^\"]*)\"", re.MULTILINE)
GROUP = re.compile(r"\bgroup\s*:\s*(\d+)")
ENGINE = re.compile(r"\bengine\s*:\s*\w+")
FIGURE = re.compile(r"Average (Forward|Backward) pass: ([\d.]+) ms")
LAYER = re.compile(r"\]\s+(\S+)\s+(forward|backward): ([\d.]+) ms")
SLOW = 2000.0
"""Milliseconds a pass from which on a measurement is not repeated."""


def main(command: str, *rest: str) -> int:
    """``rewrite``, ``header``, ``quick`` (status 1: not worth another run) or ``row``."""
    if command == "rewrite":
        source, target, batch, depthwise, others = rest
        Path(target).write_text(rewrite(Path(source).read_text(), int(batch), depthwise, others))
    elif command == "quick":
        found = figures(rest[0])
        return 0 if found and sum(found) < SLOW else 1
    elif command == "header":
        print(f"{'':28s} batch    forward   backward   of which in layers with groups")
    else:
        print(row(rest[0], rest[1], with_groups(rest[2]), rest[3:]))
    return 0


def layers(text: str) -> list[str]:
    """What stands before the first layer, and each layer."""
    return re.split(r"(?m)^(?=layer\s*\{)", text)


def rewrite(text: str, batch: int, depthwise: str, others: str) -> str:
    """The net at another batch size, with these engines for convolutions with groups and for the rest."""
    pieces = layers(re.sub(r"#[^\n]*", "", text))
    return "".join(with_engine(with_batch(piece, batch), depthwise, others) for piece in pieces)


def with_batch(piece: str, batch: int) -> str:
    """The first number of an input's shape: of the net's own, or of an Input layer."""
    if piece.startswith("layer") and not INPUT.search(piece):
        return piece
    piece = re.sub(r"(shape\s*:?\s*\{\s*dim\s*:\s*)\d+", rf"\g<1>{batch}", piece)
    return re.sub(r"(input_dim\s*:\s*)\d+", rf"\g<1>{batch}", piece, count=1)


def grouped(piece: str) -> bool:
    """Whether a layer is a convolution with groups, of whatever type."""
    group = GROUP.search(piece)
    return bool("convolution_param" in piece and (OWN_TYPE.search(piece) or (group and int(group[1]) > 1)))


def with_engine(piece: str, depthwise: str, others: str) -> str:
    """A layer with the engine of its kind; a depthwise layer's own type becomes Convolution, or the given one.

    ``depthwise`` is an engine, or ``type:NAME``.
    """
    if not CONVOLUTION.search(piece):
        return piece
    engine = depthwise if grouped(piece) else others
    piece = ENGINE.sub("", OWN_TYPE.sub('"Convolution"', piece))
    if engine.startswith("type:"):
        return piece.replace('"Convolution"', f'"{engine[5:]}"', 1)
    return piece if engine == "default" else re.sub(r"(convolution_param\s*:?\s*\{)", rf"\1 engine: {engine}", piece)


def with_groups(net: str) -> set[str]:
    """Names of the convolutions with groups."""
    found = (NAME.search(piece) for piece in layers(Path(net).read_text()) if grouped(piece))
    return {name[1] for name in found if name}


def figures(log: str) -> Optional[tuple[float, float]]:
    """Forward and backward of one log, in milliseconds; None where it has none."""
    found = dict(FIGURE.findall(Path(log).read_text(errors="replace")))
    return (float(found["Forward"]), float(found["Backward"])) if len(found) > 1 else None


def of_layers(log: str, names: set[str]) -> tuple[float, float]:
    """Forward and backward of these layers, summed."""
    found = [one for one in LAYER.findall(Path(log).read_text(errors="replace")) if one[0] in names]
    forward, backward = (sum(float(one[2]) for one in found if one[1] == way) for way in ("forward", "backward"))
    return forward, backward


def row(way: str, batch: str, names: set[str], logs: tuple[str, ...]) -> str:
    """One way at one batch size: medians of the logs, or what the last of them said."""
    good = [log for log in logs if figures(log)]
    if not good:
        lines = Path(logs[-1]).read_text(errors="replace").splitlines()
        said = [line for line in lines if "Check failed" in line or "SIG" in line] or lines[-1:] or ["no output"]
        return f"{way:28s} {batch:>5s}          -          -   {said[0].split('] ', 1)[-1][:90]}"
    every = [(*(figures(log) or ()), *of_layers(log, names)) for log in good]
    forward, backward, of_forward, of_backward = (statistics.median(column) for column in zip(*every))
    return f"{way:28s} {batch:>5s} {forward:10.2f} {backward:10.2f}   {of_forward:.2f} + {of_backward:.2f}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
