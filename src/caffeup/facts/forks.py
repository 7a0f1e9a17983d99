"""Families of Caffe trees: where each comes from, what tells it apart, and what is known of it."""

from __future__ import annotations

import fnmatch
from typing import Callable, Optional

from caffeup.model.base import Value
from caffeup.model.fix import Marker


class Sdist(Value, kw_only=True):
    """A source distribution in the Python package index."""

    name: str
    version: str
    file: str
    sha256: str


class KnownFailure(Value, kw_only=True):
    """A test that fails, or does not compile, through the tree's own fault."""

    test: str
    """Name with ``*`` (``MultiBoxLossLayerTest/*.TestForward``), or the file that does not compile (``src/….cpp``)."""
    because: str
    cpu: bool = True
    gpu: bool = True
    """Where it is seen: in CPU builds, in GPU builds."""


class Fork(Value, kw_only=True):
    """One family of trees."""

    id: str
    title: str
    url: str = ""
    branch: str = ""
    """A branch or tag."""
    commits: tuple[str, ...] = ()
    """Known ones, the newest first."""
    sdist: Optional[Sdist] = None
    fingerprint: tuple[Marker, ...] = ()
    """All of these stand in such a tree; the first row of the table that fits wins. Empty: told by its commit alone."""
    without: tuple[Marker, ...] = ()
    """None of these stands in it."""
    tests: Optional[int] = None
    """Tests of its own that pass in a CPU-only build; caffeup's come on top (``TestReport.added``)."""
    failures: tuple[KnownFailure, ...] = ()
    notes: tuple[str, ...] = ()
    substitute: str = ""
    """The row that may be offered where this one cannot be fetched."""
    lacks: tuple[str, ...] = ()
    """What this tree lacks, as somebody else's substitute."""
    source: tuple[str, ...]

    def known_failure(self, test: str, *, gpu: bool) -> str:
        """Why this test is known to fail; empty where it is not."""
        for row in self.failures:
            if (row.gpu if gpu else row.cpu) and fnmatch.fnmatchcase(test, row.test):
                return row.because
        return ""


class Feature(Value, kw_only=True):
    """Something a tree may have, and what shows it."""

    id: str
    any: tuple[Marker, ...]
    unless: tuple[Marker, ...] = ()
    about: str = ""


class ForkFile(Value, kw_only=True):
    """forks.toml."""

    fork: tuple[Fork, ...] = ()
    feature: tuple[Feature, ...] = ()


def fork_named(forks: tuple[Fork, ...], name: str) -> Optional[Fork]:
    """The row with this id."""
    return next((row for row in forks if row.id == name), None)


def identify(forks: tuple[Fork, ...], commit: str, holds: Callable[[Marker], bool]) -> Optional[Fork]:
    """The family of a tree: by its commit where that is known, else the first row whose fingerprint fits."""
    for row in forks:
        if commit and commit in row.commits:
            return row
    for row in forks:
        if row.fingerprint and all(holds(one) for one in row.fingerprint) and not any(holds(one) for one in row.without):
            return row
    return None


def marks(forks: tuple[Fork, ...], features: tuple[Feature, ...]) -> tuple[Marker, ...]:
    """Everything that must be looked up to tell forks and features."""
    wanted = [marker for row in forks for marker in (*row.fingerprint, *row.without)]
    wanted += [marker for feature in features for marker in (*feature.any, *feature.unless)]
    return tuple(wanted)
