"""``caffeup.api``: the same values as ``--json``, nothing printed, errors of one family."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import caffeup
from caffeup.app.session import Session
from caffeup.app.up import Up
from caffeup.cli.main import main
from caffeup.model.base import from_json, to_json
from caffeup.model.machine import Machine
from caffeup.model.outcome import Report
from caffeup.model.plan import Plan, Request

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
MACHINE = from_json((TESTS / "machines" / "debian12-no-gpu" / "expected" / "machine.json").read_bytes(), Machine)
LOG = TESTS / "logs" / "opencv4-c-constants" / "gcc7.log"
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def on_debian(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Session, "machine", lambda *_named: MACHINE)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    shutil.copytree(TESTS / "trees" / "tiny", tmp_path / "tiny")
    return tmp_path / "tiny"


def test_import_loads_nothing_but_itself() -> None:
    code = "import sys, caffeup; print(*(name for name in sys.modules if name.startswith(('caffeup', 'msgspec', 'typer'))))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert loaded == ["caffeup"]


def test_the_api_loads_nothing_of_the_command_line() -> None:
    code = "import sys, caffeup; caffeup.api.plan; print(*sys.modules)"
    loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())
    assert not loaded & {"typer", "rich", "git", "requests", "jinja2", "caffeup.cli"}


def test_what_is_public_is_there_and_typed() -> None:
    for name in caffeup.__all__:
        assert getattr(caffeup, name)
    for name in caffeup.api.__all__:
        assert getattr(caffeup.api, name)
    assert (Path(caffeup.__file__).parent / "py.typed").is_file()
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = caffeup.no_such_thing


def test_the_values_are_those_of_json(tiny: Path, capsys: Captured) -> None:
    for arguments, value in (
        (["detect"], caffeup.api.detect()),
        (["plan", str(tiny)], caffeup.api.plan(tiny)),
        (["plan", "--cpu", "--blas", "atlas", str(tiny)], caffeup.api.plan(tiny, request=Request(cpu=True, blas="atlas"))),
        (["diagnose", str(LOG)], caffeup.api.diagnose(LOG)),
        (["explain", "gpu-dropped"], caffeup.api.explain("gpu-dropped")),
    ):
        assert capsys.readouterr().out == "", "the API printed"
        main([*arguments, "--json"])
        assert json.loads(capsys.readouterr().out) == json.loads(to_json(value))


def test_a_plan_for_another_machine(tiny: Path) -> None:
    other = from_json(next((TESTS / "machines").glob("*jetson*/expected/machine.json")).read_bytes(), Machine)
    plan = caffeup.api.plan(tiny, machine=other)
    assert isinstance(plan, Plan)
    assert plan != caffeup.api.plan(tiny)


def test_a_log_from_memory_is_read_as_one_from_a_file() -> None:
    text = LOG.read_bytes()
    from_file = [one.id for one in caffeup.api.diagnose(LOG)]
    assert from_file[0] == "opencv4-c-constants"
    for given in (text, text.decode(), [text[:100], text[100:]]):
        assert [one.id for one in caffeup.api.diagnose_text(given)] == from_file
    assert caffeup.api.diagnose_text("all is well\n") == ()
    assert [one.id for one in caffeup.api.diagnose_text(text, machine=MACHINE)] == from_file


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: caffeup.api.plan("nowhere"), 7),
        (caffeup.api.plan, 7),
        (lambda: caffeup.api.build("nowhere"), 7),
        (lambda: caffeup.api.diagnose("nowhere.log"), 2),
        (lambda: caffeup.api.diagnose("."), 2),
        (lambda: caffeup.api.diagnose("a\0b"), 2),
        (lambda: caffeup.api.diagnose_text(""), 2),
        (lambda: caffeup.api.explain("no-such-id"), 2),
        (lambda: caffeup.api.detect(request=Request(prefixes=("nowhere",))), 2),
        (lambda: caffeup.api.plan(".", request=Request(blas="eigen")), 2),
        (lambda: caffeup.api.plan(".", request=Request(arch=("x",))), 2),
        (lambda: caffeup.api.plan(".", request=Request(cpu=True, arch=("8.6",))), 2),
        (lambda: caffeup.api.export("word"), 2),
    ],
)
def test_what_goes_wrong_is_raised(call: object, code: int, capsys: Captured) -> None:
    with pytest.raises(caffeup.errors.CaffeupError) as raised:
        call()  # type: ignore[operator]
    assert raised.value.exit_code == code
    assert capsys.readouterr() == ("", "")


def test_what_the_disk_refuses_is_an_error_of_ours(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object) -> None:
        raise PermissionError(13, "Permission denied", "/some/file")

    monkeypatch.setattr(Session, "machine", refuse)
    with pytest.raises(caffeup.errors.DiskError, match=r"/some/file: Permission denied"):
        caffeup.api.detect()


def test_a_build_goes_by_the_plan_and_tells_who_listens(tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    plan = caffeup.api.plan(tiny, request=Request(cpu=True))
    heard: list[str] = []
    seen: list[Plan] = []

    def run_in(self: Up, root: Path, plan_file: str = "") -> Report:
        self._ui.say("news", ("a command",))
        assert self._ui.ask("Go on?")
        seen.append(from_json(Path(plan_file).read_bytes(), Plan))
        return Report(tree=str(root), stages=())

    monkeypatch.setattr(Up, "run_in", run_in)
    report = caffeup.api.build(tiny, request=Request(yes=True), plan=plan, say=heard.append)
    assert report.tree == str(tiny)
    assert seen == [plan]
    assert heard == ["news", "  $ a command", "Go on? yes"]
    assert capsys.readouterr() == ("", "")


def test_the_example_detects_plans_and_explains(tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    script = ROOT / "examples" / "explain_plan.py"
    assert len(script.read_text().splitlines()) <= 20
    monkeypatch.setattr(sys, "argv", [str(script), str(tiny), str(LOG)])
    runpy.run_path(str(script))
    said = capsys.readouterr().out
    assert "debian 12" in said
    assert "mode: cpu, because" in said
    assert "problem: OpenCV 4" in said
    assert "mend: " in said
    monkeypatch.setattr(sys, "argv", [str(script), "nowhere"])
    with pytest.raises(SystemExit, match="nowhere"):
        runpy.run_path(str(script))
