"""A run killed at any point leaves a tree that the next run repairs: every write of apply and revert is tried as the last."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from caffeup.errors import PatchFailed
from caffeup.facts.tables import Facts
from caffeup.host import RealHost
from caffeup.model.fix import Edit, NewFile, Shim
from caffeup.model.plan import Plan
from caffeup.patch import engine
from caffeup.patch.images import Disk, Image
from caffeup.patch.ledger import load_ledger
from caffeup.patch.transaction import JOURNAL, Change, transact
from patchtools import facts_of, fix, plan_of, snapshot

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

CONFIG = "CPU_ONLY := 1\n"
EDIT = "title = 't'\nwhy = 'w'\nsince = 's'\nwhom = 'm'\nsource = ['a']\n[[spots]]\nfiles = ['*.py']\nanchor = 'old'\nreplace = 'new'\n"
STEPS = ("replace", "unlink", "symlink_to", "mkdir", "rmdir")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    patches = tmp_path / "patches"
    for path, text in {"shims/s/x.h": "x", "edits/e.toml": EDIT, "n.cpp": "new file"}.items():
        (patches / path).parent.mkdir(parents=True, exist_ok=True)
        (patches / path).write_text(text)
    monkeypatch.setattr("caffeup.patch.wanted.bundled", lambda _: patches)
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.py").write_text("old a\n")
    (root / "b.py").write_text("old b\n")
    (root / "Makefile.config").write_text("mine\n")
    return root


@pytest.fixture
def facts() -> Facts:
    return facts_of(
        fix("shim", Shim(headers=("s/x.h",))),
        fix("edit", Edit(edit="e")),
        fix("file", NewFile(source="n.cpp", target="deep/er/n.cpp")),
    )


@pytest.fixture
def plan(tree: Path) -> Plan:
    return plan_of(tree, "shim", "edit", "file", links={"cuda": "/opt/cuda"})


def killed_at(step: int, work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Do the work in a process that dies, without any cleaning up, at the n-th change of the disk; whether it died."""
    pid = os.fork()
    if pid == 0:
        left = step

        def dying(name: str) -> None:
            real = getattr(Path, name)

            def wrapped(*args: object, **named: object) -> object:
                nonlocal left
                left -= 1
                if left == 0:
                    os._exit(9)
                return real(*args, **named)

            monkeypatch.setattr(Path, name, wrapped)

        for name in STEPS:
            dying(name)
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9


def killed_after_writing(tree: Path, facts: Facts, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Die when every file is written and none is checked."""

    def work() -> None:
        monkeypatch.setattr("caffeup.patch.engine._verify", lambda *_: os._exit(9))
        engine.apply(str(tree), plan, facts, CONFIG, host=RealHost())

    return killed_at(1000, work, monkeypatch)


def strays(root: Path) -> list[str]:
    return [str(path) for path in root.rglob("*") if path.name.endswith(".caffeup-new") and "undo" not in path.parts]


def test_apply_killed_at_any_point(tree: Path, facts: Facts, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    before = snapshot(tree)
    step = 0
    while killed_at(step := step + 1, lambda: engine.apply(str(tree), plan, facts, CONFIG), monkeypatch):
        engine.recover(str(tree))
        assert not (tree / JOURNAL).exists()
        applied = bool(load_ledger(Disk(str(tree))).entries)
        assert applied or snapshot(tree) == before, f"step {step}"
        assert [path for path in strays(tree) if ".caffeup/." not in path] == []
        engine.apply(str(tree), plan, facts, CONFIG)
        assert (tree / "a.py").read_text() == "new a\n"
        assert (tree / "b.py").read_text() == "new b\n"
        assert (tree / "Makefile.config.before-caffeup").read_text() == "mine\n"
        engine.revert(str(tree))
        assert snapshot(tree) == before, f"step {step}"
    assert step > 20
    assert (tree / "a.py").read_text() == "new a\n"


def test_revert_killed_at_any_point(tree: Path, facts: Facts, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    before = snapshot(tree)
    step = 0
    engine.apply(str(tree), plan, facts, CONFIG)
    while killed_at(step := step + 1, lambda: engine.revert(str(tree)), monkeypatch):
        engine.recover(str(tree))
        applied = bool(load_ledger(Disk(str(tree))).entries)
        if applied:
            assert (tree / "a.py").read_text() == "new a\n", f"step {step}"
            engine.revert(str(tree))
        assert snapshot(tree) == before, f"step {step}"
        engine.apply(str(tree), plan, facts, CONFIG)
    assert step > 10
    assert snapshot(tree) == before


def test_the_next_apply_repairs_by_itself(tree: Path, facts: Facts, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    assert killed_after_writing(tree, facts, plan, monkeypatch)
    assert (tree / JOURNAL).exists()
    for read in (
        lambda: engine.preview(str(tree), plan, facts),
        lambda: engine.status(str(tree)),
        lambda: engine.diff(str(tree)),
    ):
        with pytest.raises(PatchFailed, match="half through, or was killed"):
            read()
    engine.apply(str(tree), plan, facts, CONFIG)
    assert (tree / "b.py").read_text() == "new b\n"
    engine.revert(str(tree))
    assert (tree / "b.py").read_text() == "old b\n"


def test_what_somebody_changed_after_the_kill_is_kept(
    tree: Path, facts: Facts, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert killed_after_writing(tree, facts, plan, monkeypatch)
    assert (tree / "a.py").read_text() == "new a\n"
    (tree / "a.py").write_text("mine\n")
    found = engine.recover(str(tree))
    assert found.kept == ("a.py",)
    assert "b.py" in found.restored
    assert (tree / "a.py").read_text() == "mine\n"
    assert (tree / "b.py").read_text() == "old b\n"


def test_a_refused_change_is_taken_back(tree: Path) -> None:
    disk = Disk(str(tree))

    def refused() -> None:
        raise PatchFailed("no")

    with pytest.raises(PatchFailed):
        transact(disk, (Change("a.py", disk.read("a.py"), Image(b"new a\n")),), load_ledger(disk), refused)
    assert (tree / "a.py").read_text() == "old a\n"


def test_a_damaged_journal_is_told(tree: Path, facts: Facts, plan: Plan) -> None:
    (tree / ".caffeup").mkdir()
    (tree / JOURNAL).write_text("{")
    with pytest.raises(PatchFailed, match="journal of a killed run cannot be read"):
        engine.apply(str(tree), plan, facts, CONFIG)
    assert (tree / "a.py").read_text() == "old a\n"


def test_an_interrupt_takes_everything_back(tree: Path, facts: Facts, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    before = snapshot(tree)
    real = Disk.put

    def put(disk: Disk, path: str, image: Image) -> None:
        if path == "b.py" and image.data == b"new b\n":
            raise KeyboardInterrupt
        real(disk, path, image)

    monkeypatch.setattr(Disk, "put", put)
    with pytest.raises(KeyboardInterrupt):
        engine.apply(str(tree), plan, facts, CONFIG)
    assert snapshot(tree) == before
    assert not (tree / JOURNAL).exists()
