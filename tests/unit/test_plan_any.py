"""Whatever a machine is made of, a plan comes of it, and keeps the laws of plans."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from caffeup.model.base import from_json, to_json
from caffeup.model.finding import Severity
from caffeup.model.machine import (
    Compiler,
    CudnnHeader,
    CudnnLibrary,
    GpuState,
    Machine,
    PythonKind,
    System,
    Toolkit,
    ToolkitLayout,
)
from caffeup.model.plan import Plan, Request, Switch
from caffeup.plan.explain import explain, explain_all, keys
from caffeup.plan.make import make_plan
from caffeup.render import render_config
from planvalues import FACTS, KEYS, WHEELS_ROOT, cc, gcc, gpu, library, machine, program, python, toolkit, tree

VERSIONS = st.sampled_from(
    ["1.0", "2.4.9", "3.0", "3.21.12", "4.6.0", "4.25.1", "5.0", "6.33.1", "9", "0.7.1", "1.89.0", "12.4", "13.0"]
)
FOLDERS = st.sampled_from(
    ["/usr/include", "/usr/lib", "/usr/local/lib", "/opt/x/include", "/home/a b/$c", "/home/me/debs/usr/lib", "/", "", "relative"]
)


def some(strategy: st.SearchStrategy[Any], size: int = 3) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=size).map(tuple)


TOOLKITS = st.builds(
    toolkit,
    st.sampled_from(["7.5", "8.0.61", "10.2.89", "11.5", "12.4.1", "13.0", "14.2"]),
    st.sampled_from(["", "/usr", "/home/a b/cuda", "/opt/cuda"]),
    layout=st.sampled_from(list(ToolkitLayout)),
    nvcc=st.sampled_from(["", "/usr/bin/nvcc", "/opt/cuda/bin/nvcc"]),
    sass=st.sampled_from([(), (cc("5.0"), cc("8.6")), (cc("7.5"), cc("12.1"))]),
    missing=some(st.sampled_from(["cublas", "nvcc"]), 1),
    include_dirs=some(FOLDERS, 2),
    library_dirs=some(FOLDERS, 2),
    max_gcc=st.sampled_from([None, 9, 15]),
)
GPUS = st.builds(
    gpu,
    st.sampled_from(["NVIDIA H200", "no name", "GeForce GTX 1080"]),
    st.sampled_from([None, "2.1", "6.1", "8.9", "12.0", "99.9"]),
)
COMPILERS: st.SearchStrategy[Compiler] = st.builds(
    gcc,
    st.sampled_from(["4.8.5", "9.4.0", "13.2.0", "17.0"]),
    st.sampled_from(["/usr/bin/g++", "/usr/bin/g++-9", "/usr/bin/c++", "/home/a b/g++", "/opt/conda/bin/g++"]),
    works=st.booleans(),
    target=st.sampled_from(["", "x86_64-linux-gnu", "aarch64-linux-gnu"]),
)
LIBRARIES = st.builds(
    library,
    st.sampled_from([row.id for row in FACTS.libraries] + ["something"]),
    st.none() | VERSIONS,
    include_dirs=some(FOLDERS, 2),
    library_dirs=some(FOLDERS, 2),
    libraries=some(st.sampled_from(["hdf5", "satlas", "boost_thread-mt", "opencv_core"]), 2),
    prefix=st.sampled_from(["/usr", "/home/me/debs", ""]),
)
PYTHONS = st.builds(
    python,
    st.sampled_from(["2.7.18", "3.6.15", "3.13.1"]),
    executable=st.sampled_from(["/usr/bin/python3", "/opt/conda/bin/python", "/home/a b/python"]),
    kind=st.sampled_from(list(PythonKind)),
    include=FOLDERS,
    library=st.sampled_from(["", "python3.13"]),
    library_dir=FOLDERS,
    numpy=st.none() | st.just(Version("2.1")),
    boost_python=st.sampled_from(["", "boost_python3"]),
    boost_python_dir=FOLDERS,
    own=st.booleans(),
)
SYSTEMS = st.builds(
    System,
    distro=st.sampled_from(["debian", "fedora", "unknown", "centos"]),
    arch=st.sampled_from(["x86_64", "aarch64", "riscv64"]),
    glibc=st.sampled_from([None, Version("2.17"), Version("2.39")]),
    jetson=st.sampled_from(["", "Orin"]),
    cores=st.integers(1, 256),
    memory_bytes=st.integers(0, 1 << 40),
    root=st.booleans(),
)


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    headers = some(st.builds(CudnnHeader, via=st.just("x"), directory=FOLDERS, version=VERSIONS.map(Version)), 2)
    files = some(
        st.builds(CudnnLibrary, via=st.just("x"), directory=FOLDERS, file=FOLDERS, version=st.none() | VERSIONS.map(Version)), 2
    )
    return machine(
        *draw(some(GPUS)),
        driver=draw(st.sampled_from(["", "390.46", "535.54.03", "610.43.02"])),
        driver_cuda=draw(st.sampled_from(["", "9.1", "12.2", "13.0"])),
        state=draw(st.none() | st.sampled_from(list(GpuState))),
        system=draw(SYSTEMS),
        toolkits=draw(some(TOOLKITS)),
        compilers=draw(some(COMPILERS)),
        cudnn_headers=draw(headers),
        cudnn_libraries=draw(files),
        libraries=draw(some(LIBRARIES, 8)),
        pythons=draw(some(PYTHONS)),
        programs=draw(
            some(st.builds(program, st.sampled_from(["make", "protoc", "git"]), st.sampled_from(["", "3.21.12", "25.1"])), 4)
        ),
        prefixes=draw(some(st.sampled_from(["/home/me/debs", "/opt/conda", "/"]), 2)),
        wheels_root=draw(st.sampled_from(["", WHEELS_ROOT, "/home/a b/.local/share/caffeup/cuda/1"])),
    )


REQUESTS = st.builds(
    Request,
    source=st.sampled_from(["ssd", "/home/a b/caffe", "--odd; rm"]),
    cpu=st.booleans(),
    cudnn=st.sampled_from(list(Switch)),
    opencv=st.sampled_from(list(Switch)),
    arch=some(st.sampled_from(["native", "all", "8.6", "6.1,9.0", "eight", ""]), 2),
    cuda=st.sampled_from(["", "12", "wheels", "/opt/cuda", "\n"]),
    python=st.sampled_from(["", "none", "3", "/usr/bin/python3", "$x"]),
    blas=st.sampled_from(["", "mkl", "openblas", "fast"]),
    jobs=st.none() | st.integers(-1, 99),
    tf32=st.booleans(),
    yes=st.booleans(),
    force=some(st.sampled_from(["no-toolkit", "tree-path", "arch-needed"]), 2),
)
ROOTS = st.sampled_from(["/home/user/caffe", "/home/a b", "/c$d"])


@settings(max_examples=250, deadline=None)
@given(
    here=machines(),
    request=REQUESTS,
    root=ROOTS,
    wanted=st.sets(st.sampled_from(KEYS)),
    standard=st.sampled_from(["", "c++11", "gnu++1z", "odd"]),
    cpu_only=st.booleans(),
)
def test_a_plan_comes_of_anything(
    here: Machine, request: Request, root: str, wanted: set[str], standard: str, cpu_only: bool
) -> None:
    asked = tree(root=root, config_keys=tuple(sorted(wanted)), standard=standard, cpu_only=cpu_only)
    made = make_plan(here, asked, request, FACTS)
    assert from_json(to_json(made), Plan) == made
    assert explain_all(made)
    for key in keys(made):
        assert explain(made, key)
    for line in made.config:
        assert line.override or line.key.startswith("export ") or line.key in wanted
        assert line.because
    for one in made.conflicts:
        assert one.severity is Severity.PROBLEM
        assert one.id not in request.force
    assert len({link.name for link in made.links}) == len(made.links), "one link with two targets"
    for link in made.links:
        assert not link.name.startswith(("/", "../"))
    if made.lay_out:
        assert made.gpu
        assert any(link.target.startswith(here.wheels_root) for link in made.links)
    if not made.gpu:
        assert not made.sass
        assert not made.cudnn
    if made.gpu and not made.conflicts and not any(one.severity is Severity.WARNING for one in made.notes):
        assert made.sass or made.ptx
    assert made.jobs >= 1
    render_config(made)


@pytest.mark.parametrize("root", ["/opt/cuda"])
def test_the_pool_has_a_toolkit_that_works(root: str) -> None:
    """The test above must also meet machines on which all is well."""
    whole: Toolkit = toolkit("12.4.1", root)
    made = make_plan(machine(gpu("NVIDIA H200", "9.0"), toolkits=(whole,)), tree(), Request(), FACTS)
    assert not made.conflicts
