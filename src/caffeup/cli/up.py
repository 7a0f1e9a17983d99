"""``caffeup up``: everything."""

from __future__ import annotations

from typing import Annotated

import typer

from caffeup.cli import options


def up(
    source: Annotated[
        str,
        typer.Argument(
            help="ssd (default), bvlc, nvidia, openpose, fast-rcnn, segnet, brocolli; a git URL, a folder, or an archive."
        ),
    ] = "",
    into: Annotated[str, typer.Option("--into", metavar="DIR", help="Folder for the tree; by default caffe-<name> here.")] = "",
    cpu: options.Cpu = False,
    no_cudnn: options.NoCudnn = False,
    no_opencv: options.NoOpencv = False,
    arch: options.Arch = "",
    cuda: options.Cuda = "",
    python: options.Python = "",
    blas: options.Blas = "",
    prefix: options.Prefix = None,
    jobs: options.Jobs = None,
    no_tests: Annotated[bool, typer.Option("--no-tests", help="Do not build and run Caffe's own tests.")] = False,
    distribute: Annotated[bool, typer.Option("--distribute", help="Also fill the tree's folder to distribute.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and touch nothing.")] = False,
    force: options.Force = None,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Everything: detect, plan, fetch, dependencies, configure, patch, build, test, pycaffe, verify. Again: only what changed."""
    from caffeup.app.session import Session
    from caffeup.app.up import Up, require_tests
    from caffeup.cli import show
    from caffeup.cli.request import make_request
    from caffeup.cli.terminal import Terminal
    from caffeup.model.base import to_json

    request = make_request(
        source=source,
        into=into,
        cpu=cpu,
        no_cudnn=no_cudnn,
        no_opencv=no_opencv,
        arch=arch,
        cuda=cuda,
        python=python,
        blas=blas,
        prefix=prefix,
        jobs=jobs,
        no_tests=no_tests,
        distribute=distribute,
        yes=yes,
        force=force,
    )
    run = Up(Session(), Terminal(yes=yes), request)
    if dry_run:
        plan = run.preview()
        typer.echo(to_json(plan) if json else "\n".join(show.plan(plan)))
        raise typer.Exit(3 if plan.conflicts else 0)
    report = run.run()
    typer.echo(to_json(report) if json else "\n".join(show.report(report)))
    require_tests(report)
