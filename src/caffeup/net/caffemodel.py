"""Caffemodels: which weights lie where in one, and a new one made of pieces of the old.

Nothing is copied on reading: a model is an index of places in its bytes, which may be a mapped file. Both ages of
layers are read (``layer``, and V1's ``layers``), and both ways of telling a blob's shape.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, NoReturn, Optional

from caffeup.errors import UsageError
from caffeup.net.text import printable
from caffeup.net.wire import LENGTH, Buffer, Record, Torn, as_varint, floats, message, records, varints

MOST_LAYERS = 100_000
MOST_BLOBS = 1_000
MOST_PIECES = 1 << 18
"""More than any net has; a file of nothing but empty layers or single numbers must not fill the memory."""


class Numbers(NamedTuple):
    """Numbers of fields of a layer, in one of the two ages."""

    layer: int
    """In the net."""
    name: int
    bottom: int
    top: int
    blobs: int
    convolution: int
    product: int


NEW = Numbers(layer=100, name=1, bottom=3, top=4, blobs=7, convolution=106, product=117)
V1 = Numbers(layer=2, name=4, bottom=2, top=3, blobs=6, convolution=10, product=17)
_V0_LAYER = 1
_SHAPE, _FLOATS, _DOUBLES, _RAW = 7, 5, 8, 12
_DIMS = 1
_OLD_DIMS = (1, 2, 3, 4)


class Blob(NamedTuple):
    """One blob of weights."""

    shape: tuple[int, ...]
    pieces: tuple[tuple[int, int], ...]
    """Where its numbers lie."""
    code: str
    """``f`` or ``d``, as ``array`` names them; empty where they are in a form that is not read."""

    @property
    def size(self) -> int:
        """Elements by its shape."""
        return math.prod(self.shape)


class Weights(NamedTuple):
    """One layer of a model."""

    name: str
    numbers: Numbers
    whole: int
    """Where its tag begins."""
    start: int
    """Where its message begins."""
    end: int
    blobs: tuple[Blob, ...]


class Model(NamedTuple):
    """A caffemodel."""

    file: str
    data: memoryview
    layers: tuple[Weights, ...]

    def weights(self, name: str) -> Optional[Weights]:
        """Those of a layer; the last of several, as they are copied into a net one after the other."""
        return next((layer for layer in reversed(self.layers) if layer.name == name and layer.blobs), None)

    def values(self, blob: Blob) -> array[float]:
        """The numbers of a blob."""
        found = floats(blob.code)
        for start, end in blob.pieces:
            found.frombytes(self.data[start:end])
        if sys.byteorder == "big":
            found.byteswap()
        return found


def read_model(data: Buffer, file: str) -> Model:
    """The index of a caffemodel; ``UsageError`` where it is none, or not whole."""
    view = memoryview(data)
    shown = printable(file, 400)
    _refuse_other_files(bytes(view[:512]), shown)
    layers: list[Weights] = []
    at = 0
    try:
        for record in records(view, 0, len(view)):
            at = record.end
            numbers = {NEW.layer: NEW, V1.layer: V1}.get(record.number)
            if record.number == 1 and record.kind != LENGTH:
                _refuse(shown, "it is a solverstate and no caffemodel", "Give the file that ends in .caffemodel.")
            if numbers is not None and record.kind == LENGTH:
                layers.append(_whole_layer(view, record, numbers, shown))
                if len(layers) > MOST_LAYERS:
                    _refuse(shown, f"it has more than {MOST_LAYERS} layers")
    except Torn as error:
        if not at:
            _refuse(shown, "it is no caffemodel")
        if "ends" not in error.what:
            _refuse(shown, f"what stands at byte {error.place} belongs to no caffemodel")
        behind = f", behind layer {printable(layers[-1].name)}" if layers else ""
        what = f"it ends at byte {len(view)} in the middle of what begins at byte {at}{behind}"
        _refuse(shown, what, "It is not whole: download or copy it again.")
    if not layers:
        _refuse(shown, "there is no layer in it")
    return Model(shown, view, tuple(layers))


def _whole_layer(data: memoryview, record: Record, numbers: Numbers, shown: str) -> Weights:
    try:
        return _layer(data, record, numbers)
    except Torn as error:
        what = "it is no caffemodel" if not record.start else f"what stands at byte {error.place} belongs to no caffemodel"
        _refuse(shown, what if "ends" in error.what or "protobuf" in error.what else error.what)


def _layer(data: memoryview, record: Record, numbers: Numbers) -> Weights:
    name, blobs = "", []
    for field in records(data, record.body, record.end):
        if field.number == numbers.name and field.kind == LENGTH:
            name = bytes(data[field.body : field.end]).decode("utf-8", "surrogateescape")
        elif field.number == numbers.blobs and field.kind == LENGTH:
            blobs.append(_blob(data, field))
            if len(blobs) > MOST_BLOBS:
                raise Torn("a layer has more blobs than any layer needs", field.start)
        elif numbers is V1 and field.number == _V0_LAYER:
            raise Torn("it is in the oldest form, of 2013", field.start)
    return Weights(name, numbers, record.start, record.body, record.end, tuple(blobs))


def _blob(data: memoryview, record: Record) -> Blob:
    shape: Optional[list[int]] = None
    old, code = dict.fromkeys(_OLD_DIMS, 0), "f"
    pieces: list[tuple[int, int]] = []
    for field in records(data, record.body, record.end):
        if field.number == _SHAPE and field.kind == LENGTH:
            dims = [one for one in records(data, field.body, field.end) if one.number == _DIMS]
            shape = [size for one in dims for size in varints(data, one)]
        elif field.number in (_FLOATS, _DOUBLES):
            code = "f" if field.number == _FLOATS else "d"
            _add(pieces, field.body, field.end)
        elif field.number == _RAW:
            code = ""
        elif field.number in old and not field.kind:
            old[field.number] = field.value
    sizes = tuple(shape if shape is not None else old.values() if any(old.values()) else ())
    if code and sum(end - start for start, end in pieces) % floats(code).itemsize:
        raise Torn("the numbers of a blob are no whole numbers of bytes", record.start)
    return Blob(sizes, tuple(pieces), code)


def _add(pieces: list[tuple[int, int]], start: int, end: int) -> None:
    if len(pieces) >= MOST_PIECES:
        raise Torn("a blob is in more pieces than any program writes", start)
    pieces.append((start, end))


def _refuse_other_files(begin: bytes, shown: str) -> None:
    text = begin.lstrip()
    if not begin:
        _refuse(shown, "it is empty")
    if begin.startswith(b"\x89HDF"):
        _refuse(shown, "it is an HDF5 file", "Only caffemodels in protobuf's form are read.")
    if begin.startswith(b"version https://git-lfs"):
        _refuse(shown, "it only points to the file, which git-lfs has not fetched", "Fetch it: git lfs pull")
    if text[:1] == b"<":
        _refuse(shown, "it is a web page and no caffemodel", "The download gave a page instead of the file: download it again.")
    if begin.startswith((b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ")):
        _refuse(shown, "it is an archive", "Unpack it first.")
    if text.startswith((b"name:", b"layer", b"input", b"#")) and begin.isascii():
        _refuse(shown, "it is a prototxt and no caffemodel", "Give the net first and the model second.")


def _refuse(shown: str, what: str, advice: str = "") -> NoReturn:
    raise UsageError(f"{shown} cannot be read: {what}.", advice=advice)


def as_blob(shape: Sequence[int], values: array[float], *, number: int = NEW.blobs) -> list[Buffer]:
    """A blob as a field of its layer."""
    dims = b"".join(message(_DIMS, [b"".join(map(as_varint, shape))])) if shape else b""
    if sys.byteorder == "big":
        values = floats(values.typecode, values)
        values.byteswap()
    body = memoryview(values).cast("B")
    field = _FLOATS if values.typecode == "f" else _DOUBLES
    return message(number, [*message(_SHAPE, [dims]), *message(field, [body])])


def rewritten(model: Model, changed: Mapping[int, Optional[Iterator[Buffer]]]) -> Iterator[Buffer]:
    """The bytes of a model in which some layers are others, or with ``None`` are not there any more.

    ``changed`` names a layer by its place (``Weights.start``); a layer's pieces are made when it is its turn.
    """
    at = 0
    for layer in model.layers:
        if layer.start not in changed:
            continue
        yield model.data[at : layer.whole]
        pieces = changed[layer.start]
        if pieces is not None:
            yield from message(layer.numbers.layer, pieces)
        at = layer.end
    yield model.data[at:]


def layer_with(
    model: Model,
    layer: Weights,
    blobs: Iterable[Iterable[Buffer]],
    *,
    tops: Optional[Mapping[str, str]] = None,
    replaced: Optional[Mapping[int, bytes]] = None,
) -> Iterator[Buffer]:
    """The message of a layer with other blobs, other names of tops, and other values of some fields."""
    for field in records(model.data, layer.start, layer.end):
        if field.number == layer.numbers.blobs:
            continue
        if field.number == layer.numbers.top and tops:
            name = bytes(model.data[field.body : field.end]).decode("utf-8", "surrogateescape")
            yield b"".join(message(field.number, [tops.get(name, name).encode("utf-8", "surrogateescape")]))
        elif replaced and field.number in replaced:
            yield b"".join(message(field.number, [replaced[field.number]]))
        else:
            yield model.data[field.start : field.end]
    for blob in blobs:
        yield from blob


def without(data: memoryview, start: int, end: int, number: int) -> bytes:
    """A message without one of its fields."""
    return b"".join(data[field.start : field.end] for field in records(data, start, end) if field.number != number)


def new_model(name: str, layers: Iterable[tuple[str, str, Sequence[tuple[Sequence[int], array[float]]]]]) -> Iterator[Buffer]:
    """A model of layers, each with its name, its type, and shape and numbers of each blob."""
    yield b"".join(message(1, [name.encode("utf-8", "surrogateescape")]))
    for layer, kind, blobs in layers:
        words = [*message(1, [layer.encode("utf-8", "surrogateescape")]), *message(2, [kind.encode()])]
        yield from message(NEW.layer, [*words, *(piece for shape, values in blobs for piece in as_blob(shape, values))])
