"""What one Caffe source tree is: the report of an inspection that runs nothing of the tree."""

from __future__ import annotations

from typing import Optional

from caffeup.model.base import SCHEMA, Value, Word
from caffeup.model.finding import Finding


class ConfigState(Word):
    """Whose Makefile.config stands in the tree."""

    NONE = "none"
    OURS = "ours"
    OURS_EDITED = "ours-edited"
    """caffeup wrote it and somebody changed it since."""
    FOREIGN = "foreign"


class Origin(Value, kw_only=True):
    """Where a tree came from, as far as it can be told."""

    kind: str
    """``git``, ``archive``, ``sdist`` or ``folder``."""
    url: str = ""
    """Without credentials."""
    branch: str = ""
    commit: str = ""
    sha256: str = ""
    """Of the archive it was unpacked from."""
    dirty: bool = False
    asked_for: str = ""
    """The catalogue name that was asked for, where another tree was taken in its place."""


class Tree(Value, kw_only=True):
    """One Caffe source tree."""

    schema: int = SCHEMA
    root: str
    fork: str = "unknown"
    """Row of facts/forks.toml, or ``unknown``."""
    origin: Origin
    seen: bool = True
    """Whether it was read; False: it is not here yet, and this is what is likely of it."""
    makefile: bool = True
    cmake: bool = False
    config_keys: tuple[str, ...] = ()
    """Variables that this tree's Makefile reads without setting them: what Makefile.config may say."""
    overridable: tuple[str, ...] = ()
    """Variables that its Makefile sets after Makefile.config and then reads: only ``override`` reaches them."""
    unheeded: tuple[str, ...] = ()
    """Switches that its Makefile reads and a source does not ask for: ``USE_OPENCV::src/caffe/data_transformer.cpp``."""
    build_dir: str = ""
    """BUILD_DIR that its Makefile sets by itself (``temp``), or empty: what Makefile.config says."""
    libraries: tuple[str, ...] = ()
    """Names that its Makefile gives to ``-l``, as far as they can be read."""
    isystem: bool = False
    """Whether its Makefile passes INCLUDE_DIRS with ``-isystem``."""
    standard: str = ""
    """A ``-std=`` that its Makefile appends after Makefile.config (``c++11``), or empty."""
    cpu_only: bool = True
    """Whether it can be built without CUDA."""
    one_test_binary: bool = True
    """Whether it has one target for all tests (``test_all.testbin``)."""
    features: tuple[str, ...] = ()
    """``ssd-layers``, ``cudnn-deconv``, ``nccl``, ``nvml``, ``python-layer``, ``depthwise:yonghenglh6`` …"""
    markers: tuple[str, ...] = ()
    """Conditions of fixes that hold in this tree, as ``file::text``; see ``model.fix.Marker``."""
    sources: int = 0
    """Number of files that the Makefile compiles for the library, C++ and CUDA."""
    cuda_sources: int = 0
    """How many of ``sources`` are CUDA's; a CPU-only build leaves them out."""
    tool_sources: int = 0
    """Tools and examples: one object and one program each."""
    test_sources: int = 0
    """Test objects, C++ and CUDA, gtest included and the test main not."""
    cuda_test_sources: int = 0
    """How many of ``test_sources`` are CUDA's."""
    config_state: ConfigState = ConfigState.NONE
    applied: tuple[str, ...] = ()
    """Ids of what caffeup's ledger says is applied."""
    findings: tuple[Finding, ...] = ()
    blanks_in_path: bool = False
    note: Optional[str] = None
