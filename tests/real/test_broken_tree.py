"""A tree that is broken as people break theirs: built for real, diagnosed, mended as the finding says, and built again.

``CAFFEUP_TREES`` names BVLC trees without a build (folders, separated by colons; they are copied, never changed). Only what is
concerned is compiled, so a case takes seconds. A finding that says ``caffeup up`` is mended by the stage of it that writes into
the tree, ``caffeup configure``; with ``CAFFEUP_WHOLE=1`` by the whole command, which takes minutes.
``CAFFEUP_BUILT`` names a tree that was built with pycaffe: for what is broken at run time.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from caffeup.model.finding import Finding

pytestmark = pytest.mark.real
GIVEN = [Path(name) for name in os.environ.get("CAFFEUP_TREES", "").split(":") if name]
BUILT = os.environ.get("CAFFEUP_BUILT", "")
WHOLE = bool(os.environ.get("CAFFEUP_WHOLE"))
CAFFEUP = (sys.executable, "-m", "caffeup")
TRIPLET = f"{os.uname().machine}-linux-gnu"
GOOD = {
    "CPU_ONLY": "1",
    "BLAS": "open",
    "PYTHON_INCLUDE": "$(shell /usr/bin/python3 -c 'import numpy, sysconfig; print(sysconfig.get_paths()[\"include\"], numpy.get_include())')",
    "INCLUDE_DIRS": "$(PYTHON_INCLUDE) /usr/local/include /usr/include/hdf5/serial /usr/include/opencv4",
    "LIBRARY_DIRS": f"/usr/local/lib /usr/lib /usr/lib/{TRIPLET}/hdf5/serial",
    "BUILD_DIR": "build",
    "DISTRIBUTE_DIR": "distribute",
    "CUSTOM_CXX": "g++",
    "Q": "@",
}
"""A Makefile.config as somebody writes it by hand who got everything right that the case is not about."""

OBJECT = "{build}/src/caffe/{name}.o"
LIBRARY = "{build}/lib/libcaffe.so.1.0.0 OBJS={build}/src/caffe/internal_thread.o"
MODULE = "python/caffe/_caffe.so OBJS={build}/src/caffe/internal_thread.o"

# The cause; what is wrong in Makefile.config; what is built; and what of that after it was mended.
CASES: list[tuple[str, dict[str, str], str]] = [
    ("hdf5-header", {"INCLUDE_DIRS": "$(PYTHON_INCLUDE) /usr/local/include /usr/include/opencv4"}, "util/hdf5"),
    ("protobuf-bytes-limit", {}, "util/io"),
    ("opencv4-c-constants", {}, "layers/window_data_layer"),
    ("opencv-missing", {"INCLUDE_DIRS": "$(PYTHON_INCLUDE) /usr/local/include /usr/include/hdf5/serial"}, "data_transformer"),
    ("cblas-header", {"BLAS": "mkl", "BLAS_INCLUDE": "/opt/intel/mkl/include"}, "util/math_functions"),
    ("cuda-header", {"CPU_ONLY": "", "CUDA_DIR": "/opt/no-cuda"}, "common"),
    ("program-missing", {"CUSTOM_CXX": "g++-4.8"}, "internal_thread"),
    ("compiler-too-old", {"COMMON_FLAGS": "-std=c++98"}, "blob"),
    ("python-header", {"PYTHON_INCLUDE": "/usr/include/python2.7", "WITH_PYTHON_LAYER": "1"}, "layer_factory"),
    ("atlas-missing", {"BLAS": "atlas"}, LIBRARY),
    ("openblas-library", {"LDFLAGS": "-lopenblasp"}, LIBRARY),
    ("hdf5-library", {"LIBRARY_DIRS": "/usr/local/lib /usr/lib"}, LIBRARY),
    ("boost-python-library", {"PYTHON_LIBRARIES": "boost_python-py35 python3"}, MODULE),
    ("libpython-library", {"PYTHON_LIBRARIES": "python3.5m"}, MODULE),
]


def run(command: str, tree: Path, **more: str) -> tuple[int, str]:
    """The exit code, and all that was said."""
    done = subprocess.run(
        ["bash", "-c", command], cwd=tree, env={**os.environ, "LC_ALL": "C.UTF-8", **more}, text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def diagnosed(text: str, tree: Path) -> list[Finding]:
    done = subprocess.run([*CAFFEUP, "diagnose", "--json"], cwd=tree, input=text, capture_output=True, text=True, check=True)
    return msgspec.json.decode(done.stdout, type=list[Finding])


def by_caffeup(finding: Finding) -> str:
    """The command that the finding shows."""
    return next(command for remedy in finding.remedies if remedy.by_caffeup for command in remedy.commands)


def mend(command: str, tree: Path) -> None:
    """What ``caffeup up TREE`` does about it."""
    words = shlex.split(command)
    assert words[:2] == ["caffeup", "up"], command
    stage = ("up", "--yes", "--no-tests") if WHOLE else ("configure",)
    done = subprocess.run([*CAFFEUP, *stage, str(tree), "--cpu"], cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(params=GIVEN, ids=lambda path: str(path.name))
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns(".git", ".caffeup", "build", ".build_release", "Makefile.config", "docs", "models")
    copied = Path(shutil.copytree(request.param, tmp_path / "caffe", symlinks=True, ignore=ignored))
    for name in ("docs", "models"):
        (copied / name).mkdir(exist_ok=True)
    return copied


def target(what: str, build: str) -> str:
    return (what if "{build}" in what else OBJECT).format(build=build, name=what)


@pytest.mark.parametrize(("cause", "wrong", "what"), CASES, ids=[cause for cause, _, _ in CASES])
def test_a_broken_tree_is_diagnosed_and_mended(tree: Path, cause: str, wrong: dict[str, str], what: str) -> None:
    lines = [f"{key} := {value}" for key, value in {**GOOD, **wrong}.items()]
    (tree / "Makefile.config").write_text("\n".join(lines) + "\n")
    code, said = run(f"make -j2 {target(what, '.build_release')}", tree)
    assert code, said
    found = diagnosed(said, tree)
    assert found, said
    assert found[0].id == cause, said
    if cause == "program-missing":  # the finding shows what to look at; what is chosen is up's
        mend("caffeup up", tree)
    else:
        mend(by_caffeup(found[0]), tree)
    code, again = run("make -pn 2>/dev/null | sed -n 's/^BUILD_DIR_LINK := //p; s/^BUILD_DIR := //p'", tree)
    build = again.split()[-1] if again.split() else ".build_release"
    code, said = run(f"make -j2 {target(what, build)}", tree)
    assert code == 0, said


AT_RUN_TIME = [
    ("caffe-not-on-path", "caffe --version", "caffe --version"),
    ("pycaffe-not-on-path", "/usr/bin/python3 -c 'import caffe'", "/usr/bin/python3 -c 'import caffe; caffe.Net'"),
    (
        "wrong-caffe-package",
        "mkdir -p caffe && /usr/bin/python3 -c 'import caffe; caffe.Net'",
        "/usr/bin/python3 -c 'import caffe; caffe.Net'",
    ),
]


@pytest.mark.skipif(not BUILT, reason="CAFFEUP_BUILT names no tree")
@pytest.mark.parametrize(("cause", "failing", "working"), AT_RUN_TIME, ids=[cause for cause, _, _ in AT_RUN_TIME])
def test_what_is_broken_at_run_time(tmp_path: Path, cause: str, failing: str, working: str) -> None:
    code, said = run(failing, tmp_path, PYTHONPATH="")
    assert code
    found = diagnosed(said, tmp_path)
    assert found[0].id == cause, said
    shown = next(command for remedy in found[0].remedies for command in remedy.commands if "caffeup env" in command)
    ours = f"{shlex.join(CAFFEUP)} env {shlex.quote(BUILT)}"
    mended = shown.replace("caffeup env .", ours).replace("caffeup env", ours) if ours not in shown else shown
    code, said = run(f"{mended}; {working}", tmp_path, PYTHONPATH="")
    assert code == 0, said
