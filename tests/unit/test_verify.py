from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caffeup.build.progress import Silent
from caffeup.build.run import Build
from caffeup.build.stages import make_all
from caffeup.model.outcome import Check
from caffeup.model.plan import Plan, Request
from caffeup.verify import number_of_checks, verify
from caffeup.verify.libraries import parse_ldd

TINY = Path(__file__).resolve().parents[1] / "trees" / "tiny"
GXX = shutil.which("g++") or ""
needs_compiler = pytest.mark.skipif(not (GXX and shutil.which("make")), reason="needs make and g++")

LDD = """\
\tlinux-vdso.so.1 (0x00007ffc)
\tlibcaffe.so.1.0.0 => not found
\tlibglog.so.1 => /lib/x86_64-linux-gnu/libglog.so.1 (0x00007f)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f)
tools/caffe: /lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by tools/caffe)
"""


def test_ldd_tells_what_is_missing_and_what_is_too_old() -> None:
    got = parse_ldd(LDD.splitlines())
    assert got.missing == ("libcaffe.so.1.0.0",)
    assert got.wrong == ("libstdc++.so.6 lacks GLIBCXX_3.4.30",)
    assert got.found == {"libglog.so.1": "/lib/x86_64-linux-gnu/libglog.so.1"}


def test_ldd_of_something_else() -> None:
    assert parse_ldd(["\tnot a dynamic executable"]).trouble == "not a dynamic executable"


@given(st.text())
def test_ldd_of_anything(text: str) -> None:
    parse_ldd(text.splitlines())


@pytest.fixture(scope="module")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("verify") / "tiny"
    shutil.copytree(TINY, root)
    (root / "Makefile.config").write_text("CPU_ONLY := 1\nBUILD_DIR := build\nDISTRIBUTE_DIR := distribute\nQ ?= @\n")
    make_all(build_of(root), Silent())
    return root


@pytest.fixture
def tree(built_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built_once, tmp_path / "tiny", symlinks=True))


def build_of(root: Path, python: str = "") -> Build:
    plan = Plan(tree=str(root), fork="tiny", request=Request(), gpu=False, compiler=GXX, python=python)
    return Build(root=str(root), plan=plan, env={"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": "/nonexistent"})


def fake_python(tree: Path, body: str) -> str:
    """A stand-in that answers ``-c``; the extension it would import is a copy of the library."""
    path = tree.parent / "python"
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)
    library = next((tree / ".build_release/lib").glob("libcaffe.so.*"))
    shutil.copy(library, tree / "python/caffe/_caffe.so")
    return str(path)


def answers(tree: Path, forward: float = 1e-7, file: str = "") -> str:
    where = file or f"{tree}/python/caffe/__init__.py"
    return (
        f"""case "$2" in *load_image*) echo 'caffeup:{{"error": {{"Transformer": "1e-07"}}, "said": {{}}}}';; *RandomState*) echo 'caffeup:{{"forward": "{forward}", "backward": "1e-07"}}';;"""
        f""" *) echo noise; echo 'caffeup:{{"file": "{where}", "extension": "x", "numpy": "1.24", "python": "3.11"}}';; esac"""
    )


def by_name(checks: tuple[Check, ...]) -> dict[str, Check]:
    return {check.name: check for check in checks}


@needs_compiler
def test_without_pycaffe_the_program_runs_the_net(tree: Path) -> None:
    begun: list[str] = []
    checks = verify(build_of(tree), begins=begun.append)
    assert begun == [check.name for check in checks]
    assert [(check.name, check.ok) for check in checks] == [
        ("shared libraries", True), ("program", True), ("CPU forward and backward", True)
    ]  # fmt: skip
    assert checks[1].result.startswith("caffe version")
    assert list((tree / ".caffeup/tmp").iterdir()) == []


@needs_compiler
def test_all_is_well(tree: Path) -> None:
    begun: list[str] = []
    build = build_of(tree, fake_python(tree, answers(tree)))
    checks = verify(build, begins=begun.append)
    assert begun == [check.name for check in checks], "each is told before it is made"
    assert len(begun) == number_of_checks(build.plan, ())
    assert all(check.ok for check in checks), checks
    assert by_name(checks)["import caffe"].result == "Python 3.11, numpy 1.24"
    assert by_name(checks)["caffe.io"].result == "Transformer are right"


@needs_compiler
def test_a_library_that_is_gone_is_named(tree: Path) -> None:
    for one in (tree / ".build_release/lib").glob("libcaffe.so*"):
        one.unlink()
    checks = by_name(verify(build_of(tree)))
    libraries = checks["shared libraries"]
    assert not libraries.ok
    assert libraries.finding is not None
    assert any("caffe.bin needs libcaffe.so.0.1.0, which is not found" in seen.text for seen in libraries.evidence)
    assert not checks["program"].ok


@needs_compiler
def test_another_copy_of_caffe_is_not_taken_for_this_one(tree: Path) -> None:
    python = fake_python(tree, answers(tree, file="/usr/lib/python3/dist-packages/caffe/__init__.py"))
    check = by_name(verify(build_of(tree, python)))["import caffe"]
    assert not check.ok
    assert "not this tree's" in check.result


@needs_compiler
@pytest.mark.parametrize("forward", [0.3, float("inf"), float("nan")])
def test_wrong_values_fail(tree: Path, forward: float) -> None:
    python = fake_python(tree, answers(tree, forward))
    check = by_name(verify(build_of(tree, python)))["CPU forward and backward"]
    assert not check.ok


@needs_compiler
def test_an_import_error_is_shown_with_the_command_to_see_it(tree: Path) -> None:
    python = fake_python(
        tree, "echo 'Traceback (most recent call last):'; echo \"ImportError: No module named 'skimage'\"; exit 1"
    )
    checks = by_name(verify(build_of(tree, python)))
    check = checks["import caffe"]
    assert (check.ok, check.result) == (False, "ImportError: No module named 'skimage'")
    assert check.finding is not None
    assert "import caffe" in check.finding.remedies[0].commands[0]
    assert "CPU forward and backward" not in checks


@needs_compiler
def test_a_python_that_is_gone(tree: Path) -> None:
    fake_python(tree, "")
    assert "cannot start" in by_name(verify(build_of(tree, "/nonexistent/python")))["import caffe"].result
