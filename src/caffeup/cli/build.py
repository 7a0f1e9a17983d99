"""``caffeup build``: the stages that compile, alone."""

from __future__ import annotations

from typing import Annotated

import typer

from caffeup.cli import options


def build(
    tree: options.Tree = "",
    plan: Annotated[
        str, typer.Option("--plan", metavar="FILE", help="Build from a plan.json made earlier (caffeup plan --json).")
    ] = "",
    no_tests: Annotated[bool, typer.Option("--no-tests", help="Do not build and run Caffe's own tests.")] = False,
    jobs: options.Jobs = None,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Configure, patch, build, test and verify a tree that is already here, with the options it was last built with."""
    from caffeup.app.planning import merged
    from caffeup.app.session import Session, find_tree, remembered_request
    from caffeup.app.up import Up, require_tests
    from caffeup.cli import show
    from caffeup.cli.request import make_request
    from caffeup.cli.terminal import Terminal
    from caffeup.model.base import to_json

    root = find_tree(tree)
    request = merged(remembered_request(root), make_request(no_tests=no_tests, jobs=jobs, yes=yes))
    report = Up(Session(), Terminal(yes=yes), request).run_in(root, plan_file=plan)
    typer.echo(to_json(report) if json else "\n".join(show.report(report)))
    require_tests(report)
