"""Switches of the Makefile that the sources do not heed: what they include whatever ``USE_OPENCV`` and the like say."""

from __future__ import annotations

import re
from collections.abc import Iterator

from caffeup.source.survey import Survey

HEADERS = {
    "USE_OPENCV": re.compile(r"opencv2?/|(?:cv|cxcore|highgui)\.h$"),
    "USE_LEVELDB": re.compile(r"leveldb/"),
    "USE_LMDB": re.compile(r"lmdb\.h$"),
    "USE_HDF5": re.compile(r"hdf5(?:_hl)?\.h$"),
}
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(if\w*|endif|include)\b[ \t]*(.*)$", re.MULTILINE)
_NAME = re.compile(r'[<"]([^>"]+)[>"]')


def unheeded(survey: Survey, keys: tuple[str, ...], *, examples: bool) -> tuple[str, ...]:
    """Of the switches that the Makefile reads, ``USE_OPENCV::src/caffe/layers/data_layer.cpp``: the first file of each."""
    found = (_unguarded(survey, key, examples=examples) for key in HEADERS if key in keys)
    return tuple(one for one in found if one)


def _unguarded(survey: Survey, key: str, *, examples: bool) -> str:
    """The first file that the build compiles, or that such a file includes, with a header of the library and no question."""
    pending = [name for name in survey.files if _compiled(name, examples=examples)]
    seen = set(pending)
    for name in pending:
        for header in _includes(survey.text(name) or "", key):
            if HEADERS[key].match(header):
                return f"{key}::{name}"
            inside = f"include/{header}"
            if header.startswith("caffe/") and inside not in seen:
                seen.add(inside)
                pending.append(inside)
    return ""


def _compiled(name: str, *, examples: bool) -> bool:
    """Library, tools and examples; tests are another target."""
    if not name.endswith((".cpp", ".cu")) or name.rpartition("/")[2].startswith("test_"):
        return False
    return name.startswith(("src/caffe/", "tools/", "examples/") if examples else ("src/caffe/", "tools/"))


def _includes(text: str, key: str) -> Iterator[str]:
    """Headers that are included outside every conditional that names the switch."""
    conditions: list[str] = []
    for word, rest in _DIRECTIVE.findall(text):
        if word == "include":
            name = _NAME.match(rest)
            if name and not any(key in one for one in conditions):
                yield name[1]
        elif word == "endif":
            del conditions[-1:]
        else:
            conditions.append(rest)
