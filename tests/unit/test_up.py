"""``up`` as a whole, on the tiny tree with the real make and compiler: what runs, what does not run again, what is said."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from packaging.version import Version

from caffeup.app.session import Session
from caffeup.app.state import exclusive, load_state, source_stamp
from caffeup.app.up import Up, require_tests
from caffeup.build.progress import Silent
from caffeup.cli import show
from caffeup.errors import BuildFailed, Busy, SourceError, TestsFailed
from caffeup.model.base import from_json
from caffeup.model.machine import Machine
from caffeup.model.outcome import Report, StageOutcome
from caffeup.model.plan import Plan, Request

TESTS = Path(__file__).resolve().parents[1]
MACHINE = from_json((TESTS / "machines" / "debian12-no-gpu" / "expected" / "machine.json").read_bytes(), Machine)


class Quiet:
    """A person who says yes or no, and remembers what was said."""

    def __init__(self, *, answer: bool = False) -> None:
        self.answer = answer
        self.said: list[str] = []
        self.ended: list[StageOutcome] = []
        self.plans: list[Plan] = []

    def begin(self, stage: str, about: str = "") -> None:
        """Nothing."""

    def end(self, outcome: StageOutcome) -> None:
        self.ended.append(outcome)

    def say(self, text: str, commands: tuple[str, ...] = ()) -> None:
        self.said += [text, *commands]

    def show_plan(self, plan: Plan) -> None:
        self.plans.append(plan)

    def ask(self, question: str) -> bool:
        self.said.append(question)
        return self.answer

    def progress(self, title: str) -> Silent:
        return Silent()


class OnDebian(Session):
    """A session on a machine that was recorded, with this machine's make and compiler."""

    def machine(self, prefixes: tuple[str, ...] = (), python: str = "", cuda: str = "") -> Machine:
        return msgspec.structs.replace(
            MACHINE, prefixes=prefixes, programs=tuple(p for p in MACHINE.programs if p.name != "ccache")
        )


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    root = tmp_path / "tiny"
    shutil.copytree(TESTS / "trees" / "tiny", root)
    return root


def library_source(root: Path) -> Path:
    return next(path for path in sorted((root / "src" / "caffe").rglob("*.cpp")) if "test" not in path.parts)


def go(root: Path, **wishes: object) -> tuple[Report, Quiet]:
    ui = Quiet()
    request = Request(source=str(root), python="none", **wishes)  # type: ignore[arg-type]
    return Up(OnDebian(), ui, request).run(), ui


def states(ui: Quiet) -> dict[str, str]:
    return {outcome.name: outcome.state for outcome in ui.ended}


def test_everything_then_nothing_then_only_what_changed(tiny: Path) -> None:
    report, ui = go(tiny)
    assert states(ui)["build"] == states(ui)["test"] == states(ui)["verify"] == "done"
    assert ui.plans, "the decisions are shown before they are carried out"
    assert report.tests is not None
    assert report.tests.passed == report.tests.total > 0
    assert all(check.ok for check in report.checks)
    assert report.binaries
    config = (tiny / "Makefile.config").read_bytes()

    again, ui = go(tiny)
    assert states(ui)["build"] == states(ui)["test"] == states(ui)["verify"] == "unchanged"
    assert again.tests == report.tests
    assert next(show.report(again)).startswith("nothing to do")
    assert not next(show.report(report)).startswith("nothing to do")
    assert (tiny / "Makefile.config").read_bytes() == config

    source = library_source(tiny)
    source.write_text(source.read_text() + "\n// touched\n")
    _, ui = go(tiny)
    assert states(ui)["build"] == states(ui)["test"] == "done"
    name = str(source.relative_to(tiny))
    assert [text for text in ui.said if text.startswith("build again") and name in text], "and why"


class AfterAnUpgrade(OnDebian):
    """The same machine, with a newer glog."""

    def machine(self, prefixes: tuple[str, ...] = (), python: str = "", cuda: str = "") -> Machine:
        machine = super().machine(prefixes, python, cuda)
        newer = (msgspec.structs.replace(one, version=Version("9.9")) if one.name == "glog" else one for one in machine.libraries)
        return msgspec.structs.replace(machine, libraries=tuple(newer))


