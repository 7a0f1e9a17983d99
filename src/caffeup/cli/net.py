"""``caffeup net …``: nets rewritten, checked and measured."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from caffeup.cli import net_model, net_tune, options

app = typer.Typer(name="net", help="Nets: rewritten for the depthwise layer, checked, measured.", no_args_is_help=True)

File = Annotated[str, typer.Argument(metavar="NET.prototxt", help="The net's file.")]
Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Where to write.")]
InPlace = Annotated[bool, typer.Option("--in-place", help="Replace the file itself.")]
Names = Annotated[bool, typer.Option("--names", help="Where shapes do not tell, trust names that end in /dw.")]
Shapes = Annotated[
    Optional[list[str]],
    typer.Option("--shape", metavar="BLOB=1,3,300,300", help="A shape that does not stand in the file (repeatable)."),
]
Deploy = Annotated[bool, typer.Option("--deploy", help="It is meant to deploy: data and loss layers are a mistake.")]
Engine = Annotated[
    str, typer.Option("--engine", metavar="caffe|cudnn|default", help="Change the engine of these layers only, not their type.")
]


def convert(
    net: File,
    output: Output = "",
    in_place: InPlace = False,
    names: Names = False,
    engine: Engine = "",
    shape: Shapes = None,
    json: options.Json = False,
) -> None:
    """Turn depthwise convolutions into the depthwise layer.

    Those with as many groups as input channels, by shapes and not by names. Their engine lines are commented out,
    everything else stays byte for byte. Writes NET_depth.prototxt, or what -o names.
    """
    from caffeup.app.nets import convert_net, given_shapes
    from caffeup.cli import show_net
    from caffeup.errors import UsageError
    from caffeup.model.base import to_json
    from caffeup.net.convert import ENGINES

    if engine and engine not in ENGINES:
        raise UsageError(f"There is no engine {engine!r}.", advice=f"Give {', '.join(ENGINES)}.")
    shapes = given_shapes(shape or ())
    result = convert_net(net, output=output, in_place=in_place, names=names, engine=engine, shapes=shapes)
    nothing = "Nothing to change: no file was written."
    typer.echo(to_json(result) if json else "\n".join(show_net.rewrite(result, nothing)))


def revert(net: File, output: Output = "", in_place: InPlace = False, json: options.Json = False) -> None:
    """Take back what convert did.

    Where nobody changed the file since, the result is the one from before, byte for byte.
    """
    from caffeup.app.nets import revert_net
    from caffeup.cli import show_net
    from caffeup.model.base import to_json

    result = revert_net(net, output=output, in_place=in_place)
    nothing = "No line in it says that caffeup changed it: no file was written."
    typer.echo(to_json(result) if json else "\n".join(show_net.rewrite(result, nothing)))


def check(
    net: File,
    tree: options.TreeOption = "",
    deploy: Deploy = False,
    shape: Shapes = None,
    json: options.Json = False,
) -> None:
    """Find what is wrong in a net, without Caffe.

    Fields and layers against the caffe.proto of --tree, or of all known trees; how layers are connected, shapes,
    numbers of classes, engines, and the paths in it. The exit code is 1 where Caffe would stop. Solvers and label maps too.
    """
    from caffeup.app.netcheck import check_file, worst
    from caffeup.app.nets import given_shapes
    from caffeup.cli import show_net
    from caffeup.model.base import to_json
    from caffeup.model.finding import Severity

    report = check_file(net, tree=tree, deploy=deploy, shapes=given_shapes(shape or ()))
    typer.echo(to_json(report) if json else "\n".join(show_net.report(report)))
    if worst(report) is Severity.PROBLEM:
        raise typer.Exit(1)


COMMANDS = (convert, revert, check, net_tune.tune, *net_model.COMMANDS)
