"""Shapes of every layer type, and what a layer says that does not fit."""

from __future__ import annotations

from typing import Optional

import pytest

from caffeup.net.model import as_run, read_net
from caffeup.net.rules.base import Datum, Shape
from caffeup.net.shapes import LayerShapes, blobs_of, infer
from caffeup.net.text import parse

IMAGE = (2, 8, 10, 12)


def of_layer(text: str, *bottoms: Shape, tops: int = 1, data: Optional[dict[str, Datum]] = None) -> LayerShapes:
    """The shapes of one layer behind inputs of these shapes."""
    shapes = " ".join("shape { " + " ".join(f"dim: {size}" for size in shape) + " }" for shape in bottoms)
    outer = " ".join(f'top: "b{number}"' for number in range(len(bottoms)))
    inner = " ".join(f'bottom: "b{number}"' for number in range(len(bottoms)))
    inner += "".join(f' top: "t{number}"' for number in range(tops))
    source = f'layer {{ type: "Input" {outer} input_param {{ {shapes} }} }}' if bottoms else ""
    net = read_net(parse(f'{source} layer {{ name: "l" {inner} {text} }}'.encode()))
    return infer(as_run(net, net.state()), data=data)[-1]


@pytest.mark.parametrize(
    ("text", "bottoms", "tops"),
    [
        ('type: "Convolution" convolution_param { num_output: 6 kernel_size: 3 }', [IMAGE], [(2, 6, 8, 10)]),
        ('type: "Convolution" convolution_param { num_output: 6 kernel_size: 3 stride: 2 pad: 1 }', [IMAGE], [(2, 6, 5, 6)]),
        (
            'type: "Convolution" convolution_param { num_output: 6 kernel_h: 1 kernel_w: 5 pad_w: 2 stride_h: 3 stride_w: 1 }',
            [IMAGE],
            [(2, 6, 4, 12)],
        ),
        ('type: "Convolution" convolution_param { num_output: 6 kernel_size: 3 dilation: 4 }', [IMAGE], [(2, 6, 2, 4)]),
        ('type: "Convolution" convolution_param { num_output: 6 kernel_size: [1, 2, 3] }', [(1, 2, 4, 4, 4)], [(1, 6, 4, 3, 2)]),
        ('type: "Convolution" convolution_param { num_output: 6 kernel_size: 3 axis: -2 }', [IMAGE], [(2, 8, 6, 10)]),
        ('type: "DepthwiseConvolution" convolution_param { num_output: 8 group: 8 kernel_size: 3 }', [IMAGE], [(2, 8, 8, 10)]),
        ('type: "ConvolutionDepthwise" convolution_param { num_output: 16 kernel_size: 3 }', [IMAGE], [(2, 16, 8, 10)]),
        ('type: "Deconvolution" convolution_param { num_output: 6 kernel_size: 4 stride: 2 pad: 1 }', [IMAGE], [(2, 6, 20, 24)]),
        ('type: "Im2col" convolution_param { kernel_size: 3 }', [IMAGE], [(2, 72, 8, 10)]),
        ('type: "Pooling" pooling_param { kernel_size: 3 stride: 2 }', [IMAGE], [(2, 8, 5, 6)]),
        ('type: "Pooling" pooling_param { kernel_size: 2 stride: 2 pad: 1 }', [(1, 1, 3, 4)], [(1, 1, 2, 3)]),
        ('type: "Pooling" pooling_param { kernel_size: 3 stride: 2 round_mode: FLOOR }', [IMAGE], [(2, 8, 4, 5)]),
        ('type: "Pooling" pooling_param { kernel_size: 3 stride: 2 ceil_mode: false }', [IMAGE], [(2, 8, 4, 5)]),
        ('type: "Pooling" pooling_param { global_pooling: true pool: AVE }', [IMAGE], [(2, 8, 1, 1)]),
        ('type: "SPP" spp_param { pyramid_height: 3 }', [IMAGE], [(2, 8 * 21)]),
        ('type: "InnerProduct" inner_product_param { num_output: 5 }', [IMAGE], [(2, 5)]),
        ('type: "InnerProduct" inner_product_param { num_output: 5 axis: -1 }', [IMAGE], [(2, 8, 10, 5)]),
        ('type: "Concat"', [IMAGE, (2, 3, 10, 12)], [(2, 11, 10, 12)]),
        ('type: "Concat" concat_param { concat_dim: 0 }', [IMAGE, (1, 8, 10, 12)], [(3, 8, 10, 12)]),
        ('type: "Flatten"', [IMAGE], [(2, 960)]),
        ('type: "Flatten" flatten_param { axis: -3 end_axis: 2 }', [IMAGE], [(2, 80, 12)]),
        ('type: "Reshape" reshape_param { shape { dim: 0 dim: -1 dim: 4 } }', [IMAGE], [(2, 240, 4)]),
        ('type: "Reshape" reshape_param { shape { dim: 4 dim: 2 } axis: 1 num_axes: 1 }', [IMAGE], [(2, 4, 2, 10, 12)]),
        ('type: "Reshape" reshape_param { shape { dim: 1 } axis: -1 num_axes: 0 }', [(3, 4)], [(3, 4, 1)]),
        ('type: "Permute" permute_param { order: 0 order: 2 order: 3 order: 1 }', [IMAGE], [(2, 10, 12, 8)]),
        ('type: "Permute" permute_param { order: 3 }', [IMAGE], [(12, 2, 8, 10)]),
        ('type: "Normalize" norm_param { channel_shared: false }', [(2, 8)], [(2, 8)]),
        ('type: "PriorBox" prior_box_param { min_size: 10 max_size: 20 aspect_ratio: 2 }', [IMAGE, IMAGE], [(1, 2, 1920)]),
        (
            'type: "PriorBox" prior_box_param { min_size: 10 min_size: 12 aspect_ratio: [1, 2, 2] flip: false }',
            [IMAGE, IMAGE],
            [(1, 2, 1920)],
        ),
        ('type: "DetectionOutput" detection_output_param { num_classes: 3 }', [(2, 40), (2, 30), (1, 2, 40)], [(1, 1, 1, 7)]),
        (
            'type: "DetectionOutput" detection_output_param { num_classes: 3 share_location: false }',
            [(2, 120), (2, 30), (1, 2, 40)],
            [(1, 1, 1, 7)],
        ),
        (
            'type: "MultiBoxLoss" multibox_loss_param { num_classes: 3 }',
            [(2, 40), (2, 30), (1, 2, 40), (1, 1, 5, 8)],
            [()],
        ),
        (
            'type: "DetectionEvaluate" detection_evaluate_param { num_classes: 21 background_label_id: 0 }',
            [(1, 1, 6, 7), (1, 1, 4, 8)],
            [(1, 1, 26, 5)],
        ),
        ('type: "ArgMax" argmax_param { top_k: 3 out_max_val: true }', [(2, 9)], [(2, 2, 3)]),
        ('type: "ArgMax" argmax_param { axis: 1 }', [IMAGE], [(2, 1, 10, 12)]),
        ('type: "Tile" tile_param { tiles: 4 axis: 2 }', [IMAGE], [(2, 8, 40, 12)]),
        ('type: "Crop" crop_param { offset: 1 }', [IMAGE, (2, 8, 5, 6)], [(2, 8, 5, 6)]),
        ('type: "BatchReindex"', [IMAGE, (5,)], [(5, 8, 10, 12)]),
        ('type: "Reduction" reduction_param { axis: 1 }', [IMAGE], [(2,)]),
        ('type: "Reduction"', [IMAGE], [()]),
        ('type: "Embed" embed_param { num_output: 5 input_dim: 9 }', [(2, 3)], [(2, 3, 5)]),
        ('type: "MVN"', [(2, 8)], [(2, 8, 1, 1)]),
        ('type: "LSTM" recurrent_param { num_output: 5 }', [(7, 2, 3), (7, 2)], [(7, 2, 5)]),
        ('type: "LSTMUnit"', [(1, 2, 5), (1, 2, 20), (1, 2)], [(1, 2, 5)] * 2),
        ('type: "RNN" recurrent_param { num_output: 5 expose_hidden: true }', [(7, 2, 3), (7, 2), (1, 2, 5)], [(7, 2, 5), (1, 2, 5)]),
        ('type: "SoftmaxWithLoss" loss_weight: [1, 0]', [IMAGE, (2, 1, 10, 12)], [(), IMAGE]),
        ('type: "Accuracy"', [(2, 9), (2,)], [(), (9,)]),
        ('type: "EuclideanLoss"', [IMAGE, (2, 960)], [()]),
        ('type: "ContrastiveLoss"', [(2, 5), (2, 5), (2,)], [()]),
        ('type: "HingeLoss"', [(2, 9), (2,)], [()]),
        ('type: "Eltwise" eltwise_param { coeff: 1 coeff: -1 }', [IMAGE, IMAGE], [IMAGE]),
        ('type: "Slice" slice_param { slice_point: 3 }', [IMAGE], [(2, 3, 10, 12), (2, 5, 10, 12)]),
        ('type: "Slice" slice_param { axis: 3 }', [IMAGE], [(2, 8, 10, 4)] * 3),
        ('type: "Filter"', [IMAGE, (2,)], [IMAGE]),
        ('type: "Split"', [IMAGE], [IMAGE] * 3),
        ('type: "Silence"', [IMAGE], []),
        ('type: "ReLU"', [()], [()]),
        ('type: "MemoryData" memory_data_param { batch_size: 2 channels: 3 height: 4 width: 5 }', [], [(2, 3, 4, 5), (2,)]),
        ('type: "DummyData" dummy_data_param { num: 2 channels: 3 height: 4 width: 5 num: 6 channels: 7 height: 8 width: 9 }', [], [(2, 3, 4, 5), (6, 7, 8, 9)]),
        ('type: "DummyData" dummy_data_param { shape { dim: 3 } }', [], [(3,)] * 2),
        ('type: "Parameter" parameter_param { shape { dim: 3 dim: 4 } }', [], [(3, 4)]),
    ],
)  # fmt: skip
def test_tops(text: str, bottoms: list[Shape], tops: list[Shape]) -> None:
    one = of_layer(text, *bottoms, tops=len(tops))
    assert one.trouble is None
    assert list(one.tops) == tops


