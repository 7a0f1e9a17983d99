"""Depthwise convolutions rewritten and taken back: what changes, and that nothing else does."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caffeup.errors import UsageError
from caffeup.net.convert import Rewritten, convert, named, revert, switch_engine
from caffeup.net.model import Net, read_net
from caffeup.net.text import parse

INPUT = 'input: "data"\ninput_shape { dim: 1 dim: 8 dim: 16 dim: 16 }\n'
NET = (
    INPUT
    + """layer {
  name: "conv1/dw"   # 深度
  type: "Convolution"  # the slow one
  bottom: "data"
  top: "x"
  convolution_param {
    num_output: 8
    kernel_size: 3
    group: 8
    engine: CAFFE # not cuDNN
    #engine: CAFFE
  }
}
layer { name: "pw" type: "Convolution" bottom: "x" top: "y" convolution_param { num_output: 12 kernel_size: 1 engine: CAFFE } }
layer { name: "two" type: "Convolution" bottom: "y" top: "z" convolution_param { num_output: 12 kernel_size: 1 group: 2 } }
"""
)
DENSE = (
    INPUT
    + "layer{name:'d'type:'Convolution',bottom:'data'top:'x'convolution_param<engine:CUDNN;num_output:8 kernel_size:3 group:8>}"
    + 'layer { type: "ReLU" bottom: "x" top: "x" }'
)


def net(text: str | bytes) -> Net:
    return read_net(parse(text if isinstance(text, bytes) else text.encode()))


def back(result: Rewritten) -> bytes:
    return revert(parse(result.data)).data


def lines(before: str, after: bytes) -> list[tuple[str, str]]:
    """The lines that differ."""
    one, two = before.split("\n"), after.decode().split("\n")
    assert len(one) == len(two), "line numbers stay"
    return [(a, b) for a, b in zip(one, two) if a != b]


def test_only_the_depthwise_layer_changes_and_only_in_two_lines() -> None:
    result = convert(net(NET))
    assert lines(NET, result.data) == [
        (
            '  type: "Convolution"  # the slow one',
            '  type: "DepthwiseConvolution" # caffeup: was "Convolution"  # the slow one',
        ),
        ("    engine: CAFFE # not cuDNN", "    # caffeup: engine: CAFFE # not cuDNN"),
    ]
    assert [(change.line, change.layer, change.what) for change in result.changes] == [
        (5, "conv1/dw", "type Convolution → DepthwiseConvolution"),
        (12, "conv1/dw", "engine: CAFFE commented out"),
    ]
    assert [(change.layer, change.what) for change in result.left] == [("two", "it reads 12 channels in 2 groups")]
    assert back(result) == NET.encode()


def test_what_stands_on_one_line_with_other_fields_is_parted_and_joined_again() -> None:
    result = convert(net(DENSE))
    again = net(result.data)
    assert [layer.type for layer in again.layers] == ["DepthwiseConvolution", "ReLU"]
    assert not again.layers[0].block.block("convolution_param").has("engine")
    assert again.layers[0].block.block("convolution_param").integer("group") == 8
    assert again.layers[0].tops == ("x",)
    assert back(result) == DENSE.encode()


@pytest.mark.parametrize("text", [NET, DENSE])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("head", [b"", b"\xef\xbb\xbf", b"# \xd6\xd0\xce\xc4 {\n", b"\t"])
def test_line_ends_marks_and_encodings_stay(text: str, end: str, head: bytes) -> None:
    data = head + text.replace("\n", end).encode()
    result = convert(net(data))
    assert named(result.changes) == [net(data).layers[0].name]
    assert back(result) == data
    assert result.data.count(b"\r\n") == result.data.count(b"\n") * (end == "\r\n") + head.count(b"\n") * -(end == "\r\n")
    for engine in ("caffe", "cudnn", "default"):
        assert back(switch_engine(net(data), engine)) == data


def test_a_second_time_changes_nothing() -> None:
    once = convert(net(NET))
    twice = convert(net(once.data))
    assert twice.changes == ()
    assert twice.data == once.data
    assert twice.left[0].what == "it is a DepthwiseConvolution already"


def test_a_depthwise_layer_of_the_file_itself_is_not_reverted() -> None:
    text = NET.replace('"Convolution"', '"DepthwiseConvolution"', 1)
    assert revert(parse(text.encode())).data == text.encode()
    assert revert(parse(text.encode())).changes == ()


def test_revert_keeps_what_was_changed_since() -> None:
    changed = convert(net(NET)).data.replace(b"kernel_size: 3", b"kernel_size: 5  # wider")
    assert revert(parse(changed)).data == NET.replace("kernel_size: 3", "kernel_size: 5  # wider").encode()


@pytest.mark.parametrize(
    ("engine", "expected"),
    [("caffe", ["CAFFE"]), ("cudnn", ["CUDNN"]), ("default", [])],
)
@pytest.mark.parametrize("text", [NET, DENSE, NET.replace("    engine: CAFFE # not cuDNN\n", "")])
def test_engines_are_switched_alone(text: str, engine: str, expected: list[str]) -> None:
    result = switch_engine(net(text), engine)
    layers = net(result.data).layers
    assert layers[0].block.block("convolution_param").strings("engine") == expected
    assert [layer.type for layer in layers] == [layer.type for layer in net(text).layers]
    assert [layer.block.block("convolution_param").strings("engine") for layer in layers[1:]] == [
        layer.block.block("convolution_param").strings("engine") for layer in net(text).layers[1:]
    ]
    assert back(result) == text.encode()
    assert switch_engine(net(result.data), engine).changes == ()


def test_a_name_tells_nothing_unless_asked() -> None:
    text = NET.replace(INPUT, 'layer { name: "d" type: "Python" top: "data" }\n')
    assert convert(net(text)).changes == ()
    assert convert(net(text)).left[0].what == "how many channels it reads cannot be told"
    assert named(convert(net(text), names=True).changes) == ["conv1/dw"]
    assert convert(net(text.replace("conv1/dw", "conv1/down")), names=True).changes == ()
    assert named(convert(net(text), given={"data": (1, 8, 9, 9)}).changes) == ["conv1/dw"]


def test_images_of_unknown_size_still_have_channels() -> None:
    text = """layer { name: "d" type: "Data" top: "data" data_param { source: "x" batch_size: 2 } }
    layer { name: "a" type: "Convolution" bottom: "data" top: "a" convolution_param { num_output: 8 kernel_size: 3 } }
    layer { name: "b" type: "Convolution" bottom: "a" top: "b" convolution_param { num_output: 8 kernel_size: 3 group: 8 } }"""
    assert named(convert(net(text)).changes) == ["b"]


def test_every_phase_is_looked_at() -> None:
    only_train = NET.replace('name: "conv1/dw"', 'name: "conv1/dw" include { phase: TRAIN stage: "deep" min_level: 2 }')
    assert named(convert(net(only_train)).changes) == ["conv1/dw"]
    two_inputs = """layer { name: "a" type: "Input" top: "x" include { phase: TRAIN } input_param { shape { dim: [1, 8, 9, 9] } } }
    layer { name: "b" type: "Input" top: "x" include { phase: TEST } input_param { shape { dim: [1, 16, 9, 9] } } }
    layer { name: "c" type: "Convolution" bottom: "x" top: "y" convolution_param { num_output: 16 kernel_size: 3 group: 8 } }"""
    assert convert(net(two_inputs)).left[0].what == "how many channels it reads depends on the phase"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("num_output: 8", "num_output: 16", ""),
        ("group: 8", "group: 8 axis: 1", ""),
        ("group: 8", "group: 8 axis: 2", "no batch of images"),
        ('"Convolution"  #', '"Convo" "lution"  #', "in pieces"),
        ('type: "Convolution"', 'type:\n"Convolution"', ""),
        ("engine: CAFFE", "engine:\nCAFFE", "several lines"),
        ('type: "Convolution"', 'type: "Convolution" type: "Convolution"', "stands twice"),
    ],
)
def test_unusual_layers_are_done_or_left_with_a_reason(old: str, new: str, why: str) -> None:
    text = NET.replace(old, new, 1)
    result = convert(net(text))
    assert back(result) == text.encode()
    if why:
        assert named(result.changes) == []
        assert why in result.left[0].what
    else:
        assert named(result.changes) == ["conv1/dw"]


OLD = """name: "old"
input: "data" input_dim: 1 input_dim: 8 input_dim: 16 input_dim: 16
layers {
  name: "dw"
  type: CONVOLUTION
  bottom: "data"
  top: "x"
  blobs_lr: 1
  blobs_lr: 2  # bias
  weight_decay: 1
  weight_decay: 0
  convolution_param { num_output: 8 kernel_size: 3 group: 8 engine: CAFFE }
}
layers { name: "r" type: RELU bottom: "x" top: "x" }
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_old_layers_become_new_ones_and_old_again(end: str) -> None:
    data = OLD.replace("\n", end).encode()
    result = convert(net(data))
    again = net(result.data)
    assert not again.v1
    assert [layer.type for layer in again.layers] == ["DepthwiseConvolution", "ReLU"]
    params = again.layers[0].block.blocks("param")
    assert [(param.number("lr_mult"), param.number("decay_mult")) for param in params] == [(1, 1), (2, 0)]
    assert not again.layers[0].block.has("weight_decay")
    assert back(result) == data


