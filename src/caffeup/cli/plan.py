"""``caffeup plan``: every decision with its reason."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from caffeup.cli import options
from caffeup.cli.request import CHOICES, make_request, takes


@takes(*CHOICES, "jobs", "force", "yes")
def plan(
    tree: options.Tree = "",
    explain: Annotated[str, typer.Option("--explain", metavar="KEY", help="Tell all about one decision.")] = "",
    why_not: Annotated[
        str, typer.Option("--why-not", metavar="CC", help="Tell why this compute capability is not built for.")
    ] = "",
    json: options.Json = False,
    **wishes: Any,
) -> None:
    """Every decision with its reason, and all conflicts.

    Touches nothing.
    """
    from caffeup.app.missing import code_of, told_together
    from caffeup.app.planning import parse_capability, plan_for
    from caffeup.app.session import Session
    from caffeup.cli import show
    from caffeup.errors import UsageError
    from caffeup.model.base import to_json
    from caffeup.plan.explain import alike, keys
    from caffeup.plan.explain import explain as explain_key
    from caffeup.plan.explain import why_not as why

    session = Session()
    planned = plan_for(session, tree, make_request(**wishes))
    if explain:
        text = explain_key(planned.plan, explain).rstrip()
        if not text:
            near = alike(planned.plan, explain)
            raise UsageError(
                f"The plan says nothing about {explain}." + (f" Did you mean {near}?" if near else ""),
                details=f"It has: {', '.join(keys(planned.plan))}",
            )
        typer.echo(to_json(text.splitlines()) if json else "\n".join(show.paragraphs(text, on_terminal=sys.stdout.isatty())))
    elif why_not:
        reasons = why(planned.plan, planned.machine, session.facts, parse_capability(why_not))
        lines = show.paragraphs("\n".join(reasons) or f"{why_not} is built for.", on_terminal=sys.stdout.isatty())
        typer.echo(to_json(reasons) if json else "\n".join(lines))
    else:
        told = told_together(session, planned.machine, planned.plan)
        typer.echo(to_json(planned.plan) if json else "\n".join(show.headed_plan(told, planned.tree)))
    raise typer.Exit(code_of(planned.plan))
