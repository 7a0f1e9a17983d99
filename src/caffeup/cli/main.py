"""The program: assembles the commands and is the only place that catches errors."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import os
import sys
from pathlib import Path
from typing import Any, Callable, get_type_hints

import typer
from typer._completion_classes import completion_init

from caffeup import __version__
from caffeup.cli import (
    bench,
    build,
    called,
    clean,
    completion,
    configure,
    cuda,
    demo,
    detect,
    diagnose,
    doctor,
    env,
    explain,
    export,
    gpu,
    lock,
    net,
    patch,
    plan,
    rollback,
    up,
    verify,
)
from caffeup.cli import run as run_

app = typer.Typer(
    name="caffeup",
    help="From a bare Linux machine to a Caffe that is built for this machine, tested, and works.",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,  # typer's own would write into the user's dot files
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"caffeup {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
    show_completion: str = typer.Option(
        "",
        "--show-completion",
        metavar="SHELL",
        callback=completion.show,
        is_eager=True,
        help='Completion for bash, zsh or fish:  eval "$(caffeup --show-completion bash)"',
    ),
) -> None:
    """From a bare Linux machine to a Caffe that is built for this machine, tested, and works."""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose errors end in words and an exit code, never in a traceback."""

    @functools.wraps(command)
    def run_command(*args: Any, **kwargs: Any) -> None:
        from caffeup.stream import ends_as_ctrl_c

        try:
            with ends_as_ctrl_c():
                command(*args, **kwargs)
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except BaseException as error:  # noqa: BLE001  # the only place that catches
            from caffeup.cli.failure import code_for  # only when something failed

            raise typer.Exit(code_for(error)) from None

    if sys.version_info < (3, 10):
        run_command.__signature__ = _with_types(command)
    return run_command


def _with_types(command: Callable[..., None]) -> inspect.Signature:
    """Its signature with types in place of their text, which typer reads from 3.10 on: each argument would be an option."""
    signature = inspect.signature(command)
    texts = {name: one.annotation for name, one in signature.parameters.items() if isinstance(one.annotation, str)}
    holder = type("Parameters", (), {"__annotations__": texts})  # what is returned is imported only when a command runs
    types = get_type_hints(holder, globalns=command.__globals__, include_extras=True)
    every = [one.replace(annotation=types.get(name, one.annotation)) for name, one in signature.parameters.items()]
    return signature.replace(parameters=every)


def summary(command: Callable[..., None]) -> str:
    """The first line of its help, whole: typer would cut it off to fit in one line of any terminal."""
    return (command.__doc__ or "").partition("\n")[0]


for _command in (
    up.up,
    detect.detect,
    doctor.doctor,
    plan.plan,
    configure.configure,
    build.build,
    verify.verify,
    bench.bench,
    demo.demo,
    diagnose.diagnose,
    explain.explain,
    export.export,
    env.env,
    clean.clean,
    rollback.rollback,
):
    app.command(short_help=summary(_command), help=called.as_typed(inspect.getdoc(_command) or ""))(guarded(_command))
app.command(
    "run",
    short_help=summary(run_.run),
    help=called.as_typed(inspect.getdoc(run_.run) or ""),
    context_settings={"allow_interspersed_args": False},
)(guarded(run_.run))
for _patch_command in (patch.list_, patch.preview, patch.apply, patch.status, patch.diff, patch.revert):
    patch.app.command(_patch_command.__name__.rstrip("_"), short_help=summary(_patch_command))(guarded(_patch_command))
for _net_command in net.COMMANDS:
    net.app.command(_net_command.__name__.replace("_", "-"), short_help=summary(_net_command))(guarded(_net_command))
app.add_typer(net.app, short_help=net.app.info.help)
app.add_typer(patch.app, short_help=patch.app.info.help)
for _gpu_command in (gpu.explain, gpu.free, gpu.kill):
    gpu.app.command(_gpu_command.__name__, short_help=summary(_gpu_command))(guarded(_gpu_command))
gpu.app.command("run", short_help=summary(gpu.run), context_settings={"allow_interspersed_args": False})(guarded(gpu.run))
for _cuda_command in cuda.COMMANDS:
    cuda.app.command(_cuda_command.__name__.rstrip("_"), short_help=summary(_cuda_command))(guarded(_cuda_command))
app.add_typer(cuda.app, short_help=cuda.app.info.help)
for _lock_command in lock.COMMANDS:
    lock.app.command(_lock_command.__name__, short_help=summary(_lock_command))(guarded(_lock_command))
app.add_typer(lock.app, short_help=lock.app.info.help)
gpu.app.callback(invoke_without_command=True)(guarded(gpu.table))
app.add_typer(gpu.app, short_help=gpu.app.info.help)


def main(arguments: list[str]) -> int:
    """Run one command; give its exit code."""
    more = f"From the checkout there is also: {called.name()} test [--real], the project's own checks."
    app.info.epilog = more if called.of_checkout() else None
    try:
        completion_init()
        app(arguments, prog_name=Path(called.name()).name, complete_var=completion.VARIABLE)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException as error:  # noqa: BLE001  # what typer itself prints (help, version) meets full disks and closed pipes too
        from caffeup.cli.failure import code_for

        return code_for(error)
    return 0


def run() -> None:
    """Entry point of the program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a file's name or a sign for which the terminal has no letters stops nothing
            stream.reconfigure(errors="surrogateescape" if "utf" in stream.encoding.lower() else "backslashreplace")
    code = main(sys.argv[1:])
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError) as error:
        from caffeup.cli.failure import code_for

        code = code or code_for(error)
        with contextlib.suppress(OSError):  # what is still held back goes nowhere, or Python would complain at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)
