"""Sizes of memory as people write them."""

from __future__ import annotations

import re

_UNITS = {"": 1, "K": 10, "M": 20, "G": 30, "T": 40}
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4}
_WRITTEN = re.compile(r"([0-9]{1,12}(?:[.][0-9]{1,6})?)\s*([KMGT])(iB|B|)", re.IGNORECASE)
LARGEST = 1 << 50


def parse_size(text: str) -> int:
    """Bytes of ``4GiB``, ``4G`` (the same), ``1500MiB``, ``4GB`` (powers of 1000); raise ``ValueError`` for anything else."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no size of memory: write 4GiB or 1500MiB")
    unit, kind = found[2].upper(), found[3].lower()
    step = 1000 ** _POWERS[unit] if kind == "b" else 1 << _UNITS[unit]
    size = int(float(found[1]) * step)
    if not 0 < size <= LARGEST:
        raise ValueError(f"{text!r} is no size that a GPU could have")
    return size
