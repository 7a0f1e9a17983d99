"""Mistakes that Caffe does not refuse at once: what makes a net slow, or is meant for another use."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from caffeup.model.finding import Severity
from caffeup.net.depthwise import grouped
from caffeup.net.findings import Findings
from caffeup.net.model import DATA, LOSSES, Layer, Net, filtered
from caffeup.net.shapes import LayerShapes
from caffeup.net.text import Block, Scalar, printable

_DEPLOY = re.compile(r"(?:\A|[/_.-])deploy", re.IGNORECASE)
_PATHS = frozenset({"source", "mean_file", "label_map_file", "name_size_file", "video_file", "root_folder"})


def check_depthwise(net: Net, shapes: Sequence[tuple[LayerShapes, ...]], found: Findings) -> None:
    """Depthwise convolutions that will not be computed by the depthwise layer; ``shapes``: those of each phase."""
    blind = any(one.layer.type in DATA and one.trouble for some in shapes for one in some)
    convert = (f"caffeup net convert {shlex.quote(net.document.name)}",)
    for one in grouped(net, inferred=None if blind else shapes):
        if one.because:
            continue
        field = one.layer.block.block("convolution_param").field("engine")
        engine = field.value.value if field and isinstance(field.value, Scalar) else "DEFAULT"
        if field and engine in {"CUDNN", "2"}:
            found.add(
                "cudnn-handles",
                "depthwise convolutions are told to run through cuDNN, group by group",
                field.start,
                why="Caffe's cuDNN layer makes three handles and streams per group: MobileNet-SSD has 4960 groups.",
                remedy="make them depthwise layers",
                commands=convert,
                severity=Severity.WARNING,
            )
        elif field and engine in {"CAFFE", "1"}:
            found.add(
                "depthwise-engine",
                "engine: CAFFE keeps depthwise convolutions from the depthwise layer",
                field.start,
                why="With it they are computed one channel after another, also in a tree that caffeup built.",
                remedy="make them depthwise layers, without the engine line",
                commands=convert,
                severity=Severity.WARNING,
            )
        else:
            found.add(
                "depthwise-as-groups",
                "depthwise convolutions are written as Convolution with groups",
                one.layer.start,
                why="A tree that caffeup built sends them to the depthwise layer; others compute one channel after another.",
                remedy="for other trees with a depthwise layer, name it",
                commands=convert,
                severity=Severity.NOTE,
            )


def check_deploy(net: Net, found: Findings, *, deploy: bool) -> None:
    """A net for training where one to deploy is meant."""
    if not deploy and not _DEPLOY.search(net.document.name.rpartition("/")[2]):
        return
    layers = filtered(net, net.state("TEST"))
    wrong = [layer for layer in layers if layer.type in DATA or layer.type in LOSSES or layer.type == "Accuracy"]
    why = "A net to deploy is fed by the program: it has an input (input: or a layer of type Input) and no labels."
    for layer in wrong:
        found.add(
            "train-net-as-deploy",
            "this net is for training or testing, and not to deploy: it has data or loss layers",
            layer.start,
            why=why,
            remedy="take the deploy file of the net, or put an Input in the place of the data and drop the losses",
        )
    if not wrong and not net.inputs and not any(not layer.bottoms and layer.tops for layer in layers):
        found.add(
            "train-net-as-deploy",
            "this net has no input in the phase TEST",
            net.layers[0].start,
            why=why,
            remedy="take the deploy file of the net, or put an Input before the first layer",
        )


class PathUse(msgspec.Struct, frozen=True, kw_only=True):
    """A path that a file names."""

    text: str
    start: int
    field: str
    database: bool = False
    """Whether it is that of an LMDB or LevelDB, a folder."""


def paths(layers: tuple[Layer, ...]) -> Iterator[PathUse]:
    """Paths of files that must be there when the net is set up."""
    for layer in layers:
        waiting = [layer.block]
        while waiting:
            for field in waiting.pop().fields:
                if isinstance(field.value, Block):
                    waiting.append(field.value)
                elif field.name in _PATHS and field.value.kind == "string" and field.value.value:
                    database = field.name == "source" and layer.type in {"AnnotatedData", "Data"}
                    yield PathUse(text=field.value.value, start=field.value.start, field=field.name, database=database)


def check_label_map(root: Block, found: Findings) -> None:
    """Labels that are not 0, 1, 2 …: their ground truth is never met, and the loss stays 0."""
    labels = [item.integer("label", -1) for item in root.blocks("item")]
    for number, item in enumerate(root.blocks("item")):
        if sorted(labels) != list(range(len(labels))) and item.integer("label", -1) != number:
            found.add(
                "label-map-gaps",
                f"the labels are not the numbers 0 to {len(labels) - 1}, each once",
                item.start,
                why=f"{printable(item.string('name'))} has {item.integer('label', -1)}; the background is 0.",
                remedy="number them anew, and make the data base anew",
            )
            return


def check_classes(root: Block, classes: tuple[int, ...], found: Findings) -> None:
    """A label map with more or fewer items than the net has classes."""
    items = root.all("item")
    if items and classes and len(items) not in classes:
        found.add(
            "ssd-class-count",
            f"the label map has {len(items)} items, and the net {' and '.join(map(str, classes))} classes",
            items[-1].start,
            why="Both count the background, which has the label 0.",
            remedy="take the label map of the net's data, or change num_classes and the conf layers of the net",
        )


def classes_of(layers: Iterable[Layer]) -> tuple[int, ...]:
    """The numbers of classes that a detector's layers name."""
    names = ("multibox_loss_param", "detection_output_param", "detection_evaluate_param")
    found = {layer.block.block(name).integer("num_classes") for layer in layers for name in names if layer.block.has(name)}
    return tuple(sorted(found - {0}))
