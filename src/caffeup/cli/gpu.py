"""``caffeup gpu …``: who holds the GPUs, which is free, and ending what holds one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from typer.core import TyperGroup

from caffeup.cli import completion, options

if TYPE_CHECKING:
    from caffeup.model.gpus import Snapshot

USUAL = "2"


class _WithUsualTime(TyperGroup):
    """``--watch`` may stand without its seconds, which typer has no way to say."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put them in."""
        whole = list(args)
        for at, (word, after) in enumerate(zip(args, [*args[1:], ""])):
            if word == "--watch" and not after[:1].isdigit():
                whole.insert(at + 1, USUAL)
                break
        return list(super().parse_args(ctx, whole))


app = typer.Typer(name="gpu", cls=_WithUsualTime, help="The GPUs: every figure, who holds them, which is free.")

Watch = Annotated[
    Optional[float],
    typer.Option("--watch", metavar="[SECONDS]", min=0.2, max=3600, help=f"Show it anew every {USUAL} seconds, until Ctrl-C."),
]
Need = Annotated[str, typer.Option("--need", metavar="SIZE", help="Memory that must be free: 4GiB. Without: a GPU to itself.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until there is one.")]
Timeout = Annotated[
    Optional[float], typer.Option("--timeout", metavar="SECONDS", min=0, help="Wait no longer than this (implies --wait).")
]
Force = Annotated[bool, typer.Option("--force", help="Processes of other users too.")]
Grace = Annotated[
    float, typer.Option("--grace", metavar="SECONDS", min=0, max=3600, help="Time to end by itself before it is killed.")
]


def table(context: typer.Context, watch: Watch = None, json: options.Json = False) -> None:
    """The GPUs: every figure, who holds them, which is free."""
    if context.invoked_subcommand is not None:
        return
    from caffeup.app.gpus import looking
    from caffeup.app.session import Session

    with looking(Session()) as looker:
        if watch is None:
            _show(looker.look(), json=json)
            return
        from caffeup.cli.gpu_watch import run_watch

        run_watch(looker.look, watch, json=json)


def _show(snapshot: Snapshot, *, json: bool) -> None:
    """The table, or why there is none, with an exit code of its own."""
    from caffeup.app.gpus import absence
    from caffeup.cli import show
    from caffeup.gpu.words import table as lines
    from caffeup.model.base import to_json

    error = absence(snapshot)
    if json:
        typer.echo(to_json(snapshot))
    elif error is None:
        typer.echo("\n".join(lines(snapshot, show.width(), whole=not sys.stdout.isatty())))
        if snapshot.findings:
            typer.echo("\n" + "\n".join(show.findings(snapshot.findings)))
    if error is not None:
        if json:
            raise typer.Exit(error.exit_code)
        raise error


def explain(
    figure: Annotated[
        str,
        typer.Argument(
            help="A figure, as it is named here or by nvidia-smi; without: all of them.", autocompletion=completion.figures
        ),
    ] = "",
    json: options.Json = False,
) -> None:
    """What each figure means, its range, and what is normal."""
    from caffeup.app.session import Session
    from caffeup.cli import show
    from caffeup.errors import UsageError
    from caffeup.gpu.figures import UnknownFigure, explained, find, overview
    from caffeup.model.base import to_json

    figures = Session().facts.figures
    try:
        one = find(figures, figure) if figure else None
    except UnknownFigure as error:
        likely = ", ".join(error.likely or (known.id for known in figures))
        raise UsageError(f"There is no figure {figure!r}.", advice=f"Perhaps: {likely}") from None
    if json:
        typer.echo(to_json(one or figures))
    else:
        typer.echo("\n".join(explained(one, show.width()) if one else overview(figures, show.width())))


def free(
    need: Annotated[
        str, typer.Option("--need", metavar="SIZE", help="Memory that must be free: 4GiB. Without: nobody on it.")
    ] = "",
    wait: Wait = False,
    timeout: Timeout = None,
    uuid: Annotated[bool, typer.Option("--uuid", help="Print its UUID.")] = False,
    json: options.Json = False,
) -> None:
    """Print the index of a GPU that is free, or has room.

    Exit code 0 where there is one, 16 where there is none. The index counts by bus, as CUDA does
    with CUDA_DEVICE_ORDER=PCI_BUS_ID. Of a GPU that MIG divides, a part's UUID is printed.
    """
    from caffeup.app.gpu_run import choose_with_promises
    from caffeup.app.gpus import find_room, looking
    from caffeup.app.session import Session
    from caffeup.model.base import to_json

    size = _size(need)
    with looking(Session()) as looker:
        room = find_room(
            looker,
            size,
            wait=wait or timeout is not None,
            timeout=timeout,
            choosing=lambda snapshot: choose_with_promises(looker, snapshot, size),
            tell=_tell,
        )
    if json:
        typer.echo(to_json(room))
    else:
        typer.echo(room.uuid if room.uuid and (uuid or room.instance is not None) else room.label)


def run(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="The command and its arguments.")],
    need: Need = "",
    wait: Wait = False,
    timeout: Timeout = None,
) -> None:
    """Run a command on a GPU that has room for it.

    It sees that GPU alone, as device 0. The exit code is the command's. A second run that starts
    meanwhile is not given the same room. An existing CUDA_VISIBLE_DEVICES limits the choice.
    """
    from caffeup.app.gpu_run import promised_room, run_on
    from caffeup.app.gpus import looking
    from caffeup.app.session import Session
    from caffeup.live import become

    session = Session()
    with looking(session) as looker:
        room = promised_room(looker, _size(need), wait=wait or timeout is not None, timeout=timeout, tell=_tell)
    _tell(f"on GPU {room.label}, {room.name}")
    raise run_on(room, tuple(command), session.host.env, become)


def kill(
    pids: Annotated[list[int], typer.Argument(metavar="PID...", min=1, help="Processes that hold a GPU, by number.")],
    force: Force = False,
    grace: Grace = 10.0,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """End processes that hold a GPU, after a question.

    Shows what would be lost, asks, and says what memory came back. A process that holds no GPU here
    is never touched.
    """
    from caffeup.app.gpu_kill import end_processes
    from caffeup.app.gpus import looking
    from caffeup.app.session import Session
    from caffeup.cli.terminal import Terminal
    from caffeup.errors import NotEnded
    from caffeup.gpu.end import told
    from caffeup.gpu.words import came_back
    from caffeup.model.base import to_json
    from caffeup.model.gpus import End

    with looking(Session()) as looker:
        result = end_processes(looker, pids, Terminal(yes=yes), force=force, grace=grace)
    if json:
        typer.echo(to_json(result))
    else:
        typer.echo("\n".join([*told(result.processes), *came_back(result.memory)]))
    ends = {one.end for one in result.processes}
    if ends & {End.REFUSED, End.STAYED}:
        raise typer.Exit(NotEnded.exit_code)
    raise typer.Exit(1 if End.KEPT in ends else 0)


def _size(need: str) -> int:
    """Bytes; 0 where none are asked for."""
    from caffeup.errors import UsageError
    from caffeup.gpu.size import parse_size

    try:
        return parse_size(need) if need else 0
    except ValueError as error:
        raise UsageError(f"--need: {error}.") from None


def _tell(text: str) -> None:
    typer.echo(f"caffeup: {text}", err=True)
