"""The catalogue of trees: names, and what may stand in for a tree that cannot be fetched."""

from __future__ import annotations

from typing import Optional

from caffeup.facts.forks import Fork, ForkFile, fork_named
from caffeup.facts.tables import Facts


def table_of(facts: Facts) -> ForkFile:
    """forks.toml, with the user's rows merged in."""
    return facts.reader.table("forks", ForkFile)


def named(name: str, facts: Facts) -> Optional[Fork]:
    """The catalogue's row with this name, if it can be fetched."""
    row = fork_named(table_of(facts).fork, name)
    return row if row and (row.url or row.sdist) else None


def trees(facts: Facts) -> tuple[Fork, ...]:
    """All rows that ``up`` can fetch by their names."""
    return tuple(row for row in table_of(facts).fork if row.url or row.sdist)


def substitute_for(name: str, facts: Facts) -> Optional[Fork]:
    """The tree that may be offered in place of one that cannot be fetched; None where there is none."""
    row = fork_named(table_of(facts).fork, name)
    return fork_named(table_of(facts).fork, row.substitute) if row and row.substitute else None


def known_failure(fork: str, test: str, facts: Facts, *, gpu: bool) -> str:
    """Why a test of this family of trees is known to fail; empty where it is not."""
    row = fork_named(table_of(facts).fork, fork)
    return row.known_failure(test, gpu=gpu) if row else ""