@pytest.mark.parametrize(
    ("text", "bottoms", "params"),
    [
        ('type: "Convolution" convolution_param { num_output: 6 kernel_size: 3 group: 2 }', [IMAGE], [(6, 4, 3, 3), (6,)]),
        ('type: "Convolution" convolution_param { num_output: 6 kernel_size: 3 bias_term: false }', [IMAGE], [(6, 8, 3, 3)]),
        ('type: "Deconvolution" convolution_param { num_output: 6 kernel_size: 3 group: 2 }', [IMAGE], [(8, 3, 3, 3), (6,)]),
        ('type: "ConvolutionDepthwise" convolution_param { kernel_size: 3 }', [IMAGE], [(8, 1, 3, 3), (8,)]),
        ('type: "InnerProduct" inner_product_param { num_output: 5 transpose: true }', [(2, 9)], [(9, 5), (5,)]),
        ('type: "BatchNorm"', [IMAGE], [(8,), (8,), (1,)]),
        ('type: "Scale" scale_param { bias_term: true }', [IMAGE], [(8,), (8,)]),
        ('type: "Scale" scale_param { axis: 0 num_axes: -1 }', [(2, 3)], [(2, 3)]),
        ('type: "Scale" scale_param { num_axes: 0 }', [IMAGE], [()]),
        ('type: "Scale" scale_param { bias_term: true }', [IMAGE, (8, 10)], [(8, 10)]),
        ('type: "Bias"', [IMAGE], [(8,)]),
        ('type: "PReLU"', [IMAGE], [(8,)]),
        ('type: "PReLU" prelu_param { channel_shared: true }', [IMAGE], [()]),
        ('type: "Normalize"', [IMAGE], [()]),
        ('type: "Embed" embed_param { num_output: 5 input_dim: 9 }', [(2, 3)], [(9, 5), (5,)]),
        ('type: "LSTM" recurrent_param { num_output: 5 }', [(7, 2, 3), (7, 2), (2, 4)], [(20, 3), (20,), (20, 4), (20, 5)]),
        ('type: "RNN" recurrent_param { num_output: 5 }', [(7, 2, 3), (7, 2)], [(5, 3), (5,), (5, 5), (5, 5), (5,)]),
    ],
)
def test_weights(text: str, bottoms: list[Shape], params: list[Shape]) -> None:
    one = of_layer(text, *bottoms)
    assert one.trouble is None
    assert list(one.params) == params


