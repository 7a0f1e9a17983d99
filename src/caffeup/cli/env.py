"""``caffeup env``: a line to eval."""

from __future__ import annotations

import shlex

import typer

from caffeup.cli import options


def env(tree: options.Tree = "") -> None:
    """Print what a shell must know to use the tree.

    For this shell:  eval "$(caffeup env)"
    """
    from caffeup.app.session import find_tree
    from caffeup.app.treework import environment, last_plan, require_built

    plan = last_plan(find_tree(tree))
    require_built(plan)
    for name, folders in environment(plan):
        typer.echo(f'export {name}={shlex.quote(":".join(folders))}"${{{name}:+:${name}}}"')
