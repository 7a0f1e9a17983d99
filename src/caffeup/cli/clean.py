"""``caffeup clean``: what caffeup made, and how to be rid of it."""

from __future__ import annotations

from collections.abc import Iterable
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
    deps: Annotated[bool, typer.Option("--deps", help="Remove the packages that were unpacked for all trees.")] = False,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Show what caffeup made in a tree, or remove it.

    Without options: what there is, and its size.
    """
    from caffeup.app.clean import clean_cuda, clean_deps, clean_tree, sizes
    from caffeup.app.session import Session, find_tree
    from caffeup.cli import show
    from caffeup.cli.terminal import Terminal
    from caffeup.model.base import to_json

    session, ui = Session(), Terminal(yes=yes)
    asked = products or logs or everything
    done: list[str] = []
    if cuda:
        done += _said(clean_cuda(session, ui), json=json)
    if deps:
        done += _said(clean_deps(session, ui), json=json)
    if tree or asked or not (cuda or deps):
        root = find_tree(tree)
        if not asked:
            found = sizes(session, root)
            rows = [(s.what, show.size(s.bytes), s.path) for s in found]
            lines = list(show.table(rows)) or [f"caffeup has made nothing in {root}"]
            typer.echo(to_json(found) if json else "\n".join(lines))
            return
        work = clean_tree(session, ui, root, products=products, logs=logs, everything=everything)
        done += _said(work, json=json)
    if json:
        typer.echo(to_json(tuple(done)))


def _said(lines: Iterable[str], *, json: bool) -> Iterable[str]:
    """Each line as soon as it is known; for JSON they are gathered."""
    for line in lines:
        if not json:
            typer.echo(line)
        yield line
