"""A plan from a file may name only what is on this machine."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from caffeup.app.foreign_plan import require_of_here
from caffeup.app.session import Session
from caffeup.cli.main import main
from caffeup.errors import UsageError
from caffeup.model.base import from_json, to_json
from caffeup.model.machine import Machine
from caffeup.model.plan import ConfigLine, Link, Plan

TESTS = Path(__file__).resolve().parents[1]
MACHINES = sorted(path.parent for path in TESTS.glob("machines/*/expected/plan.json"))


def expected(folder: Path) -> tuple[Plan, Machine]:
    return (
        from_json((folder / "plan.json").read_bytes(), Plan),
        from_json((folder / "machine.json").read_bytes(), Machine),
    )


PLAN, MACHINE = expected(TESTS / "machines" / "debian12-no-gpu" / "expected")


@pytest.mark.parametrize("folder", MACHINES, ids=lambda folder: folder.parent.name)
def test_a_plan_that_was_made_here_is_taken(folder: Path) -> None:
    require_of_here(*expected(folder))


@pytest.mark.parametrize("name", ["compiler", "protoc", "python"])
def test_a_program_must_have_been_found_here(name: str) -> None:
    with pytest.raises(UsageError, match="not found on this machine") as caught:
        require_of_here(msgspec.structs.replace(PLAN, config=(), **{name: "/somebody/else's"}), MACHINE)
    assert caught.value.details == f"{name}: /somebody/else's"


@pytest.mark.parametrize(
    "changes",
    [
        {"links": (Link(name="cuda", target="/x"),)},
        {"links": (Link(name="cuda", target="../../x"),)},
        {"python_paths": ("/x",)},
        {"run_paths": ("/x",)},
        {"make_env": (("PATH", "/x"),)},
        {"make_env": (("LD_PRELOAD", "x.so"),)},
    ],
)
def test_folders_and_environment_too(changes: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        require_of_here(msgspec.structs.replace(PLAN, **changes), MACHINE)


@pytest.mark.parametrize(
    "line",
    [
        ConfigLine(key="CUSTOM_CXX", value=("/usr/bin/env",), because=""),
        ConfigLine(key="CUSTOM_CXX", value=("./x",), because=""),
        ConfigLine(key="SHELL", value=("python3",), because=""),
        ConfigLine(key="Q", value=("x",), because=""),
        ConfigLine(key="COMMON_FLAGS", value=(";x",), because=""),
        ConfigLine(key="COMMON_FLAGS", value=("$(x)",), because=""),
        ConfigLine(key="COMMON_FLAGS", value=("`x`",), because=""),
        ConfigLine(key="COMMON_FLAGS", value=("-B/x",), because=""),
        ConfigLine(key="COMMON_FLAGS", value=("-fplugin=/x.so",), because=""),
        ConfigLine(key="LDFLAGS", value=("-Wl,-rpath,/x",), because=""),
        ConfigLine(key="CUDA_DIR", value=("/x",), because=""),
        ConfigLine(key="export PATH", value=("/x:$(PATH)",), because="", raw=True),
        ConfigLine(key="NVCCFLAGS", value=("$(X)",), because="", raw=True),
    ],
    ids=lambda line: f"{line.key} {line.value[0]}",
)
def test_settings_name_nothing_else_and_run_nothing(line: ConfigLine) -> None:
    with pytest.raises(UsageError) as caught:
        require_of_here(msgspec.structs.replace(PLAN, config=(line,)), MACHINE)
    assert line.key in caught.value.details


def test_build_refuses_before_it_touches_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Session, "machine", lambda *_args, **_wishes: MACHINE)
    tree = Path(shutil.copytree(TESTS / "trees" / "tiny", tmp_path / "tiny"))
    ran = tmp_path / "ran"
    program = tmp_path / "g++"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    plan = tmp_path / "plan.json"
    plan.write_text(to_json(msgspec.structs.replace(PLAN, compiler=str(program), protoc=str(program), config=())))
    assert main(["build", str(tree), "--plan", str(plan)]) == UsageError.exit_code
    assert f"compiler: {program}" in capsys.readouterr().err
    assert not ran.exists()
    assert not (tree / ".caffeup").exists()
