"""Nets measured: variants, the output of ``caffe time``, medians, turns, and what is watched meanwhile."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any, Optional

import pytest

from caffeup.app import bench_run
from caffeup.app.bench_run import find_site
from caffeup.app.benching import STOPPED, Wish, bench
from caffeup.app.session import Session
from caffeup.bench.caffe_time import Timed, parse_times
from caffeup.bench.edits import batch_of, convolutions, engine_of, with_batch
from caffeup.bench.medians import by_name, unsteady, with_ratios, with_times
from caffeup.bench.rounds import MOST, SLOW, Case, expected_seconds
from caffeup.bench.samples import Sample, during, others, taken
from caffeup.bench.trunk import TRUNK, default_net
from caffeup.bench.variants import ALL, Ability, fitting, named, text_of
from caffeup.build.progress import Silent, Status
from caffeup.cli import main, show_bench
from caffeup.errors import NotBuilt, UsageError
from caffeup.model.base import from_json, to_json
from caffeup.model.bench import BenchReport, LayerTime, Row
from caffeup.net.model import Net, read_net
from caffeup.net.text import parse
from fakecaffe import CRASH, NET, built_tree, calls
from fakelive import MIB, FakeLive, PlainHost, card, listed, process

CAN = Ability(cudnn=True, depthwise="DepthwiseConvolution")
FIRST = "I1201 16:21:49.693514 30951 caffe.cpp:393] "


def net_of(text: str) -> Net:
    return read_net(parse(text.encode()))


def session(host: Optional[PlainHost] = None) -> Session:
    return Session(host or PlainHost(env={"PATH": "/usr/bin:/bin"}))


def measured(root: Path, live: Optional[FakeLive] = None, **wish: Any) -> BenchReport:
    wish.setdefault("repeat", 1)
    return bench(session(), str(root), Wish(**wish), Silent(), live or FakeLive())


@pytest.fixture
def net(tmp_path: Path) -> str:
    path = tmp_path / "net.prototxt"
    path.write_text(NET)
    return str(path)


class TestOutput:
    def test_times(self) -> None:
        lines = [
            f"{FIRST}Average time per layer: ",
            f"{FIRST}     conv0\tforward: 10.8245 ms.",
            f"{FIRST}     conv0\tbackward: 39.4 ms.",
            f"{FIRST}conv 1] x\tforward: 1e-05 ms.",
            f"{FIRST}conv 1] x\tbackward: 0 ms.",
            f"{FIRST}Average Forward pass: 684.896 ms.",
            f"{FIRST}Average Backward pass: 922.045 ms.",
            f"{FIRST}Average Forward-Backward: 1607.5 ms.",
        ]
        times = parse_times(lines)
        assert times is not None
        assert (times.forward, times.backward) == (684.896, 922.045)
        assert times.layers == (
            LayerTime(name="conv0", forward=10.8245, backward=39.4),
            LayerTime(name="conv 1] x", forward=1e-05, backward=0.0),
        )

    def test_without_a_prefix(self) -> None:
        times = parse_times(["  a\tforward: 1 ms.", "Average Forward pass: 1 ms.", "Average Backward pass: nan ms."])
        assert times == Timed(forward=1.0, backward=0.0, layers=(LayerTime(name="a", forward=1.0),))

    def test_one_that_did_not_come_to_its_end(self) -> None:
        assert parse_times([f"{FIRST}     conv0\tforward: 10 ms.", f"{FIRST}Average Forward pass: 10 ms."]) is None

    def test_names_cannot_reach_the_terminal(self) -> None:
        times = parse_times(
            [f"{FIRST}\x1b[31mred\tforward: 1 ms.", "Average Forward pass: 1 ms.", "Average Backward pass: 1 ms."]
        )
        assert times is not None
        assert times.layers[0].name == "?[31mred"


class TestVariants:
    @pytest.mark.parametrize("variant", ALL, ids=lambda one: one.id)
    def test_each_layer_gets_what_the_variant_says(self, variant: Any) -> None:
        net = net_of(NET)
        made = net_of(text_of(net, convolutions(net), variant, CAN, 4).decode())
        found = convolutions(made)
        (own,), (other,) = found.depthwise, found.others
        assert batch_of(made) == 4
        if variant.as_written:
            assert (own.type, engine_of(own), engine_of(other)) == ("Convolution", "", "CUDNN")
            return
        assert own.type == ("DepthwiseConvolution" if variant.depthwise_layer else "Convolution")
        assert engine_of(own) == ("" if variant.depthwise_layer else variant.groups)
        assert engine_of(other) == variant.others

    def test_what_does_not_concern_it_stays(self) -> None:
        net = net_of(NET)
        same = text_of(net, convolutions(net), named(["as-built"])[0], CAN, 1)
        assert same == NET.encode()

    def test_the_depthwise_layer_as_a_convolution_again(self) -> None:
        net = net_of(NET.replace('"Convolution"', '"DepthwiseConvolution"', 1))
        found = convolutions(net)
        assert [layer.name for layer in found.depthwise] == ["dw"]
        made = net_of(text_of(net, found, named(["group"])[0], CAN, 1).decode())
        assert [(layer.type, engine_of(layer)) for layer in convolutions(made).depthwise] == [("Convolution", "CAFFE")]

    def test_one_without_group_is_left(self) -> None:
        net = net_of(NET.replace('"Convolution"', '"DepthwiseConvolution"', 1).replace(" group: 8", ""))
        assert [(layer.name, why) for layer, why in convolutions(net).left] == [
            ("dw", "it names no group, so no Convolution does the same")
        ]

    def test_old_layers(self) -> None:
        old = """\
