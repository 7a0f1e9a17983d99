"""``caffeup net tune``: the best engine for each convolution of a net, measured here."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from caffeup.cli import bench, options

File = Annotated[str, typer.Argument(metavar="NET.prototxt", help="The net's file.")]
Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Where to write; by default NET_tuned.prototxt.")]
Batch = Annotated[
    Optional[int],
    typer.Option("--batch", metavar="N", min=1, max=1 << 20, help="Images at a time; by default as the net has it."),
]
Training = Annotated[
    Optional[bool],
    typer.Option("--training/--inference", help="Whether backward counts too; by default where the net has a loss."),
]


def tune(
    net: File,
    tree: options.TreeOption = "",
    batch: Batch = None,
    training: Training = None,
    iterations: bench.Iterations = None,
    repeat: bench.Repeat = 3,
    gpu: bench.Gpu = "",
    cpu: bench.Cpu = False,
    limit: bench.Limit = 300.0,
    output: Output = "",
    json: options.Json = False,
) -> None:
    """Choose the fastest engine for each convolution, by measuring.

    CAFFE, cuDNN or the depthwise layer, in a built tree and at one batch size. Writes NET_tuned.prototxt with the reasons
    as comments, where the whole net is faster with it; net revert takes it back.
    """
    from caffeup.app.session import Session
    from caffeup.app.tuning import TuneWish
    from caffeup.app.tuning import tune as measure
    from caffeup.cli import show_bench
    from caffeup.cli.terminal import Terminal
    from caffeup.model.base import to_json

    wish = TuneWish(
        net=net,
        output=output,
        batch=batch,
        training=training,
        iterations=iterations,
        repeat=repeat,
        gpu=gpu,
        cpu=cpu,
        limit=limit,
    )
    report = measure(Session(), tree, wish, Terminal().progress("tune"))
    typer.echo(to_json(report) if json else "\n".join(show_bench.tuned(report)))
