"""Nets made anew: those that are well known, at their sizes, and whole at every other."""

from __future__ import annotations

from pathlib import Path

import pytest

from caffeup.app.net_models import KINDS, new_net, ordered
from caffeup.app.netcheck import known_schema
from caffeup.cli.main import main
from caffeup.errors import UsageError
from caffeup.net.caffemodel import read_model
from caffeup.net.check import check
from caffeup.net.make.detector import Order
from caffeup.net.make.mobilenet import mobilenet_ssd
from caffeup.net.make.spelling import Bare, spelled
from caffeup.net.model import Net, as_run, read_net
from caffeup.net.shapes import LayerShapes, infer
from caffeup.net.text import Block, Scalar, parse

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "mobilenet-ssd"


def made(kind: str, order: Order) -> Net:
    return read_net(parse(spelled(KINDS[kind](order)).encode(), kind))


def shapes(net: Net, phase: str = "TEST") -> tuple[LayerShapes, ...]:
    return infer(as_run(net, net.state(phase)), phase=phase)


@pytest.mark.parametrize("size", [300, 301, 320, 416, 512, 608, 1024])
@pytest.mark.parametrize("kind", KINDS)
def test_nets_of_any_size_are_whole(kind: str, size: int) -> None:
    """DetectionOutput compares heads with priors, so a wrong number anywhere is trouble there."""
    found = shapes(made(kind, Order(6, size)))
    assert [one.trouble for one in found if one.trouble] == []
    assert found[-1].layer.type == "DetectionOutput"


@pytest.mark.parametrize(("kind", "priors"), [("mobilenet-ssd", 1917), ("vgg-ssd", 8732)])
def test_the_well_known_numbers_of_boxes(kind: str, priors: int) -> None:
    found = {one.layer.name: one.tops[0] for one in shapes(made(kind, Order(21, 300))) if one.tops}
    assert found["mbox_priorbox"] == (1, 2, 4 * priors)
    assert found["mbox_conf"] == (1, 21 * priors)


def test_vgg_for_512_has_the_seventh_source() -> None:
    found = {one.layer.name: one.tops[0] for one in shapes(made("vgg-ssd", Order(21, 512))) if one.tops}
    assert found["mbox_priorbox"] == (1, 2, 4 * 24564)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("purpose", ["deploy", "train", "test"])
def test_check_finds_nothing_wrong(kind: str, purpose: str) -> None:
    text = spelled(KINDS[kind](Order(4, 300, purpose, 2, source="lmdb")))
    report = check(parse(text.encode(), "net"), known_schema()).report
    assert [one.title for one in report.findings if one.severity.value == "problem"] == []


def plain(block: Block, skip: frozenset[str]) -> list[tuple[str, object]]:
    """A message without the order of its fields."""
    found: list[tuple[str, object]] = []
    for field in block.fields:
        if field.name not in skip:
            value = field.value
            found.append((field.name, plain(value, skip) if isinstance(value, Block) else known(value)))
    return sorted(found, key=repr)


def known(value: Scalar) -> object:
    number = value.number()
    return value.value if number is None else number


@pytest.mark.skipif(not SHARED.is_dir(), reason="the well-known nets are not here")
@pytest.mark.parametrize(
    ("file", "order", "skip"),
    [
        ("deploy", Order(21, 300), {"engine", "param"}),
        ("MobileNetSSD_deploy", Order(21, 300, merged=True), {"engine", "param"}),
        ("MobileNetSSD_train", Order(21, 300, "train", 24, source="trainval_lmdb/"), {"engine"}),
        ("MobileNetSSD_test", Order(21, 300, "test", 8, source="test_lmdb"), {"engine", "param"}),
    ],
)
def test_the_well_known_nets_layer_for_layer(file: str, order: Order, skip: set[str]) -> None:
    ours = made("mobilenet-ssd", order)
    theirs = read_net(parse((SHARED / f"{file}.prototxt").read_bytes(), file))
    assert [layer.name for layer in ours.layers] == [layer.name for layer in theirs.layers]
    for one, other in zip(ours.layers, theirs.layers):
        assert plain(one.block, frozenset(skip)) == plain(other.block, frozenset(skip)), one.name


def test_boxes_grow_with_the_image() -> None:
    sizes = [
        (block.number("min_size"), block.number("max_size"))
        for layer in made("mobilenet-ssd", Order(21, 600)).layers
        for block in layer.block.blocks("prior_box_param")
    ]
    assert sizes == [(120, 0), (210, 300), (300, 390), (390, 480), (480, 570), (570, 600)]


def test_weights_by_chance_fit_and_are_the_same_for_the_same_seed(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        new_net("mobilenet-ssd", Order(2, 64), model=str(tmp_path / name), seed=seed)
    files = [(tmp_path / name).read_bytes() for name in "abc"]
    assert files[0] == files[1] != files[2]
    model = read_model(files[0], "a")
    wanted = {one.layer.name: one.params for one in shapes(made("mobilenet-ssd", Order(2, 64))) if one.params}
    assert {layer.name: tuple(blob.shape for blob in layer.blobs) for layer in model.layers} == wanted
    variances = model.weights("conv0/bn")
    assert variances is not None
    assert min(model.values(variances.blobs[1])) > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("resnet", "-o", "x"), "There is no net 'resnet'"),
        (("vgg-ssd", "--size", "256"), "takes images of 257 to 4096"),
        (("mobilenet-ssd", "--size", "9"), "takes images of 32"),
        (("mobilenet-ssd", "--train", "--test"), "exclude each other"),
        (("mobilenet-ssd", "--data", "x"), "--data is for"),
        (("mobilenet-ssd", "--json"), "--json needs -o"),
    ],
)
def test_what_cannot_be_made(arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["net", "new", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_the_net_alone_is_on_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["net", "new", "mobilenet-ssd", "--size", "64", "--model", str(tmp_path / "m")]) == 0
    assert capsys.readouterr().out == spelled(mobilenet_ssd(Order(21, 64)))


def test_an_output_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "m").write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        new_net("mobilenet-ssd", Order(2, 64), output=str(tmp_path / "n"), model=str(tmp_path / "m"))
    assert not (tmp_path / "n").exists(), "both are looked at first"


def test_what_is_usual_where_nothing_is_said() -> None:
    asked = ordered(21, 300, train=True, test=False, merged=False, batch=None, data="", labels="l")
    assert (asked.purpose, asked.batch, asked.source) == ("train", 24, "trainval_lmdb")


def test_words_are_spelled_as_protobuf_reads_them() -> None:
    text = spelled([("name", 'a"b\n'), ("flag", True), ("kind", Bare("MAX")), ("inner", [("number", 0.5)])])
    root = parse(text.encode()).root
    assert root.string("name") == 'a"b\n'
    assert root.flag("flag")
    assert root.scalar("kind").kind == "word"  # type: ignore[union-attr]
    assert root.block("inner").number("number") == 0.5
