"""The best engine for each convolution, and the file that says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from caffeup.app import nets
from caffeup.app.session import Session
from caffeup.app.tuning import TuneWish, tune
from caffeup.bench.edits import Choice, convolutions
from caffeup.bench.layer_memory import alone, answers, bottoms, ways
from caffeup.bench.tuning import is_training, tuned, written
from caffeup.build.progress import Silent
from caffeup.cli import main, show_bench
from caffeup.errors import CaffeupError, UsageError
from caffeup.model.base import from_json
from caffeup.model.bench import LayerTime, Row, TuneReport
from caffeup.net.model import Net, read_net
from caffeup.net.text import parse
from fakecaffe import HANDLES, NET, built_tree, calls
from fakelive import FakeLive, PlainHost, card


def net_of(text: str) -> Net:
    return read_net(parse(text.encode()))


def tune_it(root: Path, net: str, *, gpu: bool = True, **wish: Any) -> TuneReport:
    wish.setdefault("repeat", 1)
    session = Session(PlainHost(env={"PATH": "/usr/bin:/bin"}))
    live = FakeLive(card()) if gpu else FakeLive()
    return tune(session, str(root), TuneWish(net=net, **wish), Silent(), live)


@pytest.fixture
def net(tmp_path: Path) -> str:
    path = tmp_path / "net.prototxt"
    path.write_text(NET)
    return str(path)


def rows(times: dict[str, tuple[float, float]], spread: float = 0.0) -> list[Row]:
    """By variant: milliseconds forward of dw and of pw; backward takes as long as the other's forward."""
    return [
        Row(
            variant=variant,
            title=variant,
            batch=1,
            forward=dw + pw,
            backward=dw + pw,
            layers=(
                LayerTime(name="dw", forward=dw, backward=pw, forward_spread=spread),
                LayerTime(name="pw", forward=pw, backward=dw, forward_spread=spread),
            ),
        )
        for variant, (dw, pw) in times.items()
    ]


class TestChoice:
    def judged(self, times: dict[str, tuple[float, float]], *, training: bool = False, spread: float = 0.0) -> dict[str, str]:
        net = net_of(NET)
        return {one.layer: one.winner for one in tuned(net, convolutions(net), rows(times, spread), training=training)}

    def test_each_layer_by_itself(self) -> None:
        times = {"as-built": (5.0, 3.0), "group": (8.0, 2.0), "cudnn": (4.0, 3.0), "depthwise": (1.0, 2.0)}
        assert self.judged(times) == {"dw": "depthwise", "pw": "CAFFE"}

    def test_noise_changes_nothing(self) -> None:
        times = {"as-built": (1.0, 3.0), "group": (8.0, 2.9), "cudnn": (4.0, 3.0), "depthwise": (0.98, 2.9)}
        assert self.judged(times) == {"dw": "as written", "pw": "CUDNN"}
        far = {"as-built": (5.0, 3.0), "group": (8.0, 2.0), "cudnn": (4.0, 3.0), "depthwise": (1.0, 2.0)}
        assert self.judged(far, spread=1.5) == {"dw": "depthwise", "pw": "CUDNN"}

    def test_backward_counts_where_it_is_to_train(self) -> None:
        times = {"as-built": (1.0, 9.0), "group": (9.0, 1.0), "cudnn": (2.0, 2.0), "depthwise": (1.0, 9.0)}
        assert self.judged(times)["dw"] == "as written"
        assert self.judged(times, training=True)["dw"] == "CUDNN"

    def test_of_two_as_fast_the_one_with_less_memory(self) -> None:
        net = net_of(NET.replace("engine: CUDNN", "bias_term: true"))
        times = rows({"as-built": (9.0, 9.0), "group": (5.0, 2.00), "cudnn": (5.0, 1.99), "depthwise": (1.0, 2.00)})
        for sizes, winner in (((1, 9), "CAFFE"), ((9, 1), "CUDNN")):
            memory = dict(zip((("pw", "CAFFE"), ("pw", "CUDNN")), sizes))
            found = tuned(net, convolutions(net), times, training=False, memory=memory)
            assert {one.layer: one.winner for one in found}["pw"] == winner

    def test_what_does_not_run_as_it_is_written(self) -> None:
        net = net_of(NET)
        found = tuned(net, convolutions(net), rows({"group": (8.0, 2.0), "depthwise": (1.0, 2.0)}), training=False)
        assert [(one.layer, one.winner, one.changed) for one in found] == [("dw", "depthwise", True)]
        assert found[0].because == "depthwise takes 1.00 ms; as it is written it does not run"

    def test_of_one_engine_alone_nothing_is_said(self) -> None:
        assert self.judged({"as-built": (3.0, 3.0), "group": (2.0, 2.0)}) == {}

    def test_a_net_with_a_loss_is_to_train(self) -> None:
        assert not is_training(net_of(NET))
        loss = 'layer { name: "l" type: "SoftmaxWithLoss" bottom: "pw" bottom: "y" top: "l" }'
        assert is_training(net_of(NET + loss))


