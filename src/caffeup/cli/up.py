"""``caffeup up``: everything."""

from __future__ import annotations

from typing import Annotated, Any, Optional

import typer

from caffeup.cli import options
from caffeup.cli.request import CHOICES, make_request, takes


@takes("source", "into", *CHOICES, "jobs", "no_tests", "distribute", "force", "yes")
def up(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and touch nothing.")] = False,
    names: Annotated[bool, typer.Option("--list", help="Show the names of trees that up can fetch.")] = False,
    locked: Annotated[
        bool, typer.Option("--locked", help="Build exactly what the tree's caffeup.lock says, or say why not.")
    ] = False,
    lock_file: Annotated[str, typer.Option("--lock", metavar="FILE", help="The lock for --locked, where it is another.")] = "",
    allow: Annotated[
        Optional[list[str]], typer.Option("--allow", metavar="KEY", help="Accept this difference from the lock (repeatable).")
    ] = None,
    json: options.Json = False,
    **wishes: Any,
) -> None:
    """Everything: from a bare machine to a Caffe that works.

    Detect, plan, fetch, install what is missing, configure, patch, build, test, pycaffe, verify. Again: only what changed.
    """
    from caffeup.app.locking import locked_for
    from caffeup.app.missing import code_of, told_together
    from caffeup.app.session import Session
    from caffeup.app.up import Up, require_tests
    from caffeup.cli import show
    from caffeup.cli.terminal import Terminal
    from caffeup.model.base import to_json
    from caffeup.source.catalogue import trees

    session = Session()
    if names:
        known = trees(session.facts)
        typer.echo(to_json(known) if json else "\n".join(show.table([(one.id, one.title) for one in known])))
        return
    request = make_request(**wishes)
    request, held = locked_for(
        session, request, locked=locked, file=lock_file, allow=tuple(allow or ()), given=bool(wishes["source"])
    )
    run = Up(session, Terminal(yes=request.yes), request, held)
    if dry_run:
        planned = run.preview()
        if held is not None and planned.tree.seen:
            held.require(session, planned)
        told = told_together(session, planned.machine, planned.plan)
        typer.echo(to_json(planned.plan) if json else "\n".join(show.headed_plan(told, planned.tree)))
        if planned.unreached is not None:
            raise planned.unreached
        raise typer.Exit(code_of(planned.plan))
    report = run.run()
    typer.echo(to_json(report) if json else "\n".join(show.report(report, told=Terminal().watched)))
    require_tests(report)
