"""What all detectors of the SSD kind have in common: heads, priors, losses, detections, and the data that they learn from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Optional

from caffeup.net.make.spelling import Bare, Fields, Value, layer, several

VARIANCES = (0.1, 0.1, 0.2, 0.2)
OVERLAPS = (0.1, 0.3, 0.5, 0.7, 0.9)


class Order(NamedTuple):
    """What is to be made."""

    classes: int
    """With the background."""
    size: int
    """Height and width of the images."""
    purpose: str = "deploy"
    """``deploy``, ``train`` or ``test``."""
    batch: int = 1
    merged: bool = False
    """Without the normalisations, as after merge-bn."""
    source: str = ""
    """The LMDB."""
    labels: str = "labelmap.prototxt"

    @property
    def training(self) -> bool:
        """Whether rates of learning matter."""
        return self.purpose == "train"


class Source(NamedTuple):
    """A blob from which boxes are predicted."""

    blob: str
    least: float
    """The smaller size of its boxes, in pixels."""
    most: Optional[float]
    ratios: tuple[float, ...]
    step: Optional[float] = None

    @property
    def priors(self) -> int:
        """Boxes at each place."""
        return 1 + (self.most is not None) + 2 * len(self.ratios)


class Style(NamedTuple):
    """In what one kind differs from another."""

    kernel: int
    filler: str
    mean: tuple[float, ...]
    scale: Optional[float]
    clip: bool
    location_rate: float
    """How fast locations learn, which are alike for all classes."""


def learned(order: Order, rate: float = 1.0, *, biased: bool = True) -> Fields:
    """How fast weights learn; nothing where they do not."""
    if not order.training:
        return []
    weights: Fields = [("lr_mult", rate), ("decay_mult", rate)]
    bias: Fields = [("lr_mult", 2 * rate), ("decay_mult", 0.0)]
    return several("param", [weights, bias] if biased else [weights])


def fillers(kind: str, *, biased: bool = True) -> Fields:
    """What weights begin with."""
    weights: Fields = [("type", kind)]
    bias: Fields = [("type", "constant"), ("value", 0.0)]
    return [("weight_filler", weights), *([("bias_filler", bias)] if biased else [])]


def heads(order: Order, style: Style, sources: Sequence[Source]) -> Iterator[tuple[str, Value]]:
    """Locations, confidences and priors of each source, and each of the three as one blob."""
    for source in sources:
        for what, many, rate in (("loc", 4, style.location_rate), ("conf", order.classes, 1.0)):
            yield from _head(order, style, f"{source.blob}_mbox_{what}", source.blob, source.priors * many, rate)
        name = f"{source.blob}_mbox_priorbox"
        yield layer(name, "PriorBox", [source.blob, "data"], [name], ("prior_box_param", _priors(style, source)))
    for what, axis in (("loc_flat", 1), ("conf_flat", 1), ("priorbox", 2)):
        name = f"mbox_{what.removesuffix('_flat')}"
        bottoms = [f"{source.blob}_mbox_{what}" for source in sources]
        yield layer(name, "Concat", bottoms, [name], ("concat_param", [("axis", axis)]))


def _head(order: Order, style: Style, name: str, bottom: str, many: int, rate: float) -> Iterator[tuple[str, Value]]:
    window: Fields = [("pad", style.kernel // 2)] if style.kernel > 1 else []
    settings: Fields = [("num_output", many), *window, ("kernel_size", style.kernel), *fillers(style.filler)]
    yield layer(name, "Convolution", [bottom], [name], *learned(order, rate), ("convolution_param", settings))
    axes = several("order", (0, 2, 3, 1))
    yield layer(f"{name}_perm", "Permute", [name], [f"{name}_perm"], ("permute_param", axes))
    yield layer(f"{name}_flat", "Flatten", [f"{name}_perm"], [f"{name}_flat"], ("flatten_param", [("axis", 1)]))


def _priors(style: Style, source: Source) -> Fields:
    larger: Fields = [("max_size", source.most)] if source.most is not None else []
    step: Fields = [("step", source.step)] if source.step is not None else []
    return [
        ("min_size", source.least),
        *larger,
        *several("aspect_ratio", source.ratios),
        ("flip", True),
        ("clip", style.clip),
        *several("variance", VARIANCES),
        *step,
        ("offset", 0.5),
    ]


def ending(order: Order) -> Iterator[tuple[str, Value]]:
    """The loss where it learns, and detections where it does not."""
    if order.purpose == "train":
        yield _loss(order)
        return
    shape: Fields = several("dim", (0, -1, order.classes))
    yield layer("mbox_conf_reshape", "Reshape", ["mbox_conf"], ["mbox_conf_reshape"], ("reshape_param", [("shape", shape)]))
    yield layer("mbox_conf_softmax", "Softmax", ["mbox_conf_reshape"], ["mbox_conf_softmax"], ("softmax_param", [("axis", 2)]))
    yield layer("mbox_conf_flatten", "Flatten", ["mbox_conf_softmax"], ["mbox_conf_flatten"], ("flatten_param", [("axis", 1)]))
    test = order.purpose == "test"
    settings: Fields = [
        ("num_classes", order.classes),
        ("share_location", True),
        ("background_label_id", 0),
        ("nms_param", [("nms_threshold", 0.45), ("top_k", 400 if test else 100)]),
        ("code_type", Bare("CENTER_SIZE")),
        ("keep_top_k", 200 if test else 100),
        ("confidence_threshold", 0.01 if test else 0.25),
    ]
    bottoms = ["mbox_loc", "mbox_conf_flatten", "mbox_priorbox"]
    only: tuple[str, Value] = ("include", [("phase", Bare("TEST"))])
    yield layer("detection_out", "DetectionOutput", bottoms, ["detection_out"], only, ("detection_output_param", settings))
    if test:
        judged: Fields = [
            ("num_classes", order.classes),
            ("background_label_id", 0),
            ("overlap_threshold", 0.5),
            ("evaluate_difficult_gt", False),
        ]
        bottoms = ["detection_out", "label"]
        yield layer(
            "detection_eval", "DetectionEvaluate", bottoms, ["detection_eval"], only, ("detection_evaluate_param", judged)
        )


def _loss(order: Order) -> tuple[str, Value]:
    settings: Fields = [
        ("loc_loss_type", Bare("SMOOTH_L1")),
        ("conf_loss_type", Bare("SOFTMAX")),
        ("loc_weight", 1.0),
        ("num_classes", order.classes),
        ("share_location", True),
        ("match_type", Bare("PER_PREDICTION")),
        ("overlap_threshold", 0.5),
        ("use_prior_for_matching", True),
        ("background_label_id", 0),
        ("use_difficult_gt", True),
        ("neg_pos_ratio", 3.0),
        ("neg_overlap", 0.5),
        ("code_type", Bare("CENTER_SIZE")),
        ("ignore_cross_boundary_bbox", False),
        ("mining_type", Bare("MAX_NEGATIVE")),
    ]
    return layer(
        "mbox_loss",
        "MultiBoxLoss",
        ["mbox_loc", "mbox_conf", "mbox_priorbox", "label"],
        ["mbox_loss"],
        ("include", [("phase", Bare("TRAIN"))]),
        *several("propagate_down", (True, True, False, False)),
        ("loss_param", [("normalization", Bare("VALID"))]),
        ("multibox_loss_param", settings),
    )


def beginning(order: Order, style: Style) -> Iterator[tuple[str, Value]]:
    """An input where it is deployed, and a database of images with boxes otherwise."""
    if order.purpose == "deploy":
        yield "input", "data"
        yield "input_shape", several("dim", (order.batch, 3, order.size, order.size))
        return
    train = order.purpose == "train"
    scale: Fields = [("scale", style.scale)] if style.scale is not None else []
    mirror: Fields = [("mirror", True)] if train else []
    images: Fields = [*scale, *mirror, *several("mean_value", style.mean), ("resize_param", _resizing(order))]
    database: Fields = [("source", order.source), ("batch_size", order.batch), ("backend", Bare("LMDB"))]
    samplers = _samplers() if train else several("batch_sampler", [[]])
    yield layer(
        "data",
        "AnnotatedData",
        [],
        ["data", "label"],
        ("include", [("phase", Bare(order.purpose.upper()))]),
        ("transform_param", [*images, *(_changes() if train else [])]),
        ("data_param", database),
        ("annotated_data_param", [*samplers, ("label_map_file", order.labels)]),
    )


def _resizing(order: Order) -> Fields:
    ways = ("LINEAR", "AREA", "NEAREST", "CUBIC", "LANCZOS4") if order.training else ("LINEAR",)
    return [
        ("prob", 1.0),
        ("resize_mode", Bare("WARP")),
        ("height", order.size),
        ("width", order.size),
        *several("interp_mode", map(Bare, ways)),
    ]


def _changes() -> Fields:
    """What images go through, so that no two are alike."""
    colours: Fields = [("brightness_prob", 0.5), ("brightness_delta", 32.0)]
    for what in ("contrast", "saturation"):
        colours += [(f"{what}_prob", 0.5), (f"{what}_lower", 0.5), (f"{what}_upper", 1.5)]
    colours += [("hue_prob", 0.5), ("hue_delta", 18.0), ("random_order_prob", 0.0)]
    return [
        ("emit_constraint", [("emit_type", Bare("CENTER"))]),
        ("distort_param", colours),
        ("expand_param", [("prob", 0.5), ("max_expand_ratio", 4.0)]),
    ]


def _samplers() -> Fields:
    """Pieces of an image that are learned from: the whole, and those that overlap with a box at least or at most so much."""
    piece: Fields = [("min_scale", 0.3), ("max_scale", 1.0), ("min_aspect_ratio", 0.5), ("max_aspect_ratio", 2.0)]
    limits: list[tuple[str, Value]] = [*(("min_jaccard_overlap", least) for least in OVERLAPS), ("max_jaccard_overlap", 1.0)]
    some: list[Value] = [
        [("sampler", piece), ("sample_constraint", [limit]), ("max_sample", 1), ("max_trials", 50)] for limit in limits
    ]
    return several("batch_sampler", [[("max_sample", 1), ("max_trials", 1)], *some])
