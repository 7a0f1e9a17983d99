"""``caffeup rollback``: back to the build before."""

from __future__ import annotations

import typer

from caffeup.cli import options


def rollback(tree: options.Tree = "", json: options.Json = False) -> None:
    """Return to the build that worked, before the newest one.

    Its settings and shims come back with it. The next `up` builds anew.
    """
    from caffeup.app.rollback import roll_back
    from caffeup.app.session import Session
    from caffeup.cli import show
    from caffeup.cli.terminal import Terminal
    from caffeup.model.base import to_json

    checks = roll_back(Session(), Terminal(yes=False), tree)
    rows = [("ok" if check.ok else "FAILED", check.name, check.result) for check in checks]
    typer.echo(to_json(checks) if json else "\n".join(("the build before is back in its place", *show.table(rows))))