@pytest.mark.parametrize(
    ("text", "bottoms", "field", "words"),
    [
        ('type: "Convolution" convolution_param { num_output: 6 kernel_size: 3 group: 3 }', [IMAGE], "group", "no multiple"),
        ('type: "Convolution" convolution_param { num_output: 6 kernel_size: 3 group: 4 }', [IMAGE], "num_output", "no multiple"),
        ('type: "BatchNorm"', [(2,)], "bottom", "at least 2 axes"),
        ('type: "DepthwiseConvolution" convolution_param { kernel_size: 3 group: 4 }', [IMAGE], "group", "as many groups"),
        ('type: "Convolution" convolution_param { num_output: 6 kernel_size: 13 }', [IMAGE], "kernel_size", "larger than its"),
        ('type: "Convolution" convolution_param { num_output: 6 }', [IMAGE], "kernel_size", "is missing"),
        ('type: "Convolution" convolution_param { num_output: x kernel_size: 1 }', [IMAGE], "num_output", "positive"),
        ('type: "Convolution" convolution_param { num_output: 6 kernel_size: [1, 2, 3] }', [IMAGE], "kernel_size", "3 times"),
        ('type: "Convolution" convolution_param { num_output: 6 kernel_size: 1 stride: 0 }', [IMAGE], "stride", "larger than 0"),
        ('type: "Convolution" convolution_param { num_output: 6 kernel_size: 1 kernel_h: 1 }', [IMAGE], "kernel_size", "beside"),
        ('type: "Pooling" pooling_param { kernel_size: 2 pad: 2 }', [IMAGE], "pad", "smaller than the kernel"),
        ('type: "Pooling" pooling_param { kernel_size: 40 }', [IMAGE], "kernel_size", "larger than its input"),
        ('type: "Pooling" pooling_param { }', [IMAGE], "kernel_size", "missing"),
        ('type: "Pooling" pooling_param { kernel_size: 2 }', [(1, 2, 3)], "bottom", "4 axes"),
        ('type: "Concat"', [IMAGE, (2, 3, 10, 11)], "bottom", "b0 2x8x10x12 and b1 2x3x10x11"),
        ('type: "Concat" concat_param { axis: 4 }', [IMAGE], "axis", "out of range"),
        ('type: "Eltwise"', [IMAGE, (2, 3, 10, 12)], "bottom", "differ in shape"),
        ('type: "Eltwise"', [IMAGE], "bottom", "at least 2"),
        ('type: "Reshape" reshape_param { shape { dim: 0 dim: 7 dim: -1 } }', [IMAGE], "dim", "cannot be given"),
        ('type: "Reshape" reshape_param { shape { dim: 5 } }', [IMAGE], "dim", "cannot be given"),
        ('type: "Reshape" reshape_param { shape { dim: -1 dim: -1 } }', [IMAGE], "dim", "at most one"),
        ('type: "Reshape" reshape_param { shape { dim: [2, 8, 10, 12, 0] } }', [IMAGE], "dim", "copies axis 4"),
        ('type: "Permute" permute_param { order: [0, 0] }', [IMAGE], "order", "none of the axes"),
        ('type: "PriorBox" prior_box_param { }', [IMAGE, IMAGE], "min_size", "must be given"),
        ('type: "PriorBox" prior_box_param { min_size: 9 max_size: 9 }', [IMAGE, IMAGE], "max_size", "larger than min_size"),
        ('type: "PriorBox" prior_box_param { min_size: 9 aspect_ratio: 0 }', [IMAGE, IMAGE], "aspect_ratio", "positive"),
        (
            'type: "DetectionOutput" detection_output_param { num_classes: 4 }',
            [(2, 40), (2, 30), (1, 2, 40)],
            "num_classes",
            "10 priors of 4 classes need 40 confidences, and b1 has 30",
        ),
        ('type: "SoftmaxWithLoss"', [(2, 9), (2, 3)], "bottom", "needs 2 labels, and b1 has 6"),
        ('type: "SoftmaxWithLoss"', [(2, 9), (3,)], "bottom", "differ in batch"),
        ('type: "Accuracy" accuracy_param { top_k: 10 }', [(2, 9), (2,)], "top_k", "with 9 classes"),
        ('type: "Scale"', [IMAGE, (9,)], "bottom", "does not fit"),
        ('type: "Crop"', [IMAGE, (2, 8, 11, 12)], "offset", "cannot be cut"),
        ('type: "InnerProduct"', [IMAGE], "num_output", "positive"),
        ('type: "LSTM" recurrent_param { num_output: 5 }', [(7, 2, 3), (2, 7)], "bottom", "steps x streams"),
        ('type: "Data" data_param { batch_size: 0 }', [], "batch_size", "larger than 0"),
        ('type: "Input"', [], "shape", "no shape"),
        ('type: "Input" input_param { shape { dim: 3000 dim: 3000 dim: 3000 } }', [], "", "more than 2147483647"),
    ],
)
def test_what_does_not_fit_is_told(text: str, bottoms: list[Shape], field: str, words: str) -> None:
    trouble = of_layer(text, *bottoms).trouble
    assert trouble is not None
    assert trouble.wrong
    assert trouble.field == field
    assert words in trouble.what


