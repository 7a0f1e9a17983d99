"""``caffeup demo``: objects found in images."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from caffeup.cli import bench, options

Images = Annotated[Optional[list[str]], typer.Argument(metavar="[IMAGE]…", help="Images; without any, a picture is made for it.")]
Net = Annotated[str, typer.Option("--net", metavar="NET.prototxt", help="A deploy net; by default MobileNet-SSD.")]
Model = Annotated[str, typer.Option("--model", metavar="FILE.caffemodel", help="Its weights; without them they are random.")]
Labels = Annotated[str, typer.Option("--labels", metavar="FILE", help="A label map, or a text with a name on each line.")]
Threshold = Annotated[
    Optional[float], typer.Option("--threshold", min=0, max=1, help="Boxes with a smaller score are not drawn; by default 0.3.")
]
Into = Annotated[str, typer.Option("--into", metavar="DIR", help="Folder for the PNGs; by default the current one.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace PNGs that are there.")]
Repeat = Annotated[int, typer.Option("--repeat", metavar="N", min=1, max=10000, help="Forward passes an image.")]


def demo(
    images: Images = None,
    tree: options.TreeOption = "",
    net: Net = "",
    model: Model = "",
    labels: Labels = "",
    threshold: Threshold = None,
    into: Into = "",
    overwrite: Overwrite = False,
    repeat: Repeat = 5,
    gpu: bench.Gpu = "",
    cpu: bench.Cpu = False,
    json: options.Json = False,
) -> None:
    """Find objects in images with a built tree.

    Draws boxes into PNGs and prints how long a forward pass takes. Without a model the weights are random.
    """
    from caffeup.app.demonstrating import DemoWish
    from caffeup.app.demonstrating import demo as look
    from caffeup.app.session import Session
    from caffeup.cli import show_bench
    from caffeup.model.base import to_json

    wish = DemoWish(
        images=tuple(images or ()),
        net=net,
        model=model,
        labels=labels,
        threshold=threshold,
        into=into,
        overwrite=overwrite,
        repeat=repeat,
        gpu=gpu,
        cpu=cpu,
    )
    report = look(Session(), tree, wish)
    typer.echo(to_json(report) if json else "\n".join(show_bench.seen(report)))
