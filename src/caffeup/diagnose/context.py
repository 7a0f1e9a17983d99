"""What is known of the machine and tree that a log comes from: given with it, and told by the log itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Optional

import msgspec
from packaging.version import InvalidVersion, Version

from caffeup.facts.ranges import BadRange, Range
from caffeup.model.base import Value
from caffeup.model.fix import Condition, Fix, Marker
from caffeup.model.machine import Machine
from caffeup.model.tree import Tree

VERSIONED = ("cuda", "cudnn", "gcc", "clang", "opencv", "protobuf", "boost", "glog", "hdf5", "python", "numpy", "skimage")


class Context(Value, kw_only=True):
    """Facts of one machine and tree. An absent key means "not known", never "not there"."""

    versions: dict[str, Version] = msgspec.field(default_factory=dict)
    """By the names that ``model.fix.Condition`` uses."""
    mode: str = ""
    fork: str = ""
    distro: str = ""
    distro_like: tuple[str, ...] = ()
    distro_version: str = ""
    arch: str = ""
    tree: str = ""
    """Root of the tree, for commands; empty: not known."""
    markers: Optional[tuple[str, ...]] = None
    """``Tree.markers``; None where the tree was not inspected."""


def context_of(machine: Optional[Machine] = None, tree: Optional[Tree] = None) -> Context:
    """What a detected machine and an inspected tree tell. Where a machine has two of a thing, that thing stays open."""
    versions: dict[str, Version] = {}
    if machine is not None:
        candidates: dict[str, set[Version]] = {
            "cuda": {one.version for one in machine.toolkits},
            "cudnn": {one.version for one in machine.cudnn_headers},
            "gcc": {one.version for one in machine.compilers if one.kind == "gcc"},
            "clang": {one.version for one in machine.compilers if one.kind == "clang"},
        }
        for library in machine.libraries:
            if library.version is not None:
                candidates.setdefault(library.name, set()).add(library.version)
        versions = {name: min(found) for name, found in candidates.items() if len(found) == 1 and name in VERSIONED}
    return Context(
        versions=versions,
        distro=machine.system.distro if machine else "",
        distro_like=machine.system.distro_like if machine else (),
        distro_version=machine.system.distro_version if machine else "",
        arch=machine.system.arch if machine else "",
        fork=tree.fork if tree and tree.fork != "unknown" else "",
        tree=tree.root if tree else "",
        markers=tree.markers if tree else None,
    )


_TELLS: tuple[tuple[str, str, re.Pattern[str]], ...] = tuple(
    (key, literal, re.compile(pattern))
    for key, literal, pattern in (
        ("cuda", "/cuda-", r"/cuda-(\d+\.\d+)"),
        ("cuda", "Cuda compilation tools", r"release (\d+\.\d+)"),
        ("cuda", "libcudart.so.", r"libcudart\.so\.(\d+(?:\.\d+)?)"),
        ("cuda", "CUDA Version", r"CUDA Version:? (\d+\.\d+)"),
        ("cudnn", "libcudnn.so.", r"libcudnn\.so\.(\d+(?:\.\d+)*)"),
        ("cudnn", "cuDNN", r"cuDNN.*?\bver(?:sion|\.)? ?(\d+\.\d+(?:\.\d+)*)"),
        ("cudnn", "CUDNN_STATUS_SUBLIBRARY_", r"CUDNN_STATUS_SUBLIBRARY_()"),
        ("gcc", "gcc version", r"gcc version (\d+(?:\.\d+)*)"),
        ("gcc", "g++-", r"\bg\+\+-(\d+(?:\.\d+)?)\b"),
        ("gcc", "/include/c++/", r"/usr/include/c\+\+/(\d+(?:\.\d+)*)/"),
        ("gcc", "/lib/gcc/", r"/lib/gcc/[^/\s]+/(\d+(?:\.\d+)*)/"),
        ("clang", "clang version", r"clang version (\d+(?:\.\d+)*)"),
        ("opencv", "/opencv4", r"/opencv(4)(?:/|\s|$)"),
        ("opencv", "libopencv_", r"libopencv_\w+\.so\.(\d+\.\d+)"),
        ("protobuf", "libprotoc", r"libprotoc (\d+\.\d+(?:\.\d+)*)"),
        ("boost", "libboost_", r"libboost_\w+\.so\.(1\.\d+\.\d+)"),
        ("python", "python", r"/(?:lib|include|dist-packages)/python(\d\.\d+)"),
    )
)
_IMPLIED = {"CUDNN_STATUS_SUBLIBRARY_": "9.0"}
_DISTROS = (("ubuntu", "buntu"), ("debian", "Debian"), ("fedora", "Fedora"), ("centos", "CentOS"), ("arch", "Arch Linux"))
_LIKE = (
    ("-pc-linux-gnu/", ("arch",)),
    ("-redhat-linux/", ("fedora", "rhel", "centos")),
    ("-suse-linux/", ("suse", "opensuse")),
    ("-linux-gnu/", ("debian",)),
)
"""Folders of the compiler that only one family of distributions has."""
_ENOUGH = 3


class Tells:
    """Collects what a log says of its own machine, block by block."""

    def __init__(self) -> None:
        self._versions: dict[str, list[Version]] = {}
        self._last = ""
        self._distro = ""
        self._like: tuple[str, ...] = ()
        self._mode = ""

    def look(self, block: str) -> None:
        """Take note of versions in a block of lines; a key that was told often enough is looked for no more."""
        if block is self._last:
            return
        self._last = block
        for key, literal, pattern in _TELLS:
            found = self._versions.setdefault(key, [])
            if len(found) < _ENOUGH and literal in block:
                self._note(found, literal, pattern, block)
        if not self._mode:
            self._mode = "cpu" if "-DCPU_ONLY" in block else "gpu" if "/bin/nvcc " in block or "\nNVCC " in block else ""
        if not self._distro:
            self._distro = next((name for name, word in _DISTROS if word in block), "")
        if not self._like:
            self._like = next((like for word, like in _LIKE if word in block), ())

    @staticmethod
    def _note(found: list[Version], literal: str, pattern: re.Pattern[str], block: str) -> None:
        at = block.find(literal)
        line = block[max(block.rfind("\n", 0, at), at - 500, 0) : at + 500]
        match = pattern.search(line)
        if match:
            try:
                found.append(Version(match[1] or _IMPLIED[literal]))
            except InvalidVersion:
                return

    def merged(self, given: Context) -> Context:
        """The given context, corrected by what the log tells where it tells one thing only."""
        given = self._placed(given)
        told = {key: max(found) for key, found in self._versions.items() if found and len({v.release[0] for v in found}) == 1}
        return msgspec.structs.replace(
            given,
            versions={**given.versions, **{k: v for k, v in told.items() if not _same(given.versions.get(k), v)}},
            mode=self._mode or given.mode,
        )

    def _placed(self, given: Context) -> Context:
        """With the distribution that the log names, or whose folders it shows, where it is another one than was given."""
        family = {given.distro, *given.distro_like}
        other = bool(self._distro) and self._distro not in family
        if other or (self._like and not family & set(self._like)):
            return msgspec.structs.replace(given, distro=self._distro, distro_like=self._like, distro_version="")
        return given


def _same(given: Optional[Version], told: Version) -> bool:
    """Whether the given version is the told one in more detail (``11.0.3`` for ``11.0``)."""
    return given is not None and given.release[: len(told.release)] == told.release


class Weight(Value, kw_only=True):
    """How a fix's condition stands in a context."""

    holds: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()
    open: tuple[str, ...] = ()


