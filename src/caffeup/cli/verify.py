"""``caffeup verify``: prove that what was built works."""

from __future__ import annotations

import typer

from caffeup.cli import options


def verify(tree: options.Tree = "", json: options.Json = False) -> None:
    """Prove that what was built works.

    Libraries resolve, Python imports it, and a small net runs forward and backward.
    """
    from caffeup.app.planning import plan_for
    from caffeup.app.session import Session
    from caffeup.app.treework import verify_tree
    from caffeup.cli import show
    from caffeup.cli.request import make_request
    from caffeup.cli.terminal import Terminal
    from caffeup.errors import VerifyFailed
    from caffeup.model.base import to_json

    session = Session()
    checks = verify_tree(session, plan_for(session, tree, make_request()), Terminal())
    typer.echo(to_json(checks) if json else "\n".join(show.checks(checks)))
    if not all(check.ok for check in checks):
        raise typer.Exit(VerifyFailed.exit_code)