input: "data" input_dim: 1 input_dim: 8 input_dim: 16 input_dim: 16
layers { name: "dw" type: CONVOLUTION bottom: "data" top: "dw"
  convolution_param { num_output: 8 kernel_size: 3 group: 8 } }
"""
        net = net_of(old)
        made = net_of(text_of(net, convolutions(net), named(["depthwise"])[0], CAN, 2).decode())
        assert [layer.type for layer in made.layers] == ["DepthwiseConvolution"]
        assert made.input_shapes == ((2, 8, 16, 16),)
        group = net_of(text_of(net, convolutions(net), named(["group"])[0], CAN, 2).decode())
        assert group.v1
        assert engine_of(group.layers[0]) == "CAFFE"

    def test_only_what_can_be(self) -> None:
        net = net_of(NET)
        kept, left = fitting(ALL, Ability(), convolutions(net))
        assert [one.id for one in kept] == ["group", "as-built"]
        assert {one.title: one.because for one in left} == {
            "group-cudnn": "this tree is built without cuDNN",
            "cudnn": "this tree is built without cuDNN",
            "depthwise": "this tree has no depthwise layer",
            "depthwise-cudnn": "this tree is built without cuDNN",
        }

    def test_a_net_without_depthwise_layers_is_not_measured_twice(self) -> None:
        net = net_of(NET.replace(" group: 8", " group: 2"))
        kept, _ = fitting(ALL, CAN, convolutions(net))
        assert [one.id for one in kept] == ["group", "cudnn", "as-built"]

    def test_a_name_that_there_is_not(self) -> None:
        with pytest.raises(UsageError, match="no variant 'fast'"):
            named(["group", "fast"])


class TestBatch:
    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ('input: "data" input_dim: 1 input_dim: 3 input_dim: 4 input_dim: 5', "input_dim: 7 input_dim: 3 input_dim: 4"),
            ('input: "a" input_shape { dim: [1, 3, 4, 5] }', "dim: [7, 3, 4, 5]"),
            ('layer { name: "d" type: "Data" top: "d" data_param { source: "x" batch_size: 1 } }', "batch_size: 7"),
            ('layer { type: "DummyData" top: "d" dummy_data_param { shape { dim: 1 dim: 2 dim: 3 dim: 4 } } }', "dim: 7 dim: 2"),
        ],
    )
    def test_wherever_it_stands(self, text: str, wanted: str) -> None:
        whole = text if "layer" in text else f'{text}\nlayer {{ name: "r" type: "ReLU" bottom: "data" top: "r" }}'
        net = net_of(whole)
        assert batch_of(net) == 1
        assert wanted in net.document.edited(with_batch(net, 7)).decode()

    def test_an_input_that_is_no_batch_of_images_stays(self) -> None:
        text = """\
