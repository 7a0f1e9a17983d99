"""``caffeup detect``: what is here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caffeup.cli import options


def detect(
    prefix: options.Prefix = None,
    record: Annotated[
        str,
        typer.Option(
            "--record", metavar="DIR", help="Record what the probes saw into a folder, with names and home folders masked."
        ),
    ] = "",
    json: options.Json = False,
) -> None:
    """What is here, and how it was found.

    GPUs, driver, toolkits, cuDNN, compilers, libraries, Pythons.
    """
    from caffeup.app.session import Session
    from caffeup.cli import show
    from caffeup.cli.request import make_request
    from caffeup.host import RealHost
    from caffeup.model.base import to_json
    from caffeup.recording import RecordingHost

    recording = RecordingHost(RealHost(), Path(record)) if record else None
    session = Session(recording)
    machine = session.machine(make_request(prefix=prefix).prefixes)
    typer.echo(to_json(machine) if json else "\n".join(show.machine(machine)))
    if recording is not None:
        recording.finish()
        typer.echo(f"recorded in {record}", err=True)
