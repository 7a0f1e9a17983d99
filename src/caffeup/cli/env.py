"""``caffeup env``: a line to eval."""

from __future__ import annotations

import shlex

import typer

from caffeup.cli import options


def env(tree: options.Tree = "") -> None:
    """Print what a shell must know to use the tree.

    For this shell:  eval "$(caffeup env)"

    Only of what is built; what is not is told on stderr.
    """
    from caffeup.app.session import find_tree
    from caffeup.app.treework import environment, last_plan, missing_of, require_built
    from caffeup.cli.called import as_typed

    plan = last_plan(find_tree(tree))
    require_built(plan)
    for name, folders in environment(plan):
        typer.echo(f'export {name}={shlex.quote(":".join(folders))}"${{{name}:+:${name}}}"')
    for words in missing_of(plan):
        typer.echo(as_typed(f"caffeup: {words}"), err=True)
