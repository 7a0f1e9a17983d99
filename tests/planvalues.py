"""Machines, trees and requests for tests of the plan, built from a few words."""

from __future__ import annotations

from typing import Any, Optional

from packaging.version import Version

from caffeup.facts.load import load_facts
from caffeup.facts.tables import Facts
from caffeup.model.base import ComputeCapability
from caffeup.model.machine import (
    Compiler,
    CudnnHeader,
    CudnnLibrary,
    Driver,
    Gpu,
    GpuState,
    Graphics,
    Library,
    Machine,
    Program,
    Python,
    PythonKind,
    System,
    Toolkit,
)
from caffeup.model.plan import Plan, Request
from caffeup.model.tree import Origin, Tree
from caffeup.plan.make import make_plan

FACTS: Facts = load_facts()
GIB = 1 << 30
WHEELS_ROOT = "/home/user/.local/share/caffeup/cuda/13.0.3-x86_64"

# What BVLC's Makefile reads, as the inspection of a tree tells it.
KEYS = (
    "ALLOW_LMDB_NOLOCK",
    "BLAS",
    "BLAS_INCLUDE",
    "BLAS_LIB",
    "BUILD_DIR",
    "COMMON_FLAGS",
    "CPU_ONLY",
    "CUDA_ARCH",
    "CUDA_DIR",
    "CUSTOM_CXX",
    "CXX",
    "CXXFLAGS",
    "DEBUG",
    "DEBUG_BUILD_DIR",
    "DISTRIBUTE_DIR",
    "INCLUDE_DIRS",
    "LDFLAGS",
    "LIBRARY_DIRS",
    "LINKFLAGS",
    "MATLAB_DIR",
    "NVCCFLAGS",
    "OPENCV_VERSION",
    "PYTHON_LIBRARIES",
    "Q",
    "RELEASE_BUILD_DIR",
    "TEST_GPUID",
    "USE_CUDNN",
    "USE_HDF5",
    "USE_LEVELDB",
    "USE_LMDB",
    "USE_NCCL",
    "USE_OPENCV",
    "USE_PKG_CONFIG",
    "WITH_PYTHON_LAYER",
)
LINKED = (
    "cudart",
    "cublas",
    "curand",
    "glog",
    "gflags",
    "protobuf",
    "boost_system",
    "boost_filesystem",
    "m",
    "leveldb",
    "snappy",
    "lmdb",
    "hdf5_hl",
    "hdf5",
    "opencv_core",
    "opencv_highgui",
    "opencv_imgproc",
    "opencv_imgcodecs",
    "boost_thread",
    "stdc++",
    "cudnn",
    "nccl",
    "mkl_rt",
    "openblas",
    "cblas",
    "atlas",
)


def cc(text: str) -> ComputeCapability:
    return ComputeCapability.parse(text)


def tree(**changes: Any) -> Tree:
    values: dict[str, Any] = {
        "root": "/home/user/caffe",
        "fork": "bvlc",
        "origin": Origin(kind="folder"),
        "config_keys": KEYS,
        "overridable": ("WARNINGS", "LIBRARIES"),
        "libraries": LINKED,
        "features": ("layers:one-type", "layers:convolution-creator", "layers:cudnn-convolution"),
    }
    return Tree(**{**values, **changes})


def gpu(name: str, capability: Optional[str], index: int = 0) -> Gpu:
    return Gpu(via="nvml", index=index, name=name, compute_capability=cc(capability) if capability else None)


def toolkit(version: str, root: str = "", **changes: Any) -> Toolkit:
    root = root or f"/usr/local/cuda-{version}"
    values: dict[str, Any] = {
        "via": "glob /usr/local/cuda*",
        "root": root,
        "version": Version(version),
        "nvcc": f"{root}/bin/nvcc",
        "include_dirs": (f"{root}/include",),
        "library_dirs": (f"{root}/lib64",),
        "sass": FACTS.compute_capabilities(Version(version)),
        "max_gcc": FACTS.max_gcc(Version(version)),
    }
    return Toolkit(**{**values, **changes})


def gcc(version: str, path: str = "/usr/bin/g++", **changes: Any) -> Compiler:
    return Compiler(via="PATH", kind="gcc", path=path, version=Version(version), **changes)


def library(name: str, version: Optional[str] = None, **changes: Any) -> Library:
    values: dict[str, Any] = {"via": "the compiler's own folders", "prefix": "/usr"}
    return Library(name=name, version=Version(version) if version else None, **{**values, **changes})


