"""``caffeup explain``: the long story of a finding."""

from __future__ import annotations

from typing import Annotated

import typer

from caffeup.cli import completion, options


def explain(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[ID]",
            help="The id that stands in brackets behind a finding; nothing: all ids.",
            autocompletion=completion.ids,
        ),
    ] = "",
    json: options.Json = False,
) -> None:
    """What a finding means, and what mends it.

    How it comes about, how it looks in a log, what decides where others look the same, and where it was reported; offline.
    """
    from caffeup.app.explaining import story
    from caffeup.app.session import Session
    from caffeup.cli import show
    from caffeup.cli.show_explanation import explanation
    from caffeup.diagnose.explain import titles
    from caffeup.model.base import to_json

    session = Session()
    if not name:
        known = titles(session.facts)
        typer.echo(to_json(dict(known)) if json else "\n".join(show.table(known, indent=0)))
        return
    told = story(session, name)
    typer.echo(to_json(told) if json else "\n".join(explanation(told)))
