"""Where the built programs look for libraries that the loader does not know: relative to themselves, so the tree can move."""

from __future__ import annotations

from caffeup.model.plan import ConfigLine
from caffeup.plan.case import Case
from caffeup.plan.part import line
from caffeup.plan.tree import RELEASE, build_dir

# Programs and libraries lie two folders deep (.build_release/lib, python/caffe), examples three.
_UP = ("../..", "../../..")


def run_path_lines(case: Case, folders: tuple[str, ...]) -> tuple[ConfigLine, ...]:
    """LDFLAGS. The shell must see ``$ORIGIN`` with a backslash, as Caffe's Makefile writes it itself."""
    if not case.reads("LDFLAGS"):
        return ()
    because = "_caffe.so finds libcaffe in the tree, and in what `make distribute` makes"
    lines = [line("LDFLAGS", *_own(case), because=because, operator="+=")]
    if folders:
        words = [word for folder in folders for word in _words(folder)]
        because = "libraries that the loader does not know; the old kind of run path serves their own libraries too"
        lines.append(line("LDFLAGS", "-Wl,--disable-new-dtags", *words, because=because, operator="+="))
    return tuple(lines)


def _own(case: Case) -> tuple[str, ...]:
    place = RELEASE if case.reads("RELEASE_BUILD_DIR") else build_dir(case)
    return (f"-Wl,-rpath,\\$ORIGIN/../../{place}/lib", "-Wl,-rpath,\\$ORIGIN/../../lib")


def _words(folder: str) -> tuple[str, ...]:
    if folder.startswith("/"):
        return (f"-Wl,-rpath,{folder}",)
    return (*(f"-Wl,-rpath,\\$ORIGIN/{up}/{folder}" for up in _UP), f"-Wl,-rpath-link,{folder}")
