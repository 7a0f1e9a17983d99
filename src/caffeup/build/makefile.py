"""Asks a tree's own Makefile what its variables come to, so that no fork's layout has to be guessed."""

from __future__ import annotations

from collections.abc import Mapping

from caffeup.errors import BuildFailed
from caffeup.model.base import Value
from caffeup.stream import run_capture

_MARK = "caffeup-variable:"
_ASKED = (
    "BUILD_DIR",
    "BUILD_DIR_LINK",
    "DISTRIBUTE_DIR",
    "OBJS",
    "DYNAMIC_NAME",
    "STATIC_NAME",
    "TOOL_BINS",
    "EXAMPLE_BINS",
    "TEST_ALL_BIN",
    "TEST_BINS",
    "TEST_SRCS",
    "TEST_CU_SRCS",
    "TEST_OBJS",
    "PROTO_GEN_CC",
    "CPU_ONLY",
    "CXX",
    "CXXFLAGS",
    "NVCCFLAGS",
    "CUDA_ARCH",
    "CUDA_DIR",
    "LINKFLAGS",
    "LDFLAGS",
    "PYTHON_LDFLAGS",
)

# What Caffe's Makefile reads; from a user's environment it would change a build behind the back of Makefile.config.
# fmt: off
_NOT_FOR_MAKE = frozenset(
    (
        "ALLOW_LMDB_NOLOCK", "ANACONDA_HOME", "BLAS", "BLAS_INCLUDE", "BLAS_LIB", "BUILD_DIR", "BUILD_DIR_LINK",
        "COMMON_FLAGS", "CONFIG_FILE", "CPU_ONLY", "CUDA_ARCH", "CUDA_DIR", "CUSTOM_CXX", "CXX", "CXXFLAGS", "CC", "CFLAGS",
        "CPPFLAGS", "DEBUG", "DEBUG_BUILD_DIR", "DISTRIBUTE_DIR", "GNUMAKEFLAGS", "INCLUDE_DIRS", "LDFLAGS", "LIBRARIES",
        "LIBRARY_DIRS", "LINKFLAGS", "MAKEFILES", "MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MATLAB_DIR", "MFLAGS",
        "MKLROOT", "NVCCFLAGS", "NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS", "OPENCV_VERSION", "PROJECT", "PYTHON_INCLUDE",
        "PYTHON_LIB", "PYTHON_LIBRARIES", "Q", "RELEASE_BUILD_DIR", "TEST_FILTER", "TEST_GPUID", "USE_CUDNN", "USE_HDF5",
        "USE_LEVELDB", "USE_LMDB", "USE_NCCL", "USE_OPENCV", "USE_PKG_CONFIG", "V", "WARNINGS", "WITH_PYTHON_LAYER",
    )
)
# fmt: on


class Make(Value):
    """What is needed to call make in one tree."""

    root: str
    program: str
    env: dict[str, str]

    def argv(self, *goals: str, jobs: int = 1, options: tuple[str, ...] = (), set_to: Mapping[str, str] = {}) -> tuple[str, ...]:
        """The command line. A half-written target never stays: ``.DELETE_ON_ERROR`` is added to every run."""
        variables = tuple(f"{key}={value}" for key, value in set_to.items())
        return (self.program, f"-j{max(jobs, 1)}", "--eval=.DELETE_ON_ERROR:", *options, *variables, *goals)


class Variables(Value):
    """What the variables of a tree's Makefile come to."""

    values: dict[str, str]

    def text(self, key: str) -> str:
        """The value; empty where the Makefile has no such variable."""
        return self.values.get(key, "")

    def words(self, key: str) -> tuple[str, ...]:
        """The value's words."""
        return tuple(self.text(key).split())

    @property
    def build_dir(self) -> str:
        """Where objects go, relative to the tree."""
        return self.text("BUILD_DIR") or ".build_release"


def make_environment(env: Mapping[str, str], additions: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The user's environment without what would change the build, in the C locale, with the plan's additions.

    ``PATH`` and other lists of folders are put in front of what is there.
    """
    clean = {key: value for key, value in env.items() if key not in _NOT_FOR_MAKE and not key.startswith("BASH_FUNC_")}
    clean["LC_ALL"] = "C"
    for key, value in additions:
        before = clean.get(key, "")
        is_list = key == "PATH" or key.endswith("_PATH")
        clean[key] = f"{value}:{before}" if is_list and before else value
    clean.setdefault("PATH", "/usr/local/bin:/usr/bin:/bin")
    return clean


def ask(make: Make) -> Variables:
    """Read the Makefile with make itself; raise ``BuildFailed`` where make cannot read it."""
    question = "".join(f"$(info {_MARK}{key}=$({key}))" for key in _ASKED)
    argv = (make.program, "-s", "--no-print-directory", f"--eval=caffeup-ask: ; {question}@:", "caffeup-ask")
    answer = run_capture(argv, cwd=make.root, env=make.env, timeout=120.0)
    values: dict[str, str] = {}
    other: list[str] = []
    for line in answer.output.splitlines():
        if line.startswith(_MARK):
            key, _, value = line.removeprefix(_MARK).partition("=")
            values[key] = value.strip()
        elif line.strip():
            other.append(line)
    if answer.status != 0 or not values:
        raise BuildFailed(
            "make cannot read this tree's Makefile.",
            details="\n".join(other[-15:]),
            advice="Mend what make complains about; the lines above are its own words.",
            commands=(f"make -C {make.root} -n all",),
        )
    return Variables(values=values)
