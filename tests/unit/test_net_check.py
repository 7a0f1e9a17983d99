"""Each mistake that net check knows: what it says, where, and what mends it."""

from __future__ import annotations

import pytest

from caffeup.app.netcheck import known_schema
from caffeup.model.finding import Finding, Severity
from caffeup.net.check import Checked, check
from caffeup.net.schema import Schema, read_proto
from caffeup.net.text import parse

KNOWN = known_schema()
INPUT = 'layer { name: "data" type: "Input" top: "data" input_param { shape { dim: [1, 8, 16, 16] } } }\n'
RELU = 'layer { name: "r" type: "ReLU" bottom: "data" top: "r" }\n'


def looked(
    text: str, *, name: str = "net.prototxt", deploy: bool = False, tree: str = "", schema: Schema | None = None
) -> Checked:
    return check(parse(text.encode(), name), KNOWN, deploy=deploy, tree=tree, schema=schema)


def findings(text: str, **more: object) -> dict[str, Finding]:
    return {one.id: one for one in looked(text, **more).report.findings}  # type: ignore[arg-type]


def the(text: str, **more: object) -> Finding:
    """The one finding."""
    found = findings(text, **more)
    assert len(found) == 1, found
    return next(iter(found.values()))


def test_a_net_without_a_mistake_is_told_by_its_shapes() -> None:
    report = looked(INPUT + RELU).report
    assert report.findings == ()
    assert report.kind == "net"
    assert report.trees[0] == "bvlc"
    (phase,) = report.phases
    assert (phase.phase, phase.layers, phase.inputs, phase.outputs) == ("TEST", 2, ("data 1x8x16x16",), ("r 1x8x16x16",))


@pytest.mark.parametrize(
    ("layer", "kind", "title", "advice"),
    [
        ("botom: 'x'", "prototxt-field-unknown", "LayerParameter has no field botom", "bottom is meant?"),
        ("num_output: 3", "prototxt-field-unknown", "LayerParameter has no field num_output", "stands in the wrong block"),
        ("frobnicate: 3", "prototxt-field-unknown", "LayerParameter has no field frobnicate", "no tree"),
        ("relu_param { negative_slope: x }", "prototxt-syntax", "negative_slope takes a number, not x", ""),
        ("relu_param: 3", "prototxt-syntax", "relu_param takes a block in { }, not 3", ""),
        ("name { }", "prototxt-syntax", "name takes a string in quotes and no block", ""),
        ("name: r2", "prototxt-syntax", "name takes a string in quotes, not r2", ""),
        ("propagate_down: 2", "prototxt-syntax", "propagate_down takes true or false, not 2", ""),
        ("convolution_param { num_output: -1 }", "prototxt-syntax", "num_output takes a whole number, not -1 (it is out", ""),
        ("convolution_param { num_output: 1.5 }", "prototxt-syntax", "num_output takes a whole number, not 1.5", ""),
        ("relu_param { engine: caffe }", "prototxt-enumeration", "engine has no value caffe", "write CAFFE"),
        ('relu_param { engine: "CAFFE" }', "prototxt-enumeration", 'engine has no value "CAFFE"', "without quotes"),
        ("relu_param { engine: 7 }", "prototxt-enumeration", "engine has no value 7", "write one of DEFAULT, CAFFE, CUDNN"),
        ("relu_param { } relu_param { }", "prototxt-syntax", "relu_param stands twice", ""),
        ("type: 'ReLU'", "prototxt-syntax", "type stands twice", ""),
    ],
)
def test_what_the_parser_of_caffe_refuses(layer: str, kind: str, title: str, advice: str) -> None:
    found = findings(INPUT + RELU.replace('top: "r"', f'top: "r"\n {layer}'))[kind]
    assert title in found.title
    assert found.severity is Severity.PROBLEM
    assert found.evidence[-1].line == 3
    assert advice in found.remedies[0].text


@pytest.mark.parametrize("value", ["1", "CAFFE", "DEFAULT", "0x1"])
def test_an_enum_may_be_a_word_or_its_number(value: str) -> None:
    assert findings(INPUT + RELU.replace('top: "r"', f'top: "r" relu_param {{ engine: {value} }}')) == {}


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        ("DeptwiseConvolution", "DepthwiseConvolution is meant?"),
        ("relu", "ReLU is meant?"),
        ("RELU", "ReLU"),
        ("CONVOLUTION", 'type: "Convolution"'),
        ("Frobnicate", "author names"),
    ],
)
def test_a_layer_type_that_nobody_has(kind: str, advice: str) -> None:
    found = the(INPUT + RELU.replace("ReLU", kind))
    assert found.id == "unknown-layer-type"
    assert kind in found.title
    assert advice in found.remedies[0].text


