"""``caffeup configure``: Makefile.config and what it refers to."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from caffeup.cli import options
from caffeup.cli.request import CHOICES, make_request, takes


@takes(*CHOICES, "force", "yes")
def configure(
    tree: options.Tree = "",
    stdout: Annotated[bool, typer.Option("--stdout", help="Print the Makefile.config and touch nothing.")] = False,
    **wishes: Any,
) -> None:
    """Write the Makefile.config that fits this machine.

    And everything that it refers to: links, shims, whole files and edits.
    """
    from caffeup.app.planning import plan_for
    from caffeup.app.session import Session
    from caffeup.app.treework import put_in_place
    from caffeup.cli import show
    from caffeup.cli.terminal import Terminal
    from caffeup.render import render_config

    session = Session()
    planned = plan_for(session, tree, make_request(**wishes))
    if stdout:
        typer.echo(render_config(planned.plan), nl=False)
        return
    typer.echo("\n".join(show.patches(put_in_place(session, planned, Terminal()), fitted=sys.stdout.isatty())))