def test_each_top_has_a_weight_in_the_objective_or_none_has() -> None:
    for text, tops, well in (
        ('type: "SoftmaxWithLoss"', 2, False),
        ('type: "SoftmaxWithLoss"', 1, True),
        ('type: "Split" loss_weight: 1', 2, False),
        ('type: "Split" loss_weight: [1, 0]', 2, True),
    ):
        one = of_layer(text, IMAGE, (2, 1, 10, 12), tops=tops)
        assert (one.trouble is None) == well
        assert well or one.trouble.field == "loss_weight"  # type: ignore[union-attr]


def test_slices_must_cut() -> None:
    assert "do not cut" in of_layer('type: "Slice" slice_param { slice_point: 9 }', IMAGE, tops=2).trouble.what  # type: ignore[union-attr]
    assert "equal parts" in of_layer('type: "Slice"', IMAGE, tops=3).trouble.what  # type: ignore[union-attr]
    assert "makes 1 top" in of_layer('type: "Flatten"', IMAGE, tops=2).trouble.what  # type: ignore[union-attr]


DATA = 'type: "Data" data_param { source: "x" batch_size: 4 }'
WARP = "transform_param { resize_param { height: 300 width: 200 } }"
SMALL = "transform_param { resize_param { height: 300 width: 200 resize_mode: FIT_SMALL_SIZE } }"


