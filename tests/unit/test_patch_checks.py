"""Post-conditions: with make's flags, side by side, and no failure where nothing can be told."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Optional

import pytest

from caffeup.errors import PatchFailed
from caffeup.host import Output, RealHost
from caffeup.model.fix import Edit, Shim
from caffeup.model.plan import Plan
from caffeup.patch import engine
from caffeup.patch.checks import Checked, Checker, Target, finding_of
from patchtools import facts_of, fix, plan_of, snapshot

MAKEFILE = """include Makefile.config
CXX := {cxx}
COMMON_FLAGS += -Iinclude -DFROM_MAKEFILE
CXXFLAGS += -MMD -MP $(COMMON_FLAGS)
all: ; false
"""
EDIT = "title = 't'\nwhy = 'w'\nsince = 's'\nwhom = 'm'\nsource = ['a']\n[[spots]]\nfiles = ['src/*.cpp', 'python/*.py']\nanchor = 'old'\nhits = 0\nreplace = '{}'\nmissing = 'skip'\n"
CONFIG = "COMMON_FLAGS := -I.caffeup/include\n"
needs_programs = pytest.mark.skipif(not (shutil.which("g++") and shutil.which("make")), reason="no g++ and make")


class Told:
    """A host that answers from a list, by the program's name."""

    def __init__(self, **answers: Optional[Output]) -> None:
        self._answers = answers
        self.asked: list[tuple[str, ...]] = []

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0, stdin: str = "") -> Optional[Output]:
        self.asked.append(argv)
        inside = argv[argv.index("sh") + 5 :]
        return self._answers.get(inside[0].replace("+", "p"), Output(status=127, stderr="not found"))


def flags(text: str = "g++ -O2 -MMD") -> Output:
    return Output(status=0, stdout=f"some noise\ncaffeup-flags: {text}\n")


