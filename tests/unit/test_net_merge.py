"""Normalisations folded into weights: the same numbers come out, everything else stays, and what cannot go says why."""

from __future__ import annotations

import random
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path

import pytest

from caffeup.app.net_models import merge_net
from caffeup.errors import UsageError
from caffeup.net.affine import rows_scaled
from caffeup.net.caffemodel import Model, new_model, read_model
from caffeup.net.merge import Merged, merge
from caffeup.net.model import read_net
from caffeup.net.text import parse

INPUT = 'input: "data"\ninput_shape { dim: 1 dim: 4 dim: 1 dim: 1 }\n'
Blobs = Sequence[tuple[tuple[int, ...], list[float]]]


def model(**layers: Blobs) -> Model:
    made = new_model(
        "m", [(name, "X", [(shape, array("f", values)) for shape, values in blobs]) for name, blobs in layers.items()]
    )
    return read_model(b"".join(bytes(piece) for piece in made), "m")


def chance(*shape: int, low: float = -1.0, high: float = 1.0, seed: int = 0) -> tuple[tuple[int, ...], list[float]]:
    numbers = random.Random(seed + sum(shape))  # noqa: S311  # no secret
    many = 1
    for size in shape:
        many *= size
    return shape, [numbers.uniform(low, high) for _ in range(many)]


def normal(channels: int) -> Blobs:
    return [chance(channels, seed=1), chance(channels, low=0.5, high=4, seed=2), ((1,), [2.0])]


def layer(name: str, kind: str, bottom: str, top: str, more: str = "") -> str:
    return f'layer {{\n  name: "{name}"\n  type: "{kind}"\n  bottom: "{bottom}"\n  top: "{top}"\n{more}}}\n'


def merged(text: str, weights: Model) -> Merged:
    return merge(read_net(parse((INPUT + text).encode(), "net.prototxt")), weights)


def again(result: Merged) -> Model:
    return read_model(b"".join(bytes(piece) for piece in result.model), "m")


def numbers(weights: Model, name: str) -> list[list[float]]:
    found = weights.weights(name)
    assert found is not None
    return [list(weights.values(blob)) for blob in found.blobs]


def why(result: Merged, name: str) -> str:
    (found,) = (change.what for change in result.left if change.layer == name)
    return found


def normalised(values: list[float], blobs: Blobs, eps: float = 1e-5) -> list[float]:
    mean, variance, factor = (blob[1] for blob in blobs)
    scale = 0 if factor[0] == 0 else 1 / factor[0]
    return [(value - m * scale) / (v * scale + eps) ** 0.5 for value, m, v in zip(values, mean, variance)]


def scaled(values: list[float], blobs: Blobs) -> list[float]:
    added = blobs[1][1] if len(blobs) > 1 else [0.0] * len(values)
    return [value * factor + summand for value, factor, summand in zip(values, blobs[0][1], added)]


X = [0.5, -1.5, 2.0, 0.25]


def product(weights: list[float], bias: list[float], outputs: int, x: list[float]) -> list[float]:
    """A convolution of one pixel."""
    row = len(weights) // outputs
    return [sum(w * v for w, v in zip(weights[o * row : (o + 1) * row], x)) + bias[o] for o in range(outputs)]


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("kind", ["Convolution", "InnerProduct"])
def test_the_same_numbers_come_out(kind: str, biased: bool) -> None:
    settings = "convolution_param" if kind == "Convolution" else "inner_product_param"
    kernel = " kernel_size: 1" if kind == "Convolution" else ""
    term = "" if biased else " bias_term: false"
    text = layer("c", kind, "data", "c", f"  {settings} {{ num_output: 3{kernel}{term} }}\n")
    text += layer("c/bn", "BatchNorm", "c", "c", "  batch_norm_param { eps: 0.01 }\n")
    text += layer("c/scale", "Scale", "c", "c", "  scale_param { bias_term: true }\n") + layer("r", "ReLU", "c", "c")
    shape = (3, 4, 1, 1) if kind == "Convolution" else (3, 4)
    weights, bias = chance(*shape), chance(3, seed=5)
    bn, scale = normal(3), [chance(3, seed=6), chance(3, seed=7)]
    result = merged(text, model(c=[weights, bias] if biased else [weights], **{"c/bn": bn, "c/scale": scale}))
    plain = product(weights[1], bias[1] if biased else [0.0] * 3, 3, X)
    want = scaled(normalised(plain, bn, 0.01), scale)
    after = again(result)
    new_weights, new_bias = numbers(after, "c")
    assert product(new_weights, new_bias, 3, X) == pytest.approx(want, rel=1e-5, abs=1e-6)
    assert [one.name for one in after.layers] == ["c"]
    assert [change.layer for change in result.changes] == ["c/bn", "c/scale"]
    kept = layer("c", kind, "data", "c", f"  {settings} {{ num_output: 3{kernel}{'' if biased else ' bias_term: true'} }}\n")
    assert result.prototxt.decode() == INPUT + kept + layer("r", "ReLU", "c", "c")


