"""Nets with their weights: folded, made anew, cut to some classes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Optional

import msgspec

from caffeup.app.net_compare import compare
from caffeup.app.net_files import open_model, require_free, write_pieces
from caffeup.app.nets import read_net_file
from caffeup.app.session import Session
from caffeup.disk import as_path, read_plain
from caffeup.errors import UsageError
from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.net_model import CutReport, MergeReport, Written
from caffeup.net.caffemodel import Model, new_model
from caffeup.net.cut import cut, detector
from caffeup.net.depthwise import states
from caffeup.net.labels import Labels, chosen, from_lines, from_map
from caffeup.net.labels import written as written_labels
from caffeup.net.make.detector import Order
from caffeup.net.make.mobilenet import mobilenet_ssd
from caffeup.net.make.spelling import spelled
from caffeup.net.make.vgg import LEAST, vgg_ssd
from caffeup.net.make.weights import random_weights
from caffeup.net.merge import merge
from caffeup.net.model import LOSSES, Net, as_run, filtered, read_net
from caffeup.net.shapes import infer
from caffeup.net.text import parse, printable
from caffeup.net.wire import Buffer

KINDS = {"mobilenet-ssd": mobilenet_ssd, "vgg-ssd": vgg_ssd}
_SMALLEST, _LARGEST = {"vgg-ssd": LEAST, "mobilenet-ssd": 32}, 4096
MERGED, CUT = "_merged", "_cut"
_LARGEST_LABELS = 8 << 20


def merge_net(name: str, model: str, *, output: str = "", model_output: str = "") -> MergeReport:
    """Fold the normalisations of a net into its weights; nothing is written where there is nothing to fold."""
    net = read_net_file(name)
    with open_model(model) as weights:
        targets = named_beside(name, model, output, model_output, MERGED)
        require_free(*targets)
        _require_of(net, weights)
        done = merge(net, weights)
        if done.folds:
            write_both(targets, done.prototxt, done.model)
    return MergeReport(
        source=name,
        written=tuple(map(str, targets)) if done.folds else (),
        changes=done.changes,
        left=done.left,
        findings=tuple(_training(net)) if done.folds else (),
    )


def _require_of(net: Net, weights: Model) -> None:
    """``UsageError`` where a model and a net have no layer in common."""
    names = {layer.name for layer in net.layers}
    if not any(layer.name in names for layer in weights.layers if layer.blobs):
        raise UsageError(
            f"No layer of {net.document.name} has weights in {weights.file}.",
            advice="Is it the model of this net?",
        )


def compared(report: MergeReport, tree: str, model: str) -> MergeReport:
    """The same report with how far the new net is from the old one."""
    before, after = (report.source, model), (report.written[0], report.written[1])
    return msgspec.structs.replace(report, difference=compare(Session(), tree, before, after))


def named_beside(name: str, model: str, output: str, model_output: str, suffix: str) -> tuple[Path, Path]:
    """Where a net and its model are to be written: as they are named, or beside what they are made of."""
    path, weights = as_path(name), as_path(model)
    if output and not as_path(output).name:
        raise UsageError(f"{printable(output, 400)} is no name of a file.")
    target = as_path(output) if output else path.with_name(f"{path.stem}{suffix}{path.suffix}")
    if model_output:
        return target, as_path(model_output)
    if output:
        return target, target.with_suffix(weights.suffix or ".caffemodel")
    return target, weights.with_name(f"{weights.stem}{suffix}{weights.suffix}")


def write_both(targets: tuple[Path, Path], prototxt: bytes, model: Iterable[Buffer]) -> None:
    """Both files or none."""
    write_pieces(targets[1], model)
    try:
        write_pieces(targets[0], [prototxt])
    except BaseException:
        targets[1].unlink(missing_ok=True)
        raise


def _training(net: Net) -> Iterable[Finding]:
    """What to know where the same file is used for training too."""
    losses = [layer for state in states(net) if state.phase == "TRAIN" for layer in filtered(net, state) if layer.type in LOSSES]
    if losses:
        yield Finding(
            id="merged-train-net",
            severity=Severity.WARNING,
            title="this net is one to train, and without its normalisations it trains differently",
            evidence=(Evidence(where=net.document.name, text=f"{losses[0].name} ({losses[0].type})"),),
            remedies=(Remedy(text="train with the file from before, and fold the model that comes out of it"),),
        )


def ordered(
    classes: int, size: int, *, train: bool, test: bool, merged: bool, batch: Optional[int], data: str, labels: str
) -> Order:
    """An order with what is usual where nothing is said."""
    if train and test:
        raise UsageError("--train and --test exclude each other.")
    purpose = "train" if train else "test" if test else "deploy"
    if purpose == "deploy" and data:
        raise UsageError("--data is for --train and --test: a net to deploy reads no LMDB.")
    usual, source = {"train": (24, "trainval_lmdb"), "test": (8, "test_lmdb"), "deploy": (1, "")}[purpose]
    return Order(
        classes=classes,
        size=size,
        purpose=purpose,
        batch=batch or usual,
        merged=merged,
        source=data or source,
        labels=labels,
    )


def new_net(kind: str, order: Order, *, output: str = "", model: str = "", seed: int = 1) -> tuple[str, Optional[Written]]:
    """The text of a net; with ``output`` or ``model`` written, the model with weights by chance."""
    if kind not in KINDS:
        raise UsageError(f"There is no net {printable(kind)!r} to be made.", advice=f"Give {' or '.join(KINDS)}.")
    least = _SMALLEST[kind]
    if not least <= order.size <= _LARGEST:
        raise UsageError(f"{kind} takes images of {least} to {_LARGEST}, not of {order.size}.")
    text = spelled(KINDS[kind](order))
    if not output and not model:
        return text, None
    net = read_net(parse(text.encode(), output or kind))
    targets = [as_path(one) for one in (output, model) if one]
    require_free(*targets)
    if output:
        write_pieces(as_path(output), [text.encode()])
    if model:
        shapes = infer(as_run(net, net.state("TRAIN" if order.training else "TEST")))
        write_pieces(as_path(model), new_model(net.name, random_weights(shapes, seed)))
    return text, Written(prototxt=output, model=model, about=("the weights are by chance: it detects nothing",) if model else ())


def cut_net(
    name: str, model: str, keep: str, *, labels: str = "", output: str = "", model_output: str = ""
) -> tuple[CutReport, str]:
    """Cut a detector to some of its classes; the report, and which rows are left for a comparison."""
    net = read_net_file(name)
    found = detector(net)
    names = _labels(labels, found.classes) if labels else None
    kept = chosen(keep.split(","), names, found.classes, found.background)
    with open_model(model) as weights:
        targets = named_beside(name, model, output, model_output, CUT)
        label_targets = [_label_target(targets[0], labels)] if labels else []
        require_free(*targets, *label_targets)
        done = cut(net, weights, kept)
        write_both(targets, done.prototxt, done.model)
    for target in label_targets:
        write_pieces(target, [written_labels(names, kept).encode("utf-8", "surrogateescape")] if names else [])
    report = CutReport(
        source=name,
        written=tuple(map(str, (*targets, *label_targets))),
        classes=tuple(names.names[number] if names else str(number) for number in kept),
        changes=done.changes,
        findings=tuple(_old_numbers(net)),
    )
    rows = {blob: {"axis": axis, "keep": keep} for blob, (axis, keep) in done.rows.items()}
    return report, msgspec.json.encode(rows).decode()


def cut_compared(report: CutReport, rows: str, tree: str, model: str) -> CutReport:
    """The same report with how far what is left is from the same classes of the old net."""
    before, after = (report.source, model), (report.written[0], report.written[1])
    return msgspec.structs.replace(report, difference=compare(Session(), tree, before, after, rows))


def _labels(file: str, classes: int) -> Labels:
    """A label map, or lines of names."""
    try:
        data = read_plain(as_path(file), _LARGEST_LABELS)
    except OSError as error:
        raise UsageError(f"{printable(file, 400)} cannot be read: {error.strerror}.") from error
    if re.search(rb"\bitem\s*[{<]", data):
        return from_map(parse(data, file), classes)
    return from_lines(data.decode("utf-8", "surrogateescape").removeprefix("\ufeff"), file, classes)


def _label_target(net: Path, labels: str) -> Path:
    suffix = as_path(labels).suffix if labels else ".prototxt"
    return net.with_name(f"{net.stem}_labels{suffix or '.txt'}")


def _old_numbers(net: Net) -> Iterable[Finding]:
    """Data keep the numbers that they were made with."""
    data = [layer for layer in net.layers if layer.type == "AnnotatedData"]
    if data:
        yield Finding(
            id="lmdb-old-labels",
            severity=Severity.WARNING,
            title="the classes have other numbers now, and the LMDB still has the old ones",
            evidence=(Evidence(where=net.document.name, text=f"{data[0].name} ({data[0].type})"),),
            remedies=(Remedy(text="make the LMDB anew with the new label map before training or testing on it"),),
        )
