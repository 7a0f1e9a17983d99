"""The net that a prototxt describes, and the net that Caffe makes of it for a phase."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn, Optional

import msgspec

from caffeup.errors import UsageError
from caffeup.model.finding import Finding, Remedy, Severity
from caffeup.net.text import Block, Document, Field

V1_TYPES = {
    "ABSVAL": "AbsVal",
    "ACCURACY": "Accuracy",
    "ARGMAX": "ArgMax",
    "BNLL": "BNLL",
    "CONCAT": "Concat",
    "CONTRASTIVE_LOSS": "ContrastiveLoss",
    "CONVOLUTION": "Convolution",
    "DATA": "Data",
    "DECONVOLUTION": "Deconvolution",
    "DROPOUT": "Dropout",
    "DUMMY_DATA": "DummyData",
    "ELTWISE": "Eltwise",
    "EUCLIDEAN_LOSS": "EuclideanLoss",
    "EXP": "Exp",
    "FLATTEN": "Flatten",
    "HDF5_DATA": "HDF5Data",
    "HDF5_OUTPUT": "HDF5Output",
    "HINGE_LOSS": "HingeLoss",
    "IM2COL": "Im2col",
    "IMAGE_DATA": "ImageData",
    "INFOGAIN_LOSS": "InfogainLoss",
    "INNER_PRODUCT": "InnerProduct",
    "LRN": "LRN",
    "MEMORY_DATA": "MemoryData",
    "MULTINOMIAL_LOGISTIC_LOSS": "MultinomialLogisticLoss",
    "MVN": "MVN",
    "POOLING": "Pooling",
    "POWER": "Power",
    "RELU": "ReLU",
    "SIGMOID": "Sigmoid",
    "SIGMOID_CROSS_ENTROPY_LOSS": "SigmoidCrossEntropyLoss",
    "SILENCE": "Silence",
    "SLICE": "Slice",
    "SOFTMAX": "Softmax",
    "SOFTMAX_LOSS": "SoftmaxWithLoss",
    "SPLIT": "Split",
    "TANH": "TanH",
    "THRESHOLD": "Threshold",
    "WINDOW_DATA": "WindowData",
}
"""What Caffe makes of the types of ``layers { }``."""
LOSSES = frozenset(
    {
        "ContrastiveLoss",
        "EuclideanLoss",
        "HingeLoss",
        "InfogainLoss",
        "MultiBoxLoss",
        "MultinomialLogisticLoss",
        "SigmoidCrossEntropyLoss",
        "SmoothL1Loss",
        "SoftmaxWithLoss",
    }
)
"""Layers whose first top counts as a loss of weight 1, and is made by Caffe where the prototxt names none."""
INPUTS = frozenset({"Input", "DummyData", "MemoryData"})
"""Sources of blobs whose shape stands in the prototxt."""
DATA = frozenset({"AnnotatedData", "Data", "HDF5Data", "ImageData", "VideoData", "WindowData"})
"""Sources of blobs whose shape stands, at least in part, in the data."""


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """One layer."""

    name: str
    type: str
    """As the layer factory knows it, also of a V1 layer; empty where the prototxt names none."""
    bottoms: tuple[str, ...] = ()
    tops: tuple[str, ...] = ()
    loss_weights: tuple[float, ...] = ()
    """One a top, as the prototxt has them."""
    block: Block
    """Its message; an empty one of a layer that Caffe adds."""
    start: int
    """Where it begins in the file."""
    v1: bool = False
    added: bool = False
    """Whether Caffe adds it: the layer of the inputs, a split."""
    shapes: tuple[tuple[int, ...], ...] = ()
    """Of a layer of inputs that Caffe adds: those that the net's own fields give."""

    def loss_weight(self, top: int) -> float:
        """What the top counts in the objective."""
        if self.loss_weights:
            return self.loss_weights[top] if top < len(self.loss_weights) else 0.0
        return 1.0 if top == 0 and self.type in LOSSES else 0.0


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What decides which layers a net has (Caffe's NetState)."""

    phase: str = "TEST"
    level: int = 0
    stages: tuple[str, ...] = ()


class Net(msgspec.Struct, frozen=True, kw_only=True):
    """A net as the prototxt has it: all layers, of all phases."""

    name: str
    document: Document
    layers: tuple[Layer, ...]
    inputs: tuple[str, ...] = ()
    input_shapes: tuple[tuple[int, ...], ...] = ()
    """Of ``input_shape`` or ``input_dim``; fewer than inputs where the prototxt forgot some."""
    v1: bool = False
    level: int = 0
    stages: tuple[str, ...] = ()
    """Of its own ``state { }``."""

    def state(self, phase: str = "TEST", level: Optional[int] = None, stages: Sequence[str] = ()) -> State:
        """The state for a phase, with what the file says itself."""
        return State(phase=phase, level=self.level if level is None else level, stages=(*self.stages, *stages))


def read_net(document: Document) -> Net:
    """The net of a prototxt; ``UsageError`` where it holds something else, or layers in a form that no tool here reads."""
    root = document.root
    new, old = root.all("layer"), root.all("layers")
    if not new and not old:
        _refuse(document, *_other_content(root))
    if new and old:
        what = "it has layer and layers side by side, which Caffe refuses"
        _refuse(document, "layers-of-two-ages", what, "write all of them as layer", place=max(new[0].start, old[0].start))
    for field in old:
        if isinstance(field.value, Block) and field.value.has("layer"):
            what = "its layers are in the oldest form (layers { layer { … } }, of 2013), which is not read here"
            remedy = Remedy(text="a tree's own tool rewrites it", commands=("build/tools/upgrade_net_proto_text OLD NEW",))
            _refuse(document, "layers-of-2013", what, "", place=field.start, remedy=remedy)
    state = root.block("state")
    return Net(
        name=root.string("name"),
        document=document,
        layers=tuple(_layer(field) for field in new or old if isinstance(field.value, Block)),
        inputs=tuple(root.strings("input")),
        input_shapes=_input_shapes(root),
        v1=bool(old),
        level=state.integer("level"),
        stages=tuple(state.strings("stage")),
    )


def _layer(field: Field) -> Layer:
    block = field.value
    assert isinstance(block, Block)  # noqa: S101  # what the caller has looked at
    v1 = field.name == "layers"
    kind = block.string("type")
    return Layer(
        name=block.string("name"),
        type=V1_TYPES.get(kind, kind) if v1 else kind,
        bottoms=tuple(block.strings("bottom")),
        tops=tuple(block.strings("top")),
        loss_weights=tuple(block.numbers("loss_weight")),
        block=block,
        start=field.start,
        v1=v1,
    )


def _input_shapes(root: Block) -> tuple[tuple[int, ...], ...]:
    shapes = root.blocks("input_shape")
    if shapes:
        return tuple(tuple(shape.integers("dim")) for shape in shapes)
    dims = root.integers("input_dim")
    return tuple(tuple(dims[at : at + 4]) for at in range(0, len(dims) - 3, 4))


def _other_content(root: Block) -> tuple[str, str, str]:
    if root.has("base_lr") or root.has("net") or root.has("train_net"):
        return "solver-as-net", "it is a solver and no net", "give the net that its line net: or train_net: names"
    if root.has("item"):
        return "label-map-as-net", "it is a label map and no net", "give a net"
    return "no-layers", "there is no layer in it", "a net has blocks that begin with layer {"


def _refuse(
    document: Document, kind: str, what: str, advice: str, *, place: int = 0, remedy: Optional[Remedy] = None
) -> NoReturn:
    finding = Finding(
        id=kind,
        severity=Severity.PROBLEM,
        title=what,
        evidence=(document.evidence(place),),
        remedies=(remedy or Remedy(text=advice),),
    )
    raise UsageError(f"{document.name} is no net that can be read.", findings=(finding,))


def filtered(net: Net, state: State) -> tuple[Layer, ...]:
    """The layers that a net has in a state: Caffe's rules for ``include`` and ``exclude``."""
    return tuple(layer for layer in net.layers if _included(layer.block, state))


def _included(block: Block, state: State) -> bool:
    include = block.blocks("include")
    if include:
        return any(meets(rule, state) for rule in include)
    return not any(meets(rule, state) for rule in block.blocks("exclude"))


def meets(rule: Block, state: State) -> bool:
    """Whether a state meets a rule; an empty rule is met by all."""
    return (
        rule.string("phase", state.phase) in {state.phase, "1" if state.phase == "TEST" else "0"}
        and state.level >= rule.integer("min_level", state.level)
        and state.level <= rule.integer("max_level", state.level)
        and all(stage in state.stages for stage in rule.strings("stage"))
        and not any(stage in state.stages for stage in rule.strings("not_stage"))
    )


def as_run(net: Net, state: State) -> tuple[Layer, ...]:
    """The layers that Caffe runs: filtered, the inputs as a layer, automatic tops and splits added."""
    layers = [*_inputs_as_layer(net), *(_with_top(layer) for layer in filtered(net, state))]
    return with_splits(layers)


def _inputs_as_layer(net: Net) -> tuple[Layer, ...]:
    if not net.inputs:
        return ()
    field = net.document.root.all("input")[0]
    return (
        Layer(
            name="input",
            type="Input",
            tops=net.inputs,
            shapes=net.input_shapes,
            block=Block(field.start),
            start=field.start,
            added=True,
        ),
    )


def _with_top(layer: Layer) -> Layer:
    if layer.tops or layer.type not in LOSSES:
        return layer
    return msgspec.structs.replace(layer, tops=("(automatic)",))


def with_splits(layers: Iterable[Layer]) -> tuple[Layer, ...]:
    """A split behind each top that several layers (or a layer and the objective) read, named as Caffe names them."""
    layers = list(layers)
    makers, readers = _readers(layers)
    result: list[Layer] = []
    given: dict[tuple[int, int], int] = {}
    for number, layer in enumerate(layers):
        bottoms = []
        for name, maker in zip(layer.bottoms, makers[number]):
            if maker is None or readers.get(maker, 0) < 2:
                bottoms.append(name)
                continue
            bottoms.append(f"{_split_name(layers[maker[0]], name, maker[1])}_{given.get(maker, 0)}")
            given[maker] = given.get(maker, 0) + 1
        result.append(msgspec.structs.replace(layer, bottoms=tuple(bottoms)) if layer.bottoms else layer)
        for index, top in enumerate(layer.tops):
            many = readers.get((number, index), 0)
            if many > 1:
                result.append(_split(layer, top, index, many))
                given[number, index] = int(any(layer.loss_weights[index : index + 1]))  # the objective reads the first
    return tuple(result)


Maker = tuple[int, int]
"""A top: the number of its layer, and its number among that layer's tops."""


def _readers(layers: Sequence[Layer]) -> tuple[list[list[Optional[Maker]]], dict[Maker, int]]:
    """Who makes each bottom of each layer, and how many read each top."""
    makers: list[list[Optional[Maker]]] = []
    readers: dict[Maker, int] = {}
    last: dict[str, Maker] = {}
    for number, layer in enumerate(layers):
        makers.append([last.get(bottom) for bottom in layer.bottoms])
        for maker in makers[-1]:
            if maker is not None:
                readers[maker] = readers.get(maker, 0) + 1
        last.update((top, (number, index)) for index, top in enumerate(layer.tops))
        for index in range(min(len(layer.tops), len(layer.loss_weights))):
            if layer.loss_weights[index]:
                readers[number, index] = readers.get((number, index), 0) + 1
    return makers, readers


def _split_name(layer: Layer, top: str, index: int) -> str:
    return f"{top}_{layer.name}_{index}_split"


def _split(layer: Layer, top: str, index: int, many: int) -> Layer:
    name = _split_name(layer, top, index)
    weight = layer.loss_weights[index] if index < len(layer.loss_weights) else 0.0
    return Layer(
        name=name,
        type="Split",
        bottoms=(top,),
        tops=tuple(f"{name}_{number}" for number in range(many)),
        loss_weights=(weight, *[0.0] * (many - 1)) if weight else (),
        block=Block(layer.start),
        start=layer.start,
        added=True,
    )