def test_old_layers_without_a_depthwise_one_stay_old() -> None:
    text = OLD.replace("group: 8", "group: 2")
    assert convert(net(text)).data == text.encode()


@pytest.mark.parametrize(
    "line",
    ['param: "shared"', "data_param { scale: 2 }", "type: NONSENSE", "type: 4", "weight_decay: 1", "blobs_lr: [1]"],
)
def test_old_layers_that_would_have_to_be_rearranged_are_refused(line: str) -> None:
    text = OLD.replace('type: RELU bottom: "x"', f'type: RELU bottom: "x" {line}')
    with pytest.raises(UsageError) as caught:
        convert(net(text))
    assert caught.value.findings[0].id == "layers-need-upgrade"


def test_a_new_layer_in_a_converted_old_net_is_told_when_taking_back() -> None:
    added = convert(net(OLD)).data + b'layer { name: "n" type: "Scale" bottom: "x" top: "s" }\n'
    with pytest.raises(UsageError, match="type Scale now"):
        revert(parse(added))


def test_marks_that_say_nothing_known_are_kept_and_told() -> None:
    text = b'a: 1 # caffeup: hello\nb: "# caffeup: was 2" { } # caffeup: was CAFFE\n'.replace(
        b'"# caffeup: was 2" { }', b'"# caffeup: was 2" c { }'
    )
    result = revert(parse(text))
    assert result.data == text
    assert len(result.left) == 2


