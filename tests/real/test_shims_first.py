"""Of every tree that is given: g++ and nvcc, called as its own Makefile calls them, find the shims before what they complete.

``CAFFEUP_TREES`` names the trees (folders, separated by colons; they are copied, never changed). Seconds each: nothing is built.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from caffeup.model.plan import Plan
from caffeup.patch import engine
from caffeup.render import render_config
from caffeup.source.inspect import inspect
from planvalues import FACTS, cudnn, gpu, machine, plan, toolkit, usual_libraries

pytestmark = pytest.mark.real
GIVEN = [Path(name) for name in os.environ.get("CAFFEUP_TREES", "").split(":") if name]
TOOLKIT = next((path for path in sorted(Path("/usr/local").glob("cuda-*"), reverse=True) if (path / "bin/nvcc").exists()), None)
HEADERS = (
    "cudnn.h",
    "cuda_runtime.h",
    "opencv2/core/core.hpp",
    "opencv2/imgproc/imgproc.hpp",
    "google/protobuf/io/coded_stream.h",
)
NEVER_PREPROCESSED = ("-c", "-MMD", "-MP", "-M")


@pytest.fixture(params=GIVEN, ids=lambda path: str(path.name))
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(request.param, tmp_path / "caffe", symlinks=True))


def configured(tree: Path) -> Plan:
    """The tree as caffeup leaves it for a GPU, with the toolkit that is here and a cuDNN that need not be."""
    assert TOOLKIT is not None
    short = re.sub(r"^cuda-", "", TOOLKIT.name)
    given = (toolkit(short, str(TOOLKIT)),)
    here = machine(gpu("NVIDIA H200", "9.0"), toolkits=given, libraries=usual_libraries(protobuf="3.21.12"), **cudnn("9.14.0"))
    made = plan(here, inspect(tree, FACTS))
    engine.apply(str(tree), made, FACTS, render_config(made))
    return made


def command(tree: Path, ending: str) -> list[str]:
    """The words with which its Makefile compiles a file of the library, without the file and what is made of it."""
    said = subprocess.run(["make", "-n", "all", "Q="], cwd=tree, capture_output=True, text=True, check=False).stdout
    compiled = re.compile(rf"\s-c\s.*?(src/caffe/\S*{ending})(?=\s)|(src/caffe/\S*{ending})\s.*\s-c\s")
    found = next((line for line in said.splitlines() if compiled.search(line)), None)
    assert found is not None, said[-2000:]
    words = shlex.split(re.split(r"\s(?:\|\||&&|2>|>)\s*", found)[0])
    kept = [word for at, word in enumerate(words) if word not in ("-o", *NEVER_PREPROCESSED) and words[at - 1] != "-o"]
    return [word for word in kept if not word.endswith(ending)]


def first_found(tree: Path, words: list[str], header: str, ending: str, stand_ins: Path) -> str:
    """The path of the first file that is included under this name; libraries that are not here are empty headers, found last."""
    (tree / f"probe{ending}").write_text(f"#include <{header}>\n")
    last = ["-Xcompiler", f"-idirafter,{stand_ins}"] if ending == ".cu" else ["-idirafter", str(stand_ins)]
    said = subprocess.run([*words, *last, "-E", f"probe{ending}"], cwd=tree, capture_output=True, text=True, check=False)
    assert said.returncode == 0, f"{shlex.join(words)}\n{said.stderr[-2000:]}"
    included: list[str] = re.findall(r'^# \d+ "([^"]+)"', said.stdout, re.MULTILINE)
    return next(path for path in included if path.endswith(f"/{header}"))


@pytest.mark.skipif(TOOLKIT is None, reason="no nvcc")
@pytest.mark.skipif(not shutil.which("g++"), reason="no g++")
def test_shims_come_first(tree: Path, tmp_path: Path) -> None:
    configured(tree)
    stand_ins = tmp_path / "stand-ins"
    for header in HEADERS:
        (stand_ins / header).parent.mkdir(parents=True, exist_ok=True)
        (stand_ins / header).touch()
    shims = [header for header in HEADERS if (tree / ".caffeup/include" / header).exists()]
    assert "cuda_runtime.h" in shims
    for ending in (".cpp", ".cu"):
        words = command(tree, ending)
        found = {header: first_found(tree, words, header, ending, stand_ins) for header in shims}
        assert found == {header: f".caffeup/include/{header}" for header in shims}, f"{ending}: {shlex.join(words)}"
