"""The first entry of what a net's data layers read, where it lies here: the shapes of the whole net follow from it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Optional

from caffeup.net.datum import image_size, read_datum
from caffeup.net.lmdb import first_value
from caffeup.net.model import DATA, Layer
from caffeup.net.rules.base import Datum
from caffeup.net.shapes import source_of

_HEAD = 1 << 20
"""Of an image's file: its size stands behind a thumbnail at most."""


def data_of(layers: Iterable[Layer]) -> dict[str, Datum]:
    """What the data layers' sources begin with, by their path; those that cannot be read are left out."""
    found = {}
    for layer in layers:
        source = source_of(layer)
        if layer.type in DATA and source and source not in found:
            datum = _first(layer, source)
            if datum is not None:
                found[source] = datum
    return found


def _first(layer: Layer, source: str) -> Optional[Datum]:
    try:
        if layer.type in {"AnnotatedData", "Data"}:
            value = _of_lmdb(Path(source))
            return read_datum(value, annotated=layer.type == "AnnotatedData") if value else None
        if layer.type == "ImageData":
            block = layer.block.block("image_data_param")
            return _of_list(Path(source), block.string("root_folder"), colour=block.flag("is_color", default=True))
    except (OSError, ValueError):
        return None
    return None


def _of_lmdb(source: Path) -> Optional[bytes]:
    path = source / "data.mdb" if source.is_dir() else source
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        return first_value(lambda place, length: os.pread(handle, length, place))
    finally:
        os.close(handle)


def _of_list(source: Path, folder: str, *, colour: bool) -> Optional[Datum]:
    """The first image of a list: a path and a label on each line."""
    line = _head(source).partition(b"\n")[0].decode("utf-8", "surrogateescape")
    found = image_size(_head(Path(folder + line.rsplit(" ", 1)[0])))
    return Datum(channels=3 if colour else 1, height=found[1], width=found[2]) if found else None


def _head(path: Path) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.pread(handle, _HEAD, 0) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
    finally:
        os.close(handle)