@pytest.mark.parametrize("numpy", [True, False])
def test_a_deconvolution_has_its_channels_in_the_second_axis_of_each_group(numpy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if numpy:
        pytest.importorskip("numpy")
    else:
        monkeypatch.setitem(sys.modules, "numpy", None)
    text = layer(
        "d", "Deconvolution", "data", "d", "  convolution_param { num_output: 6 group: 2 kernel_size: 2 bias_term: false }\n"
    )
    text += layer("d/bn", "BatchNorm", "d", "d")
    weights, bn = chance(4, 3, 2, 2), normal(6)
    after = again(merged(text, model(d=[weights], **{"d/bn": bn})))
    kernel, bias = numbers(after, "d")

    def computed(w: list[float], b: list[float]) -> list[float]:
        """The first of four places of each of six channels."""
        return [sum(w[((2 * (o // 3) + i) * 3 + o % 3) * 4] * X[2 * (o // 3) + i] for i in range(2)) + b[o] for o in range(6)]

    assert computed(kernel, bias) == pytest.approx(normalised(computed(weights[1], [0.0] * 6), bn), rel=1e-5, abs=1e-6)


def test_transposed_weights_of_an_inner_product() -> None:
    text = layer("f", "InnerProduct", "data", "f", "  inner_product_param { num_output: 2 transpose: true }\n")
    text += layer("s", "Scale", "f", "f")
    weights = ((4, 2), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    after = again(merged(text, model(f=[weights, ((2,), [1.0, 1.0])], s=[((2,), [10.0, 100.0])])))
    assert numbers(after, "f") == [[10, 200, 30, 400, 50, 600, 70, 800], [10, 100]]


def test_depthwise_layers_of_both_names() -> None:
    for kind in ("DepthwiseConvolution", "ConvolutionDepthwise"):
        text = layer("dw", kind, "data", "x", "  convolution_param { kernel_size: 1 bias_term: false }\n")
        text += layer("s", "Scale", "x", "y") + layer("b", "Bias", "y", "z") + layer("r", "ReLU", "z", "z")
        weights: dict[str, Blobs] = {
            "dw": [((4, 1, 1, 1), [1.0, 2.0, 3.0, 4.0])],
            "s": [((4,), [2.0] * 4)],
            "b": [((4,), [0.5] * 4)],
        }
        result = merged(text, model(**weights))
        assert numbers(again(result), "dw") == [[2, 4, 6, 8], [0.5] * 4]
        assert b'top: "z"' in result.prototxt
        assert b'"y"' not in result.prototxt, "the last blob's name is the convolution's top now"


def test_a_factor_of_zero_means_what_it_means_to_caffe() -> None:
    text = conv() + layer("bn", "BatchNorm", "c", "c")
    bn: Blobs = [((4,), [3.0] * 4), ((4,), [5.0] * 4), ((1,), [0.0])]
    after = again(merged(text, model(c=[((4, 4, 1, 1), [1.0] * 16), ((4,), [1.0] * 4)], bn=bn)))
    assert numbers(after, "c")[1] == pytest.approx([1e-5**-0.5] * 4)


def conv(more: str = "", name: str = "c") -> str:
    return layer(name, "Convolution", "data", name, f"  convolution_param {{ num_output: 4 kernel_size: 1 }}\n{more}")


FULL: dict[str, Blobs] = {"c": [chance(4, 4, 1, 1), chance(4)], "bn": normal(4), "s": [chance(4)]}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (layer("bn", "BatchNorm", "data", "x"), "it reads an input of the net"),
        (conv() + layer("r", "ReLU", "c", "c") + layer("bn", "BatchNorm", "c", "c"), "it follows r (ReLU), and no convolution"),
        (conv() + layer("bn", "BatchNorm", "c", "x") + layer("o", "ReLU", "c", "y"), "c is also read by o"),
        (conv() + layer("bn", "BatchNorm", "c", "c", "  batch_norm_param { use_global_stats: false }\n"), "use_global_stats"),
        (conv('  param { name: "w" }\n') + conv('  param { name: "w" }\n', "e") + layer("bn", "BatchNorm", "c", "c"), "shares"),
        (conv("  loss_weight: 1\n") + layer("bn", "BatchNorm", "c", "c"), "loss"),
        (conv() + layer("bn", "BatchNorm", "c", "c", "  include { phase: TEST }\n"), "some phases"),
        (conv() + layer("bn", "BatchNorm", "gone", "c"), "input of the net"),
        (layer("p", "Pooling", "data", "c") + layer("bn", "BatchNorm", "c", "c"), "it follows p (Pooling)"),
    ],
)
def test_what_cannot_be_folded_stays_and_says_why(text: str, reason: str) -> None:
    result = merged(text, model(**FULL))
    assert reason in why(result, "bn")
    assert result.prototxt.decode() == INPUT + text
    assert not result.folds


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("  scale_param { axis: 0 }\n", "another axis"),
        ("  scale_param { num_axes: -1 }\n", "more than one number a channel"),
        ("  scale_param { bias_term: true }\n", "has 1 blobs in the model, and 2 by the prototxt"),
    ],
)
def test_a_scale_of_another_kind_stays(more: str, reason: str) -> None:
    assert reason in why(merged(conv() + layer("s", "Scale", "c", "c", more), model(**FULL)), "s")


def test_a_scale_by_another_blob_stays() -> None:
    text = conv() + layer("s", "Scale", "c", "c", '  bottom: "data"\n')
    assert "another blob" in why(merged(text, model(**FULL)), "s")


def test_what_stands_behind_a_layer_that_stays_stays_too() -> None:
    text = (
        conv()
        + layer("bn", "BatchNorm", "c", "c", "  batch_norm_param { use_global_stats: false }\n")
        + layer("s", "Scale", "c", "c")
    )
    result = merged(text, model(**FULL))
    assert why(result, "s") == "it follows bn (BatchNorm), which stays"


def test_a_blob_of_another_layer_is_not_renamed_away() -> None:
    text = (
        layer("o", "ReLU", "data", "x")
        + conv()
        + layer("p", "ReLU", "x", "q")
        + layer("bn", "BatchNorm", "c", "x")
        + layer("e", "ReLU", "x", "x")
    )
    assert why(merged(text, model(**FULL)), "bn") == "p means another blob by x"


@pytest.mark.parametrize(
    ("weights", "reason"),
    [
        ({"bn": normal(4)}, "the model has no weights for c"),
        ({"c": FULL["c"]}, "the model has no weights for bn"),
        ({"c": FULL["c"][:1], "bn": normal(4)}, "c has 1 blobs in the model, and 2 by the prototxt"),
        ({"c": FULL["c"], "bn": normal(3)}, "it has 3 numbers in the model, for 4 channels"),
        ({"c": FULL["c"], "bn": normal(4)[:2]}, "it has 2 blobs in the model"),
        ({"c": [chance(3, 4, 1, 1), chance(3)], "bn": normal(4)}, "do not fit its num_output, 4"),
        ({"c": FULL["c"], "bn": [normal(4)[0], ((4,), [-9.0] * 4), ((1,), [1.0])]}, "bn cannot be folded"),
        ({"c": FULL["c"], "bn": [normal(4)[0], ((4,), [float("nan")] * 4), ((1,), [1.0])]}, "bn cannot be folded"),
        ({"c": [((4, 4, 1, 1), [1.0] * 7), chance(4)], "bn": normal(4)}, "a blob of c has 7 numbers for 16"),
    ],
)
def test_weights_that_do_not_fit_are_left(weights: dict[str, Blobs], reason: str) -> None:
    result = merged(conv() + layer("bn", "BatchNorm", "c", "c"), model(**weights))
    assert reason in why(result, "bn")


def test_old_layers_of_forks_by_their_weights() -> None:
    text = conv() + layer("bn", "BN", "c", "c", "  bn_param { bn_mode: INFERENCE }\n")
    weights: dict[str, Blobs] = {
        "c": [((4, 4, 1, 1), [1.0] * 16), ((4,), [1.0] * 4)],
        "bn": [((1, 4, 1, 1), [2.0] * 4), ((1, 4, 1, 1), [3.0] * 4)],
    }
    assert numbers(again(merged(text, model(**weights))), "c")[1] == [5.0] * 4
    learning = conv() + layer("bn", "BN", "c", "c")
    assert "bn_mode is not INFERENCE" in why(merged(learning, model(**weights)), "bn")
    four: dict[str, Blobs] = {
        **weights,
        "bn": [((1, 4), [2.0] * 4), ((1, 4), [3.0] * 4), ((1, 4), [1.0] * 4), ((1, 4), [0.25 - 1e-5] * 4)],
    }
    assert numbers(again(merged(learning, model(**four))), "c")[1] == pytest.approx([3.0] * 4, abs=1e-6)


def test_one_forks_batchnorm_has_its_scale_within() -> None:
    text = conv() + layer("bn", "BatchNorm", "c", "c", "  batch_norm_param { scale_bias: true }\n")
    ones: tuple[tuple[int, ...], list[float]] = ((4,), [1.0] * 4)
    bn: Blobs = [ones, ((4,), [1.0 - 1e-5] * 4), ((1,), [1.0]), ((4,), [3.0] * 4), ((4,), [7.0] * 4)]
    after = again(merged(text, model(c=[((4, 4, 1, 1), [1.0] * 16), ((4,), [2.0] * 4)], bn=bn)))
    assert numbers(after, "c")[1] == pytest.approx([10.0] * 4)


def test_what_stands_on_the_same_line_stays() -> None:
    text = 'layer { name: "c" type: "Convolution" bottom: "data" top: "c" convolution_param { num_output: 4 kernel_size: 1 } } '
    text += 'layer { name: "bn" type: "BatchNorm" bottom: "c" top: "c" } # 归一化\r\nlayer { name: "r" type: "ReLU" bottom: "c" top: "c" }'
    result = merged(text, model(**FULL))
    assert result.prototxt.decode() == (INPUT + text).replace('layer { name: "bn" type: "BatchNorm" bottom: "c" top: "c" }', "")


def test_runs_are_scaled_the_same_with_numpy_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy")
    values = array("f", chance(24)[1])
    with_numpy = rows_scaled(values, (0.1, 2.0, -3.0), 2)
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert rows_scaled(values, (0.1, 2.0, -3.0), 2) == with_numpy


# --- files -------------------------------------------------------------------------------------------------


def files(folder: Path, text: str) -> tuple[str, str]:
    (folder / "net.prototxt").write_text(INPUT + text)
    made = model(**FULL)
    (folder / "m.caffemodel").write_bytes(bytes(made.data))
    return str(folder / "net.prototxt"), str(folder / "m.caffemodel")


def test_both_files_are_written_beside_the_old_ones(tmp_path: Path) -> None:
    report = merge_net(*files(tmp_path, conv() + layer("bn", "BatchNorm", "c", "c")))
    assert [Path(name).name for name in report.written] == ["net_merged.prototxt", "m_merged.caffemodel"]
    with pytest.raises(UsageError, match="is there already"):
        merge_net(report.source, str(tmp_path / "m.caffemodel"))


def test_nothing_is_written_where_there_is_nothing_to_fold(tmp_path: Path) -> None:
    report = merge_net(*files(tmp_path, conv()))
    assert report.written == ()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_net_to_train_is_warned_of(tmp_path: Path) -> None:
    text = conv() + layer("bn", "BatchNorm", "c", "c")
    loss = layer("l", "EuclideanLoss", "c", "l", '  bottom: "data"\n  include { phase: TRAIN }\n')
    report = merge_net(*files(tmp_path, text + loss), output=str(tmp_path / "o.prototxt"))
    assert [finding.id for finding in report.findings] == ["merged-train-net"]
    assert [Path(name).name for name in report.written] == ["o.prototxt", "o.caffemodel"]


def test_the_model_of_another_net_is_refused(tmp_path: Path) -> None:
    net, weights = files(tmp_path, layer("other", "Convolution", "data", "c"))
    with pytest.raises(UsageError, match="No layer of"):
        merge_net(net, weights)


@pytest.mark.parametrize("model_name", ["/", ".", "gone"])
def test_a_model_that_is_no_file(tmp_path: Path, model_name: str) -> None:
    net, _ = files(tmp_path, conv())
    with pytest.raises(UsageError, match="cannot be read"):
        merge_net(net, model_name)


def test_a_prototxt_in_the_place_of_the_model_is_called_so(tmp_path: Path) -> None:
    net, _ = files(tmp_path, conv())
    with pytest.raises(UsageError, match="it is a prototxt"):
        merge_net(net, net)