class TestFile:
    def test_what_is_written(self, tmp_path: Path, net: str) -> None:
        root = built_tree(tmp_path / "tree", gpu=True, cudnn=True, caffe=0.2, cudnn_ms=1.0, default=2.0)
        report = tune_it(root, net)
        assert report.written == str(tmp_path / "net_tuned.prototxt")
        text = Path(report.written).read_text()
        assert "# caffeup: tuned for batch 1 on NVIDIA GeForce RTX 4090, ms forward: as written 16.00, depthwise 0.500" in text
        assert "CAFFE 0.200 (2 MiB), CUDNN 1.00 (9 MiB)" in text
        assert '  type: "DepthwiseConvolution" # caffeup: was "Convolution"\n' in text
        assert "    engine: CAFFE # caffeup: was CUDNN\n" in text
        made = convolutions(net_of(text))
        assert [layer.type for layer in made.depthwise] == ["DepthwiseConvolution"]
        assert report.before is not None
        assert report.after is not None
        assert report.after.ratio == pytest.approx((0.5 + 0.2 + 0.2) / (16 + 1 + 0.2))

    def test_it_can_be_taken_back(self, tmp_path: Path, net: str) -> None:
        root = built_tree(tmp_path / "tree", gpu=True, cudnn=True, caffe=0.2)
        report = tune_it(root, net)
        back = tmp_path / "back.prototxt"
        nets.revert_net(report.written, output=str(back))
        assert back.read_bytes() == Path(net).read_bytes()

    @pytest.mark.parametrize("text", [NET.replace("\n", "\r\n"), NET.replace("  ", "\t"), NET.replace('"dw"', '"卷积"')])
    def test_line_ends_tabs_and_names_stay(self, tmp_path: Path, text: str) -> None:
        net = tmp_path / "net.prototxt"
        net.write_bytes(text.encode())
        root = built_tree(tmp_path / "tree", gpu=True, cudnn=True, caffe=0.2)
        report = tune_it(root, str(net))
        assert sum(one.changed for one in report.layers) == 2
        back = tmp_path / "back.prototxt"
        nets.revert_net(report.written, output=str(back))
        assert back.read_bytes() == text.encode()

    def test_nothing_is_written_where_nothing_is_better(self, tmp_path: Path, net: str) -> None:
        root = built_tree(tmp_path / "tree", gpu=True, cudnn=True, default=0.01, cudnn_ms=0.01)
        report = tune_it(root, net)
        assert report.written == ""
        assert not any(one.changed for one in report.layers)
        assert not (tmp_path / "net_tuned.prototxt").exists()
        assert "No file was written" in "\n".join(show_bench.tuned(report))

    def test_what_is_there_is_not_overwritten_and_nothing_measured(self, tmp_path: Path, net: str) -> None:
        root = built_tree(tmp_path / "tree")
        (tmp_path / "net_tuned.prototxt").write_text("mine")
        with pytest.raises(UsageError, match="is not overwritten"):
            tune_it(root, net)
        assert calls(root) == []

    def test_a_tuned_net_is_not_tuned_again(self, tmp_path: Path, net: str) -> None:
        root = built_tree(tmp_path / "tree", gpu=True, cudnn=True, caffe=0.2)
        report = tune_it(root, net)
        with pytest.raises(UsageError, match="was tuned already"):
            tune_it(root, report.written, output=str(tmp_path / "again.prototxt"))

    def test_the_batch_size_is_that_of_the_measurement_alone(self, tmp_path: Path, net: str) -> None:
        root = built_tree(tmp_path / "tree", gpu=True, cudnn=True, caffe=0.2)
        report = tune_it(root, net, batch=16)
        assert report.before is not None
        assert report.before.forward == pytest.approx(16 * (8 * 1.5 + 1 + 0.2))
        assert "dim: 1 dim: 8" in Path(report.written).read_text()


