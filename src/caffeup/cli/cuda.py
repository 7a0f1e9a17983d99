"""``caffeup cuda``: toolkits side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from caffeup.cli import options

app = typer.Typer(name="cuda", help="CUDA toolkits side by side, and which one a tree uses.", no_args_is_help=True)
_Toolkit = Annotated[str, typer.Argument(metavar="TOOLKIT", help="Its version or its folder.")]


def list_(json: options.Json = False) -> None:
    """List the toolkits, and the trees built with each."""
    from caffeup.app.cuda_toolkits import toolkits
    from caffeup.app.session import Session
    from caffeup.cli import show
    from caffeup.model.base import to_json

    found = toolkits(Session())
    rows = [
        (
            f"CUDA {one.version}",
            one.root + (" (/usr/local/cuda)" if one.linked and one.root != "/usr/local/cuda" else ""),
            one.layout if one.compiles else f"{one.layout}, no nvcc",
            f"used by {', '.join(one.trees)}" if one.trees else "",
        )
        for one in found.toolkits
    ]
    typer.echo(to_json(found) if json else "\n".join(show.table(rows)) or "no CUDA toolkit is here")


def use(toolkit: _Toolkit, tree: options.Tree = "") -> None:
    """Let a tree use this toolkit from its next build on."""
    from caffeup.app.cuda_toolkits import use as use_it
    from caffeup.app.session import Session
    from caffeup.cli.called import prompted

    planned = use_it(Session(), toolkit, tree)
    taken = planned.plan.decision("toolkit").value
    typer.echo(f"{planned.root} uses {taken} from its next build on:\n  {prompted(f'caffeup up {planned.root}')}")


def why(tree: options.Tree = "", json: options.Json = False) -> None:
    """Say which toolkit a tree uses, and why not the others."""
    from caffeup.app.cuda_toolkits import why as why_it
    from caffeup.app.session import Session
    from caffeup.model.base import to_json

    found = why_it(Session(), tree)
    taken = found.decision
    lines = [taken.value, f"  because: {taken.because}", *(f"  not {one.value}: {one.because}" for one in taken.rejected)]
    typer.echo(to_json(found) if json else "\n".join(lines))


def remove(toolkit: _Toolkit, json: options.Json = False) -> None:
    """Say what removing one would break, and how; run nothing."""
    from caffeup.app.cuda_toolkits import remove as look
    from caffeup.app.session import Session
    from caffeup.cli.called import prompted
    from caffeup.model.base import to_json

    found = look(Session(), toolkit)
    one = found.toolkit
    lines = [f"CUDA {one.version} in {one.root}. Nothing is removed by this."]
    lines += [f"  {tree} was built with it and would no longer start" for tree in one.trees]
    lines += ["  no tree that caffeup knows was built with it"] if not one.trees else []
    lines += [f"  {other} would be left" for other in found.others] or ["  no other toolkit with nvcc would be left"]
    lines += [found.advice, *(f"  {prompted(command)}" for command in found.commands)]
    typer.echo(to_json(found) if json else "\n".join(lines))


COMMANDS = (list_, use, why, remove)