def weigh(fix: Fix, context: Context) -> Weight:
    """Compare the condition with what is known. Nothing unknown is counted as failed."""
    holds: list[str] = []
    fails: list[str] = []
    unknown: list[str] = []

    def put(text: str, verdict: Optional[bool]) -> None:  # noqa: FBT001
        (unknown if verdict is None else holds if verdict else fails).append(text)

    when = fix.when
    for name in VERSIONED:
        wanted = getattr(when, name)
        if wanted:
            version = context.versions.get(name)
            said = f"{NAMES.get(name, name)} {version}" if version else NAMES.get(name, name)
            put(said, _in_range(version, wanted))
    _put_words(when, context, put)
    if context.markers is not None:
        for marker in when.tree:
            put(_words(marker), str(marker) in context.markers)
        if when.place_for_edit:
            put("a place for its edit", fix.place in context.markers)
        fails += [_words(marker) for marker in fix.unless if str(marker) in context.markers]
    return Weight(holds=tuple(holds), fails=tuple(fails), open=tuple(unknown))


NAMES = {
    "cuda": "CUDA",
    "cudnn": "cuDNN",
    "opencv": "OpenCV",
    "boost": "Boost",
    "hdf5": "HDF5",
    "python": "Python",
    "skimage": "scikit-image",
}


def _put_words(when: Condition, context: Context, put: Callable[[str, Optional[bool]], None]) -> None:
    if when.mode and context.mode and context.mode != when.mode:  # its own symptom tells a GPU build, so no merit in that
        put(f"a {context.mode} build", False)  # noqa: FBT003
    if when.fork:
        put(f"fork {context.fork}" if context.fork else "which fork it is", context.fork in when.fork if context.fork else None)
    if when.distro:
        known = {context.distro, *context.distro_like} - {""}
        put(context.distro or "the distribution", bool(known & set(when.distro)) if known else None)
    if when.arch:
        put(context.arch or "the processor", context.arch in when.arch if context.arch else None)


def _in_range(version: Optional[Version], wanted: str) -> Optional[bool]:
    if version is None:
        return None
    try:
        known = Range.parse(wanted)
    except BadRange:
        return None
    if version in known:
        return True
    # "11" told by a library's name stands for all of 11.x: it can deny a range only where no 11.x is in it.
    return None if len(version.release) == 1 and _touches(known, version.release[0]) else False


def _touches(known: Range, major: int) -> bool:
    low, high = known.low, known.high
    return (low is None or low.release[0] <= major) and (high is None or high > Version(str(major)))


def _words(marker: Marker) -> str:
    return f"“{marker.contains}” in {marker.file}" if marker.contains else marker.file


def without_failed(weights: Iterable[tuple[str, Weight]]) -> list[tuple[str, Weight]]:
    """The candidates whose condition does not fail; all of them where every one fails."""
    every = list(weights)
    return [one for one in every if not one[1].fails] or every
