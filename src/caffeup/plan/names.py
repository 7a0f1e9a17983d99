"""Library names: what the tree links under one name and this machine has under another."""

from __future__ import annotations

from typing import Optional

from caffeup.model.fix import ShimLibrary
from caffeup.model.machine import Library
from caffeup.plan.case import Case

# What Caffe's Makefile links for each word of BLAS.
_BLAS = {"open": ("openblas",), "atlas": ("cblas", "atlas"), "mkl": ("mkl_rt",)}


def stand_ins(case: Case, used: tuple[Library, ...], blas: str, blas_library: Optional[Library]) -> tuple[ShimLibrary, ...]:
    """One for each name that would not be found, leading to the name that is there."""
    found: dict[str, str] = {}
    for library in used:
        row = case.row(library.name)
        if row is not None and library is not blas_library:
            found.update(_renamed(row.link, library.libraries, case.tree.libraries))
    if blas_library is not None and blas_library.libraries:
        have = blas_library.libraries
        found.update({name: have[min(at, len(have) - 1)] for at, name in enumerate(_BLAS.get(blas, ())) if name not in have})
    return tuple(ShimLibrary(name=name, links=links) for name, links in sorted(found.items()))


def _renamed(alternatives: tuple[tuple[str, ...], ...], have: tuple[str, ...], linked: tuple[str, ...]) -> dict[str, str]:
    """Names of one alternative that the tree links, by those of the alternative that is installed."""
    installed = next((names for names in alternatives if names and set(names) <= set(have)), None)
    if installed is None:
        return {}
    return {
        name: installed[min(at, len(installed) - 1)]
        for names in alternatives
        for at, name in enumerate(names)
        if name in linked and name not in have
    }
