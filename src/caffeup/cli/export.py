"""``caffeup export``: the plan as a script, a Dockerfile or an Apptainer definition."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from caffeup.cli import completion, options
from caffeup.cli.request import CHOICES, make_request, takes


@takes(*CHOICES, "force", "yes")
def export(
    form: Annotated[str, typer.Argument(metavar="FORM", help="docker, apptainer or sh.", autocompletion=completion.forms)],
    tree: options.Tree = "",
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Where to write; by default it is printed.")] = "",
    **wishes: Any,
) -> None:
    """Write a Dockerfile, an Apptainer definition or a shell script.

    It does what caffeup would do with the tree, and needs no caffeup: tree and packages are pinned to what is here.
    """
    from caffeup.app.exporting import export_tree
    from caffeup.app.session import Session
    from caffeup.disk import as_path, write_atomically

    done = export_tree(Session(), form, tree, make_request(**wishes))
    for note in done.notes:
        typer.echo(f"caffeup: {note}", err=True)
    if output:
        write_atomically(as_path(output), done.text)
    else:
        typer.echo(done.text, nl=False)
