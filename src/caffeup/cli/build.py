"""``caffeup build``: the stages that compile, alone."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from caffeup.cli import options
from caffeup.cli.request import make_request, takes


@takes("cuda", "python", "prefix", "no_tests", "jobs", "yes")
def build(
    tree: options.Tree = "",
    plan: Annotated[
        str, typer.Option("--plan", metavar="FILE", help="Build from a plan.json made earlier (caffeup plan --json).")
    ] = "",
    json: options.Json = False,
    **wishes: Any,
) -> None:
    """Configure, build, test and verify a tree that is here.

    With the options that it was last built with, and over them those given now.
    """
    from caffeup.app.planning import merged
    from caffeup.app.session import Session, find_tree, remembered_request
    from caffeup.app.up import Up, require_tests
    from caffeup.cli import show
    from caffeup.cli.terminal import Terminal
    from caffeup.model.base import to_json

    root = find_tree(tree)
    request = merged(remembered_request(root), make_request(**wishes))
    ui = Terminal(yes=request.yes)
    report = Up(Session(), ui, request).run_in(root, plan_file=plan)
    typer.echo(to_json(report) if json else "\n".join(show.report(report, told=ui.watched)))
    require_tests(report)
