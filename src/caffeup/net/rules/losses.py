"""Layers that compare a prediction with a truth."""

from __future__ import annotations

from caffeup.net.rules.base import Case, Out, Wrong, axis_of, count, text


def loss(case: Case) -> Out:
    """A number; a second top is as large as the prediction."""
    case.need(2)
    _same_batch(case)
    return Out(tops=((), case.first)[: len(case.layer.tops)])


def of_pairs(case: Case) -> Out:
    """A number from two blobs with equally many elements an item."""
    case.need(2, 3)
    _same_batch(case)
    if count(case.first[1:]) != count(case.bottoms[1][1:]):
        raise Wrong(f"its bottoms differ in size: {text(case.first)} and {text(case.bottoms[1])}", "bottom")
    return Out(tops=((),))


def contrastive(case: Case) -> Out:
    """A number from two blobs and whether they are alike."""
    case.need(3, 3)
    if case.first[1:2] != case.bottoms[1][1:2]:
        raise Wrong(f"its bottoms differ in channels: {text(case.first)} and {text(case.bottoms[1])}", "bottom")
    return Out(tops=((),))


def softmax_loss(case: Case) -> Out:
    """A number; as many labels as predictions are needed."""
    case.need(2, 3)
    _same_batch(case)
    _check_labels(case, case.layer.block.block("softmax_param").integer("axis", 1))
    return Out(tops=((), case.first)[: len(case.layer.tops)])


def accuracy(case: Case) -> Out:
    """A number, and one for each class."""
    case.need(2, 2)
    block = case.layer.block.block("accuracy_param")
    axis = _check_labels(case, block.integer("axis", 1))
    best = block.integer("top_k", 1)
    if count(case.bottoms[1]) and best > count(case.first) // count(case.bottoms[1]):
        raise Wrong(f"top_k is {best}, with {case.first[axis]} classes", "top_k")
    return Out(tops=((), (case.first[axis],))[: len(case.layer.tops)])


def _check_labels(case: Case, axis: int) -> int:
    """One label for each prediction."""
    where = axis_of(case.first, axis)
    wanted, have = count(case.first[:where]) * count(case.first[where + 1 :]), count(case.bottoms[1])
    if wanted != have:
        raise Wrong(
            f"{case.layer.bottoms[0]} {text(case.first)} needs {wanted} labels, and {case.layer.bottoms[1]} has {have}", "bottom"
        )
    return where


def _same_batch(case: Case) -> None:
    if case.first[:1] != case.bottoms[1][:1]:
        raise Wrong(
            f"its bottoms differ in batch: {case.layer.bottoms[0]} {text(case.first)} and "
            f"{case.layer.bottoms[1]} {text(case.bottoms[1])}",
            "bottom",
        )
