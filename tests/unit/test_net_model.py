"""The net of a prototxt, and what Caffe makes of it."""

from __future__ import annotations

import pytest

from caffeup.errors import UsageError
from caffeup.net.model import Layer, Net, State, as_run, filtered, read_net
from caffeup.net.text import parse


def net(text: str) -> Net:
    return read_net(parse(text.encode()))


def names(layers: tuple[Layer, ...]) -> list[str]:
    return [layer.name for layer in layers]


def test_layers_old_and_new_give_the_same() -> None:
    new = net('layer { name: "c" type: "Convolution" bottom: "a" top: "b" top: "d" loss_weight: 2 }').layers[0]
    old = net('layers { name: "c" type: CONVOLUTION bottom: "a" top: ["b", "d"] loss_weight: 2 }').layers[0]
    for layer in (new, old):
        assert (layer.name, layer.type, layer.bottoms, layer.tops) == ("c", "Convolution", ("a",), ("b", "d"))
        assert [layer.loss_weight(0), layer.loss_weight(1)] == [2.0, 0.0]
    assert (new.v1, old.v1) == (False, True)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('layers { layer { name: "c" type: "conv" } bottom: "a" }', "layers-of-2013"),
        ("layer { } layers { }", "layers-of-two-ages"),
        ('net: "x.prototxt" base_lr: 1', "solver-as-net"),
        ('item { name: "none" label: 0 }', "label-map-as-net"),
        ('name: "x"', "no-layers"),
        ("", "no-layers"),
    ],
)
def test_what_is_no_net_is_refused_by_what_it_is(text: str, kind: str) -> None:
    with pytest.raises(UsageError) as caught:
        net(text)
    assert [one.id for one in caught.value.findings] == [kind]


RULED = net(
    """layer { name: "all" }
    layer { name: "train" include { phase: TRAIN } }
    layer { name: "not-test" exclude { phase: TEST } }
    layer { name: "deep" include { min_level: 2 max_level: 3 } }
    layer { name: "staged" include { stage: "a" stage: "b" } }
    layer { name: "unstaged" include { not_stage: "a" } }
    layer { name: "either" include { phase: TRAIN } include { stage: "a" } }"""
)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (State(), ["all", "unstaged"]),
        (State(phase="TRAIN"), ["all", "train", "not-test", "unstaged", "either"]),
        (State(level=2), ["all", "deep", "unstaged"]),
        (State(level=4), ["all", "unstaged"]),
        (State(stages=("a",)), ["all", "either"]),
        (State(stages=("a", "b")), ["all", "staged", "either"]),
    ],
)
def test_layers_are_chosen_by_phase_level_and_stage(state: State, expected: list[str]) -> None:
    assert names(filtered(RULED, state)) == expected


def test_a_net_has_a_state_of_its_own() -> None:
    own = net('state { level: 2 stage: "a" } layer { }')
    assert own.state("TRAIN", stages=("b",)) == State(phase="TRAIN", level=2, stages=("a", "b"))
    assert own.state(level=0).level == 0


def test_fields_of_input_become_a_layer() -> None:
    four = net('input: "a" input: "b" input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 9 input_dim: 1 layer { name: "x" }')
    assert four.input_shapes == ((1, 3, 8, 9),), "the second input has no dims"
    first = as_run(four, four.state())[0]
    assert (first.name, first.type, first.tops, first.added) == ("input", "Input", ("a", "b"), True)
    any_shape = net('input: "a" input_shape { dim: 2 dim: 5 } layer { name: "x" }')
    assert any_shape.input_shapes == ((2, 5),)


def test_a_blob_that_several_read_is_split_under_caffes_names() -> None:
    run = as_run(
        net(
            """layer { name: "in" type: "Input" top: "x" top: "y" }
            layer { name: "r" type: "ReLU" bottom: "x" top: "x" }
            layer { name: "p" type: "Power" bottom: "x" top: "p" }
            layer { name: "q" type: "Power" bottom: "x" top: "q" }"""
        ),
        State(),
    )
    assert names(run) == ["in", "r", "x_r_0_split", "p", "q"], "what stands before the in-place layer has one reader"
    split = run[2]
    assert (split.type, split.bottoms, split.tops) == ("Split", ("x",), ("x_r_0_split_0", "x_r_0_split_1"))
    assert [run[3].bottoms, run[4].bottoms] == [("x_r_0_split_0",), ("x_r_0_split_1",)]


def test_the_objective_reads_a_top_with_a_loss_weight() -> None:
    text = """layer { name: "in" type: "Input" top: "x" top: "y" loss_weight: 0 loss_weight: 2 }
        layer { name: "p" type: "Power" bottom: "y" top: "p" }"""
    run = as_run(net(text), State())
    assert names(run) == ["in", "y_in_1_split", "p"]
    assert run[1].loss_weights == (2.0, 0.0)
    assert run[2].bottoms == ("y_in_1_split_1",), "the objective has the first"
    loss = """layer { name: "in" type: "Input" top: "x" top: "y" }
        layer { name: "l" type: "EuclideanLoss" bottom: "x" bottom: "y" top: "l" }
        layer { name: "s" type: "Silence" bottom: "l" }"""
    assert names(as_run(net(loss), State())) == ["in", "l", "s"], "a loss without loss_weight is not split"


def test_a_loss_without_a_top_is_given_one() -> None:
    run = as_run(net('layer { name: "l" type: "EuclideanLoss" bottom: "x" bottom: "y" }'), State())
    assert run[0].tops == ("(automatic)",)


def test_a_bottom_that_nobody_makes_stays() -> None:
    run = as_run(net('layer { name: "p" type: "Power" bottom: "nothing" top: "p" }'), State())
    assert run[0].bottoms == ("nothing",)