def usual_libraries(**versions: str) -> tuple[Library, ...]:
    """What Ubuntu 22.04 has, or other versions; an empty one leaves the library out."""
    have = {
        "boost": "1.74.0",
        "protobuf": "3.12.4",
        "glog": "0.4.0",
        "gflags": "2.2.2",
        "hdf5": "1.10.7",
        "opencv": "4.5.4",
        "leveldb": "1.23",
        "snappy": "1.1.8",
        "lmdb": "0.9.24",
        "openblas": "0.3.20",
    }
    have.update(versions)
    folders = {
        "hdf5": {"include_dirs": ("/usr/include/hdf5/serial",), "library_dirs": ("/usr/lib/x86_64-linux-gnu/hdf5/serial",)}
    }
    folders["opencv"] = {"include_dirs": ("/usr/include/opencv4",)}
    return tuple(library(name, version, **folders.get(name, {})) for name, version in have.items() if version)


def python(version: str = "3.10.12", **changes: Any) -> Python:
    short = ".".join(version.split(".")[:2])
    values: dict[str, Any] = {
        "via": "PATH",
        "executable": "/usr/bin/python3",
        "version": Version(version),
        "kind": PythonKind.SYSTEM,
        "include": f"/usr/include/python{short}",
        "library": f"python{short}",
        "library_dir": "/usr/lib/x86_64-linux-gnu",
        "numpy": Version("1.21.5"),
        "numpy_include": "/usr/lib/python3/dist-packages/numpy/core/include",
        "boost_python": f"boost_python{short.replace('.', '')}",
        "boost_python_dir": "/usr/lib/x86_64-linux-gnu",
        "protobuf": Version("3.12.4"),
        "skimage": Version("0.18.3"),
        "six": Version("1.16.0"),
    }
    return Python(**{**values, **changes})


def program(name: str, version: str = "", path: str = "") -> Program:
    return Program(via="PATH", name=name, path=path or f"/usr/bin/{name}", version=Version(version) if version else None)


def cudnn(version: str, include: str = "/usr/include", lib: str = "/usr/lib/x86_64-linux-gnu") -> dict[str, Any]:
    found = Version(version)
    file = f"{lib}/libcudnn.so.{version}"
    return {
        "cudnn_headers": (CudnnHeader(via="glob", directory=include, version=found),),
        "cudnn_libraries": (CudnnLibrary(via="glob", directory=lib, file=file, version=found),),
    }


def machine(*gpus: Gpu, driver: str = "", driver_cuda: str = "", state: Optional[GpuState] = None, **changes: Any) -> Machine:
    told = None
    if driver or gpus:
        told = Driver(via="nvml", release=Version(driver or "580.65.06"), cuda=Version(driver_cuda) if driver_cuda else None)
    system = System(
        distro="ubuntu",
        distro_like=("debian",),
        distro_version="22.04",
        triplet="x86_64-linux-gnu",
        glibc=Version("2.35"),
        cores=16,
        memory_bytes=64 * GIB,
        memory_available_bytes=60 * GIB,
    )
    values: dict[str, Any] = {
        "system": system,
        "graphics": Graphics(state=state or (GpuState.PRESENT if gpus else GpuState.NONE), gpus=gpus, driver=told),
        "compilers": (gcc("11.4.0"),),
        "programs": (program("make", "4.3"), program("protoc", "3.12.4")),
        "libraries": usual_libraries(),
        "pythons": (python(),),
        "wheels_root": WHEELS_ROOT,
    }
    return Machine(**{**values, **changes})


def plan(the_machine: Machine, the_tree: Optional[Tree] = None, **request: Any) -> Plan:
    return make_plan(the_machine, the_tree or tree(), Request(**request), FACTS)


def value_of(the_plan: Plan, key: str) -> tuple[str, ...]:
    """The words of a key after all its lines; empty where it is not set."""
    words: tuple[str, ...] = ()
    for line in the_plan.config:
        if line.key == key:
            words = line.value if line.operator == ":=" else (*words, *line.value)
    return words


def ids(the_plan: Plan) -> set[str]:
    return {one.id for one in the_plan.conflicts}


def notes(the_plan: Plan) -> set[str]:
    return {one.id for one in the_plan.notes}


_OLDER = tuple(key for key in KEYS if key not in ("USE_HDF5", "USE_NCCL"))
TREES: dict[str, Tree] = {
    "bvlc": tree(),
    "ssd": tree(fork="ssd", config_keys=_OLDER, libraries=(*LINKED, "boost_regex", "opencv_videoio"), isystem=True),
    "openpose": tree(fork="openpose", standard="c++11"),
}
"""What an inspection tells of trees of these families, as far as the plan looks at it."""
