"""Which BLAS is linked."""

from __future__ import annotations

from typing import Optional

from caffeup.model.base import Value
from caffeup.model.machine import Library
from caffeup.model.plan import Alternative, ConfigLine
from caffeup.plan.case import Case
from caffeup.plan.libraries import folders, missing, said
from caffeup.plan.part import Part, conflict, decision, line, remedy

# The order of preference, and the word that Caffe's Makefile has for each. What is neither MKL nor OpenBLAS goes by
# ``atlas``: -lcblas -latlas, which shim libraries turn into what there is.
_WORDS = {"openblas": "open", "mkl": "mkl", "atlas": "atlas", "refblas": "atlas"}
_SPELLINGS = {"open": "openblas", "openblas": "openblas", "atlas": "atlas", "mkl": "mkl", "refblas": "refblas", "blas": "refblas"}


class Blas(Value, kw_only=True):
    """The decision."""

    library: Optional[Library] = None
    part: Part = Part()


def choose_blas(case: Case) -> Blas:
    """OpenBLAS before MKL before ATLAS before the reference; as asked for with --blas."""
    wanted = case.request.blas.lower()
    if wanted and wanted not in _SPELLINGS:
        title = f"no such BLAS: {case.request.blas!r}"
        ways = (remedy("name one of openblas, mkl, atlas", case.again("--blas", "openblas")),)
        return Blas(part=Part(conflicts=(conflict("blas-unknown", title, remedies=ways),)))
    names = (_SPELLINGS[wanted],) if wanted else tuple(_WORDS)
    found = [one for name in names for one in case.libraries(name)]
    if not found:
        name = names[0]
        row = case.row(name)
        because = f"asked for with --blas {wanted}" if wanted else "every build needs a BLAS"
        notes = (missing(row, because),) if row is not None else ()
        config = _key(name, case, "to be installed")
        return Blas(
            part=Part(
                decisions=(decision("blas", name, f"{because}; it is to be installed"),),
                config=config,
                packages=(name,),
                notes=notes,
            )
        )
    best = found[0]
    because = f"asked for with --blas {wanted}" if wanted else f"found: {said(best)}"
    others = [one for name in _WORDS for one in case.libraries(name) if one is not best]
    rejected = tuple(
        Alternative(value=f"{one.name} {one.version or ''}".strip(), because=_lesser(one, best, wanted)) for one in others
    )
    place = folders(best, case)
    lines = list(_key(best.name, case, f"{best.name} {said(best)}"))
    if place.include_dirs and case.reads("BLAS_INCLUDE"):
        lines.append(line("BLAS_INCLUDE", *place.include_dirs, because=f"cblas.h of {best.name}"))
    if place.library_dirs and case.reads("BLAS_LIB"):
        lines.append(line("BLAS_LIB", *place.library_dirs, because=f"the library of {best.name}"))
    part = Part(
        decisions=(
            decision(
                "blas",
                f"{best.name} {best.version or ''}".strip(),
                because,
                fact=f"libraries.toml#{best.name}",
                rejected=rejected,
            ),
        ),
        config=tuple(lines),
        links=place.links,
        run_paths=place.run_paths,
    )
    return Blas(library=best, part=part)


def _key(name: str, case: Case, because: str) -> tuple[ConfigLine, ...]:
    return (line("BLAS", _WORDS[name], because=because),) if case.reads("BLAS") else ()


def _lesser(one: Library, best: Library, wanted: str) -> str:
    if wanted:
        return "another one was asked for"
    return "the chosen one comes first" if one.name == best.name else f"{best.name} comes first in the order of preference"