def test_a_layer_without_a_type() -> None:
    assert the(INPUT + 'layer { name: "x" bottom: "data" top: "x" }').id == "layer-without-type"


PRIOR = 'layer { name: "p" type: "PriorBox" bottom: "data" bottom: "data" top: "p" prior_box_param { min_size: 3 } }'
TREE = read_proto(
    """message NetParameter { optional string name = 1; repeated LayerParameter layer = 100; }
    message LayerParameter { optional string name = 1; optional string type = 2; repeated string bottom = 3;
      repeated string top = 4; optional InputParameter input_param = 5; optional ReLUParameter relu_param = 6; }
    message InputParameter { repeated BlobShape shape = 1; } message BlobShape { repeated int64 dim = 1; }
    message ReLUParameter { optional float mine = 1; }"""
)


def one_tree(*layers: str) -> Schema:
    return Schema(messages=TREE.messages, enums=TREE.enums, layers=dict.fromkeys(layers, ()))


def test_a_net_that_needs_a_fork_is_told_so_without_a_tree() -> None:
    found = the(INPUT + PRIOR)
    assert (found.id, found.severity) == ("net-needs-tree", Severity.NOTE)
    assert found.title.startswith("this net needs the ssd tree (or qengineering")
    assert found.remedies[0].commands == ("caffeup up ssd",)
    assert looked(INPUT + PRIOR).report.trees[0] == "ssd"


def test_a_tree_that_lacks_fields_and_layers_is_told_the_one_that_has_them() -> None:
    found = the(INPUT + PRIOR, tree="mine", schema=one_tree("Input"))
    assert found.id == "ssd-parameter-unknown"
    assert found.title == "this net needs the ssd tree: mine has no PriorBox, prior_box_param"
    assert found.remedies[0].commands == ("caffeup up ssd",)
    assert len(found.evidence) == 2


def test_a_tree_has_fields_of_its_own() -> None:
    text = INPUT + RELU.replace('top: "r"', 'top: "r" relu_param { mine: 1 }')
    assert findings(text, tree="mine", schema=one_tree("Input", "ReLU")) == {}
    assert "prototxt-field-unknown" in findings(text)


def test_a_tree_without_the_depthwise_layer_can_have_it() -> None:
    text = INPUT + 'layer { name: "d" type: "DepthwiseConvolution" bottom: "data" top: "d" }'
    found = findings(text, tree="mine", schema=one_tree("Input"))["unknown-layer-type"]
    assert found.remedies[0].commands == ("caffeup up mine",)
    assert "shapes-do-not-fit" in findings(text), "it has no kernel"


def test_the_depthwise_layer_has_two_names() -> None:
    text = INPUT + 'layer { name: "d" type: "ConvolutionDepthwise" bottom: "data" top: "d" }'
    found = findings(text, tree="mine", schema=one_tree("Input", "DepthwiseConvolution"))["unknown-layer-type"]
    assert found.remedies[0].text == 'write type: "DepthwiseConvolution"; the weights fit'


def test_of_very_many_mistakes_all_are_told_and_few_are_puzzled_over() -> None:
    text = INPUT + "".join(f'layer {{ type: "ReLU" bottom: "b{number}" top: "x" nam{number}: 1 }}\n' for number in range(2000))
    found = looked(text).report.findings
    assert len([one for one in found if one.id == "unknown-bottom-blob"]) == 2000
    assert "name is meant?" in found[1].remedies[0].text


