"""A net's file looked at: with the schema of a tree or of all known ones, and at the paths that it names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Optional

import msgspec

from caffeup import facts
from caffeup.app.netdata import data_of
from caffeup.app.nets import read_document
from caffeup.disk import as_path, read_plain
from caffeup.errors import SourceError, UsageError
from caffeup.facts.nets import NetFile
from caffeup.model.base import from_toml
from caffeup.model.finding import Finding, Remedy, Severity
from caffeup.model.net import NetReport
from caffeup.net.check import Checked, check
from caffeup.net.findings import Findings
from caffeup.net.habits import PathUse, check_classes, check_label_map
from caffeup.net.known import schema_of
from caffeup.net.model import read_net
from caffeup.net.schema import Schema, read_proto, registered_types
from caffeup.net.text import Document, printable

_PROTO = Path("src", "caffe", "proto", "caffe.proto")
_SOURCES = {".cpp", ".cu", ".hpp", ".cuh", ".h"}
_LARGEST = 8 << 20


def check_file(
    name: str,
    *,
    tree: str = "",
    deploy: bool = False,
    shapes: Optional[Mapping[str, tuple[int, ...]]] = None,
) -> NetReport:
    """All that is wrong with a net's file, and what it needs."""
    document = read_document(name)
    known = known_schema()
    schema = tree_schema(as_path(tree)) if tree else None
    data = data_of(read_net(document).layers) if document.root.has("layer") or document.root.has("layers") else {}
    checked = check(document, known, schema=schema, tree=tree, deploy=deploy, given=shapes, data=data)
    found = (*checked.report.findings, *_missing(document, checked.paths), *_label_maps(checked))
    return msgspec.structs.replace(checked.report, findings=found)


def _label_maps(checked: Checked) -> Iterator[Finding]:
    """What is wrong in the label maps that the net names, and whether they have its number of classes."""
    for use in {use.text: use for use in checked.paths if use.field == "label_map_file" and _exists(Path(use.text))}.values():
        try:
            labels = read_document(use.text)
        except UsageError as error:
            yield from error.findings
            continue
        found = Findings(labels)
        check_label_map(labels.root, found)
        check_classes(labels.root, checked.classes, found)
        yield from found.all()


def known_schema() -> Schema:
    """Fields and layers of all known trees; read by itself, since the other tables take longer than a check."""
    return schema_of(from_toml((Path(facts.__path__[0]) / "nets.toml").read_bytes(), NetFile))


def tree_schema(root: Path) -> Schema:
    """The fields of a tree's own caffe.proto, and the layers that its sources register."""
    shown = printable(str(root), 400)
    try:
        schema = read_proto(read_plain(root / _PROTO, _LARGEST).decode("utf-8", "replace"))
    except FileNotFoundError as error:
        raise SourceError(f"{shown} is no Caffe tree: it has no {_PROTO}.") from error
    except ValueError as error:
        raise SourceError(f"{shown}: its {_PROTO} cannot be read.", details=str(error)) from error
    return msgspec.structs.replace(schema, layers=dict.fromkeys(registered_types(_sources(root)), ()))


def _sources(root: Path) -> Iterator[str]:
    for folder, below, files in os.walk(root / "src" / "caffe"):
        below[:] = sorted(name for name in below if name != "test")
        for name in sorted(files):
            if Path(name).suffix in _SOURCES:
                try:
                    yield read_plain(Path(folder, name), _LARGEST).decode("utf-8", "replace")
                except OSError:
                    continue  # a link that leads nowhere registers no layer


def _missing(document: Document, paths: tuple[PathUse, ...]) -> Iterator[Finding]:
    """Paths at which nothing lies; Caffe starts them from the current folder."""
    for use in paths:
        there = _exists(Path(use.text))
        if there:
            continue
        beside = as_path(document.name).parent
        near = next((folder for folder in (beside, *beside.absolute().parents[:6]) if _exists(folder / use.text)), None)
        shown = printable(use.text, 200)
        if near is not None and not Path(use.text).is_absolute():
            advice = f"it lies in {printable(str(near), 200)}: start the program there, or write the whole path"
        elif _is_link(Path(use.text)):
            advice = "a link stands there that leads nowhere: make it anew"
        else:
            advice = "make it, or write its whole path: a path starts from the folder in which the program is started"
        yield Finding(
            id="lmdb-path" if use.database else "file-not-there",
            severity=Severity.WARNING,
            title=f"{use.field}: nothing lies at {shown}",
            evidence=(document.evidence(use.start),),
            remedies=(Remedy(text=advice),),
        )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except (OSError, ValueError):
        return False


def worst(report: NetReport) -> Severity:
    """The severity of the worst finding."""
    order = list(Severity)
    return max((one.severity for one in report.findings), key=order.index, default=Severity.OK)
