"""Settings that make two builds of the same tree give the same bytes, in whatever folder and on whatever day."""

from __future__ import annotations

from typing import Optional

from packaging.version import Version

from caffeup.model.machine import Toolkit
from caffeup.plan.case import Case
from caffeup.plan.part import Part, line

_OBJTEMP = Version("11.2")
"""From here on NVIDIA's documentation of nvcc has ``--objdir-as-tempdir``."""
_EPOCH = "315532800"
"""The first second of 1980, the earliest date that every archive format can hold."""


def reproducible(case: Case, toolkit: Optional[Toolkit]) -> Part:
    """What Makefile.config can do for it; the order in which objects are linked is make's command line's (build/order.py).

    No prefix maps: Caffe's Makefile names all files relative to the tree and a release build has no debug information,
    so no folder's name is in what is built, and a setting that holds it would make a tree that moved stale.
    """
    lines = [line("export SOURCE_DATE_EPOCH", _EPOCH, because="`__DATE__` and `__TIME__` are the same in every build")]
    if toolkit is not None and toolkit.version >= _OBJTEMP and case.reads("NVCCFLAGS"):
        because = "without it nvcc writes names of its temporary files into objects, which differ in each build"
        lines.append(line("NVCCFLAGS", "--objdir-as-tempdir", because=because, operator="+="))
    return Part(config=tuple(lines))