class TestLayersAlone:
    def test_each_in_each_way(self) -> None:
        net = net_of(NET)
        found, shapes = convolutions(net), bottoms(net, 4)
        (dw,), (pw,) = found.depthwise, found.others
        assert (shapes[dw.start], shapes[pw.start]) == ((4, 8, 16, 16), (4, 8, 14, 14))
        for way, choice in ways("DepthwiseConvolution", depthwise=True, cudnn=True):
            text = alone(net, dw, shapes[dw.start], choice)
            assert text is not None
            one = net_of(text.decode())
            assert one.inputs == ("data",)
            assert one.input_shapes == ((4, 8, 16, 16),)
            assert [written(layer) for layer in one.layers] == [way]

    def test_what_reads_two_blobs_is_left_out(self) -> None:
        net = net_of(NET.replace('bottom: "dw"', 'bottom: "dw" bottom: "data"'))
        pw = convolutions(net).others[0]
        assert alone(net, pw, (1, 8, 14, 14), Choice("Convolution", "CAFFE")) is None

    def test_what_the_script_tells(self) -> None:
        assert list(answers("warning\ncaffeup:5\ncaffeup:x\n\ncaffeup:7\nF1201 Check failed")) == [5, 7]


class TestTrees:
    def test_the_cpu_alone(self, tmp_path: Path, net: str) -> None:
        (Path(net)).write_text(NET.replace("engine: CUDNN", "bias_term: true"))
        report = tune_it(built_tree(tmp_path / "tree"), net, gpu=False)
        assert [(one.layer, one.winner) for one in report.layers] == [("dw", "depthwise")]
        assert {one.way for one in report.layers[0].candidates} == {"as written", "CAFFE", "depthwise"}

    def test_a_way_that_dies_is_left_out(self, tmp_path: Path, net: str) -> None:
        root = built_tree(tmp_path / "tree", gpu=True, cudnn=True, dies=True, death=HANDLES)
        report = tune_it(root, net)
        (dw, pw) = report.layers
        assert {one.way for one in dw.candidates} == {"as written", "CAFFE", "depthwise"}
        assert {one.way for one in pw.candidates} == {"as written", "CAFFE", "CUDNN"}
        assert next(row for row in report.ways if row.variant == "cudnn").failed

    def test_a_net_that_does_not_run_at_all(self, tmp_path: Path, net: str) -> None:
        root = built_tree(tmp_path / "tree")
        (root / "build" / "tools" / "caffe").write_text("#!/bin/sh\necho Check failed: no >&2; exit 1\n")
        with pytest.raises(CaffeupError, match="does not run in this tree in any way") as caught:
            tune_it(root, net)
        assert "group: Check failed: no" in caught.value.details

    def test_a_net_without_convolutions(self, tmp_path: Path, net: str) -> None:
        Path(net).write_text('layer { name: "r" type: "ReLU" bottom: "x" top: "r" }')
        with pytest.raises(UsageError, match="no convolution"):
            tune_it(built_tree(tmp_path / "tree"), net)


class TestCommand:
    @pytest.fixture(autouse=True)
    def _here(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("caffeup.app.session.RealHost", lambda: PlainHost(env={"PATH": "/usr/bin:/bin"}))
        monkeypatch.setattr("caffeup.app.gpus.RealLive", lambda _env: FakeLive(card()))

    def test_words(self, tmp_path: Path, net: str, capsys: pytest.CaptureFixture[str]) -> None:
        root = built_tree(tmp_path / "tree", gpu=True, cudnn=True, caffe=0.2)
        assert main.main(["net", "tune", net, "--tree", str(root), "--repeat", "1"]) == 0
        out = capsys.readouterr().out
        assert "as written → depthwise" in out
        assert "CUDNN → CAFFE" in out
        assert "2 convolutions computed in another way" in out

    def test_json(self, tmp_path: Path, net: str, capsys: pytest.CaptureFixture[str]) -> None:
        root = built_tree(tmp_path / "tree", gpu=True, cudnn=True, caffe=0.2)
        assert main.main(["net", "tune", net, "--tree", str(root), "--repeat", "1", "--json"]) == 0
        text = capsys.readouterr().out
        assert [one["winner"] for one in json.loads(text)["layers"]] == ["depthwise", "CAFFE"]
        assert from_json(text, TuneReport).batch == 1