def test_fields_of_two_forks_are_told_as_such() -> None:
    text = INPUT + PRIOR + 'layer { name: "y" type: "Yolov3" bottom: "p" top: "y" upsample_param { } bn_param { } }'
    assert looked(text).report.trees == ()
    assert findings(text)["net-needs-tree"].title == "no tree that caffeup knows has all that this net uses"
    with_tree = looked(text, tree="mine", schema=one_tree("Input")).report.findings
    assert len([one for one in with_tree if one.title.startswith("this net needs the")]) == 2


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (INPUT + RELU.replace('bottom: "data"', 'bottom: "dat"'), "data is meant?"),
        (INPUT + RELU.replace('bottom: "data"', 'bottom: "q"') + 'layer { name: "q" type: "Power" bottom: "data" top: "q" }', "before this one"),
        (INPUT + 'layer { name: "l" type: "Power" bottom: "data" top: "q" include { phase: TRAIN } }' + RELU.replace('bottom: "data"', 'bottom: "q"'), "not in the phase TEST"),
        (INPUT + RELU.replace('bottom: "data"', 'bottom: "zebra"'), "compare the layer's bottom"),
    ],
)  # fmt: skip
def test_a_bottom_that_nobody_makes(text: str, advice: str) -> None:
    found = findings(text)["unknown-bottom-blob"]
    assert "that the layer r reads" in found.title
    assert advice in found.remedies[0].text


def test_a_blob_may_be_made_twice_in_place_only() -> None:
    in_place = RELU.replace('top: "r"', 'top: "data"')
    assert findings(INPUT + in_place) == {}
    other = RELU.replace('bottom: "data"', 'bottom: "x"').replace('top: "r"', 'top: "data"')
    found = findings(INPUT + RELU.replace('top: "r"', 'top: "x"').replace('"r"', '"z"') + other)["blob-made-twice"]
    assert found.title == "the blob data is made by data and again by r"


def test_two_layers_of_one_name_share_weights_by_mistake() -> None:
    found = the(INPUT + RELU + RELU.replace('top: "r"', 'top: "s"'))
    assert (found.id, found.severity) == ("layer-name-twice", Severity.WARNING)
    phases = RELU.replace("top:", "include { phase: TRAIN } top:") + RELU.replace("top:", "include { phase: TEST } top:")
    assert findings(INPUT + phases) == {}, "one in each phase is the custom"


def test_rules_of_both_kinds() -> None:
    text = INPUT + RELU.replace("top:", "include { phase: TEST } exclude { phase: TRAIN } top:")
    assert the(text).id == "rules-of-both-kinds"


def test_a_layer_that_does_not_fit_is_told_with_its_bottoms() -> None:
    text = (
        INPUT
        + 'layer { name: "c" type: "Convolution" bottom: "data" top: "c" convolution_param {\n num_output: 9\n group: 3\n kernel_size: 1 } }'
    )
    found = the(text)
    assert found.id == "shapes-do-not-fit"
    assert found.why == "data is 1x8x16x16."
    assert found.evidence[0].line == 4


@pytest.mark.parametrize(
    "text",
    [
        INPUT.replace("dim: [1, 8", "dim: [0, 8"),
        'input: "x" input_dim: 0 input_dim: 3 input_dim: 4 input_dim: 4 layer { name: "r" type: "ReLU" bottom: "x" top: "r" }',
        'layer { name: "d" type: "Data" top: "x" data_param { source: "s" batch_size: 0 } }',
    ],
)
def test_a_batch_of_nothing(text: str) -> None:
    assert "batch-zero" in findings(text)


def ssd(*, heads: int = 6, dim: int = 3, loss: int = 3, end: str = "DetectionOutput") -> str:
    """A detector of one head with 2 priors at each place, for 3 classes where nobody changed it."""
    param = "detection_output_param" if end == "DetectionOutput" else "multibox_loss_param"
    label = 'layer { name: "gt" type: "Input" top: "gt" input_param { shape { dim: [1, 1, 1, 8] } } }'
    return (
        INPUT
        + f"""{label if end != "DetectionOutput" else ""}
        layer {{ name: "loc" type: "Convolution" bottom: "data" top: "loc" convolution_param {{ num_output: 8 kernel_size: 1 }} }}
        layer {{ name: "lf" type: "Flatten" bottom: "loc" top: "lf" }}
        layer {{ name: "conf" type: "Convolution" bottom: "data" top: "conf" convolution_param {{
          num_output: {heads}
          kernel_size: 1 }} }}
        layer {{ name: "cp" type: "Permute" bottom: "conf" top: "cp" permute_param {{ order: [0, 2, 3, 1] }} }}
        layer {{ name: "cf" type: "Flatten" bottom: "cp" top: "cf" }}
        layer {{ name: "cc" type: "Concat" bottom: "cf" top: "cc" }}
        layer {{ name: "cr" type: "Reshape" bottom: "cc" top: "cr" reshape_param {{ shape {{ dim: 0 dim: -1
          dim: {dim} }} }} }}
        layer {{ name: "cs" type: "Flatten" bottom: "cr" top: "cs" }}
        layer {{ name: "pb" type: "PriorBox" bottom: "data" bottom: "data" top: "pb" prior_box_param {{ min_size: 3 max_size: 5 }} }}
        layer {{ name: "pc" type: "Concat" bottom: "pb" top: "pc" concat_param {{ axis: 2 }} }}
        layer {{ name: "end" type: "{end}" bottom: "lf" bottom: "cs" bottom: "pc" {'bottom: "gt"' if end != "DetectionOutput" else ""}
          top: "out" {param} {{ num_classes: {loss} }} }}"""
    )


