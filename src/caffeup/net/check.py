"""All that can be wrong in a prototxt, found without Caffe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Optional

import msgspec

from caffeup.model.finding import Finding, Remedy, Severity
from caffeup.model.net import NetPhase, NetReport
from caffeup.net import wiring
from caffeup.net.fields import PLACEHOLDER, Checker
from caffeup.net.findings import Findings
from caffeup.net.habits import PathUse, check_deploy, check_depthwise, check_label_map, classes_of, paths
from caffeup.net.model import DATA, INPUTS, Net, State, as_run, filtered, read_net
from caffeup.net.rules.base import Datum, Shape, text
from caffeup.net.schema import LABEL_MAP, NET, SOLVER, Schema
from caffeup.net.shapes import LayerShapes, infer
from caffeup.net.text import Document, Scalar, parse, printable

CLASSES = 21
"""Stands in for the classes of a template: VOC's 20 and the background."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """A report, and the paths in the file, at which only the caller can look."""

    report: NetReport
    paths: tuple[PathUse, ...] = ()
    classes: tuple[int, ...] = ()
    """Numbers of classes that it names: its label maps should have as many."""


def check(
    document: Document,
    known: Schema,
    *,
    schema: Optional[Schema] = None,
    tree: str = "",
    deploy: bool = False,
    given: Optional[Mapping[str, Shape]] = None,
    data: Optional[Mapping[str, Datum]] = None,
) -> Checked:
    """Look at a net, a solver or a label map. ``schema``: that of the tree called ``tree``; else all known trees together."""
    found = Findings(document)
    checker = Checker(found, schema or known, known, tree)
    kind = _kind(document)
    checker.message(document.root, {"net": NET, "solver": SOLVER, "label-map": LABEL_MAP}[kind])
    report = NetReport(source=document.name, kind=kind, checked_against=tree, name=printable(document.root.string("name")))
    if kind == "label-map":
        check_label_map(document.root, found)
    if kind != "net":
        return Checked(report=_done(report, document, found), paths=tuple(_solver_paths(document)))
    net = read_net(document)
    checker.layer_types(net.layers)
    if tree:
        checker.strangers()
    else:
        checker.needs(net.layers)
    if checker.placeholders:
        net = read_net(_filled(document, checker.placeholders))
        _template(checker.placeholders, found)
    shapes = {state: infer(as_run(net, state), phase=state.phase, given=given, data=data) for state in wiring.phases(net)}
    summaries = tuple(_phase(net, state, some, found) for state, some in shapes.items())
    wiring.check_rules(net, found)
    check_depthwise(net, tuple(shapes.values()), found)
    check_deploy(net, found, deploy=deploy)
    report = msgspec.structs.replace(
        report,
        kind="template" if checker.placeholders else "net",
        trees=checker.trees(net.layers),
        phases=summaries,
    )
    used = {one.start: one for state in shapes for one in paths(filtered(net, state))}
    return Checked(
        report=_done(report, document, found),
        paths=tuple(used[start] for start in sorted(used)),
        classes=() if checker.placeholders else classes_of(net.layers),
    )


def _kind(document: Document) -> str:
    root = document.root
    if root.has("layer") or root.has("layers"):
        return "net"
    if root.has("item"):
        return "label-map"
    return "solver" if any(root.has(name) for name in ("base_lr", "net", "train_net", "solver_mode")) else "net"


def _done(report: NetReport, document: Document, found: Findings) -> NetReport:
    return msgspec.structs.replace(report, findings=(*slash_comments(document), *found.all()))


def slash_comments(document: Document) -> list[Finding]:
    """What Caffe rejects and this reader does not: one finding for all of it."""
    if not document.slips:
        return []
    line = document.position(document.slips[0].start)[0]
    return [
        Finding(
            id="prototxt-slash-comment",
            severity=Severity.PROBLEM,
            title=f"comments with // or /* */, which Caffe rejects (line {line})",
            why="In a prototxt a comment begins with #; Caffe reads no further than this line.",
            evidence=tuple(document.evidence(slip.start) for slip in document.slips[:5]),
            remedies=(Remedy(text=f"write # in line {line} and wherever else they stand"),),
        )
    ]


def _phase(net: Net, state: State, shapes: tuple[LayerShapes, ...], found: Findings) -> NetPhase:
    well = wiring.check_blobs(net, state, found)
    wiring.check_inputs(shapes, found)
    if well:
        wiring.check_shapes(shapes, found)
    return _summary(state.phase, shapes, wiring.outputs([one.layer for one in shapes]), layers=len(filtered(net, state)))


def _summary(phase: str, shapes: tuple[LayerShapes, ...], outputs: list[str], *, layers: int) -> NetPhase:
    last = {name: shape for one in shapes for name, shape in zip(one.layer.tops, one.tops)}
    sources = [one for one in shapes if one.layer.type in INPUTS | DATA]
    inputs = [(name, shape) for one in sources for name, shape in zip(one.layer.tops, one.tops)]
    assumed = [f"{one.layer.name}: {one.assumed}" for one in shapes if one.assumed]
    untold = [f"{one.layer.name}: {one.trouble.what}" for one in shapes if one.trouble and not one.trouble.wrong]
    return NetPhase(
        phase=phase,
        layers=layers,
        inputs=tuple(_shaped(name, shape) for name, shape in inputs),
        outputs=tuple(_shaped(name, last.get(name)) for name in outputs),
        assumed=tuple(printable(line, 200) for line in assumed),
        untold=tuple(printable(line, 200) for line in untold),
    )


def _shaped(name: str, shape: Optional[Shape]) -> str:
    return f"{printable(name)} {'?' if shape is None else text(shape)}"


def _filled(document: Document, placeholders: list[Scalar]) -> Document:
    """The template with numbers in it, at the same places."""
    edits = []
    for value in placeholders:
        match = PLACEHOLDER.match(value.text)
        number = str(int(match.group(1)) * CLASSES) if match else ""
        edits.append((value.start, value.end, number.ljust(value.end - value.start).encode()))
    return parse(document.edited(edits), document.name)


def _template(placeholders: list[Scalar], found: Findings) -> None:
    names = ", ".join(sorted({value.text for value in placeholders}))
    for value in placeholders:
        found.add(
            "net-template",
            f"this is a template and no net yet: {names} stand for numbers",
            value.start,
            why=f"cls6x stands for 6 times the number of classes. The rest was checked with {CLASSES} classes.",
            remedy="write the numbers in, as the template's own script does (gen_model.sh CLASSES, the background counted)",
            severity=Severity.WARNING,
        )


def _solver_paths(document: Document) -> list[PathUse]:
    return [
        PathUse(text=field.value.value, start=field.value.start, field=field.name)
        for name in ("net", "train_net", "test_net")
        for field in document.root.all(name)
        if isinstance(field.value, Scalar)
    ]
