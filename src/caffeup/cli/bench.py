"""``caffeup bench``: how fast a net is in a built tree, in each way in which it can be computed."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from caffeup.cli import options

Net = Annotated[str, typer.Option("--net", metavar="NET.prototxt", help="The net; by default one like MobileNet-SSD is made.")]
Batch = Annotated[str, typer.Option("--batch", metavar="LIST", help="Batch sizes: 1,32. By default the net's own.")]
Variants = Annotated[
    str,
    typer.Option(
        "--variants",
        metavar="LIST",
        help="group, group-cudnn, cudnn, depthwise, depthwise-cudnn, as-built; by default all that the tree can do.",
    ),
]
Iterations = Annotated[
    Optional[int],
    typer.Option("--iterations", metavar="N", min=1, max=100000, help="Passes a run; by default as many as fill a second."),
]
Repeat = Annotated[
    int, typer.Option("--repeat", metavar="N", min=1, max=100, help="Runs a variant, by turns; medians are shown.")
]
Gpu = Annotated[str, typer.Option("--gpu", metavar="N", help="The GPU by its number; by default the freest.")]
Cpu = Annotated[bool, typer.Option("--cpu", help="Measure on the CPU.")]
Phase = Annotated[
    str, typer.Option("--phase", metavar="train|test", help="Phase of the net; by default train, as caffe time has it.")
]
Limit = Annotated[float, typer.Option("--limit", metavar="SECONDS", min=1, max=86400, help="Give a run up after this time.")]
Layers = Annotated[bool, typer.Option("--layers", help="Show all layers, not only the slowest.")]
Html = Annotated[str, typer.Option("--html", metavar="FILE", help="Write a page with bars too; one that is there is replaced.")]


def bench(
    tree: options.Tree = "",
    net: Net = "",
    batch: Batch = "",
    variants: Variants = "",
    iterations: Iterations = None,
    repeat: Repeat = 3,
    gpu: Gpu = "",
    cpu: Cpu = False,
    phase: Phase = "",
    limit: Limit = 300.0,
    layers: Layers = False,
    html: Html = "",
    json: options.Json = False,
) -> None:
    """Measure a net in a built tree.

    Its convolutions as loops over groups, by cuDNN, by the depthwise layer: by turns, whole and layer by layer.
    """
    from caffeup.app.bench_page import require_writable, write_page
    from caffeup.app.benching import Wish
    from caffeup.app.benching import bench as measure
    from caffeup.app.session import Session
    from caffeup.cli import show_bench
    from caffeup.cli.terminal import Terminal
    from caffeup.errors import INTERRUPTED
    from caffeup.model.base import to_json

    if html:
        require_writable(html)
    wish = Wish(
        net=net,
        batches=show_bench.batches(batch),
        variants=tuple(one.strip() for one in variants.split(",") if one.strip()),
        iterations=iterations,
        repeat=repeat,
        gpu=gpu,
        cpu=cpu,
        phase=show_bench.phase(phase),
        limit=limit,
    )
    report = measure(Session(), tree, wish, Terminal().progress("bench"))
    if html:
        write_page(report, html)
    typer.echo(to_json(report) if json else "\n".join(show_bench.report(report, every=layers, page=html)))
    if report.stopped:
        raise typer.Exit(INTERRUPTED)