@pytest.mark.parametrize("end", ["DetectionOutput", "MultiBoxLoss"])
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"loss": 4}, ["num_output: 6", "dim: 3", "num_classes: 4"]),
        ({"heads": 8}, ["num_output: 8", "num_classes: 3"]),
        ({"dim": 4}, ["dim: 4", "num_classes: 3"]),
        ({"loss": 4, "heads": 8}, ["dim: 3", "num_classes: 4"]),
    ],
)
def test_a_number_of_classes_changed_in_part_is_told_with_every_place(
    end: str, changed: dict[str, int], words: list[str]
) -> None:
    found = findings(ssd(end=end, **changed))
    assert set(found) == {"ssd-class-count", "net-needs-tree"}, "what follows from it is not told again"
    evidence = found["ssd-class-count"].evidence
    assert [any(word in one.text for one in evidence) for word in words] == [True] * len(words)
    assert len(evidence) == len(words)


@pytest.mark.parametrize("end", ["DetectionOutput", "MultiBoxLoss"])
def test_a_number_of_classes_changed_everywhere_is_none(end: str) -> None:
    assert set(findings(ssd(end=end))) == {"net-needs-tree"}
    assert set(findings(ssd(end=end, heads=10, dim=5, loss=5))) == {"net-needs-tree"}


def test_a_template_is_named_and_checked_with_some_number_of_classes() -> None:
    text = (
        ssd()
        .replace("num_output: 6", "num_output: cls2x")
        .replace("dim: 3 }", "dim: cls1x }")
        .replace("classes: 3", "classes: cls1x")
    )
    checked = looked(text)
    found = {one.id: one for one in checked.report.findings}
    assert checked.report.kind == "template"
    assert set(found) == {"net-template", "net-needs-tree"}
    assert found["net-template"].title == "this is a template and no net yet: cls1x, cls2x stand for numbers"
    assert len(found["net-template"].evidence) == 3
    wrong = findings(text.replace("cls2x", "cls3x"))
    assert "ssd-class-count" in wrong, "also a template may be wrong"


DEPTHWISE = (
    INPUT
    + 'layer { name: "d" type: "Convolution" bottom: "data" top: "d" convolution_param { num_output: 8 group: 8 kernel_size: 3 %s } }'
)


@pytest.mark.parametrize(
    ("engine", "kind", "severity"),
    [
        ("engine: CAFFE", "depthwise-engine", Severity.WARNING),
        ("engine: CUDNN", "cudnn-handles", Severity.WARNING),
        ("", "depthwise-as-groups", Severity.NOTE),
    ],
)
def test_depthwise_layers_that_stay_slow(engine: str, kind: str, severity: Severity) -> None:
    found = the(DEPTHWISE % engine, name="my net.prototxt")
    assert (found.id, found.severity) == (kind, severity)
    assert found.remedies[0].commands == ("caffeup net convert 'my net.prototxt'",)
    assert (
        findings((DEPTHWISE % engine).replace("Convolution", "DepthwiseConvolution").replace("DepthwiseDepthwise", "Depthwise"))
        == {}
    )


TRAIN = """layer { name: "data" type: "Data" top: "data" top: "label" data_param { source: "here" batch_size: 2 } transform_param { crop_size: 9 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "data" bottom: "label" top: "loss" softmax_param { axis: 1 } }"""


