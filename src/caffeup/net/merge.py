"""Normalisations folded into the weights of the layer before them: prototxt and caffemodel for the same outputs."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Optional

import msgspec

from caffeup.model.net import NetChange
from caffeup.net.affine import Affine, identity, normalization, rows_scaled
from caffeup.net.caffemodel import Blob, Model, Weights, as_blob, layer_with, rewritten, without
from caffeup.net.chains import PARAMS, Chain, find_chains
from caffeup.net.marks import Edit
from caffeup.net.model import Layer, Net
from caffeup.net.text import Block, Document, Scalar, quoted
from caffeup.net.wire import Buffer, floats, records

_BIAS_TERM = 2
"""Number of ``bias_term``, in both messages that have it."""
_EPS = 1e-5


class Unfit(Exception):  # an answer and no program error
    """Why weights cannot be folded."""


class Fold(msgspec.Struct, frozen=True, kw_only=True):
    """A chain with the weights that it changes."""

    chain: Chain
    weights: Weights
    biased: bool
    """Whether it has a bias already."""
    affine: Affine


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be written."""

    prototxt: bytes
    model: Iterator[Buffer]
    changes: tuple[NetChange, ...]
    left: tuple[NetChange, ...]
    folds: tuple[Fold, ...]


def merge(net: Net, model: Model) -> Merged:
    """Fold what can be folded."""
    found = find_chains(net)
    folds = []
    left = [_note(net, layer, why) for layer, why in found.left]
    for chain in found.chains:
        try:
            folds.append(_fold(chain, model))
        except Unfit as error:
            left += [_note(net, layer, str(error)) for layer in chain.steps]
    changes = tuple(
        _note(net, step, f"{step.type} folded into {fold.chain.root.name}") for fold in folds for step in fold.chain.steps
    )
    return Merged(
        prototxt=net.document.edited(edit for fold in folds for edit in _edits(net.document, fold)),
        model=rewritten(model, dict(_changed(model, folds))),
        changes=tuple(sorted(changes, key=lambda change: change.line)),
        left=tuple(sorted(left, key=lambda change: change.line)),
        folds=tuple(folds),
    )


def _note(net: Net, layer: Layer, what: str) -> NetChange:
    return NetChange(line=net.document.position(layer.start)[0], layer=layer.name, what=what)


def _fold(chain: Chain, model: Model) -> Fold:
    root = chain.root
    settings = root.block.block(PARAMS[root.type])
    weights = model.weights(root.name)
    if weights is None:
        raise Unfit(f"the model has no weights for {root.name}")
    biased = settings.flag("bias_term", default=True)
    if len(weights.blobs) != 1 + biased:
        raise Unfit(f"{root.name} has {len(weights.blobs)} blobs in the model, and {1 + biased} by the prototxt")
    channels = _channels(root, settings, weights)
    affine = identity(channels)
    for step in chain.steps:
        affine = affine.then(_affine(step, model, channels))
    return Fold(chain=chain, weights=weights, biased=biased, affine=affine)