@pytest.mark.parametrize(
    ("text", "datum", "tops", "assumed"),
    [
        (DATA, (1, 28, 27), [(4, 1, 28, 27), (4,)], ""),
        (DATA + "transform_param { crop_size: 9 }", (1, 28, 27), [(4, 1, 9, 9), (4,)], ""),
        (DATA + "transform_param { crop_size: 9 }", None, [(4, 3, 9, 9), (4,)], "3 channels"),
        (DATA + "transform_param { crop_size: 9 force_gray: true }", None, [(4, 1, 9, 9), (4,)], ""),
        ('type: "Data" data_param { source: "x" batch_size: 4 crop_size: 9 }', None, [(4, 3, 9, 9), (4,)], "3 channels"),
        (DATA + WARP, (3, 50, 100), [(4, 3, 300, 200), (4,)], ""),
        (DATA + SMALL, (3, 50, 100), [(4, 3, 300, 600), (4,)], ""),
        (DATA + SMALL, (3, 100, 50), [(4, 3, 400, 200), (4,)], ""),
        (DATA.replace('"Data"', '"AnnotatedData"') + WARP, (3, 50, 100), [(4, 3, 300, 200), (1, 1, 6, 8)], ""),
        (DATA.replace('"Data"', '"AnnotatedData"') + WARP, None, [(4, 3, 300, 200), (1, 1, 1, 8)], "3 channels; one box"),
        ('type: "ImageData" image_data_param { batch_size: 2 new_height: 4 new_width: 5 }', None, [(2, 3, 4, 5), (2,)], ""),
        ('type: "WindowData" window_data_param { batch_size: 2 crop_size: 7 }', None, [(2, 3, 7, 7), (2,)], "3 channels"),
    ],
)
def test_data_layers(text: str, datum: Optional[tuple[int, int, int]], tops: list[Shape], assumed: str) -> None:
    data = {"x": Datum(channels=datum[0], height=datum[1], width=datum[2], boxes=6)} if datum else {}
    one = of_layer(text, tops=2, data=data)
    assert one.trouble is None
    assert list(one.tops) == tops
    assert one.assumed == assumed


@pytest.mark.parametrize("text", [DATA, 'type: "HDF5Data"', 'type: "Python"', DATA + SMALL])
def test_what_stands_in_the_data_is_not_guessed(text: str) -> None:
    one = of_layer(text, tops=2)
    assert one.trouble is not None
    assert not one.trouble.wrong
    assert one.tops == (None, None)


def test_a_given_shape_ends_the_trouble_and_what_follows_is_known() -> None:
    net = read_net(
        parse(
            b"""layer { name: "d" type: "HDF5Data" top: "x" }
            layer { name: "f" type: "Flatten" bottom: "x" top: "f" }
            layer { name: "w" type: "Nonsense" bottom: "f" top: "n" }
            layer { name: "r" type: "ReLU" bottom: "n" top: "r" }"""
        )
    )
    blind = infer(as_run(net, net.state()))
    assert [one.trouble is not None for one in blind] == [True, False, True, False]
    assert set(blobs_of(blind).values()) == {None}
    seen = infer(as_run(net, net.state()), given={"x": (2, 3, 4)})
    assert blobs_of(seen) == {"x": (2, 3, 4), "f": (2, 12), "n": None, "r": None}
    assert [one.trouble is not None for one in seen] == [False, False, True, False]