input: "data" input_shape { dim: 1 dim: 3 dim: 8 dim: 8 } input: "im_info" input_shape { dim: 1 dim: 3 }
layer { name: "r" type: "ReLU" bottom: "data" top: "r" }
"""
        net = net_of(text)
        assert (
            'dim: 7 dim: 3 dim: 8 dim: 8 } input: "im_info" input_shape { dim: 1 dim: 3 }'
            in net.document.edited(with_batch(net, 7)).decode()
        )


class TestFigures:
    def test_medians(self) -> None:
        runs = [
            Timed(forward=total, backward=1.0, layers=(LayerTime(name="a", forward=total), LayerTime(name="b", forward=1.0)))
            for total in (3.0, 9.0, 4.0)
        ]
        row = with_times(Row(variant="x", title="x", batch=1), runs, frozenset({"a"}))
        assert (row.forward, row.depthwise_forward) == (4.0, 4.0)
        assert row.layers[0] == LayerTime(name="a", forward=4.0, forward_spread=6.0)
        assert unsteady(row) == pytest.approx(6 / 5)

    def test_ratios_are_within_a_batch_size_and_to_the_first_that_ran(self) -> None:
        def row(batch: int, total: Optional[float]) -> Row:
            return Row(variant="x", title="x", batch=batch, forward=total, backward=None if total is None else 0.0)

        rows = with_ratios([row(1, None), row(1, 4.0), row(1, 1.0), row(32, 8.0)])
        assert [one.ratio for one in rows] == [None, 1.0, 0.25, 1.0]

    def test_layers_of_one_name_are_summed(self) -> None:
        layers = [LayerTime(name="a", forward=1.0, backward=2.0), LayerTime(name="a", forward=3.0)]
        assert by_name(layers)["a"].forward == 4.0

    def test_the_first_run_only_warms_up(self) -> None:
        case = Case(repeat=2, iterations=None)
        assert case.expected is None
        assert not case.ran(3.0, Timed(forward=20.0, backward=30.0))
        assert (case.iterations, case.runs_left) == (20, 2)
        assert case.expected == pytest.approx(2.95 + 1.0)
        assert expected_seconds([case]) == pytest.approx(2 * 3.95)
        assert case.ran(1.5, Timed(forward=20.0, backward=30.0))
        assert case.runs_left == 1

    def test_what_is_slow_is_measured_once(self) -> None:
        case = Case(repeat=5, iterations=None)
        case.ran(9.0, Timed(forward=SLOW * 1000, backward=1.0))
        assert (case.iterations, case.runs_left) == (1, 1)

    def test_what_takes_no_time_is_not_measured_for_ever(self) -> None:
        case = Case(repeat=1, iterations=None)
        case.ran(1.0, Timed(forward=0.0, backward=0.0))
        assert case.iterations == MOST

    def test_what_failed_is_not_run_again(self) -> None:
        case = Case(repeat=3, iterations=10)
        assert not case.ran(1.0, None)
        assert case.runs_left == 0


class TestSamples:
    def test_the_clock_of_the_moments_in_which_it_worked(self) -> None:
        cards = [
            card(clock_mhz=345, clock_max_mhz=1980, temperature=30),
            card(clock_mhz=1755, clock_max_mhz=1980, temperature=41, utilisation=90, power_watts=210.0, slowed_by=("power",)),
            card(clock_mhz=1740, clock_max_mhz=1980, temperature=40, utilisation=50),
        ]
        seen = during([Sample(card=one) for one in cards])
        assert seen is not None
        assert (seen.clock_mhz, seen.clock_lowest_mhz, seen.clock_max_mhz) == (1748, 1740, 1980)
        assert (seen.temperature, seen.power_watts, seen.slowed_by, seen.samples) == (41, 210.0, ("power",), 3)

    def test_nothing_is_told(self) -> None:
        assert during([]) is None
        assert during([Sample(card=card(error="GPU is lost"))]) is None
        seen = during([Sample(card=card())])
        assert seen is not None
        assert seen.clock_mhz is None

    def test_memory_of_the_process(self) -> None:
        samples = [
            Sample(card=card(used=900 * MIB, listed=[listed(7, 500), listed(8, 300)]), ours=(7,)),
            Sample(card=card(used=800 * MIB, listed=[listed(7, 450)]), ours=(7,)),
        ]
        memory = taken(card(used=10 * MIB), samples)
        assert (memory.size, memory.of) == (500 * MIB, "process")
        assert [(one.pid, one.memory_bytes) for one in others(None, samples)] == [(8, 300 * MIB)]

    def test_where_the_driver_lists_no_memory_by_what_filled_up(self) -> None:
        samples = [Sample(card=card(used=used * MIB, listed=[listed(7, None)]), ours=(7,)) for used in (300, 700)]
        memory = taken(card(used=100 * MIB), samples)
        assert (memory.size, memory.of) == (600 * MIB, "gpu")
        assert taken(None, samples).size is None


class TestDefaultNet:
    def test_whole_where_the_tree_has_the_layers(self) -> None:
        every = {layer.type for layer in net_of(default_net(_Everything())).layers}
        assert "DetectionOutput" in every
        assert net_of(default_net(every)).name == "MobileNet-SSD"

    def test_its_convolutions_elsewhere(self) -> None:
        net = net_of(default_net({"Convolution"}))
        assert net.name == TRUNK
        assert {layer.type for layer in net.layers} == {"Convolution", "ReLU"}
        assert len(convolutions(net).depthwise) == 13


class _Everything:
    def __contains__(self, item: object) -> bool:
        return True


class TestBench:
    def test_on_the_cpu(self, tmp_path: Path, net: str) -> None:
        root = built_tree(tmp_path / "tree")
        report = measured(root, net=net, batches=(1, 4), repeat=2)
        assert [(row.variant, row.batch) for row in report.rows] == [
            *[("group", 1), ("depthwise", 1), ("as-built", 1)],
            *[("group", 4), ("depthwise", 4), ("as-built", 4)],
        ]
        group, depthwise, _, slow, *_ = report.rows
        assert group.forward == pytest.approx(16 + 2 + 0.2)
        assert depthwise.forward == pytest.approx(0.5 + 2 + 0.2)
        assert slow.forward == pytest.approx(4 * 18.2)
        assert group.ratio == 1.0
        assert depthwise.ratio == pytest.approx(2.7 / 18.2)
        assert group.depthwise_forward == pytest.approx(16)
        assert len(group.forward_runs) == 2
        assert report.device == "CPU"
        assert [one.title for one in report.left_out] == ["group-cudnn", "cudnn", "depthwise-cudnn"]
        assert len(calls(root)) == 6 * 3

    def test_turns(self, tmp_path: Path, net: str) -> None:
        root = built_tree(tmp_path / "tree")
        measured(root, net=net, variants=("group", "depthwise"), repeat=2)
        assert [call.split(", ")[-2] for call in calls(root)] == ["'0'", "'1'"] * 3

    def test_one_that_dies_is_a_row_with_its_cause(self, tmp_path: Path, net: str) -> None:
        root = built_tree(tmp_path / "tree", gpu=True, cudnn=True, dies=True)
        report = measured(root, FakeLive(card()), net=net)
        rows = {row.variant: row for row in report.rows}
        assert rows["cudnn"].forward is None
        assert rows["cudnn"].failed
        assert rows["cudnn"].findings[0].id == "cudnn-handles"
        assert rows["depthwise-cudnn"].forward == pytest.approx(0.5 + 1 + 0.2)
        shown = "\n".join(show_bench.report(report))
        assert f"failed: {rows['cudnn'].failed}" in shown

    def test_one_that_crashes_without_a_word(self, tmp_path: Path, net: str) -> None:
        root = built_tree(tmp_path / "tree", gpu=True, cudnn=True, dies=True, death=CRASH)
        many = str(tmp_path / "many.prototxt")
        Path(many).write_text(NET.replace('"dw"', '"conv1/dw"'))
        report = measured(root, FakeLive(card()), net=many, variants=("cudnn", "depthwise"))
        assert [finding.id for finding in report.rows[0].findings] == ["crash-many-groups"]
        assert report.rows[1].ratio == 1.0

    def test_one_that_takes_too_long(self, tmp_path: Path, net: str) -> None:
        root = built_tree(tmp_path / "tree", sleep=30)
        report = measured(root, net=net, variants=("group",), limit=0.3)
        assert report.rows[0].failed == "given up after 0 s"

    def test_the_gpu_is_watched(self, tmp_path: Path, net: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bench_run, "_EVERY", 0.0)
        root = built_tree(tmp_path / "tree", gpu=True, cudnn=True, sleep=0.4)
        busy = card(used=900 * MIB, listed=[listed(77, 400), listed(5000, 300)], clock_mhz=1755, temperature=44, utilisation=80)
        ours = process(77, parent=4000, command="caffe time")
        live = FakeLive(busy, processes=(ours, process(5000, command="python train.py")))
        report = measured(root, live, net=net, variants=("depthwise",), iterations=1)
        (row,) = report.rows
        assert (row.memory_bytes, row.memory_of) == (400 * MIB, "process")
        assert row.gpu is not None
        assert (row.gpu.clock_mhz, row.gpu.temperature) == (1755, 44)
        assert any("process 5000 of me (python train.py)" in line for line in report.disturbed)
        assert "process 5000 was on the GPU while it was measured: 300 MiB" in report.disturbed
        assert not any("process 77 was on the GPU" in line for line in report.disturbed)
        assert "'GPU-00000000'" in calls(root)[0]
        assert "'gpu'" in calls(root)[0]
        assert live.closed == 1

    def test_one_of_ours_that_the_driver_still_lists_disturbs_nothing(
        self, tmp_path: Path, net: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(bench_run, "_EVERY", 0.0)
        root = built_tree(tmp_path / "tree", gpu=True, sleep=0.3)

        class Leaving(FakeLive):
            """The driver lists the program from its start on, also when it has gone."""

            looks = 0

            def reading(self) -> Any:
                self.looks += 1
                if self.looks == 3:
                    self.change(card(used=500 * MIB, listed=[listed(77, 400)]))
                if self.looks > 6:
                    self.processes.pop(77, None)
                return super().reading()

        live = Leaving(card(), processes=(process(77, parent=4000),))
        report = measured(root, live, net=net, variants=("group", "depthwise"), iterations=1)
        assert live.looks > 7
        assert report.rows[0].memory_bytes == 400 * MIB
        assert report.disturbed == ()

    def test_a_gpu_that_is_named(self, tmp_path: Path, net: str) -> None:
        root = built_tree(tmp_path / "tree", gpu=True)
        live = FakeLive(card(0), card(1, used=20000 * MIB))
        measured(root, live, net=net, variants=("group",), gpu="1")
        assert "'GPU-00000001'" in calls(root)[0]
        with pytest.raises(UsageError, match="no GPU 3"):
            measured(root, live, net=net, gpu="3")

    def test_the_freest_gpu(self, tmp_path: Path, net: str) -> None:
        root = built_tree(tmp_path / "tree", gpu=True)
        live = FakeLive(card(0, used=9000 * MIB, listed=[listed(5000, 8900)]), card(1), processes=(process(5000),))
        measured(root, live, net=net, variants=("group",))
        assert "'GPU-00000001'" in calls(root)[0]

    def test_the_cpu_of_a_tree_with_cudnn(self, tmp_path: Path, net: str) -> None:
        root = built_tree(tmp_path / "tree", gpu=True, cudnn=True)
        report = measured(root, FakeLive(card()), net=net, cpu=True)
        assert report.device == "CPU"
        assert {one.because for one in report.left_out} == {"cuDNN needs a GPU"}
        assert "gpu" not in calls(root)[0]

    def test_a_gpu_for_a_tree_without_cuda(self, tmp_path: Path, net: str) -> None:
        with pytest.raises(UsageError, match="built without CUDA"):
            measured(built_tree(tmp_path / "tree"), net=net, gpu="0")

    def test_nothing_that_can_be_measured(self, tmp_path: Path, net: str) -> None:
        root = built_tree(tmp_path / "tree", depthwise=False)
        with pytest.raises(UsageError, match="None of these variants") as caught:
            measured(root, net=net, variants=("cudnn", "depthwise"))
        assert "this tree has no depthwise layer" in caught.value.details

    def test_stopped(self, tmp_path: Path, net: str) -> None:
        """What was measured before Ctrl-C is kept."""
        root = built_tree(tmp_path / "tree")

        class Stops(Silent):
            def show(self, status: Status) -> None:
                if status.done == 3:
                    raise KeyboardInterrupt

        wish = Wish(net=net, variants=("group", "depthwise"), repeat=1)
        report = bench(session(), str(root), wish, Stops(), FakeLive())
        assert report.stopped
        assert [row.failed for row in report.rows] == ["", STOPPED]

    def test_stopped_before_anything_was_measured(self, tmp_path: Path, net: str) -> None:
        class Stops(Silent):
            def show(self, status: Status) -> None:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            bench(session(), str(built_tree(tmp_path / "tree")), Wish(net=net), Stops(), FakeLive())

    def test_a_tree_that_somebody_else_built(self, tmp_path: Path, net: str) -> None:
        root = built_tree(tmp_path / "tree", planned=False)
        report = measured(root, net=net, variants=("group",))
        assert report.rows[0].forward is not None
        assert report.decisions == ()

    def test_a_tree_that_is_not_built(self, tmp_path: Path) -> None:
        root = built_tree(tmp_path / "tree")
        (root / "build" / "tools" / "caffe").unlink()
        with pytest.raises(NotBuilt) as caught:
            find_site(session(), str(root))
        assert caught.value.commands == (f"caffeup build {root}",)

    def test_a_phase_that_an_old_tree_does_not_know(self, tmp_path: Path, net: str) -> None:
        root = built_tree(tmp_path / "tree")
        assert measured(root, net=net, variants=("group",), phase="TEST").phase == "TEST"
        assert "'phase'" in calls(root)[0]
        (root / "tools" / "caffe.cpp").write_text("")
        with pytest.raises(UsageError, match="no phase to choose"):
            measured(root, net=net, phase="TEST")

    def test_all_sums_up_in_json(self, tmp_path: Path, net: str) -> None:
        report = measured(built_tree(tmp_path / "tree"), net=net)
        assert from_json(to_json(report), BenchReport) == report


class TestCommand:
    @pytest.fixture(autouse=True)
    def _here(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("caffeup.app.session.RealHost", lambda: PlainHost(env={"PATH": "/usr/bin:/bin"}))
        monkeypatch.setattr("caffeup.app.gpus.RealLive", lambda _env: FakeLive())

    def test_a_table(self, tmp_path: Path, net: str, capsys: pytest.CaptureFixture[str]) -> None:
        root = built_tree(tmp_path / "tree")
        page = tmp_path / "page.html"
        assert main.main(["bench", str(root), "--net", net, "--repeat", "1", "--html", str(page)]) == 0
        out = capsys.readouterr().out
        assert "batch 1" in out
        assert "* depthwise" in out
        assert f"page: {page}" in out
        assert "<!DOCTYPE html>" in page.read_text()

    def test_json_alone_on_stdout(self, tmp_path: Path, net: str, capsys: pytest.CaptureFixture[str]) -> None:
        root = built_tree(tmp_path / "tree")
        assert main.main(["bench", str(root), "--net", net, "--repeat", "1", "--batch", "1, 2", "--json"]) == 0
        assert [row["batch"] for row in json.loads(capsys.readouterr().out)["rows"]] == [1, 1, 1, 2, 2, 2]

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--batch", "0"], "is no list of batch sizes"),
            (["--batch", "1;2"], "is no list of batch sizes"),
            (["--batch", "99999999999999999999"], "is no list of batch sizes"),
            (["--batch", "²"], "is no list of batch sizes"),
            (["--phase", "both"], "There is no phase"),
            (["--variants", "fast"], "There is no variant"),
            (["--gpu", "0", "--cpu"], "exclude each other"),
            (["--net", "/nowhere.prototxt"], "cannot be read"),
            (["--html", "/nowhere/x.html"], "cannot be written"),
        ],
    )
    def test_arguments_that_make_no_sense(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
    ) -> None:
        root = built_tree(tmp_path / "tree")
        assert main.main(["bench", str(root), *arguments]) == 2
        assert words in capsys.readouterr().err
        assert calls(root) == []


def test_signals_have_their_names() -> None:
    for number, name in bench_run._SIGNALS.items():
        assert signal.Signals(-number).name == name
