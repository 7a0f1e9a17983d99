"""nvcc through ccache: by a folder of ours that stands in for the toolkit, told apart by the host compiler too."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from caffeup.build.compiler import nvcc_through_ccache

GXX, CCACHE = shutil.which("g++") or "", shutil.which("ccache") or ""
pytestmark = pytest.mark.skipif(not (GXX and CCACHE), reason="needs g++ and ccache")
NVCC = f"""#!/bin/sh
echo "$0 $*" >> "$CALLS"
for word; do
  shift
  case $word in -ccbin=*) ;; *.cu) set -- "$@" -x c++ "$word" ;; *) set -- "$@" "$word" ;; esac
done
exec {GXX} "$@"
"""
"""g++ in nvcc's clothes: ccache knows a compiler by its name."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree whose .caffeup/cuda leads to a toolkit, and a host compiler of our own."""
    toolkit = tmp_path / "a toolkit"
    for name in ("bin", "include", "lib64"):
        (toolkit / name).mkdir(parents=True)
    program(toolkit / "bin" / "nvcc", NVCC)
    program(tmp_path / "g++", f'#!/bin/sh\nexec {GXX} "$@"\n')
    home = tmp_path / "tree" / ".caffeup"
    home.mkdir(parents=True)
    (home / "cuda").symlink_to(toolkit)
    (tmp_path / "tree" / "kernel.cu").write_text("int kernel() { return 1; }\n")
    return tmp_path / "tree"


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def environment(tree: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "CCACHE_DIR": str(tree.parent / "cache"), "CALLS": str(tree.parent / "calls")}


def set_to(tree: Path, ccache: str = CCACHE) -> dict[str, str]:
    return nvcc_through_ccache(tree, str(tree.parent / "g++"), ccache, environment(tree))


def compiles(tree: Path, cuda: str) -> int:
    """How often the real nvcc compiled, when make's command was run."""
    calls = tree.parent / "calls"
    calls.unlink(missing_ok=True)
    argv = [f"{cuda}/bin/nvcc", f"-ccbin={tree.parent}/g++", "-c", "kernel.cu", "-o", "kernel.o"]
    subprocess.run(argv, cwd=tree, env=environment(tree), check=True)
    return sum(" -c " in line for line in calls.read_text().splitlines()) if calls.exists() else 0


def test_an_object_comes_from_the_cache_the_second_time(tree: Path) -> None:
    cuda = set_to(tree)["CUDA_DIR"]
    assert not Path(cuda).is_absolute()
    assert (compiles(tree, cuda), compiles(tree, cuda)) == (1, 0)
    (tree / "kernel.cu").write_text("int kernel() { return 2; }\n")
    assert compiles(tree, cuda) == 1


def test_another_host_compiler_gives_another_object(tree: Path) -> None:
    cuda = set_to(tree)["CUDA_DIR"]
    assert compiles(tree, cuda) == 1
    program(tree.parent / "g++", f'#!/bin/sh\n# newer\nexec {GXX} "$@"\n')
    assert compiles(tree, cuda) == 1


def test_another_tree_has_the_same_objects(tree: Path) -> None:
    assert compiles(tree, set_to(tree)["CUDA_DIR"]) == 1
    other = tree.parent / "other"
    (other / ".caffeup").mkdir(parents=True)
    (other / ".caffeup" / "cuda").symlink_to(tree.parent / "a toolkit")
    shutil.copy(tree / "kernel.cu", other)
    assert compiles(other, set_to(other)["CUDA_DIR"]) == 0


def test_nvcc_is_called_by_its_own_path_and_all_else_is_linked(tree: Path) -> None:
    cuda = tree / set_to(tree)["CUDA_DIR"]
    compiles(tree, str(cuda))
    assert (tree.parent / "calls").read_text().startswith(f"{tree.parent}/a toolkit/bin/nvcc ")
    assert sorted(path.name for path in cuda.iterdir()) == ["bin", "include", "lib64"]
    assert (cuda / "lib64").samefile(tree.parent / "a toolkit" / "lib64")
    assert set_to(tree)["CUDA_INCLUDE_DIR"] == ".caffeup/cuda/include"


def test_a_toolkit_reached_by_several_links_works_too(tree: Path) -> None:
    (tree / ".caffeup" / "cuda").unlink()
    (tree / ".caffeup" / "cuda").mkdir()
    for name in ("bin", "include"):
        (tree / ".caffeup" / "cuda" / name).symlink_to(tree.parent / "a toolkit" / name)
    assert compiles(tree, set_to(tree)["CUDA_DIR"]) == 1


@pytest.mark.parametrize("broken", ["ccache", "nvcc", "none"])
def test_without_a_ccache_or_nvcc_that_works_make_is_told_nothing(tree: Path, broken: str) -> None:
    if broken == "nvcc":
        program(tree.parent / "a toolkit" / "bin" / "nvcc", "#!/bin/sh\nexit 1\n")
    program(tree.parent / "ccache", "#!/bin/sh\nexit 1\n")
    assert set_to(tree, {"ccache": str(tree.parent / "ccache"), "nvcc": CCACHE, "none": ""}[broken]) == {}
    shutil.rmtree(tree.parent / "a toolkit")
    assert set_to(tree) == {}
