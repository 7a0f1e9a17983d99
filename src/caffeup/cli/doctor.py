"""``caffeup doctor``: what is wrong, and the command that mends it."""

from __future__ import annotations

from typing import Annotated

import typer

from caffeup.cli import options


def doctor(
    tree: Annotated[
        str, typer.Argument(help="A tree to be looked at too; the one in or below the current folder where there is just one.")
    ] = "",
    prefix: options.Prefix = None,
    json: options.Json = False,
) -> None:
    """What is wrong here or in a tree, and what mends it.

    Each check with what was seen: the worst first, then what is right. Changes nothing. Exit code: 1 where there is a
    problem, 18 where the worst is a warning, 0 otherwise.
    """
    from caffeup.app.doctor import examine
    from caffeup.app.session import Session
    from caffeup.cli import show
    from caffeup.cli.request import make_request
    from caffeup.errors import WARNINGS
    from caffeup.model.base import to_json
    from caffeup.model.finding import Severity

    findings = examine(Session(), tree, make_request(prefix=prefix))
    typer.echo(to_json(findings) if json else "\n".join(show.examined(findings)))
    codes = {Severity.PROBLEM: 1, Severity.WARNING: WARNINGS}
    severities = {one.severity for one in findings}
    raise typer.Exit(next((code for severity, code in codes.items() if severity in severities), 0))
