"""``caffeup lock``: what a build rests on, in a file to keep with the tree."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from caffeup.cli import options

app = typer.Typer(name="lock", help="What a tree was built of: write it down, compare it, verify it.", no_args_is_help=True)


def write(
    tree: options.Tree = "",
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Where to; caffeup.lock in the tree.")] = "",
) -> None:
    """Write down what is built in a tree, as `up` does at its end."""
    from caffeup.app.locking import write_lock
    from caffeup.app.session import Session

    path, _ = write_lock(Session(), tree, output)
    typer.echo(f"wrote {path}")


def update(
    keys: Annotated[
        Optional[list[str]], typer.Argument(metavar="[KEY]...", help="Only these keys or tables: tools.cudnn, packages.")
    ] = None,
    tree: options.TreeOption = "",
    json: options.Json = False,
) -> None:
    """Take what is built here into the lock; show what changed."""
    from caffeup.app.locking import update_lock
    from caffeup.app.session import Session
    from caffeup.lock.compare import lines
    from caffeup.model.base import to_json

    path, found = update_lock(Session(), tree, tuple(keys or ()))
    typer.echo(to_json(found) if json else "\n".join((f"wrote {path}", *lines(found, "before", "now"))))


def diff(
    first: Annotated[str, typer.Argument(metavar="[A]", help="A lock, or here; the tree's own.")] = "",
    second: Annotated[str, typer.Argument(metavar="[B]", help="Another, or here: what this machine would build.")] = "",
    tree: options.TreeOption = "",
    json: options.Json = False,
) -> None:
    """Compare two locks, or a lock with what is here."""
    from caffeup.app.locking import diff_locks
    from caffeup.app.session import Session
    from caffeup.lock.compare import lines
    from caffeup.model.base import to_json

    found = diff_locks(Session(), first, second, tree)
    if json:
        typer.echo(to_json(found))
    else:
        one, other = (name if name == "here" else f"in {name}" for name in (found.first, found.second))
        typer.echo("\n".join(lines(found.differences, one, other)) or "the same")


def verify(
    tree: options.Tree = "",
    lock: Annotated[str, typer.Option("--lock", metavar="FILE", help="The lock, where it is not the tree's own.")] = "",
    json: options.Json = False,
) -> None:
    """Compare the hashes of what is built with those in the lock."""
    from caffeup.app.locking import require_same, verify_lock
    from caffeup.model.base import to_json

    found = verify_lock(tree, lock)
    if json:
        typer.echo(to_json(found))
    require_same(found)
    if not json:
        typer.echo(f"what is built is what {found.first} says")


COMMANDS = (write, update, diff, verify)
