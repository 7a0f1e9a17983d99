"""One known incompatibility: when it bites, what it looks like in a log, and what mends it."""

from __future__ import annotations

from typing import Optional, Union

import msgspec

from caffeup.model.base import Value


class Marker(Value, kw_only=True):
    """Something that stands in a tree."""

    file: str
    """Path inside the tree; ``*`` and ``**`` allowed: any file that matches."""
    contains: str = ""
    """Literal text; empty: the file exists."""

    def __str__(self) -> str:
        return f"{self.file}::{self.contains}"


class Condition(Value, kw_only=True):
    """All that is given must hold. Ranges are half-open PEP 440 specifiers (``>=8.0,<9.0``)."""

    cuda: Optional[str] = None
    cudnn: Optional[str] = None
    gcc: Optional[str] = None
    clang: Optional[str] = None
    opencv: Optional[str] = None
    protobuf: Optional[str] = None
    boost: Optional[str] = None
    glog: Optional[str] = None
    hdf5: Optional[str] = None
    python: Optional[str] = None
    numpy: Optional[str] = None
    skimage: Optional[str] = None
    mode: Optional[str] = None
    """``cpu`` or ``gpu``."""
    fork: tuple[str, ...] = ()
    distro: tuple[str, ...] = ()
    arch: tuple[str, ...] = ()
    tree: tuple[Marker, ...] = ()
    """All of these stand in the tree."""
    wish: Optional[str] = None
    """Only where a decision of the plan calls for it by this name: ``depthwise-layer``."""
    place_for_edit: bool = False
    """Only where one of its edits has something to do in the tree; no marker can say so."""


class Shim(Value, tag="shim", kw_only=True):
    """Headers under patches/shims/ that give back what a library removed."""

    headers: tuple[str, ...]


class ShimLibrary(Value, tag="library", kw_only=True):
    """A library that vanished or was renamed: an empty archive, or a linker script ``INPUT(-lX)``."""

    name: str
    """The name that the tree links: ``cblas``."""
    links: str = ""
    """The name that exists; empty: an empty archive."""


class Edit(Value, tag="edit", kw_only=True):
    """An anchored edit: patches/edits/<id>.toml."""

    edit: str


class NewFile(Value, tag="file", kw_only=True):
    """A whole file under patches/ that goes into the tree. All of one fix go in and out together."""

    source: str
    target: str


class Setting(Value, tag="config", kw_only=True):
    """A line of Makefile.config."""

    key: str
    value: str
    append: bool = True


class Install(Value, tag="install", kw_only=True):
    """A library or program to install: a row of facts/libraries.toml."""

    library: str


class Advice(Value, tag="advice", kw_only=True):
    """Words for what caffeup does not do by itself, with commands that can be pasted."""

    text: str
    commands: tuple[str, ...] = ()


AnyRemedy = Union[Shim, ShimLibrary, Edit, NewFile, Setting, Install, Advice]


class Fix(Value, kw_only=True):
    """One row of the catalogue: facts/fixes/<id>.toml."""

    id: str
    title: str
    when: Condition = msgspec.field(default_factory=Condition)
    """When it bites: read by the planner, and by the diagnosis to rank causes."""
    unless: tuple[Marker, ...] = ()
    """Any of these in the tree: it is solved there already."""
    remedy: tuple[AnyRemedy, ...] = ()
    symptoms: tuple[str, ...] = ()
    """Regular expressions for one line of a log."""
    cause: str = ""
    """One or two sentences for the person."""
    source: tuple[str, ...]
    """Where it was reported or read."""
    harmless: bool = False
    """Noise that is never the error."""
    normal: bool = False
    """Whether a run that goes well says it too: it is told only where the log ends with it."""
    unsure: bool = False
    """Whether the reports leave the cause open."""
    also: tuple[str, ...] = ()
    """Regular expressions for lines near the symptom that speak for this cause where several read alike."""
    near: bool = False
    """Whether it counts only where one of ``also`` matches such a line: for symptoms that say nothing by themselves."""
    told: bool = False
    """Whether lines of mere information tell it (a loss that is no number); shown as a warning."""
    decides: str = ""
    """What would tell this cause from others with the same symptom."""
    follows: tuple[str, ...] = ()
    """Ids of fixes of which this is a mere consequence where both are seen in one log."""

    @property
    def into_tree(self) -> bool:
        """Whether it puts anything into a tree or its Makefile.config."""
        return any(not isinstance(one, (Install, Advice)) for one in self.remedy)

    @property
    def place(self) -> str:
        """What stands among a tree's markers where ``place_for_edit`` holds."""
        return f"edit::{self.id}"
