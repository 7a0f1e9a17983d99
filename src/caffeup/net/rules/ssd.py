"""Layers of the SSD tree that detect."""

from __future__ import annotations

from caffeup.net.rules.base import Case, Out, Wrong, legacy


def prior_box(case: Case) -> Out:
    """Boxes at each place of a map: their corners, and their variances."""
    case.need(2, 2)
    priors = priors_per_place(case)
    return Out(tops=((1, 2, legacy(case.first, 2) * legacy(case.first, 3) * priors * 4),))


def priors_per_place(case: Case) -> int:
    """Boxes at one place: each size with each ratio, and one more for each larger size."""
    block = case.layer.block.block("prior_box_param")
    small, large = block.numbers("min_size"), block.numbers("max_size")
    if not small:
        raise Wrong("min_size must be given", "min_size")
    if large and len(large) != len(small):
        raise Wrong(f"it has {len(small)} min_size and {len(large)} max_size", "max_size")
    if any(most <= least for least, most in zip(small, large)):
        raise Wrong("max_size must be larger than min_size", "max_size")
    ratios = [1.0]
    for ratio in block.numbers("aspect_ratio"):
        if ratio <= 0:
            raise Wrong("aspect_ratio must be positive", "aspect_ratio")
        if not any(abs(ratio - known) < 1e-6 for known in ratios):
            ratios += [ratio, 1 / ratio] if block.flag("flip", default=True) else [ratio]
    return len(ratios) * len(small) + len(large)


def multibox_loss(case: Case) -> Out:
    """One number from locations, confidences, priors and true boxes."""
    case.need(4, 4)
    check_predictions(case, case.layer.block.block("multibox_loss_param").integer("num_classes"))
    return Out(tops=((),))


def detection_output(case: Case) -> Out:
    """A row of 7 for each detection; one row before the net has run."""
    case.need(3)
    check_predictions(case, case.layer.block.block("detection_output_param").integer("num_classes"))
    return Out(tops=((1, 1, 1, 7),))


def check_predictions(case: Case, classes: int) -> None:
    """Locations and confidences for each prior."""
    name = "multibox_loss_param" if case.layer.type == "MultiBoxLoss" else "detection_output_param"
    if classes <= 0:
        raise Wrong("num_classes must be given", name)
    shared = case.layer.block.block(name).flag("share_location", default=True)
    locations, confidences, priors = case.bottoms[:3]
    many = legacy(priors, 2) // 4
    wanted = many * 4 * (1 if shared else classes)
    if legacy(locations, 1) != wanted:
        raise Wrong(f"{many} priors need {wanted} locations, and {case.layer.bottoms[0]} has {legacy(locations, 1)}", "bottom")
    if legacy(confidences, 1) != many * classes:
        raise Wrong(
            f"{many} priors of {classes} classes need {many * classes} confidences, and "
            f"{case.layer.bottoms[1]} has {legacy(confidences, 1)}",
            "num_classes",
        )


def detection_evaluate(case: Case) -> Out:
    """A row of 5 for each class and each detection."""
    case.need(2, 2)
    block = case.layer.block.block("detection_evaluate_param")
    classes = block.integer("num_classes")
    if classes <= 0:
        raise Wrong("num_classes must be given", "detection_evaluate_param")
    for shape, width in zip(case.bottoms, (7, 8)):
        if (legacy(shape, 0), legacy(shape, 1), legacy(shape, 3)) != (1, 1, width):
            raise Wrong(f"its bottoms are rows of 7 and of 8, and one of them is {shape}", "bottom")
    counted = classes if block.integer("background_label_id") == -1 else classes - 1
    return Out(tops=((1, 1, counted + legacy(case.first, 2), 5),))