def test_a_net_for_training_is_none_to_deploy() -> None:
    text = TRAIN.replace("loss: 2", "loss: 2")
    assert "train-net-as-deploy" not in findings(text)
    for more in ({"deploy": True}, {"name": "MobileNetSSD_deploy.prototxt"}, {"name": "x/deploy.prototxt"}):
        found = findings(text, **more)["train-net-as-deploy"]
        assert len(found.evidence) == 2
    assert "train-net-as-deploy" not in findings(text, name="deploy/train.prototxt"), "a folder's name says nothing"
    only_train = TRAIN.replace('top: "data"', 'include { phase: TRAIN } top: "data"', 1).replace("SoftmaxWithLoss", "Softmax")
    assert "no input in the phase TEST" in findings(only_train, deploy=True)["train-net-as-deploy"].title
    assert "train-net-as-deploy" not in findings(INPUT + RELU, deploy=True)


def test_paths_are_handed_on_with_their_places() -> None:
    text = """layer { name: "d" type: "AnnotatedData" top: "x" include { phase: TRAIN }
      data_param { source: "a" batch_size: 1 } transform_param { mean_file: "b" crop_size: 3 } annotated_data_param { label_map_file: "c" } }
    layer { name: "i" type: "ImageData" top: "x" include { phase: TEST } image_data_param { source: "e" batch_size: 1 new_height: 3 new_width: 3 } }"""
    paths = looked(text).paths
    assert [(one.text, one.field, one.database) for one in paths] == [
        ("a", "source", True),
        ("b", "mean_file", False),
        ("c", "label_map_file", False),
        ("e", "source", False),
    ]


def test_comments_with_slashes_are_told_by_their_line() -> None:
    found = the(INPUT + "// what follows is rectified\n" + RELU)
    assert found.id == "prototxt-slash-comment"
    assert "(line 2)" in found.title


def test_a_solver_and_a_label_map_are_checked_as_what_they_are() -> None:
    solver = looked('net: "n.prototxt" base_lr: 0.1 lr_polcy: "fixed" solver_mode: gpu')
    assert solver.report.kind == "solver"
    assert [one.id for one in solver.report.findings] == ["prototxt-field-unknown", "prototxt-enumeration"]
    assert [one.text for one in solver.paths] == ["n.prototxt"]
    items = [
        f'item {{ name: "{name}" label: {label} display_name: "{name}" }}' for name, label in (("none", 0), ("a", 1), ("b", 2))
    ]
    assert looked(" ".join(items)).report.findings == ()
    assert looked(" ".join(items)).report.kind == "label-map"
    assert the(" ".join(items).replace("label: 2", "label: 20")).id == "label-map-gaps"


def test_old_layers_are_checked_too() -> None:
    old = 'input: "data" input_dim: 1 input_dim: 8 input_dim: 9 input_dim: 9 layers { name: "r" type: RELU bottom: "data" top: "r" blobs_lr: 1 }'
    assert findings(old) == {}
    assert "prototxt-enumeration" in findings(old.replace("RELU", "ReLU"))


def test_hostile_names_do_not_reach_the_terminal() -> None:
    text = INPUT + RELU.replace('"r"', '"\x1b[31m\\033[2J"').replace("ReLU", "Re\\033LU").replace(
        'bottom: "data"', 'bottom: "\\033"'
    )
    for one in looked(text).report.findings:
        said = [one.title, one.why, *(evidence.text for evidence in one.evidence), *(mend.text for mend in one.remedies)]
        assert all(line.isprintable() for line in said), said


def test_every_finding_is_explained() -> None:
    import re
    from pathlib import Path

    from caffeup.diagnose.context import Context
    from caffeup.diagnose.explain import explain
    from caffeup.facts.load import load_facts
    from caffeup.net import fields

    facts = load_facts()
    folder = Path(fields.__file__).parent
    calls = re.compile(r'(?:\.add\(|Finding\(\s*id=|_refuse\(document,|\breturn(?= "[^"]*", "))\s*"([a-z0-9]+(?:-[a-z0-9]+)+)"')
    ids = {match.group(1) for path in folder.rglob("*.py") for match in calls.finditer(path.read_text())} | set(
        fields._IDS.values()
    )
    ids |= {"batch-zero", "ssd-class-count", "shapes-do-not-fit", "lmdb-path", "file-not-there"}
    assert len(ids) > 25
    assert [name for name in sorted(ids) if explain(name, facts, Context()) is None] == []