def one(host: Told, target: Target, plan: Plan, root: Path) -> Checked:
    return Checker(host, plan, str(root)).check((target,))[0]  # type: ignore[arg-type]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    patches = tmp_path / "patches"
    for path, text in {
        "shims/s/lib.h": "#include_next <lib.h>\ninline int given_back() { return 1; }\n",
        "edits/good.toml": EDIT.format("lib()"),
        "edits/worse.toml": EDIT.format("(").replace("'src/*.cpp', ", ""),
        "edits/bad.toml": EDIT.format("nowhere()"),
    }.items():
        (patches / path).parent.mkdir(parents=True, exist_ok=True)
        (patches / path).write_text(text)
    monkeypatch.setattr("caffeup.patch.wanted.bundled", lambda _: patches)
    root = tmp_path / "a tree"
    for path, text in {
        "Makefile": MAKEFILE.format(cxx="g++"),
        "include/lib.h": "inline int lib() { return 2; }\n",
        "src/a.cpp": '#include "lib.h"\n#ifndef FROM_MAKEFILE\n#error flags\n#endif\nint main() { return old; }\n',
        "python/a.py": "x = old\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


python = sys.executable
FACTS = facts_of(
    fix("shim", Shim(headers=("s/lib.h",))),
    fix("good", Edit(edit="good")),
    fix("bad", Edit(edit="bad")),
    fix("worse", Edit(edit="worse")),
)


@needs_programs
def test_touched_files_are_compiled_with_the_flags_of_make(tree: Path) -> None:
    seen: list[Checked] = []
    (tree / "python/a.py").unlink()
    told: list[tuple[str, int, int]] = []
    plan = plan_of(tree, "shim", "good", jobs=2)
    engine.apply(
        str(tree), plan, FACTS, CONFIG, host=RealHost(), on_checked=seen.extend, begins=lambda *words: told.append(words)
    )
    assert {what for what, _, _ in told} == {"lib.h", "src/a.cpp"}
    assert {(number, total) for _, number, total in told} == {(0, 2), (1, 2)}
    assert {(check.target.path or check.target.headers, check.ok) for check in seen} == {(("lib.h",), True), ("src/a.cpp", True)}
    assert not list(tree.rglob("*.d"))
    again: list[Checked] = []
    engine.apply(str(tree), plan_of(tree, "shim", "good"), FACTS, CONFIG, host=RealHost(), on_checked=again.extend)
    assert again == []


@needs_programs
def test_a_file_that_does_not_compile_takes_everything_back(tree: Path) -> None:
    (tree / "python/a.py").unlink()
    before = snapshot(tree)
    with pytest.raises(PatchFailed, match="1 of 2 touched files do not compile") as caught:
        engine.apply(str(tree), plan_of(tree, "shim", "bad"), FACTS, CONFIG, host=RealHost())
    finding = caught.value.findings[0]
    assert (finding.id, finding.affects) == ("patch-postcondition", "bad")
    assert (finding.evidence[0].where, finding.evidence[0].line) == ("src/a.cpp", 5)
    assert "nowhere" in finding.evidence[0].text
    assert snapshot(tree) == before


@needs_programs
def test_a_library_that_is_not_installed_is_no_failure(tree: Path) -> None:
    (tree / "include/lib.h").unlink()
    (tree / "python/a.py").unlink()
    seen: list[Checked] = []
    engine.apply(str(tree), plan_of(tree, "shim", "good"), FACTS, CONFIG, host=RealHost(), on_checked=seen.extend)
    assert [check.ok for check in seen] == [None, None]
    assert "lib.h: No such file" in seen[0].said


@needs_programs
def test_python_is_compiled_by_the_chosen_python(tree: Path) -> None:
    engine.apply(str(tree), plan_of(tree, "good", python=python), FACTS, CONFIG, host=RealHost())
    engine.revert(str(tree))
    (tree / "python/a.py").write_text("x = old\n" * 2)
    with pytest.raises(PatchFailed) as caught:
        engine.apply(str(tree), plan_of(tree, "worse", python=python), FACTS, CONFIG, host=RealHost())
    assert caught.value.findings[0].title.startswith("python/a.py does not compile")


@needs_programs
def test_a_python_file_that_did_not_compile_before_either_is_no_failure(tree: Path) -> None:
    (tree / "python/a.py").write_text("print old\n")
    seen: list[Checked] = []
    engine.apply(str(tree), plan_of(tree, "good", python=python), FACTS, CONFIG, host=RealHost(), on_checked=seen.extend)
    assert [check.ok for check in seen if check.target.path.endswith(".py")] == [None]


def test_without_make_or_compiler_nothing_is_checked(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    assert one(Told(make=None), Target("e", path="a.cpp"), plan, tmp_path).ok is None
    assert one(Told(make=Output(status=2, stderr="*** no rule")), Target("e", path="a.cpp"), plan, tmp_path).ok is None
    assert one(Told(make=flags('"unbalanced')), Target("e", path="a.cpp"), plan, tmp_path).ok is None
    assert one(Told(make=flags()), Target("e", path="a.cpp"), plan, tmp_path).ok is None
    assert one(Told(make=flags()), Target("e", path="a.cu"), plan, tmp_path).said == "not compiled here"
    assert one(Told(), Target("e", path="a.py"), plan, tmp_path).said == "no Python chosen"


def test_the_environment_of_make_is_used_and_dependency_files_are_not_written(tmp_path: Path) -> None:
    host = Told(make=flags("ccache g++ -O2 -MMD -MP -Iinclude"), ccache=Output(status=0))
    assert one(host, Target("e", path="a.cpp"), plan_of(tmp_path, make_env=(("PATH", "/opt/bin"),)), tmp_path).ok is True
    asked = host.asked[-1]
    assert asked[:2] == ("env", "PATH=/opt/bin")
    assert "-MMD" not in asked
    assert "-MP" not in asked
    assert asked[-1] == "a.cpp"
    assert asked[asked.index("ccache") :][:4] == ("ccache", "g++", "-O2", "-Iinclude")


def test_a_failure_without_a_place_is_a_finding_all_the_same() -> None:
    finding = finding_of(Checked(Target("e", path="a.cpp"), ok=False, said="cc1plus: out of memory\n\n"))
    assert finding.evidence[0].text == "cc1plus: out of memory"
    assert finding_of(Checked(Target("e", headers=("x.h",)), ok=False)).title == "x.h does not compile with e applied"
