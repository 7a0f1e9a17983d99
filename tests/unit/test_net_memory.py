"""What nets take: Caffe's own figure, what shares memory, gradients, history, workspaces, and the largest batch that fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from caffeup.app.net_memory import Asked, measure, room_of
from caffeup.errors import UsageError
from caffeup.model.gpus import Room
from caffeup.model.net_model import MemoryReport, PhaseMemory
from caffeup.net.make.detector import Order
from caffeup.net.make.mobilenet import mobilenet_ssd
from caffeup.net.make.spelling import spelled
from caffeup.net.memory import phase_memory, shapes_at
from caffeup.net.model import read_net
from caffeup.net.text import parse
from caffeup.net.workspace import largest_that, solver_named

INPUT = 'input: "data"\ninput_shape { dim: 2 dim: 3 dim: 8 dim: 8 }\n'
IMAGE = 2 * 3 * 8 * 8 * 4
TRAINED = """
layer { name: "data" type: "Data" top: "data" top: "label" transform_param { crop_size: 8 force_color: true } data_param { batch_size: 2 } }
layer { name: "c" type: "Convolution" bottom: "data" top: "c" convolution_param { num_output: 4 kernel_size: 3 pad: 1 engine: CAFFE } }
layer { name: "r" type: "ReLU" bottom: "c" top: "c" }
layer { name: "f" type: "InnerProduct" bottom: "c" top: "f" inner_product_param { num_output: 5 } }
layer { name: "l" type: "SoftmaxWithLoss" bottom: "f" bottom: "label" top: "l" }
"""


def taken(text: str, phase: str = "TEST", *, batch: int | None = None, cudnn: bool = True) -> PhaseMemory:
    net = read_net(parse(text.encode()))
    state = net.state(phase)
    return phase_memory(shapes_at(net, state, batch=batch), state, cudnn=cudnn)


def layer(name: str, kind: str, bottoms: str, top: str, more: str = "") -> str:
    return f'layer {{ name: "{name}" type: "{kind}" {" ".join(f"bottom: {one!r}" for one in bottoms.split())} top: "{top}" {more} }}\n'


def test_what_is_made_in_place_counts_again_for_caffe_and_once_in_truth() -> None:
    found = taken(INPUT + layer("r", "ReLU", "data", "data"))
    assert (found.caffe_says, found.data) == (2 * IMAGE, IMAGE)


def test_splits_count_for_caffe_and_share_in_truth() -> None:
    text = INPUT + layer("a", "ReLU", "data", "x") + layer("b", "ReLU", "data", "y")
    found = taken(text)
    assert [one.name for one in found.layers] == ["input", "data_input_0_split", "a", "b"]
    assert (found.caffe_says, found.data) == (5 * IMAGE, 3 * IMAGE)


def test_the_well_known_net_takes_what_caffe_printed_for_it() -> None:
    """Read off a run of Caffe on the same net."""
    assert taken(spelled(mobilenet_ssd(Order(21, 300)))).caffe_says == 162_455_992


def test_gradients_come_to_what_is_learned_only() -> None:
    found = taken(TRAINED, "TRAIN")
    diffs = {one.name: one.diffs for one in found.layers}
    assert diffs == {"data": 0, "c": 2 * 4 * 8 * 8 * 4, "r": 0, "f": 2 * 5 * 4, "l": 4}
    weights = 4 * (4 * 27 + 4 + 5 * 256 + 5)
    assert (found.params, found.param_diffs) == (weights, weights)
    assert taken(TRAINED, "TEST").param_diffs == 0


def test_nothing_is_learned_before_frozen_weights() -> None:
    still = "param { lr_mult: 0 } param { lr_mult: 0 }"
    text = TRAINED.replace('top: "c" convolution_param', f'top: "c" {still} convolution_param')
    assert {one.name: one.diffs for one in taken(text, "TRAIN").layers}["c"] == 0


def test_weights_under_one_name_are_there_once() -> None:
    one = layer("a", "InnerProduct", "data", "x", 'param { name: "w" } inner_product_param { num_output: 5 bias_term: false }')
    two = layer("b", "InnerProduct", "data", "y", 'param { name: "w" } inner_product_param { num_output: 5 bias_term: false }')
    assert taken(INPUT + one + two).params == 4 * 5 * 192


@pytest.mark.parametrize(
    ("text", "cudnn", "many"),
    [
        (
            layer("c", "Convolution", "data", "c", "convolution_param { num_output: 4 kernel_size: 3 engine: CAFFE }"),
            True,
            27 * 36 + 36,
        ),
        (layer("c", "Convolution", "data", "c", "convolution_param { num_output: 4 kernel_size: 3 }"), True, 0),
        (layer("c", "Convolution", "data", "c", "convolution_param { num_output: 4 kernel_size: 3 }"), False, 27 * 36 + 36),
        (layer("c", "Convolution", "data", "c", "convolution_param { num_output: 4 kernel_size: 1 }"), False, 64),
        (layer("c", "Convolution", "data", "c", "convolution_param { num_output: 3 kernel_size: 3 group: 3 }"), False, 0),
        (
            layer("c", "Deconvolution", "data", "c", "convolution_param { num_output: 4 kernel_size: 2 stride: 2 }"),
            False,
            16 * 64 + 256,
        ),
        (layer("b", "BatchNorm", "data", "b"), True, 2 * 384),
        (layer("s", "Scale", "data", "data"), True, 384),
        (layer("s", "Scale", "data", "s"), True, 0),
        (layer("p", "Pooling", "data", "p", "pooling_param { kernel_size: 2 stride: 2 }"), False, 96),
        (layer("p", "Pooling", "data", "p", "pooling_param { kernel_size: 2 stride: 2 }"), True, 0),
        (layer("d", "Dropout", "data", "d"), True, 0),
        (layer("x", "Softmax", "data", "x"), True, 128),
    ],
)
def test_workspaces(text: str, cudnn: bool, many: int) -> None:
    assert taken(INPUT + text, cudnn=cudnn).workspace == 4 * many


def test_another_batch_is_that_of_images_and_labels_and_not_of_boxes() -> None:
    found = taken(TRAINED, "TRAIN", batch=7)
    assert found.batch == 7
    assert found.layers[0].tops == ("7x3x8x8", "7")
    boxes = 'layer { name: "data" type: "AnnotatedData" top: "data" top: "label" transform_param { crop_size: 8 } data_param { batch_size: 1 } }'
    assert taken(boxes, batch=3).layers[0].tops == ("3x3x8x8", "1x1x1x8")


def test_labels_follow_from_images_of_a_given_shape() -> None:
    net = read_net(parse(b'layer { name: "d" type: "Data" top: "data" top: "label" data_param { batch_size: 9 } }'))
    for batch, many in ((None, 4), (6, 6)):
        (found,) = shapes_at(net, net.state(), given={"data": (4, 1, 28, 28)}, batch=batch)
        assert found.tops == ((many, 1, 28, 28), (many,))
        assert found.trouble is None


def test_what_is_not_known_is_named() -> None:
    found = taken(INPUT + layer("o", "Odd", "data", "o") + layer("r", "ReLU", "o", "o"))
    assert found.uncounted == ("o (Odd): what Odd makes is not known", "1 layers behind it")
    assert taken(INPUT + layer("r", "ReLU", "gone", "o")).uncounted == ("r (ReLU): no layer makes its bottom",)


@pytest.mark.parametrize(
    ("text", "name"), [("Adam", "Adam"), ("ADAM", "Adam"), ("5", "Adam"), ("sgd", "SGD"), ("9", None), ("x", None)]
)
def test_solvers_of_all_ages(text: str, name: str | None) -> None:
    assert solver_named(text) == name


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 17, 64, 99, 100])
def test_the_largest_number_is_found(limit: int) -> None:
    assert largest_that(lambda many: many <= limit, 100) == limit
    assert largest_that(lambda _: True, limit) == limit


# --- with files and room -----------------------------------------------------------------------------------


def asked(
    tmp_path: Path, text: str, *, free: str = "8GiB", batch: int | None = None, solver: str = "", phase: str = ""
) -> MemoryReport:
    (tmp_path / "net.prototxt").write_text(text)
    return measure(str(tmp_path / "net.prototxt"), Asked(free=free, batch=batch, solver=solver, phase=phase))


def test_history_by_the_type_of_solver(tmp_path: Path) -> None:
    weights = 4 * (4 * 27 + 4 + 5 * 256 + 5)
    found = asked(tmp_path, TRAINED)
    assert (found.solver, found.history) == ("SGD", weights)
    assert asked(tmp_path, TRAINED, solver="Adam").history == 2 * weights
    with pytest.raises(UsageError, match="There is no solver"):
        asked(tmp_path, TRAINED, solver="Adamm")


def test_a_net_to_deploy_has_no_history(tmp_path: Path) -> None:
    found = asked(tmp_path, INPUT + layer("r", "ReLU", "data", "r"))
    assert (found.solver, found.history) == ("", 0)


def test_the_largest_batch_fits_and_the_next_does_not(tmp_path: Path) -> None:
    text = spelled(mobilenet_ssd(Order(21, 300)))
    found = asked(tmp_path, text, free="2GiB")
    assert found.fit is not None
    assert found.fit.fits
    assert found.fit.largest_batch is not None
    most = asked(tmp_path, text, free="2GiB", batch=found.fit.largest_batch)
    more = asked(tmp_path, text, free="2GiB", batch=found.fit.largest_batch + 1)
    assert most.total <= 2 << 30 < more.total
    assert most.fit is not None
    assert most.fit.fits
    assert more.fit is not None
    assert not more.fit.fits


def test_a_net_that_takes_one_batch_only_says_where(tmp_path: Path) -> None:
    text = INPUT + layer("s", "Reshape", "data", "s", "reshape_param { shape { dim: 2 dim: 3 dim: 64 } }")
    found = asked(tmp_path, text)
    assert found.fit is not None
    assert found.fit.largest_batch is None
    assert found.fit.because.startswith("s: ")
    with pytest.raises(UsageError, match="does not take a batch of 5"):
        asked(tmp_path, text, batch=5)


def test_where_caffe_stops_there_is_no_figure(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not set up") as caught:
        asked(tmp_path, INPUT + layer("c", "Convolution", "data", "c", "convolution_param { num_output: 4 }"))
    assert "kernel_size is missing" in caught.value.details
    assert "net check" in caught.value.commands[0]


def test_a_solver_leads_to_its_net_from_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "net.prototxt").write_text(TRAINED)
    (tmp_path / "solver.prototxt").write_text('net: "net.prototxt"\ntype: "AdaDelta"\n')
    found = measure(str(tmp_path / "solver.prototxt"), Asked(free="8GiB"))
    assert found.solver == "AdaDelta"
    assert found.history == 2 * found.phases[0].params
    (tmp_path / "solver.prototxt").write_text('net: "away.prototxt"\nbase_lr: 1\n')
    with pytest.raises(UsageError, match=r"away\.prototxt cannot be read"):
        measure(str(tmp_path / "solver.prototxt"), Asked(free="8GiB"))
    (tmp_path / "solver.prototxt").write_text("base_lr: 1\n")
    with pytest.raises(UsageError, match="names no net"):
        measure(str(tmp_path / "solver.prototxt"), Asked(free="8GiB"))


def test_sizes_that_are_none_and_phases_without_data(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no size of memory"):
        asked(tmp_path, INPUT + layer("r", "ReLU", "data", "r"), free="lots")
    with pytest.raises(UsageError, match="no data for TRAIN"):
        asked(tmp_path, TRAINED.replace("transform_param", "include { phase: TEST } transform_param"), phase="TRAIN")


def test_a_phase_that_is_asked_for(tmp_path: Path) -> None:
    found = asked(tmp_path, INPUT + layer("r", "ReLU", "data", "r"), phase="TRAIN")
    assert [one.phase for one in found.phases] == ["TRAIN"]


def test_the_gpu_that_is_meant() -> None:
    rooms = [
        Room(index=0, uuid="a", name="A", memory_free=5, barred="prohibited"),
        Room(index=1, uuid="b", name="B", memory_free=2),
        Room(index=2, uuid="c", name="C", memory_free=3),
        Room(index=3, uuid="d", name="D", memory_free=9, hidden=True),
    ]
    assert room_of(rooms, "").label == "2"
    assert room_of(rooms, "1").label == "1"
    with pytest.raises(UsageError, match="no GPU 7"):
        room_of(rooms, "7")
