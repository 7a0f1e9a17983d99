"""``caffeup run``: a command, and what was behind it where it fails."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def run(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND…", help="The command with its arguments.")],
) -> None:
    """Run a command; where it fails, say why.

    Its output passes through unchanged, and its exit code is kept. What caffeup has to say goes to stderr.
    """
    from caffeup.app.running import Run
    from caffeup.app.session import Session
    from caffeup.cli.show_run import outcome

    started = Run(Session(), command)
    ran = started.go()
    if ran.status != 0 and not ran.interrupted:
        _tell("")
        for line in outcome(started.explain(_tell), ran.status):
            _tell(line)
    raise typer.Exit(ran.status)


def _tell(line: str) -> None:
    if sys.stderr is not None:
        typer.echo(line, err=True)
