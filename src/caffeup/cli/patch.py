"""``caffeup patch …``: what goes into a tree, shown, applied and taken out again."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from caffeup.cli import options

if TYPE_CHECKING:
    from caffeup.model.outcome import PatchEntry

app = typer.Typer(name="patch", help="What goes into a tree, shown, put in, and taken out.", no_args_is_help=True)

Ids = Annotated[Optional[list[str]], typer.Option("--only", metavar="ID", help="Only this entry (repeatable).")]
All = Annotated[bool, typer.Option("--all", help="Also those that only explain a failure or name what to install.")]
Files = Annotated[bool, typer.Option("--files", help="Name every file, and the whole reason.")]

_FILLED_FROM_A_LOG = re.compile(r"\{(\w+)\}")
"""What the diagnosis puts into a title."""


def list_(every: All = False, json: options.Json = False) -> None:
    """All that can go into a tree: what each is for."""
    from caffeup.app.session import Session
    from caffeup.cli import show
    from caffeup.model.base import to_json

    known = Session().facts.fixes
    fixes = tuple(fix for fix in known if every or fix.into_tree)
    if json:
        typer.echo(to_json(fixes))
        return
    rows = [(fix.id, _FILLED_FROM_A_LOG.sub(r"<\1>", fix.title)) for fix in fixes]
    lines = list(show.table(rows, wrap_last=sys.stdout.isatty()))
    left = len(known) - len(fixes)
    more = f"  and {left} that change no tree but explain a failure or name what to install: --all"
    lines += show.paragraphs(more, on_terminal=sys.stdout.isatty()) if left else []
    typer.echo("\n".join(lines))


def preview(tree: options.Tree = "", files: Files = False, json: options.Json = False) -> None:
    """What apply would do. Touches nothing."""
    from caffeup.app.treework import preview_patches

    _show(preview_patches, tree, files=files, json=json)


def apply(tree: options.Tree = "", files: Files = False, json: options.Json = False) -> None:
    """Put in place what this machine and tree need.

    All of it or nothing; a second time changes nothing.
    """
    from functools import partial

    from caffeup.app.treework import put_in_place
    from caffeup.cli.terminal import Terminal

    _show(partial(put_in_place, ui=Terminal()), tree, files=files, json=json)


def status(tree: options.Tree = "", files: Files = False, json: options.Json = False) -> None:
    """What is applied, and what somebody changed since."""
    from caffeup.app.treework import patch_status

    _show(patch_status, tree, files=files, json=json)


def diff(tree: options.Tree = "") -> None:
    """Everything that was changed in the tree, as a unified diff."""
    from caffeup.app.session import find_tree
    from caffeup.app.treework import patch_diff

    typer.echo(patch_diff(find_tree(tree)), nl=False)


def revert(tree: options.Tree = "", only: Ids = None, files: Files = False, json: options.Json = False) -> None:
    """Take it out again.

    What somebody changed since stays: only what caffeup put there goes. Exit code 4 where that could not be told apart,
    and so was left in.
    """
    from caffeup.app.session import find_tree
    from caffeup.app.treework import revert_patches
    from caffeup.errors import PatchFailed
    from caffeup.model.outcome import PatchState

    done = revert_patches(find_tree(tree), tuple(only or ()))
    _tell(done, files=files, json=json)
    left = sorted({path for one in done if one.state is PatchState.EDITED for path in one.files})
    if left:
        typer.echo(f"left in, as somebody changed it since: {', '.join(left)}", err=True)
        raise typer.Exit(PatchFailed.exit_code)


def _show(work: object, tree: str, *, files: bool, json: bool) -> None:
    from caffeup.app.planning import plan_for
    from caffeup.app.session import Session
    from caffeup.cli.request import make_request

    session = Session()
    _tell(work(session, plan_for(session, tree, make_request())), files=files, json=json)  # type: ignore[operator]


def _tell(entries: tuple[PatchEntry, ...], *, files: bool, json: bool) -> None:
    from caffeup.cli import show
    from caffeup.model.base import to_json

    if json:
        typer.echo(to_json(entries))
        return
    person = sys.stdout.isatty()
    lines = list(show.patches(entries, files=files, fitted=person))
    lines += ["  --files names every file, and the whole reason"] if person and entries and not files else []
    typer.echo("\n".join(lines))
