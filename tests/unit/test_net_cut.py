"""A detector cut to some of its classes: which rows stay, which numbers change, and what else stays byte for byte."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from caffeup.app.net_models import cut_net, new_net
from caffeup.errors import UsageError
from caffeup.net.caffemodel import Model, new_model, read_model
from caffeup.net.cut import cut, detector
from caffeup.net.labels import chosen, from_lines, from_map, written
from caffeup.net.make.detector import Order
from caffeup.net.make.mobilenet import mobilenet_ssd
from caffeup.net.make.spelling import spelled
from caffeup.net.make.weights import random_weights
from caffeup.net.model import Net, as_run, read_net
from caffeup.net.shapes import infer
from caffeup.net.text import parse

CLASSES = 5


def net(purpose: str = "deploy", classes: int = CLASSES) -> Net:
    return read_net(parse(spelled(mobilenet_ssd(Order(classes, 64, purpose))).encode(), "net.prototxt"))


def model_of(one: Net, phase: str = "TEST") -> Model:
    shapes = infer(as_run(one, one.state(phase)), phase=phase)
    return read_model(b"".join(bytes(piece) for piece in new_model("m", random_weights(shapes))), "m")


NET = net()
MODEL = model_of(NET)


def rows_of(model: Model, name: str, blob: int, many: int) -> list[list[float]]:
    weights = model.weights(name)
    assert weights is not None
    values = list(model.values(weights.blobs[blob]))
    row = len(values) // many
    return [values[at * row : (at + 1) * row] for at in range(many)]


def test_rows_of_each_box_and_no_others() -> None:
    """Channels go box by box, and class by class within each."""
    done = cut(NET, MODEL, (0, 3, 1))
    after = read_model(b"".join(bytes(piece) for piece in done.model), "m")
    for name, boxes in (("conv11_mbox_conf", 3), ("conv13_mbox_conf", 6)):
        for blob in (0, 1):
            old, new = rows_of(MODEL, name, blob, boxes * CLASSES), rows_of(after, name, blob, boxes * 3)
            assert new == [old[box * CLASSES + number] for box in range(boxes) for number in (0, 3, 1)]
    for name, many in (("conv11_mbox_loc", 12), ("conv0", 32), ("conv5/bn", 256)):
        assert rows_of(after, name, 0, many) == rows_of(MODEL, name, 0, many)


@pytest.mark.parametrize("purpose", ["deploy", "train", "test"])
def test_the_prototxt_is_the_one_that_would_be_made_for_so_many(purpose: str) -> None:
    one = net(purpose)
    done = cut(one, model_of(one, "TRAIN" if purpose == "train" else "TEST"), (0, 2))
    assert done.prototxt == net(purpose, 2).document.data


def test_what_is_kept_in_full_and_in_order_is_the_same() -> None:
    done = cut(NET, MODEL, (0, 1, 2, 3, 4))
    assert done.prototxt == NET.document.data
    assert b"".join(bytes(piece) for piece in done.model) == bytes(MODEL.data)
    assert done.changes == ()


def test_locations_of_each_class_are_cut_too() -> None:
    text = NET.document.data.decode().replace("share_location: true", "share_location: false")
    text = re.sub(r'(_loc".*?num_output: )(\d+)', lambda match: f"{match[1]}{int(match[2]) * CLASSES}", text, flags=re.DOTALL)
    one = read_net(parse(text.encode()))
    made = model_of(one)
    done = cut(one, made, (0, 4))
    after = read_model(b"".join(bytes(piece) for piece in done.model), "m")
    old, new = rows_of(made, "conv11_mbox_loc", 1, 3 * CLASSES), rows_of(after, "conv11_mbox_loc", 1, 3 * 2)
    assert new == [old[box * CLASSES + number] for box in range(3) for number in (0, 4)]


def test_a_normalisation_behind_a_head_loses_the_same_channels() -> None:
    text = NET.document.data.decode()
    more = 'layer { name: "n" type: "BatchNorm" bottom: "conv11_mbox_conf" top: "conv11_mbox_conf" }\n'
    at = text.index('layer {\n  name: "conv11_mbox_conf_perm"')
    one = read_net(parse((text[:at] + more + text[at:]).encode()))
    made = model_of(one)
    after = read_model(b"".join(bytes(piece) for piece in cut(one, made, (0, 2)).model), "m")
    old, new = rows_of(made, "n", 0, 3 * CLASSES), rows_of(after, "n", 0, 3 * 2)
    assert new == [old[box * CLASSES + number] for box in range(3) for number in (0, 2)]
    assert rows_of(after, "n", 2, 1) == rows_of(made, "n", 2, 1)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('"DetectionOutput"', '"Silence"', "no detector of the SSD kind"),
        ("num_output: 15\n", "num_output: 16\n", "is no multiple of 5"),
        ('type: "Softmax"', 'type: "Odd"', "stands where a convolution is known to predict"),
        ('top: "mbox_conf_flatten"', 'top: "elsewhere"', "come from outside"),
    ],
)
def test_a_detector_that_is_built_otherwise_is_refused(before: str, after: str, words: str) -> None:
    text = NET.document.data.decode()
    assert before in text
    with pytest.raises(UsageError, match=words):
        cut(read_net(parse(text.replace(before, after).encode())), MODEL, (0, 1))


def test_layers_that_disagree_are_sent_to_check() -> None:
    text = net("test").document.data.decode().replace("num_classes: 5", "num_classes: 6", 1)
    with pytest.raises(UsageError, match="not one number of classes, but 5, 6") as caught:
        detector(read_net(parse(text.encode())))
    assert "net check" in caught.value.commands[0]


def test_a_model_of_another_net_is_refused() -> None:
    with pytest.raises(UsageError, match="do not fit"):
        cut(NET, model_of(net(classes=7)), (0, 1))
    empty = read_model(b"".join(bytes(piece) for piece in new_model("m", [("x", "X", [])])), "m")
    with pytest.raises(UsageError, match="no weights for conv1"):
        cut(NET, empty, (0, 1))


# --- names -------------------------------------------------------------------------------------------------

MAP = """
item { name: "none_of_the_above" label: 0 display_name: "background" }
item { name: "n01" label: 1 display_name: "Person" }
item { name: "n02" label: 2 display_name: "car" }
"""
NAMES = from_map(parse(MAP.encode()), 3)


@pytest.mark.parametrize("wanted", [["car", "person"], ["n02", "n01"], ["2", "1"], ["background", "car", " Person "]])
def test_classes_by_name_by_what_is_shown_and_by_number(wanted: list[str]) -> None:
    assert chosen(wanted, NAMES, 3, 0) == (0, 2, 1)


def test_without_a_background_there_is_none() -> None:
    assert chosen(["2"], None, 3, -1) == (2,)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (["cra"], "There is no class 'cra'"),
        (["car", "2"], "named twice"),
        (["3"], "the net has 3"),
        ([""], "No class is left"),
        (["background"], "No class is left"),
    ],
)
def test_classes_that_are_none(wanted: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        chosen(wanted, NAMES, 3, 0)


def test_a_slip_is_answered_with_what_is_meant() -> None:
    with pytest.raises(UsageError) as caught:
        chosen(["cra"], NAMES, 3, 0)
    assert caught.value.advice == "Perhaps: car"


def test_names_without_labels_are_not_guessed() -> None:
    with pytest.raises(UsageError, match="number of 'car' is not known"):
        chosen(["car"], None, 3, 0)


def test_labels_are_written_as_they_came() -> None:
    again = from_map(parse(written(NAMES, (0, 2)).encode()), 2)
    assert (again.names, again.shown) == (("none_of_the_above", "n02"), ("background", "car"))
    assert written(from_lines("background\nperson\ncar\n", "l", 3), (0, 2)) == "background\ncar\n"
    assert written(from_lines("person\r\ncar\r\n\n", "l", 3), (0, 2)) == "car\n"


@pytest.mark.parametrize("text", ["", "one\n", "a\nb\nc\nd\n"])
def test_lines_that_do_not_fit_the_net_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"names \d classes, and the net has 3"):
        from_lines(text, "l", 3)


@pytest.mark.parametrize(
    "text", ["item { name: 'a' label: 0 }", "item { label: 0 } item { label: 0 } item { label: 1 }", "item { }"]
)
def test_label_maps_that_do_not_fit_the_net_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        from_map(parse(text.encode()), 3)


# --- files -------------------------------------------------------------------------------------------------


def files(folder: Path, purpose: str = "deploy") -> tuple[str, str]:
    order = Order(3, 64, purpose)
    new_net("mobilenet-ssd", order, output=str(folder / "n.prototxt"), model=str(folder / "m.caffemodel"))
    return str(folder / "n.prototxt"), str(folder / "m.caffemodel")


def test_net_model_and_labels_are_written(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("person\ncar\n")
    report, _ = cut_net(*files(tmp_path), "car", labels=str(tmp_path / "labels.txt"))
    assert [Path(name).name for name in report.written] == ["n_cut.prototxt", "m_cut.caffemodel", "n_cut_labels.txt"]
    assert report.classes == ("background", "car")
    assert (tmp_path / "n_cut_labels.txt").read_text() == "car\n"


def test_one_output_that_is_there_stops_all(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("person\ncar\n")
    (tmp_path / "n_cut_labels.txt").write_text("mine")
    made = files(tmp_path)
    with pytest.raises(UsageError, match="is there already"):
        cut_net(*made, "car", labels=str(tmp_path / "labels.txt"))
    assert not (tmp_path / "n_cut.prototxt").exists()


def test_data_with_the_old_numbers_are_warned_of(tmp_path: Path) -> None:
    report, _ = cut_net(*files(tmp_path, "train"), "2")
    assert [finding.id for finding in report.findings] == ["lmdb-old-labels"]


def test_labels_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        cut_net(*files(tmp_path), "car", labels=str(tmp_path))
