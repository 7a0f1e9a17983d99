"""``caffeup diagnose``: from a log to its cause."""

from __future__ import annotations

import sys
from typing import Annotated, Optional

import typer

from caffeup.cli import options


def diagnose(
    logs: Annotated[
        Optional[list[str]], typer.Argument(metavar="[LOG]...", help="Log files; - or nothing: standard input.")
    ] = None,
    machine: Annotated[
        str,
        typer.Option(
            "--machine", metavar="FILE", help="The machine it happened on (caffeup detect --json), where it is not this one."
        ),
    ] = "",
    json: options.Json = False,
) -> None:
    """Explain a log: the cause, and the command that mends it.

    A log of a build, of tests, of Python or of a run; also from a pipe, also from another machine.
    """
    from caffeup.app.diagnosing import diagnose_logs
    from caffeup.app.session import Session
    from caffeup.cli import show
    from caffeup.model.base import to_json

    if "-" in (logs or ("-",)) and sys.stdin is not None and sys.stdin.isatty():
        typer.echo("caffeup: reading from the terminal: paste the log, then Ctrl-D; or name its file", err=True)
    findings = diagnose_logs(Session(), tuple(logs or ("-",)), machine)
    if json:
        typer.echo(to_json(findings))
    else:
        typer.echo("\n".join(show.findings(findings)) or "No error that caffeup can see stands in it.")
