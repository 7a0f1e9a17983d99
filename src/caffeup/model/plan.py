"""The plan: every decision with its reason, as a frozen value that never touches the disk."""

from __future__ import annotations

from typing import Optional

from caffeup.model.base import SCHEMA, ComputeCapability, Value, Word
from caffeup.model.finding import Finding
from caffeup.model.fix import ShimLibrary

GPU_TESTS = "*/2.*:*/3.*:*GPU*:*CuDNN*:Im2colKernelTest*"
"""Caffe's tests that run on a GPU; of a typed test the parameters 2 and 3 are the GPU's float and double."""


class Switch(Word):
    """A choice left to caffeup, or forced."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class Request(Value, kw_only=True):
    """What the user asked for; everything else is decided."""

    source: str = "ssd"
    """A name from the catalogue, a git URL, a folder or an archive."""
    into: str = ""
    """Folder for the tree; empty: ``caffe-<name>`` in the current folder."""
    cpu: bool = False
    cudnn: Switch = Switch.AUTO
    opencv: Switch = Switch.AUTO
    arch: tuple[str, ...] = ()
    """``native``, ``all``, or compute capabilities (``8.6``)."""
    cuda: str = ""
    """Root of the toolkit to use, or a version, or ``wheels``."""
    python: str = ""
    """Executable of the Python to build pycaffe for; ``none``: no pycaffe."""
    blas: str = ""
    prefixes: tuple[str, ...] = ()
    deps: str = ""
    """Where missing packages go: ``system``, as without a word, or ``user``: the user's data folder, without root."""
    jobs: Optional[int] = None
    tf32: bool = False
    auto_depthwise: bool = True
    """Whether a depthwise Convolution is computed by caffeup's layer without being asked for by its type."""
    cudnn_conv: bool = True
    """Whether caffeup's convolution through cuDNN takes the place of the tree's own."""
    replace_depthwise: bool = False
    """Whether caffeup's layer takes the place of one that the tree has by itself."""
    tests: bool = True
    distribute: bool = False
    yes: bool = False
    force: tuple[str, ...] = ()
    """Ids of conflicts to go on in spite of."""


class Alternative(Value, kw_only=True):
    """A candidate that was not taken, and why."""

    value: str
    because: str


class Decision(Value, kw_only=True):
    """One decision."""

    key: str
    """``mode``, ``toolkit``, ``arch``, ``compiler``, ``cudnn``, ``blas``, ``opencv``, ``python``, ``standard``, ``jobs`` …"""
    value: str
    because: str
    fact: str = ""
    """Row of the facts it rests on: ``gpus.toml#6.1``."""
    rejected: tuple[Alternative, ...] = ()


class ConfigLine(Value, kw_only=True):
    """One variable of Makefile.config."""

    key: str
    value: tuple[str, ...]
    """Words, in order; each is escaped for make when it is rendered."""
    because: str
    operator: str = ":="
    override: bool = False
    """Whether it must beat what the tree's Makefile assigns later."""
    raw: bool = False
    """Whether the words hold make references (``$(…)``) that are meant."""


class Link(Value, kw_only=True):
    """A symbolic link in the tree's .caffeup folder, so that Makefile.config and run paths are relative."""

    name: str
    """Relative to ``.caffeup/``: ``cuda``, ``deps/boost-include``."""
    target: str


class PlannedFix(Value, kw_only=True):
    """A fix that this machine and tree need."""

    id: str
    because: str
    """The condition that holds, with the values: ``OpenCV 4.6 removed the C constants``."""


class Plan(Value, kw_only=True):
    """Everything that will be done to one tree on one machine."""

    schema: int = SCHEMA
    tree: str
    """Root of the tree."""
    fork: str
    request: Request
    gpu: bool
    """Whether CUDA code is built."""
    cudnn: bool = False
    sass: tuple[ComputeCapability, ...] = ()
    ptx: Optional[ComputeCapability] = None
    decisions: tuple[Decision, ...] = ()
    config: tuple[ConfigLine, ...] = ()
    links: tuple[Link, ...] = ()
    fixes: tuple[PlannedFix, ...] = ()
    stand_ins: tuple[ShimLibrary, ...] = ()
    """Library names that the tree links and this machine has under another name, for ``.caffeup/lib``."""
    conflicts: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    lay_out: str = ""
    """Release of CUDA from NVIDIA's wheels (facts/cuda_wheels.toml) that must be laid out first; empty: none."""
    packages: tuple[str, ...] = ()
    """Rows of facts/libraries.toml that are missing and needed."""
    compiler: str = ""
    """Path of the C++ compiler."""
    protoc: str = ""
    python: str = ""
    """Executable pycaffe is built for; empty: none."""
    python_paths: tuple[str, ...] = ()
    """Folders that must be on that Python's path to import pycaffe's needs (unpacked packages)."""
    run_paths: tuple[str, ...] = ()
    """Folders with shared libraries that the loader does not know; they go into the run path."""
    jobs: int = 1
    make_env: tuple[tuple[str, str], ...] = ()
    """Environment variables for make: PATH additions for protoc, ccache's folder …"""
    build_dir: str = "build"
    test_filter: str = ""
    """gtest's negative filter (``*GPU*:*CuDNN*``), empty: all tests."""

    def decision(self, key: str) -> Decision:
        """The decision with this key; ``KeyError`` where there is none."""
        for one in self.decisions:
            if one.key == key:
                return one
        raise KeyError(key)
