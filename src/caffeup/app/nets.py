"""Nets' files: read, rewritten and checked."""

from __future__ import annotations

import errno
import gc
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Optional

from caffeup.disk import as_path, read_plain
from caffeup.errors import UsageError
from caffeup.model.net import NetRewrite
from caffeup.net.check import slash_comments
from caffeup.net.convert import Rewritten, convert, revert, switch_engine
from caffeup.net.model import Net, read_net
from caffeup.net.text import Document, parse, printable

LARGEST = 64 << 20
"""Of a prototxt; the largest that are written by programs have a few MB."""
SUFFIX = "_depth"


def read_document(name: str) -> Document:
    """The syntax tree of a file; ``UsageError`` where it cannot be read, or is no prototxt."""
    shown = printable(name, 400)
    try:
        data = read_plain(as_path(name), LARGEST)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise UsageError(f"{shown} is larger than any prototxt (a caffemodel?).") from error
        raise UsageError(f"{shown} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise UsageError(f"{shown} cannot be read: there is no such path.") from error
    document = parse(data, name)
    gc.freeze()  # it stays until the end: looking through it for garbage takes longer than all that is done with it
    return document


def read_net_file(name: str) -> Net:
    """The net of a file."""
    return read_net(read_document(name))


def given_shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """``data=1,3,300,300`` or ``data=1x3x300x300``, as a person gives the shape of a blob."""
    shapes = {}
    for text in texts:
        name, _, sizes = text.partition("=")
        try:
            shapes[name] = tuple(int(size) for size in sizes.replace("x", ",").split(","))
        except ValueError as error:
            raise UsageError(f"{printable(text)!r} is no shape.", advice="Write it as data=1,3,300,300.") from error
        if not name or min(shapes[name]) < 1:
            raise UsageError(f"{printable(text)!r} is no shape.", advice="Write it as data=1,3,300,300.")
    return shapes


def convert_net(
    name: str,
    *,
    output: str = "",
    in_place: bool = False,
    names: bool = False,
    engine: str = "",
    shapes: Optional[Mapping[str, tuple[int, ...]]] = None,
) -> NetRewrite:
    """Rewrite the depthwise convolutions of a net, or with ``engine`` their engine alone."""
    net = read_net_file(name)
    made = switch_engine(net, engine, names=names, given=shapes) if engine else convert(net, names=names, given=shapes)
    path = as_path(name)
    target = _target(path, output, in_place=in_place, other=path.with_name(f"{path.stem}{SUFFIX}{path.suffix}"))
    return _written(name, net.document, made, target, in_place=in_place)


def revert_net(name: str, *, output: str = "", in_place: bool = False) -> NetRewrite:
    """Take back what ``convert_net`` did."""
    document = read_document(name)
    made = revert(document)
    path = as_path(name)
    other = path.with_name(f"{path.stem[: -len(SUFFIX)]}{path.suffix}") if path.stem.endswith(SUFFIX) else None
    if made.changes and other is None and not output and not in_place:
        raise UsageError("It is not said where to write.", advice="Give -o FILE or --in-place.")
    return _written(name, document, made, _target(path, output, in_place=in_place, other=other or path), in_place=in_place)


def _target(path: Path, output: str, *, in_place: bool, other: Path) -> Path:
    if output and in_place:
        raise UsageError("-o and --in-place exclude each other.")
    return path if in_place else as_path(output) if output else other


def _written(name: str, document: Document, made: Rewritten, target: Path, *, in_place: bool) -> NetRewrite:
    if made.changes:
        write_file(target, made.data, replace=in_place)
    return NetRewrite(
        source=name,
        written=str(target) if made.changes else "",
        changes=made.changes,
        left=made.left,
        findings=tuple(slash_comments(document)),
    )


def write_file(path: Path, data: bytes, *, replace: bool) -> None:
    """Write a file as a whole; one that is there is replaced only where that was asked for, and keeps its mode."""
    target = Path(os.path.realpath(path)) if replace else path
    written = target.with_name(f".{target.name}.{os.getpid()}.new") if replace else target
    try:
        handle = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError as error:
        brief = f"{printable(str(path), 400)} is there already, and is not overwritten."
        raise UsageError(brief, advice="Give another file with -o, or remove it.") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        if replace:
            written.chmod(stat.S_IMODE(target.stat().st_mode))
            written.replace(target)
    except BaseException:
        written.unlink(missing_ok=True)
        raise
