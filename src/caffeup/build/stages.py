"""The stages that run make: the library with its tools, pycaffe, and the folder to distribute."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Callable

from caffeup.build.came import keep_what_came
from caffeup.build.compiler import check_compiler, nvcc_through_ccache, through_ccache
from caffeup.build.debris import remove_debris
from caffeup.build.logs import log_path
from caffeup.build.makefile import Variables
from caffeup.build.order import link_order
from caffeup.build.progress import Progress, Silent
from caffeup.build.run import Build, Made, failure, open_log, planned_steps, run_make
from caffeup.build.stale import fingerprint, remove_stale
from caffeup.errors import BuildFailed
from caffeup.model.outcome import StageOutcome

Say = Callable[[str], None]


def _quietly(_text: str) -> None:
    return


def make_all(build: Build, progress: Progress, say: Say = _quietly) -> StageOutcome:
    """Build library, tools and examples; ``say`` hears why something is built anew. Raises ``BuildFailed`` or ``DiskError``."""
    return _stage(build, progress, "build", ("all",), say)


def make_pycaffe(build: Build, progress: Progress, say: Say = _quietly) -> StageOutcome:
    """Build the Python module."""
    return _stage(build, progress, "pycaffe", ("pycaffe",), say)


def make_distribute(build: Build, progress: Progress) -> StageOutcome:
    """Fill the folder to distribute (Caffe's ``distribute``)."""
    return _stage(build, progress, "distribute", ("distribute",))


def prepare(build: Build, log: IO[bytes], say: Say = _quietly) -> Variables:
    """Make the tree fit for make: without half-written files and without objects of other settings."""
    keep_what_came(build.path, build.path / ".caffeup")
    removed = remove_debris(build.path)
    if removed:
        _note(log, f"removed what an earlier build left half-written: {', '.join(removed)}")
    variables = build.ask()
    _require_inside(build.path, variables)
    stale = remove_stale(build.path, fingerprint(build.path, build.plan, variables), variables)
    if stale.files:
        count = f"{stale.files} file{'s' if stale.files != 1 else ''}"
        _note(log, f"removed {count} ({', '.join(stale.kinds)}): {stale.because}")
        say(f"what was built before does not fit and is built anew ({stale.what}): {stale.because}")
    return variables


def _require_inside(root: Path, variables: Variables) -> None:
    """Raise ``BuildFailed`` where make would write, and remove, outside the tree: it begins with ``rm -r`` of its link."""
    for name in ("BUILD_DIR", "BUILD_DIR_LINK"):
        place = os.path.normpath(root.absolute() / (variables.text(name) or "build"))
        if not Path(place).is_relative_to(root.absolute()):
            raise BuildFailed(
                f"This tree's Makefile builds outside the tree: {name} is {variables.text(name)}.",
                advice="caffeup lets make write, and remove, only inside the tree. Look where that is set:",
                commands=(f"grep -n BUILD_DIR {shlex.quote(str(root / 'Makefile'))}",),
            )


def link_build(root: Path, build_dir: str, log: IO[bytes]) -> None:
    """Let ``build`` lead to the products, as in most trees: the run path of pycaffe says ``build/lib`` whatever BUILD_DIR is."""
    link = root / "build"
    if link.exists() or not (root / build_dir).is_dir():
        return
    link.unlink(missing_ok=True)  # it may point at a folder that is gone
    link.symlink_to(build_dir)
    _note(log, f"linked build to {build_dir}")


def compiler_for(build: Build) -> dict[str, str]:
    """Make's variables that send compiles through ccache; empty where it is absent or does not work."""
    env = build.maker.env
    compiler = build.plan.compiler
    if not compiler:
        return {}
    check_compiler(build.path, compiler, env)
    wrapped = through_ccache(build.path, compiler, build.ccache, env)
    if not wrapped:
        return {}
    set_anyway = any(line.key == "CUDA_DIR" and line.override for line in build.plan.config)  # no command line changes that
    cuda = nvcc_through_ccache(build.path, compiler, build.ccache, env) if build.plan.gpu and not set_anyway else {}
    return {"CXX": wrapped, **cuda}


def make_goals(
    build: Build,
    log: IO[bytes],
    progress: Progress,
    goals: tuple[str, ...],
    *,
    build_dir: str,
    set_to: Mapping[str, str],
    options: tuple[str, ...] = (),
) -> Made:
    """Run make for the goals, counted beforehand; once more with half the jobs where memory did not suffice."""
    planned = planned_steps(build, goals, set_to)
    if not planned:
        return run_make(build, log, progress, *goals, options=options, set_to=set_to)
    if any(step.kind == "PROTOC" for step in planned):
        # Some forks' objects do not depend on the headers that protoc makes: with several jobs they would race it.
        run_make(build, log, Silent(), "proto", jobs=1, set_to=set_to)
        planned = tuple(step for step in planned if step.kind != "PROTOC")
    made = run_make(build, log, progress, *goals, planned=planned, build_dir=build_dir, options=options, set_to=set_to)
    if made.status != 0 and made.out_of_memory and build.plan.jobs > 1:
        _note(log, "memory did not suffice; again with half the jobs")
        rest = planned_steps(build, goals, set_to)
        made = run_make(
            build, log, progress, *goals,
            planned=rest, build_dir=build_dir, jobs=build.plan.jobs // 2, options=options, set_to=set_to,
        )  # fmt: skip
    return made


def _stage(build: Build, progress: Progress, name: str, goals: tuple[str, ...], say: Say = _quietly) -> StageOutcome:
    goal = " ".join(goals)
    try:
        with open_log(build.path, name) as log:
            variables = prepare(build, log, say)
            chosen = {**compiler_for(build), **link_order(variables), **_examples(variables, name)}
            made = make_goals(build, log, progress, goals, build_dir=variables.build_dir, set_to=chosen)
            if made.status == 0:
                link_build(build.path, variables.build_dir, log)
    finally:
        progress.close()
    if made.status != 0:
        raise failure(build, name, made, goal)
    return StageOutcome(
        name=name,
        state="done" if made.steps or name == "distribute" else "unchanged",
        seconds=made.seconds,
        summary=_summary(name, made, variables),
        log=str(log_path(Path(build.root), name)),
    )


def _summary(stage: str, made: Made, variables: Variables) -> str:
    if stage == "distribute":
        return f"copied to {variables.text('DISTRIBUTE_DIR') or 'distribute'}"
    return f"{made.steps} steps" if made.steps else "nothing to do"


def _examples(variables: Variables, stage: str) -> dict[str, str]:
    """A tree without examples stumbles over ``cp $(EXAMPLE_BINS) …/bin``: the first tool is copied a second time instead."""
    if stage != "distribute" or variables.words("EXAMPLE_BINS"):
        return {}
    tools = variables.words("TOOL_BINS")
    return {"EXAMPLE_BINS": tools[0]} if tools else {}


def _note(log: IO[bytes], text: str) -> None:
    log.write(f"caffeup: {text}\n".encode("utf-8", "surrogateescape"))
