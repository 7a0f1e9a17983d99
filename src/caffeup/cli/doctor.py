"""``caffeup doctor``: what is wrong, and the command that mends it."""

from __future__ import annotations

from typing import Annotated

import typer

from caffeup.cli import options


def doctor(
    tree: Annotated[str, typer.Argument(help="A tree to be looked at too.")] = "",
    prefix: options.Prefix = None,
    json: options.Json = False,
) -> None:
    """What is wrong here or in a tree, and what mends it.

    Changes nothing.
    """
    from caffeup.app.doctor import examine
    from caffeup.app.session import Session
    from caffeup.cli import show
    from caffeup.cli.request import make_request
    from caffeup.model.base import to_json
    from caffeup.model.finding import Severity

    findings = examine(Session(), tree, make_request(prefix=prefix))
    if json:
        typer.echo(to_json(findings))
    else:
        typer.echo("\n".join(show.findings(findings)) or "ok: nothing is wrong that caffeup knows of")
    raise typer.Exit(1 if any(one.severity is Severity.PROBLEM for one in findings) else 0)