NAMES = st.sampled_from(["a", "conv1/dw", "x # y", "it's", 'q"'])
SPACES = st.sampled_from([" ", "\n", "\t", " \n  ", "\r\n", " # note\n", "\n\n"])


@given(
    st.lists(st.tuples(NAMES, st.sampled_from([1, 2, 8]), st.booleans(), SPACES), min_size=1, max_size=4),
    st.sampled_from(["", ";", ","]),
)
def test_whatever_the_layout_it_comes_back(layers: list[tuple[str, int, bool, str]], separator: str) -> None:
    text = INPUT
    for name, group, engine, gap in layers:
        quoted = name.replace('"', '\\"')
        fields = ["num_output: 8", "kernel_size: 1", f"group: {group}", *(["engine: CAFFE"] if engine else [])]
        inner = f"{separator}{gap}".join(fields)
        text += f'layer {{{gap}name: "{quoted}"{gap}type: "Convolution"{separator}{gap}bottom: "data"{gap}top: "data"{gap}'
        text += f"convolution_param {{{gap}{inner}{gap}}}{gap}}}\n"
    result = convert(net(text))
    again = net(result.data)
    assert [layer.type == "DepthwiseConvolution" for layer in again.layers] == [group == 8 for _, group, _, _ in layers]
    assert [layer.block.block("convolution_param").has("engine") for layer in again.layers] == [
        engine and group != 8 for _, group, engine, _ in layers
    ]
    assert [layer.name for layer in again.layers] == [name for name, *_ in layers]
    assert back(result) == text.encode()
    for wanted in ("caffe", "cudnn", "default"):
        assert back(switch_engine(net(text), wanted)) == text.encode()


def test_the_pattern_of_names_is_an_ending() -> None:
    from caffeup.net.depthwise import _NAMED

    for name in ("conv1/dw", "conv2_dw", "block/depthwise", "conv3/DW", "x/sep"):
        assert _NAMED.search(name)
    for name in ("dwell", "conv1/dw/bn", "conv_pw", "adw"):
        assert not re.compile(_NAMED.pattern).search(name)
