"""Which fixes' edits have something to do in a tree: they are tried on its text, and nothing is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from caffeup.bundle import bundled
from caffeup.model.fix import Edit, Fix
from caffeup.model.outcome import PatchState
from caffeup.patch.edits import EditSpec, parse_edit, work_out
from caffeup.source.survey import Survey


def places(fixes: Iterable[Fix], survey: Survey) -> Iterator[str]:
    """The markers ``Fix.place`` of those that say ``place_for_edit`` and have one."""
    for fix in fixes:
        edits = [remedy.edit for remedy in fix.remedy if isinstance(remedy, Edit)] if fix.when.place_for_edit else []
        if any(_has_place(name, survey) for name in edits):
            yield fix.place


def _has_place(name: str, survey: Survey) -> bool:
    spec = parse_edit(Path(bundled("patches"), "edits", f"{name}.toml").read_bytes())
    matches = {index: _matching(spot.files, survey) for index, spot in enumerate(spec.spots)}
    texts = {path: survey.read(path) or b"" for found in matches.values() for path in found}
    return work_out(spec, name, texts, matches, _beside(spec, survey)).state in (PatchState.NEEDED, PatchState.CONFLICTING)


def _beside(spec: EditSpec, survey: Survey) -> dict[int, tuple[bytes, ...]]:
    return {
        index: tuple(survey.read(path) or b"" for path in _matching(spot.where_in, survey))
        for index, spot in enumerate(spec.spots)
    }


def _matching(globs: tuple[str, ...], survey: Survey) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for pattern in globs for path in survey.matching(pattern)))
