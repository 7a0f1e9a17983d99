"""``caffeup gpu --watch``: the table, live."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Callable

import typer

from caffeup.cli import called
from caffeup.model.base import to_json

if TYPE_CHECKING:
    from rich.text import Text

    from caffeup.model.gpus import Snapshot


def run_watch(look: Callable[[], Snapshot], every: float, *, json: bool = False) -> None:
    """Until Ctrl-C, which is its usual end. In a pipe: one table after the other; with ``json`` one line each."""
    try:
        if json:
            for snapshot in _each(look, every):
                typer.echo(to_json(snapshot, indent=-1).strip())
        elif sys.stdout.isatty() and called.draws():
            _live(look, every)
        else:
            for snapshot in _each(look, every):
                typer.echo("\n".join(lines(snapshot, shutil.get_terminal_size().columns)) + "\n")
    except KeyboardInterrupt:
        return


def _each(look: Callable[[], Snapshot], every: float) -> Iterator[Snapshot]:
    """Snapshot after snapshot; where there is no GPU from the start there is nothing to watch."""
    from caffeup.app.gpus import absence

    error = absence(look())
    if error is not None:
        raise error
    while True:
        began = time.monotonic()
        yield look()
        time.sleep(max(0.05, every - (time.monotonic() - began)))


def _live(look: Callable[[], Snapshot], every: float) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    with Live(console=console, screen=True, auto_refresh=False, vertical_overflow="ellipsis") as live:
        for snapshot in _each(look, every):
            live.update(_screen(snapshot, console.width, console.height, every), refresh=True)


def _screen(snapshot: Snapshot, width: int, height: int, every: float) -> Text:
    """What stands on the screen: the time, how to end it, and the table; a shorter one where it would not fit."""
    from rich.text import Text

    from caffeup.gpu.compact import compact

    head = f"{time.strftime('%H:%M:%S')}  every {every:g} s, Ctrl-C ends"
    text = Text(no_wrap=True, overflow="ellipsis", end="")
    text.append(f"{head:>{max(len(head), width - 1)}}\n", style="dim")
    shown = list(lines(snapshot, width - 1))
    if snapshot.gpus and len(shown) + 1 > height:
        shown = list(compact(snapshot, width - 1, height - 1))
    for line in shown:
        text.append(line + "\n", style=_style(line))
    return text


def _style(line: str) -> str:
    if line.startswith("GPU "):
        return "bold"
    return "dim" if line.lstrip().startswith("PID ") else ""


def lines(snapshot: Snapshot, width: int) -> Iterator[str]:
    """The table, or why there is none."""
    from caffeup.app.gpus import absence
    from caffeup.cli import show
    from caffeup.gpu.words import table

    error = absence(snapshot)
    if error is None:
        yield from table(snapshot, width)
    else:
        yield error.brief
        yield from show.findings(error.findings)
