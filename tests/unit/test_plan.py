"""Decisions of the plan on machines that are made of a few words each."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from packaging.version import Version

from caffeup.app.words import plan_in_short
from caffeup.model.base import from_json, to_json
from caffeup.model.finding import Finding, Severity
from caffeup.model.machine import Machine, PythonKind, System
from caffeup.model.plan import Plan, Switch
from caffeup.plan.packages import required
from planvalues import (
    GIB,
    KEYS,
    LINKED,
    cudnn,
    gcc,
    gpu,
    ids,
    library,
    machine,
    notes,
    plan,
    program,
    python,
    toolkit,
    tree,
    usual_libraries,
    value_of,
)

RTX_4090 = gpu("NVIDIA GeForce RTX 4090", "8.9")
GTX_1080_TI = gpu("NVIDIA GeForce GTX 1080 Ti", "6.1")
RTX_5090 = gpu("NVIDIA GeForce RTX 5090", "12.0")
H200 = gpu("NVIDIA H200", "9.0")


def because(the_plan: Plan, key: str) -> str:
    return the_plan.decision(key).because


def why_not(the_plan: Plan, key: str, word: str) -> str:
    return next(one.because for one in the_plan.decision(key).rejected if word in one.value)


def without(the_machine: Machine, **changes: Any) -> Machine:
    return msgspec.structs.replace(the_machine, **changes)


# --- libraries ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "word"), [("2.4.9", ()), ("3.2.0", ("3",)), ("4.5.4", ("3",)), ("5.0.0", ("3",))])
def test_opencv_version(version: str, word: tuple[str, ...]) -> None:
    made = plan(machine(libraries=usual_libraries(opencv=version)))
    assert value_of(made, "USE_OPENCV") == ("1",)
    assert value_of(made, "OPENCV_VERSION") == word


def test_a_library_that_a_switch_turns_off_is_not_needed() -> None:
    made = plan(machine(libraries=usual_libraries(opencv="", lmdb="", snappy="")))
    assert value_of(made, "USE_OPENCV") == ("0",)
    assert value_of(made, "USE_LMDB") == ("0",)
    assert value_of(made, "USE_LEVELDB") == ("0",)
    assert required(made) == ()
    assert made.packages == ()
    assert not made.conflicts


def test_with_root_what_is_missing_is_installed() -> None:
    system = System(distro="debian", root=True, cores=2, memory_bytes=4 * GIB)
    made = plan(machine(system=system, libraries=usual_libraries(opencv="", glog="")))
    assert {"opencv", "glog"} <= set(made.packages)
    assert required(made) == ("glog",)


def test_a_tree_without_the_switch_needs_the_library() -> None:
    keys = tuple(key for key in KEYS if key not in ("USE_OPENCV", "USE_HDF5"))
    made = plan(machine(libraries=usual_libraries(opencv="", hdf5="")), tree(config_keys=keys))
    assert set(required(made)) == {"opencv", "hdf5"}
    assert value_of(made, "USE_OPENCV") == ()
    assert ids(plan(machine(), tree(config_keys=keys), opencv=Switch.OFF)) == {"opencv-required"}


def test_a_tree_that_does_not_heed_the_switch_needs_the_library() -> None:
    heedless = tree(unheeded=("USE_OPENCV::src/caffe/data_transformer.cpp", "USE_LMDB::src/caffe/util/db_lmdb.cpp"))
    assert set(required(plan(machine(libraries=usual_libraries(opencv="", lmdb="")), heedless))) == {"opencv", "lmdb"}
    made = plan(machine(), heedless, opencv=Switch.OFF)
    assert ids(made) == {"opencv-required"}
    assert "src/caffe/data_transformer.cpp" in made.conflicts[0].why
    assert value_of(plan(machine(), heedless), "USE_OPENCV") == ("1",)
    assert not plan(machine(libraries=usual_libraries(leveldb="")), heedless).conflicts


def test_a_library_of_one_fork_is_needed_where_its_makefile_links_it() -> None:
    nvidia = tree(fork="nvidia", libraries=(*LINKED, "turbojpeg"))
    assert required(plan(machine(), nvidia)) == ("turbojpeg",)
    assert required(plan(machine(libraries=(*usual_libraries(), library("turbojpeg", "2.1.5"))), nvidia)) == ()
    assert required(plan(machine(), tree())) == required(plan(machine(), tree(libraries=()))) == ()


def test_opencv_by_request() -> None:
    off = plan(machine(), opencv=Switch.OFF)
    assert value_of(off, "USE_OPENCV") == ("0",)
    assert value_of(off, "OPENCV_VERSION") == ()
    assert "/usr/include/opencv4" not in value_of(off, "INCLUDE_DIRS")
    assert required(plan(machine(libraries=usual_libraries(opencv="")), opencv=Switch.ON)) == ("opencv",)


def test_hdf5_folders_are_given() -> None:
    made = plan(machine())
    assert "/usr/include/hdf5/serial" in value_of(made, "INCLUDE_DIRS")
    assert "/usr/lib/x86_64-linux-gnu/hdf5/serial" in value_of(made, "LIBRARY_DIRS")


def test_nothing_is_installed_for_a_library_that_is_there_under_a_prefix() -> None:
    prefix = "/home/me/debs"
    glog = library(
        "glog",
        "0.6.0",
        prefix=prefix,
        include_dirs=(f"{prefix}/usr/include",),
        library_dirs=(f"{prefix}/usr/lib/x86_64-linux-gnu",),
    )
    made = plan(machine(libraries=(*usual_libraries(glog="0.4.0"), glog), prefixes=(prefix,)))
    assert made.decision("glog").value == "0.6.0"
    assert ".caffeup/deps/prefix0/usr/include" in value_of(made, "INCLUDE_DIRS")
    assert made.run_paths == (".caffeup/deps/prefix0/usr/lib/x86_64-linux-gnu",)
    words = value_of(made, "LDFLAGS")
    assert "-Wl,--disable-new-dtags" in words
    assert "-Wl,-rpath,\\$ORIGIN/../../.caffeup/deps/prefix0/usr/lib/x86_64-linux-gnu" in words
    assert "-Wl,-rpath,\\$ORIGIN/../../../.caffeup/deps/prefix0/usr/lib/x86_64-linux-gnu" in words


def test_condas_libraries_do_not_stand_in_for_the_systems() -> None:
    conda = python("3.12.1", executable="/opt/conda/bin/python3", kind=PythonKind.CONDA)
    glog = library("glog", "0.7.1", prefix="/opt/conda", include_dirs=("/opt/conda/include",), library_dirs=("/opt/conda/lib",))
    here = machine(libraries=(*usual_libraries(glog=""), glog), pythons=(python(), conda))
    assert required(plan(here)) == ("glog",)
    assert required(plan(msgspec.structs.replace(here, prefixes=("/opt/conda",)))) == ()


def test_old_boost_without_the_regex_that_ssd_links() -> None:
    old = library("boost", "1.65.1", libraries=("boost_filesystem", "boost_thread", "boost_system"))
    others = tuple(one for one in usual_libraries() if one.name != "boost")
    made = plan(machine(libraries=(*others, old)), tree(libraries=(*LINKED, "boost_regex")))
    assert required(made) == ("boost",)
    assert "boost_regex" in next(one.title for one in made.notes if one.affects == "boost")


@pytest.mark.parametrize(("have", "word"), [("openblas", "open"), ("atlas", "atlas"), ("mkl", "mkl"), ("refblas", "atlas")])
def test_blas(have: str, word: str) -> None:
    made = plan(machine(libraries=(*usual_libraries(openblas=""), library(have, "1.0"))))
    assert value_of(made, "BLAS") == (word,)


def test_blas_by_request_and_with_folders() -> None:
    atlas = library("atlas", "3.10", include_dirs=("/usr/include/x86_64-linux-gnu/atlas",), library_dirs=("/usr/lib/atlas",))
    both = machine(libraries=(*usual_libraries(), atlas))
    assert value_of(plan(both), "BLAS") == ("open",)
    made = plan(both, blas="atlas")
    assert value_of(made, "BLAS") == ("atlas",)
    assert value_of(made, "BLAS_INCLUDE") == ("/usr/include/x86_64-linux-gnu/atlas",)
    assert value_of(made, "BLAS_LIB") == ("/usr/lib/atlas",)
    assert ids(plan(both, blas="fast")) == {"blas-unknown"}


@pytest.mark.parametrize(
    ("have", "names", "expected"),
    [
        ("atlas", ("cblas", "atlas"), {}),
        ("atlas", ("satlas",), {"cblas": "satlas", "atlas": "satlas"}),
        ("refblas", ("cblas", "blas"), {"atlas": "blas"}),
        ("refblas", ("blas",), {"cblas": "blas", "atlas": "blas"}),
        ("openblas", ("openblas",), {}),
        ("openblas", ("openblasp",), {"openblas": "openblasp"}),
    ],
)
def test_a_blas_of_another_name_gets_a_stand_in(have: str, names: tuple[str, ...], expected: dict[str, str]) -> None:
    made = plan(machine(libraries=(*usual_libraries(openblas=""), library(have, "1.0", libraries=names))))
    assert {one.name: one.links for one in made.stand_ins} == expected
    assert (value_of(made, "LIBRARY_DIRS")[0] == ".caffeup/lib") is bool(expected)


def test_hdf5_under_its_serial_name_gets_stand_ins() -> None:
    serial = library("hdf5", "1.10.7", libraries=("hdf5_serial_hl", "hdf5_serial"))
    made = plan(machine(libraries=(*usual_libraries(hdf5=""), serial)))
    assert {one.name: one.links for one in made.stand_ins} == {"hdf5": "hdf5_serial", "hdf5_hl": "hdf5_serial_hl"}
    assert plan(machine()).stand_ins == ()


def test_no_blas_is_something_to_install() -> None:
    made = plan(machine(libraries=usual_libraries(openblas="")))
    assert required(made) == ("openblas",)
    assert value_of(made, "BLAS") == ("open",)


# --- Python ------------------------------------------------------------------------------------------------------


def test_python_settings() -> None:
    made = plan(machine())
    assert made.python == "/usr/bin/python3"
    assert value_of(made, "PYTHON_LIBRARIES") == ("boost_python310", "python3.10")
    assert value_of(made, "WITH_PYTHON_LAYER") == ("1",)
    assert "/usr/include/python3.10" in value_of(made, "INCLUDE_DIRS")


def test_caffeups_own_python_is_never_chosen() -> None:
    own = python(executable="/home/me/.venv/bin/python", kind=PythonKind.VENV, own=True)
    made = plan(machine(pythons=(own,)))
    assert made.python == ""
    assert made.decision("python").value == "none"
    assert "runs on it" in why_not(plan(machine(pythons=(own, python()))), "python", "/home/me")
    assert ids(plan(machine(pythons=(own,)), python="/home/me/.venv/bin/python")) == {"python-not-found"}


def test_a_complete_python_beats_the_first_on_path() -> None:
    conda = python("3.12.1", executable="/opt/conda/bin/python3", kind=PythonKind.CONDA, boost_python="", boost_python_dir="")
    made = plan(machine(pythons=(conda, python())))
    assert made.python == "/usr/bin/python3"
    assert "lacks Boost.Python" in why_not(made, "python", "3.12.1")


def test_without_a_complete_python_there_is_no_pycaffe_and_it_is_said() -> None:
    made = plan(machine(pythons=(python(boost_python="", include=""),)))
    assert made.python == ""
    assert "no-pycaffe" in notes(made)
    assert value_of(made, "WITH_PYTHON_LAYER") == ()
    assert not made.conflicts


def test_with_sudo_the_systems_python_is_completed() -> None:
    system = System(distro="debian", sudo=True, cores=2, memory_bytes=4 * GIB)
    made = plan(machine(system=system, pythons=(python(boost_python="", include="", skimage=None),)))
    assert {"python-dev", "boost-python", "skimage"} <= set(made.packages)
    assert made.python == ""
    assert required(made) == ()


def test_six_is_installed_for_a_tree_that_imports_it() -> None:
    """On Debian 13 nothing else brings it, and `import caffe` failed after the whole build."""
    bare = machine(system=System(distro="debian", sudo=True, cores=2, memory_bytes=4 * GIB), pythons=(python(six=None),))
    assert "six" in plan(bare, tree(features=("pycaffe-six",))).packages
    assert "six" not in plan(bare, tree(features=())).packages
    assert "six" not in plan(machine(pythons=(python(),)), tree(features=("pycaffe-six",))).packages


def test_python_by_request() -> None:
    both = machine(pythons=(python(), python("3.8.10", executable="/usr/bin/python3.8")))
    for wish in ("/usr/bin/python3.8", "python3.8", "3.8"):
        assert plan(both, python=wish).python == "/usr/bin/python3.8"
    assert plan(both, python="none").decision("python").value == "none"
    assert ids(plan(both, python="3.5")) == {"python-not-found"}
    lacking = machine(pythons=(python("3.9.1", executable="/opt/py/bin/python3", kind=PythonKind.LOCAL, numpy=None),))
    assert ids(plan(lacking, python="/opt/py/bin/python3")) == {"python-incomplete"}


def test_unpacked_packages_are_on_the_path_of_python() -> None:
    folder = "/home/me/debs/usr/lib/python3/dist-packages"
    assert plan(machine(pythons=(python(paths=(folder,)),))).python_paths == (folder,)


def test_of_a_foreign_python_only_its_own_library_is_linked_to() -> None:
    lib = "/home/me/miniconda3/lib"
    conda = python(
        "3.9.7", executable="/home/me/miniconda3/bin/python", kind=PythonKind.CONDA, include="/home/me/miniconda3/include/python3.9",
        library_dir=lib, numpy_include="/home/me/miniconda3/lib/python3.9/site-packages/numpy/core/include",
    )  # fmt: skip
    made = plan(machine(pythons=(conda,)))
    assert ".caffeup/deps/python-lib" in value_of(made, "LIBRARY_DIRS")
    assert {one.name: one.target for one in made.links}["deps/python-lib/libpython3.9.so"] == f"{lib}/libpython3.9.so"
    assert lib not in {one.target for one in made.links}


# --- protoc, standard, NCCL, jobs --------------------------------------------------------------------------------


def test_the_protoc_of_the_headers_is_put_first() -> None:
    programs = (program("make"), program("protoc", "3.5.1", "/opt/conda/bin/protoc"), program("protoc", "3.12.4"))
    made = plan(machine(programs=programs))
    assert made.protoc == "/usr/bin/protoc"
    assert value_of(made, "export PATH") == ("$(CURDIR)/.caffeup/bin:$(PATH)",)
    assert ("bin/protoc", "/usr/bin/protoc") in [(one.name, one.target) for one in made.links]
    assert value_of(plan(machine()), "export PATH") == ()


def test_a_protoc_that_does_not_belong_to_the_headers_is_a_conflict() -> None:
    made = plan(machine(programs=(program("make"), program("protoc", "3.5.1", "/opt/conda/bin/protoc"))))
    assert ids(made) == {"protoc-mismatch"}
    assert required(plan(machine(programs=(program("make"),)))) == ("protoc",)
    assert required(plan(machine(programs=(program("protoc", "3.12.4"),)))) == ("make",)


@pytest.mark.parametrize(
    ("protoc", "headers", "same"),
    [
        ("3.21.12", "3.21.12", True), ("3.21.12", "3.21.11", False), ("25.1", "4.25.1", True), ("25.1", "4.25.2", False),
        ("29.3", "5.29.3", True), ("29.3", "29.3", True), ("2.6.1", "2.6.1", True), ("2.6.1", "3.6.1", False), ("33.0", "6.33.0", True),
        ("3.12.4", "4.25.1", False),
    ],
)  # fmt: skip
def test_protoc_and_headers_of_one_release(protoc: str, headers: str, same: bool) -> None:
    from caffeup.plan.protoc import same_release

    assert same_release(Version(protoc), Version(headers)) is same


def test_no_standard_is_set_where_none_is_needed() -> None:
    made = plan(machine())
    assert not any("-std" in word for line in made.config for word in line.value)


def test_cuda_13_with_an_older_compiler_asks_for_17() -> None:
    made = plan(machine(H200, toolkits=(toolkit("13.0"),), compilers=(gcc("9.4.0"),)))
    assert "-std=c++17" in value_of(made, "COMMON_FLAGS")


def test_a_standard_that_the_tree_appends_is_beaten_where_it_breaks_the_toolkit() -> None:
    made = plan(machine(H200, toolkits=(toolkit("13.0"),)), tree(standard="c++11"))
    assert value_of(made, "CUDA_ARCH")[-1] == "-std=c++17"
    warnings = next(line for line in made.config if line.key == "WARNINGS")
    assert warnings.override
    assert warnings.value[-1] == "-std=c++17"
    fine = plan(machine(RTX_4090, toolkits=(toolkit("11.8"),)), tree(standard="c++11"))
    assert not any("-std" in word for line in fine.config for word in line.value)


@pytest.mark.parametrize(
    ("name", "version", "flag"),
    [("protobuf", "4.25.1", "c++17"), ("glog", "0.7.1", "c++14"), ("opencv", "5.0.0", "c++17"), ("opencv", "4.5.4", "c++11")],
)
def test_libraries_that_need_a_newer_standard(name: str, version: str, flag: str) -> None:
    programs = (program("make"), program("protoc", "25.1" if name == "protobuf" else "3.12.4"))
    old = gcc("5.4.0") if flag != "c++17" else gcc("8.4.0")
    made = plan(machine(libraries=usual_libraries(**{name: version}), compilers=(old,), programs=programs))
    assert f"-std={flag}" in value_of(made, "COMMON_FLAGS")


def test_a_standard_that_nvcc_does_not_know() -> None:
    libraries = usual_libraries(protobuf="4.25.1")
    programs = (program("make"), program("protoc", "25.1"))
    made = plan(
        machine(
            gpu("V100", "7.0"), toolkits=(toolkit("10.2"),), compilers=(gcc("8.4.0"),), libraries=libraries, programs=programs
        )
    )
    assert "standard-too-new" in ids(made)


def test_nccl_with_two_gpus() -> None:
    pair = (H200, gpu("NVIDIA H200", "9.0", 1))
    with_nccl = machine(*pair, toolkits=(toolkit("13.0"),), libraries=(*usual_libraries(), library("nccl", "2.27.3")))
    assert value_of(plan(with_nccl), "USE_NCCL") == ("1",)
    assert value_of(plan(machine(*pair, toolkits=(toolkit("13.0"),))), "USE_NCCL") == ()
    assert value_of(plan(without(with_nccl, graphics=machine(H200).graphics)), "USE_NCCL") == ()


@pytest.mark.parametrize(
    ("cores", "gib", "cuda", "arch", "jobs"),
    [
        (16, 64, False, (), 16),
        (16, 4, False, (), 4),
        (16, 4, True, ("8.9",), 2),
        (16, 4, True, ("8.6,8.9",), 2),
        (4, 0.5, False, (), 1),
        (4, 0, False, (), 4),
    ],
)
def test_jobs_fit_into_memory(cores: int, gib: float, cuda: bool, arch: tuple[str, ...], jobs: int) -> None:
    system = System(distro="debian", cores=cores, memory_bytes=int(gib * GIB))
    made = plan(machine(system=system, toolkits=(toolkit("12.4"),) if cuda else ()), arch=arch)
    assert made.jobs == jobs


def test_jobs_by_request() -> None:
    assert plan(machine(), jobs=3).jobs == 3
    small = System(distro="debian", cores=2, memory_bytes=2 * GIB)
    assert "jobs-memory" in notes(plan(machine(system=small), jobs=8))
    assert ids(plan(machine(), jobs=0)) == {"jobs-wrong"}


# --- tree --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "my caffe",
        "caffe$HOME",
        "caffe#1",
        "caffe'",
        'caffe"',
        "caffe\nrm -rf",
        "caffe:1",
        "caffe;ls",
        "caffe%",
        "caffe`id`",
        "caffe\\",
        "caffe(1)",
    ],
)
def test_a_tree_in_a_path_that_make_would_misread(name: str) -> None:
    made = plan(machine(), tree(root=f"/home/user/{name}"))
    assert ids(made) == {"tree-path"}
    assert made.conflicts[0].remedies[0].commands[0].startswith("mv ")


@pytest.mark.parametrize("name", ["caffe", "caffe-1.0_rc3", "Größe", "a+b@c,d=e~"])
def test_a_tree_in_a_path_that_is_fine(name: str) -> None:
    assert not plan(machine(), tree(root=f"/home/user/{name}")).conflicts


def test_a_tree_without_a_makefile() -> None:
    assert ids(plan(machine(), tree(makefile=False, cmake=True, config_keys=("CPU_ONLY",)))) == {"no-makefile"}


def test_keys_that_the_makefile_does_not_read_are_never_written() -> None:
    made = plan(
        machine(RTX_4090, toolkits=(toolkit("12.4"),), **cudnn("9.1.0")),
        tree(config_keys=("CUDA_DIR", "CUDA_ARCH", "INCLUDE_DIRS", "CPU_ONLY")),
    )
    assert {line.key for line in made.config} <= {"CUDA_DIR", "CUDA_ARCH", "INCLUDE_DIRS", "export SOURCE_DATE_EPOCH"}
    assert not made.cudnn


def test_a_key_that_an_old_makefile_sets_itself_is_overridden() -> None:
    keys = tuple(key for key in KEYS if key not in ("PYTHON_LIBRARIES", "BUILD_DIR"))
    made = plan(machine(), tree(config_keys=keys, overridable=("PYTHON_LIBRARIES", "BUILD_DIR", "WARNINGS")))
    (line,) = (line for line in made.config if line.key == "PYTHON_LIBRARIES")
    assert line.override
    assert line.value == ("boost_python310", "python3.10")
    assert value_of(made, "BUILD_DIR") == ()


def test_build_and_distribute_folders_are_never_empty() -> None:
    made = plan(machine())
    for key in ("BUILD_DIR", "DISTRIBUTE_DIR", "RELEASE_BUILD_DIR"):
        (value,) = value_of(made, key)
        assert value
        assert not value.startswith(("/", ".."))


def test_a_tree_that_names_its_build_folder_itself() -> None:
    assert plan(machine(), tree(build_dir="temp")).build_dir == "temp"


def test_shims_come_before_everything() -> None:
    assert value_of(plan(machine(H200, toolkits=(toolkit("13.0"),))), "COMMON_FLAGS")[0] == "-I.caffeup/include"


# --- the whole ---------------------------------------------------------------------------------------------------


def test_all_conflicts_are_listed_at_once() -> None:
    made = plan(
        machine(
            GTX_1080_TI,
            toolkits=(toolkit("13.0"),),
            compilers=(gcc("16.1.0"),),
            programs=(program("make"), program("protoc", "2.5")),
        ),
        tree(root="/home/a b"),
        jobs=-1,
        blas="fast",
    )
    assert ids(made) == {"tree-path", "gpu-dropped", "compiler-too-new", "protoc-mismatch", "jobs-wrong", "blas-unknown"}
    for one in made.conflicts:
        assert one.remedies


def test_a_conflict_can_be_forced_by_name() -> None:
    made = plan(machine(), tree(root="/home/a b"), force=("tree-path",))
    assert not made.conflicts
    assert "tree-path" in notes(made)


@pytest.mark.parametrize(
    "the_machine",
    [
        machine(),
        machine(H200, toolkits=(toolkit("13.0"),), **cudnn("9.14.0")),
        machine(compilers=(), pythons=(), libraries=(), programs=()),
    ],
)
def test_a_plan_is_a_value(the_machine: Machine) -> None:
    made = plan(the_machine)
    assert made == plan(the_machine)
    assert from_json(to_json(made), Plan) == made
    for one in made.decisions:
        assert one.because
    for line in made.config:
        assert line.because


@pytest.mark.parametrize("boost", ["1.74.0", "1.89.0"])
def test_no_line_takes_back_what_an_earlier_one_set(boost: str) -> None:
    programs = (program("make"), program("protoc", "33.1"))
    libraries = usual_libraries(boost=boost, protobuf="6.33.1", glog="0.7.1")
    made = plan(machine(H200, toolkits=(toolkit("13.0"),), libraries=libraries, programs=programs, **cudnn("9.14.0")))
    set_once = [line.key for line in made.config if line.operator == ":="]
    assert len(set_once) == len(set(set_once))
    for at, line in enumerate(made.config):
        if line.operator == "+=":
            assert any(before.key == line.key for before in made.config[:at])


def test_decisions_have_one_key_each() -> None:
    keys = [one.key for one in plan(machine(H200, toolkits=(toolkit("13.0"),), **cudnn("9.14.0"))).decisions]
    assert len(keys) == len(set(keys))


def test_an_unknown_key_has_no_decision() -> None:
    with pytest.raises(KeyError):
        plan(machine()).decision("weather")


def test_what_is_wrong_in_the_tree_stands_in_the_way() -> None:
    broken = Finding(id="tree-half", severity=Severity.PROBLEM, title="half a tree")
    odd = Finding(id="tree-odd", severity=Severity.WARNING, title="odd")
    assert ids(plan(machine(), tree(findings=(broken, odd)))) == {"tree-half"}


def test_what_the_inspection_warns_of_is_told_before_the_build() -> None:
    runs = Finding(id="tree-makefile-runs-commands", severity=Severity.WARNING, title="runs something")
    odd = Finding(id="tree-config-foreign", severity=Severity.NOTE, title="odd")
    made = plan(machine(), tree(findings=(runs, odd)))
    assert ids(made) == set()
    assert [one.id for one in made.notes if one.id.startswith("tree-")] == ["tree-makefile-runs-commands"]


@pytest.mark.parametrize("wishes", [{"arch": ("8.6", "9.0")}, {"arch": ("8.6", "9.0"), "cpu": True}])
def test_an_arch_without_cuda_is_said_to_have_no_effect(wishes: dict[str, Any]) -> None:
    made = plan(machine(), **wishes)
    assert not made.gpu
    said = next(one for one in made.notes if one.id == "arch-not-used")
    assert said.title == "--arch 8.6,9.0 has no effect: this is a build without CUDA"
    assert "caffeup up ssd --cuda wheels --arch 8.6,9.0" in [command for way in said.remedies for command in way.commands]


def test_of_a_tree_that_is_not_here_nothing_is_said_as_if_it_had_been_read() -> None:
    bare = machine(libraries=())
    keys = tuple(key for key in KEYS if key != "USE_HDF5")
    for seen in (True, False):
        made = plan(bare, tree(seen=seen, config_keys=keys))
        assert any("this tree's" in one.why for one in made.notes) is seen
        assert ("others may come" in plan_in_short(made, tree(seen=seen))) is not seen


def test_nothing_is_said_of_an_arch_that_nobody_asked_for_or_that_is_built_for() -> None:
    assert "arch-not-used" not in notes(plan(machine()))
    assert "arch-not-used" not in notes(plan(machine(RTX_4090, toolkits=(toolkit("12.4"),)), arch=("8.9",)))
