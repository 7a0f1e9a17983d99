"""``caffeup net …``: nets with their weights."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from caffeup.cli import options

Net = Annotated[str, typer.Argument(metavar="NET.prototxt", help="The net's file.")]
Model = Annotated[str, typer.Argument(metavar="MODEL.caffemodel", help="Its weights.")]
Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Where to write the prototxt.")]
ModelOutput = Annotated[
    str, typer.Option("--model-output", metavar="FILE", help="Where to write the model; by default like the prototxt.")
]
Tree = Annotated[str, typer.Option("--tree", metavar="DIR", help="A built tree whose pycaffe runs both nets and compares them.")]
Purpose = Annotated[bool, typer.Option("--train", help="With the data it learns from, and a loss.")]


def merge_bn(
    net: Net, model: Model, output: Output = "", model_output: ModelOutput = "", tree: Tree = "", json: options.Json = False
) -> None:
    """Fold BatchNorm and Scale into the convolutions before them.

    The same outputs from fewer layers. Writes NET_merged.prototxt and MODEL_merged.caffemodel, or what -o names;
    what cannot be folded stays, with the reason. Everything else in the prototxt stays byte for byte.
    """
    from caffeup.app.net_compare import require_pycaffe
    from caffeup.app.net_models import compared, merge_net
    from caffeup.cli import show_net_model
    from caffeup.errors import VerifyFailed
    from caffeup.model.base import to_json

    if tree:
        require_pycaffe(tree)
    result = merge_net(net, model, output=output, model_output=model_output)
    if tree and result.written:
        result = compared(result, tree, model)
    typer.echo(to_json(result) if json else "\n".join(show_net_model.merged(result)))
    if result.difference is not None and not result.difference.same:
        raise typer.Exit(VerifyFailed.exit_code)


def new(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="mobilenet-ssd or vgg-ssd.")],
    classes: Annotated[int, typer.Option("--classes", metavar="N", min=2, max=10_000, help="With the background.")] = 21,
    size: Annotated[int, typer.Option("--size", metavar="PIXELS", help="Height and width of the images.")] = 300,
    train: Purpose = False,
    test: Annotated[bool, typer.Option("--test", help="With labelled data, and the average precision.")] = False,
    merged: Annotated[bool, typer.Option("--merged", help="Without normalisations, as after merge-bn.")] = False,
    batch: Annotated[Optional[int], typer.Option("--batch", metavar="N", min=1, max=4096, help="Images at a time.")] = None,
    data: Annotated[str, typer.Option("--data", metavar="DIR", help="The LMDB of a net to train or test.")] = "",
    labels: Annotated[str, typer.Option("--labels", metavar="FILE", help="Its label map.")] = "labelmap.prototxt",
    output: Output = "",
    model: Annotated[str, typer.Option("--model", metavar="FILE", help="Write weights by chance too, to try it with.")] = "",
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Another number gives other weights.")] = 1,
    json: options.Json = False,
) -> None:
    """Make a detector for any number of classes and any size.

    Layer for layer the well-known nets, at their sizes; the boxes grow with the image. Without -o the prototxt is
    printed. --train and --test want an LMDB, deploy is what stands without them.
    """
    from caffeup.app.net_models import new_net, ordered
    from caffeup.cli import show_net_model
    from caffeup.errors import UsageError
    from caffeup.model.base import to_json

    if json and not output:
        raise UsageError("--json needs -o: without it the net itself is printed.")
    order = ordered(classes, size, train=train, test=test, merged=merged, batch=batch, data=data, labels=labels)
    text, written = new_net(kind, order, output=output, model=model, seed=seed)
    if not output:
        typer.echo(text, nl=False)
    if written is not None:
        typer.echo(to_json(written) if json else "\n".join(show_net_model.written(written)), err=not output)


def memory(
    net: Annotated[str, typer.Argument(metavar="NET.prototxt", help="The net's file, or a solver's.")],
    batch: Annotated[
        Optional[int], typer.Option("--batch", metavar="N", min=1, max=65_536, help="As if it took so many.")
    ] = None,
    gpu: Annotated[str, typer.Option("--gpu", metavar="0", help="The GPU it is for; by default the one with most room.")] = "",
    free: Annotated[str, typer.Option("--free", metavar="SIZE", help="Memory that is free, in place of a GPU's: 8GiB.")] = "",
    solver: Annotated[str, typer.Option("--solver", metavar="TYPE", help="SGD, Adam …: what it is trained by.")] = "",
    phase: Annotated[str, typer.Option("--phase", metavar="TRAIN|TEST", help="One phase alone.")] = "",
    no_cudnn: Annotated[bool, typer.Option("--no-cudnn", help="As computed by a Caffe without cuDNN.")] = False,
    tree: Annotated[str, typer.Option("--tree", metavar="DIR", help="A built tree to ask about layers that are unknown.")] = "",
    shape: Annotated[
        Optional[list[str]],
        typer.Option("--shape", metavar="BLOB=1,3,300,300", help="A shape that does not stand in the file (repeatable)."),
    ] = None,
    layers: Annotated[bool, typer.Option("--layers", help="All layers, not only the five largest.")] = False,
    json: options.Json = False,
) -> None:
    """Say how much memory a net takes, and the largest batch that fits.

    "Memory required for data" as Caffe itself prints it, to the byte; and what a GPU needs: blobs that share memory
    counted once, gradients, weights, the solver's history, workspaces. Layers that are not known are named.
    """
    from caffeup.app.net_memory import Asked, measure
    from caffeup.app.nets import given_shapes
    from caffeup.cli import show_net_memory
    from caffeup.errors import NoRoom, UsageError
    from caffeup.model.base import to_json

    if phase.upper() not in {"", "TRAIN", "TEST"}:
        raise UsageError(f"There is no phase {phase!r}.", advice="Give TRAIN or TEST.")
    asked = Asked(
        batch=batch,
        shapes=given_shapes(shape or ()),
        solver=solver,
        tree=tree,
        gpu=gpu,
        free=free,
        cudnn=not no_cudnn,
        phase=phase.upper(),
    )
    report = measure(net, asked)
    typer.echo(to_json(report) if json else "\n".join(show_net_memory.memory(report, every=layers)))
    if report.fit is not None and not report.fit.fits:
        raise typer.Exit(NoRoom.exit_code)


def classes(
    net: Net,
    model: Model,
    keep: Annotated[str, typer.Option("--keep", metavar="person,car", help="Classes to keep: names or numbers.")],
    labels: Annotated[str, typer.Option("--labels", metavar="FILE", help="Its label map, or a text of one name a line.")] = "",
    output: Output = "",
    model_output: ModelOutput = "",
    tree: Tree = "",
    json: options.Json = False,
) -> None:
    """Cut a trained detector to some of its classes, weights included.

    They get new numbers in the order in which they are named; the background stays the first. Writes NET_cut.prototxt,
    MODEL_cut.caffemodel and the new labels. Scores rise, as fewer classes share them.
    """
    from caffeup.app.net_compare import require_pycaffe
    from caffeup.app.net_models import cut_compared, cut_net
    from caffeup.cli import show_net_model
    from caffeup.errors import VerifyFailed
    from caffeup.model.base import to_json

    if tree:
        require_pycaffe(tree)
    result, rows = cut_net(net, model, keep, labels=labels, output=output, model_output=model_output)
    if tree:
        result = cut_compared(result, rows, tree, model)
    typer.echo(to_json(result) if json else "\n".join(show_net_model.cut(result)))
    if result.difference is not None and not result.difference.same:
        raise typer.Exit(VerifyFailed.exit_code)


def draw(
    net: Net,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE.svg", help="By default NET.svg.")] = "",
    phase: Annotated[
        str, typer.Option("--phase", metavar="TRAIN|TEST", help="By default TEST, where it has data for that.")
    ] = "",
    json: options.Json = False,
) -> None:
    """Draw a net as an SVG picture.

    Layers that belong together are one box, with the shape that comes out of it; a browser shows more for each.
    """
    from caffeup.app.net_draw import draw_net
    from caffeup.cli import show_net_model
    from caffeup.errors import UsageError
    from caffeup.model.base import to_json

    if phase.upper() not in {"", "TRAIN", "TEST"}:
        raise UsageError(f"There is no phase {phase!r}.", advice="Give TRAIN or TEST.")
    result = draw_net(net, output=output, phase=phase.upper())
    typer.echo(to_json(result) if json else "\n".join(show_net_model.written(result)))


COMMANDS = (merge_bn, classes, new, memory, draw)