def _channels(root: Layer, settings: Block, weights: Weights) -> int:
    """Channels that it makes, by its weights and by its settings."""
    kernel = weights.blobs[0]
    bias = weights.blobs[1].size if len(weights.blobs) > 1 else None
    group = settings.integer("group", 1)
    channels = settings.integer("num_output") or (
        _deconvolved(kernel, group) if root.type == "Deconvolution" else kernel.shape[0]
    )
    if channels <= 0 or not kernel.size or kernel.size % channels or bias not in (None, channels) or channels % max(group, 1):
        raise Unfit(f"the shapes of {root.name} in the model do not fit its num_output, {channels}")
    if root.type == "Deconvolution" and (kernel.shape[0] % group or kernel.size % (kernel.shape[0] * (channels // group))):
        raise Unfit(f"the shapes of {root.name} in the model do not fit its {group} groups")
    for blob in weights.blobs:
        _stored(blob, root.name)
    return channels


def _deconvolved(kernel: Blob, group: int) -> int:
    return kernel.shape[1] * group if len(kernel.shape) > 1 else 0


def _stored(blob: Blob, name: str) -> None:
    """``Unfit`` where the numbers of a blob are not all there."""
    if not blob.code:
        raise Unfit(f"the numbers of {name} are in NVIDIA's raw form")
    have = sum(end - start for start, end in blob.pieces) // floats(blob.code).itemsize
    if have != blob.size:
        raise Unfit(f"a blob of {name} has {have} numbers for {blob.size}")


def _affine(step: Layer, model: Model, channels: int) -> Affine:
    """What a layer does, by its weights."""
    weights = model.weights(step.name)
    if weights is None:
        raise Unfit(f"the model has no weights for {step.name}")
    for blob in weights.blobs:
        _stored(blob, step.name)
    blobs = [model.values(blob) for blob in weights.blobs]
    try:
        return _KINDS[step.type](step, blobs, channels)
    except ValueError as error:
        raise Unfit(f"{step.name} cannot be folded: {error}") from error


def _batch_norm(step: Layer, blobs: Sequence[array[float]], channels: int) -> Affine:
    settings = step.block.block("batch_norm_param")
    _check(blobs, channels, (0, 1, 3, 4) if len(blobs) == 5 else (0, 1))
    if len(blobs) not in (3, 5) or len(blobs[2]) != 1:
        raise ValueError(f"it has {len(blobs)} blobs in the model")
    eps = settings.number("eps", _EPS)
    done = normalization(blobs[0], blobs[1], blobs[2][0] if len(blobs) == 3 else 1.0, eps)
    if len(blobs) == 5 and settings.flag("scale_bias"):
        done = done.then(Affine(tuple(blobs[3]), tuple(blobs[4])))
    return done


def _bn(step: Layer, blobs: Sequence[array[float]], channels: int) -> Affine:
    """SegNet's layer has a factor and a summand; the one of the temporal segment networks mean and variance behind them."""
    settings = step.block.block("bn_param")
    _check(blobs, channels, range(len(blobs)))
    if len(blobs) == 2:
        if settings.string("bn_mode") not in {"INFERENCE", "1"}:
            raise ValueError("it normalises by what the batch itself holds, as its bn_mode is not INFERENCE")
        return Affine(tuple(blobs[0]), tuple(blobs[1]))
    if len(blobs) != 4:
        raise ValueError(f"it has {len(blobs)} blobs in the model")
    done = normalization(blobs[2], blobs[3], 1.0, settings.number("eps", _EPS))
    return done.then(Affine(tuple(blobs[0]), tuple(blobs[1])))


def _scale(step: Layer, blobs: Sequence[array[float]], channels: int) -> Affine:
    biased = step.block.block("scale_param").flag("bias_term")
    _check(blobs, channels, range(len(blobs)))
    if len(blobs) != 1 + biased:
        raise ValueError(f"it has {len(blobs)} blobs in the model, and {1 + biased} by the prototxt")
    return Affine(tuple(blobs[0]), tuple(blobs[1]) if biased else (0.0,) * channels)


def _bias(_step: Layer, blobs: Sequence[array[float]], channels: int) -> Affine:
    _check(blobs, channels, range(len(blobs)))
    if len(blobs) != 1:
        raise ValueError(f"it has {len(blobs)} blobs in the model")
    return Affine((1.0,) * channels, tuple(blobs[0]))


_KINDS = {"BN": _bn, "BatchNorm": _batch_norm, "Bias": _bias, "Scale": _scale}


def _check(blobs: Sequence[array[float]], channels: int, which: Iterable[int]) -> None:
    for number in which:
        if number >= len(blobs) or len(blobs[number]) != channels:
            have = len(blobs[number]) if number < len(blobs) else 0
            raise ValueError(f"it has {have} numbers in the model, for {channels} channels")


def _changed(model: Model, folds: Iterable[Fold]) -> Iterator[tuple[int, Optional[Iterator[Buffer]]]]:
    """Layers of the model that are others, or go."""
    for fold in folds:
        yield fold.weights.start, _layer(model, fold)
        gone = {step.name for step in fold.chain.steps}
        yield from ((layer.start, None) for layer in model.layers if layer.name in gone)


def _layer(model: Model, fold: Fold) -> Iterator[Buffer]:
    """The layer with its new weights; made when it is written, so that only one is in memory."""
    weights, root = fold.weights, fold.chain.root
    kernel, values = weights.blobs[0], model.values(weights.blobs[0])
    bias = model.values(weights.blobs[1]) if fold.biased else floats(kernel.code, [0.0] * len(fold.affine.factor))
    new_bias = floats(
        kernel.code, [value * factor + added for value, factor, added in zip(bias, fold.affine.factor, fold.affine.summand)]
    )
    number = weights.numbers.blobs
    blobs = (
        as_blob(kernel.shape, _folded(root, kernel.shape, values, fold.affine.factor), number=number),
        as_blob(weights.blobs[1].shape if fold.biased else (len(new_bias),), new_bias, number=number),
    )
    settings = {
        field.number: without(model.data, field.body, field.end, _BIAS_TERM)
        for field in records(model.data, weights.start, weights.end)
        if field.number in (weights.numbers.convolution, weights.numbers.product)
    }
    yield from layer_with(model, weights, blobs, tops={root.tops[0]: fold.chain.top}, replaced=settings)


def _folded(root: Layer, shape: tuple[int, ...], values: array[float], factors: tuple[float, ...]) -> array[float]:
    """Weights with each output channel multiplied by its factor."""
    settings = root.block.block(PARAMS[root.type])
    if root.type == "InnerProduct" and settings.flag("transpose"):
        return rows_scaled(values, factors, len(values) // len(factors))
    if root.type != "Deconvolution":
        return rows_scaled(values, factors)
    group = settings.integer("group", 1)
    result = floats(values.typecode)
    part, many = len(values) // group, len(factors) // group
    for number in range(group):
        some = values[number * part : (number + 1) * part]
        result.extend(rows_scaled(some, factors[number * many : (number + 1) * many], shape[0] // group))
    return result


def _edits(document: Document, fold: Fold) -> Iterator[Edit]:
    """The prototxt: the folded layers go, the layer before them has a bias and makes the last one's top."""
    root = fold.chain.root
    for step in fold.chain.steps:
        yield removal(document, step.start, step.block.end)
    term = root.block.block(PARAMS[root.type]).scalar("bias_term")
    if term is not None and not fold.biased:
        yield term.start, term.end, b"true"
    top = root.block.scalar("top")
    if isinstance(top, Scalar) and root.tops[0] != fold.chain.top:
        yield top.start, top.end, quoted(fold.chain.top).encode("utf-8", "surrogateescape")


def removal(document: Document, start: int, end: int) -> Edit:
    """An edit that takes out a piece, and its lines where nothing else stands on them."""
    line, _ = document.line(start)
    _, rest = document.line(end)
    if document.text[line:start].strip() or document.text[end:rest].strip():
        return start, end, b""
    newline = document.text.find("\n", rest)
    return line, newline + 1 if newline >= 0 else len(document.text), b""
