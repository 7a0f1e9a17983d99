"""``caffeup configure``: Makefile.config and what it refers to."""

from __future__ import annotations

from typing import Annotated

import typer

from caffeup.cli import options


def configure(
    tree: options.Tree = "",
    cpu: options.Cpu = False,
    no_cudnn: options.NoCudnn = False,
    no_opencv: options.NoOpencv = False,
    arch: options.Arch = "",
    cuda: options.Cuda = "",
    python: options.Python = "",
    blas: options.Blas = "",
    prefix: options.Prefix = None,
    stdout: Annotated[bool, typer.Option("--stdout", help="Print the Makefile.config and touch nothing.")] = False,
    yes: options.Yes = False,
) -> None:
    """Write the Makefile.config that fits this machine, and everything it refers to, into a tree."""
    from caffeup.app.planning import plan_for
    from caffeup.app.session import Session
    from caffeup.app.treework import put_in_place
    from caffeup.cli import show
    from caffeup.cli.request import make_request
    from caffeup.render import render_config

    given = make_request(
        cpu=cpu, no_cudnn=no_cudnn, no_opencv=no_opencv, arch=arch, cuda=cuda, python=python, blas=blas, prefix=prefix, yes=yes
    )
    session = Session()
    planned = plan_for(session, tree, given)
    if stdout:
        typer.echo(render_config(planned.plan), nl=False)
        return
    typer.echo("\n".join(show.patches(put_in_place(session, planned))))
