"""Rows of libraries.toml: what Caffe is linked with or built by, how each is recognised, and what its packages are called."""

from __future__ import annotations

from typing import Optional

from packaging.version import Version

from caffeup.facts.ranges import Range
from caffeup.model.base import Value, Word


class Need(Word):
    """When a build wants a row."""

    ALWAYS = "always"
    SWITCH = "switch"
    """Unless the key of Makefile.config in ``switch`` is 0."""
    LINKED = "linked"
    """Where the tree's Makefile links it: forks only."""
    BLAS = "blas"
    """One of these rows."""
    PYTHON = "python"
    """Where pycaffe is built."""
    OPTIONAL = "optional"


class Kind(Word):
    """What a row is, and so who looks for it."""

    LIBRARY = "library"
    PROGRAM = "program"
    PYTHON = "python"
    """Something of one Python: its headers, a module, its Boost.Python."""


class Place(Value, kw_only=True):
    """Folders, relative to an include and a library folder of a root; they belong together. ``*`` is allowed."""

    include: str = ""
    lib: str = ""


class Part(Value, kw_only=True):
    """A further library of the same row: recorded where it is there, asked for in the versions of ``needed``."""

    name: str
    needed: str = ""
    """Half-open range of the row's version; empty: never insisted on."""


class VersionRule(Value, kw_only=True):
    """One way to read the version; rules are tried in order."""

    header: str = ""
    """Relative to the include folder."""
    file: str = ""
    """Relative to the library folder: a pkg-config file or CMake's version file."""
    defines: tuple[str, ...] = ()
    """Macros with one number each, or one macro with a number that ``radix`` takes apart."""
    radix: tuple[int, ...] = ()
    """Weights of the parts: 1000000, 1000, 1."""
    pattern: str = ""
    """Regular expression; its groups are joined with dots."""
    so: str = ""
    """Library whose file's own version is the answer."""
    means: str = ""
    """Version that the mere presence of the header shows."""


class Packages(Value, kw_only=True):
    """Names of packages; the first entry of a row that fits is taken."""

    family: str
    names: tuple[str, ...]
    vanishing: tuple[str, ...] = ()
    """Those of the names that later releases drop, because nothing is left in them: left out where they are not known."""
    distro: tuple[str, ...] = ()
    releases: str = ""
    """Half-open range of ``VERSION_ID``."""
    python: str = ""
    """Half-open range of the Python's version."""


class LibraryRow(Value, kw_only=True):
    """One library, program or Python part."""

    id: str
    title: str
    kind: Kind = Kind.LIBRARY
    need: Need = Need.ALWAYS
    switch: str = ""
    """Key of Makefile.config that turns it off."""
    headers: tuple[str, ...] = ()
    """All of these show it."""
    places: tuple[Place, ...] = (Place(),)
    link: tuple[tuple[str, ...], ...] = ()
    """Alternatives, each a set of names for ``-l``."""
    parts: tuple[Part, ...] = ()
    versions: tuple[VersionRule, ...] = ()
    so_digits: int = 0
    """How many parts of the version the library's file name shares with the header; 0: they are unrelated."""
    others: tuple[str, ...] = ()
    """Words in a library's real path that show it to be another row's behind a common name (Debian's alternatives)."""
    pkg_config: str = ""
    """Package whose ``Requires`` must be linked too, where its version is in ``pkg_config_from``."""
    pkg_config_from: str = ""
    roots: tuple[str, ...] = ()
    """Where else it is installed; ``*`` is allowed."""
    program: str = ""
    """Name on PATH, for programs."""
    pip: str = ""
    """Name of the pip package that serves for a Python that is not the distribution's."""
    packages: tuple[Packages, ...] = ()
    source: tuple[str, ...]

    def packages_on(self, family: str, distro: str, release: str, python: Optional[Version] = None) -> Optional[tuple[str, ...]]:
        """Names of what to install there; None where no entry fits."""
        entry = self.entry_on(family, distro, release, python)
        return entry.names if entry is not None else None

    def entry_on(self, family: str, distro: str, release: str, python: Optional[Version] = None) -> Optional[Packages]:
        """What to install there; None where no entry fits. ``release`` may be empty or no version (rolling)."""
        for entry in self.packages:
            if entry.family != family or (entry.distro and distro not in entry.distro):
                continue
            if entry.releases and not release_within(entry.releases, release):
                continue
            if entry.python and (python is None or python not in Range.parse(entry.python)):
                continue
            return entry
        return None


class LibraryFile(Value, kw_only=True):
    """libraries.toml."""

    library: tuple[LibraryRow, ...] = ()


def release_within(text: str, release: str) -> bool:
    """Whether a ``VERSION_ID`` is in a range; False for what is no number (rolling and unreleased distributions)."""
    try:
        return Version(release) in Range.parse(text)
    except ValueError:  # InvalidVersion is one, and more digits than Python converts is another
        return False