def test_what_is_built_anew_says_why(tiny: Path) -> None:
    _, ui = go(tiny, tests=False)
    assert not any("anew" in text for text in ui.said)
    upgraded = Quiet()
    Up(AfterAnUpgrade(), upgraded, Request(source=str(tiny), python="none", tests=False)).run()
    assert [text for text in upgraded.said if "built anew" in text and "glog 0.6.0 → 9.9" in text]


def test_nothing_is_left_in_the_temp_folder(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temp = tmp_path / "temp"
    temp.mkdir()
    monkeypatch.setenv("TMPDIR", str(temp))
    go(tiny)
    assert list(temp.iterdir()) == []


def test_a_failing_test_is_told_and_the_rest_is_done(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINY_FAIL", "1")
    report, ui = go(tiny)
    assert states(ui)["verify"] == "done"
    with pytest.raises(TestsFailed):
        require_tests(report)
    again, _ = go(tiny)
    with pytest.raises(TestsFailed):
        require_tests(again)


def test_a_broken_source_ends_in_build_failed_with_its_place_and_the_next_run_goes_on(tiny: Path) -> None:
    source = library_source(tiny)
    good = source.read_text()
    source.write_text(good + "\nint broken( {\n")
    with pytest.raises(BuildFailed) as caught:
        go(tiny)
    said = caught.value.details + "".join(str(e) for f in caught.value.findings for e in f.evidence)
    assert source.name in said
    assert Path(caught.value.log).is_file()
    source.write_text(good)
    _, ui = go(tiny)
    assert states(ui)["build"] == "done"


def test_a_folder_that_is_no_tree_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(SourceError):
        go(tmp_path / "other")
    assert sorted(path.name for path in (tmp_path / "other").iterdir()) == ["notes.txt"]


def test_dry_run_touches_nothing(tiny: Path) -> None:
    before = source_stamp(tiny)
    listing = sorted(str(path) for path in tiny.rglob("*"))
    planned = Up(OnDebian(), Quiet(), Request(source=str(tiny), python="none")).preview()
    assert planned.plan.tree == str(tiny)
    assert sorted(str(path) for path in tiny.rglob("*")) == listing
    assert source_stamp(tiny) == before


def test_a_foreign_config_is_kept_and_reported(tiny: Path) -> None:
    (tiny / "Makefile.config").write_text("# by hand\nCPU_ONLY := 1\n")
    go(tiny)
    assert (tiny / "Makefile.config.before-caffeup").read_text() == "# by hand\nCPU_ONLY := 1\n"


def test_two_at_once_the_second_is_told_who(tiny: Path) -> None:
    holding = "import sys, time; from pathlib import Path; from caffeup.app.state import exclusive\n"
    holding += "with exclusive(Path(sys.argv[1])):\n    print('held', flush=True); time.sleep(60)\n"
    child = subprocess.Popen([sys.executable, "-c", holding, str(tiny)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(Busy, match=str(child.pid)):
            go(tiny)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()  # type: ignore[union-attr]
    with exclusive(tiny):
        pass


def test_the_state_survives_damage(tiny: Path) -> None:
    (tiny / ".caffeup").mkdir()
    (tiny / ".caffeup" / "state.json").write_bytes(b"\xff not json")
    assert load_state(tiny).stages == ()


def test_the_stamp_sees_an_edit_and_not_a_product(tiny: Path) -> None:
    before = source_stamp(tiny)
    (tiny / "python" / "caffe").mkdir(parents=True, exist_ok=True)
    (tiny / "python" / "caffe" / "_caffe.so").write_bytes(b"")
    assert source_stamp(tiny) == before
    source = next((tiny / "src").rglob("*.cpp"))
    os.utime(source, (time.time() + 5, time.time() + 5))
    assert source_stamp(tiny) != before
