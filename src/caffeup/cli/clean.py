"""``caffeup clean``: what caffeup made, and how to be rid of it."""

from __future__ import annotations

from typing import Annotated

import typer

from caffeup.cli import options


def clean(
    tree: options.Tree = "",
    products: Annotated[bool, typer.Option("--products", help="Remove what was built.")] = False,
    logs: Annotated[bool, typer.Option("--logs", help="Remove logs and temporary files.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Remove all that caffeup made, patches too: the tree as it came.")
    ] = False,
    cuda: Annotated[bool, typer.Option("--cuda", help="Remove the CUDA that was laid out for all trees.")] = False,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Show what caffeup made in a tree, or remove it.

    Without options: what there is, and its size.
    """
    from caffeup.app.clean import clean_cuda, clean_tree, sizes
    from caffeup.app.session import Session, find_tree
    from caffeup.cli import show
    from caffeup.cli.terminal import Terminal
    from caffeup.model.base import to_json

    session, ui = Session(), Terminal(yes=yes)
    if cuda:
        for line in clean_cuda(session, ui):
            typer.echo(line)
        if not (tree or products or logs or everything):
            return
    root = find_tree(tree)
    if not (products or logs or everything):
        found = sizes(session, root)
        typer.echo(to_json(found) if json else "\n".join(show.table([(s.what, show.size(s.bytes), s.path) for s in found])))
        return
    for line in clean_tree(session, ui, root, products=products, logs=logs, everything=everything):
        typer.echo(line)
