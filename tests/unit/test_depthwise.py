"""The depthwise layer: when it is planned, what it puts into a tree, and what becomes of a layer that the tree has."""

from __future__ import annotations

from pathlib import Path

import pytest

from caffeup.build.runtest import OF_CAFFEUP
from caffeup.errors import PatchFailed
from caffeup.facts.load import load_facts
from caffeup.model.finding import Severity
from caffeup.model.outcome import PatchEntry
from caffeup.model.plan import Plan, PlannedFix, Request
from caffeup.model.tree import Tree
from caffeup.patch import engine
from caffeup.patch.wanted import entries_of
from caffeup.plan.make import make_plan
from caffeup.source.inspect import inspect
from patchtools import snapshot, tree_with_factory
from planvalues import machine, tree

FACTS = load_facts()
PATCHES = Path(__file__).parents[2] / "patches" / "depthwise"
LAYER = (
    "include/caffe/layers/depthwise_conv_layer.hpp",
    "src/caffe/layers/depthwise_conv_layer.cpp",
    "src/caffe/layers/depthwise_conv_layer.cu",
    "src/caffe/test/test_depthwise_conv_layer.cpp",
)
FACTORY = """\
#include "caffe/layer.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/vision_layers.hpp"

namespace caffe {

template <typename Dtype>
shared_ptr<Layer<Dtype> > GetConvolutionLayer(
    const LayerParameter& param) {
  return shared_ptr<Layer<Dtype> >(new ConvolutionLayer<Dtype>(param));
}

REGISTER_LAYER_CREATOR(Convolution, GetConvolutionLayer);

REGISTER_LAYER_CREATOR(Pooling, GetPoolingLayer);
"""
OTHER = '#include "caffe/layers/conv_layer.hpp"\n\nSTUB_GPU(X);\n{}\n\n}}  // namespace caffe\n'


@pytest.fixture
def caffe(tmp_path: Path) -> Path:
    """As much of a tree as the layer looks at."""
    return tree_with_factory(tmp_path / "caffe", FACTORY)


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def yonghenglh6(root: Path) -> None:
    for path in LAYER[:3]:
        write(root, path, OTHER.format("REGISTER_LAYER_CLASS(DepthwiseConvolution);"))


def plan_of(found: Tree, request: Request = Request()) -> Plan:  # noqa: B008  (frozen)
    return make_plan(machine(), found, request, FACTS)


def of_depthwise(plan: Plan) -> list[str]:
    return [fix.id for fix in plan.fixes if fix.id.startswith("depthwise")]


def depthwise(root: Path, request: Request = Request()) -> Plan:  # noqa: B008  (frozen)
    """What is planned of the layer for a tree on the disk."""
    found = inspect(root, FACTS)
    plan = plan_of(tree(features=found.features, applied=found.applied), request)
    fixes = tuple(PlannedFix(id=name, because="") for name in of_depthwise(plan))
    return Plan(tree=str(root), fork="bvlc", request=request, gpu=False, fixes=fixes, notes=plan.notes)


def states(entries: tuple[PatchEntry, ...]) -> dict[str, str]:
    return {entry.id: f"{entry.state} {entry.by}".strip() for entry in entries}


@pytest.mark.parametrize("cpu", [True, False])
def test_it_is_planned_by_default_and_says_why(cpu: bool) -> None:
    plan = plan_of(tree(), Request(cpu=cpu))
    assert of_depthwise(plan) == ["depthwise-auto", "depthwise-layer"]
    assert plan.decision("depthwise").value == "caffeup's"
    assert "CAFFE_AUTO_DEPTHWISE=0" in plan.decision("depthwise").because


def test_without_auto_only_its_name_leads_to_it() -> None:
    plan = plan_of(tree(), Request(auto_depthwise=False))
    assert of_depthwise(plan) == ["depthwise-layer"]
    assert "by its name alone" in plan.decision("depthwise").value


@pytest.mark.parametrize(
    ("features", "fixes", "reason"),
    [
        (("layers:one-type",), ["depthwise-layer"], "GetConvolutionLayer"),
        (("layers:convolution-creator",), [], "Layer<Dtype>"),
        ((), [], "Layer<Dtype>"),
    ],
)
def test_a_tree_that_it_does_not_fit_goes_without_it(features: tuple[str, ...], fixes: list[str], reason: str) -> None:
    plan = plan_of(tree(features=features))
    assert of_depthwise(plan) == fixes
    assert reason in plan.decision("depthwise").because


def test_the_command_that_mends_is_for_the_same_folder() -> None:
    """A tree that was put elsewhere with --into is not looked for where its name alone would lead."""
    found = tree(features=("layers:one-type", "depthwise:own"))
    notes = plan_of(found, Request(source="ssd", into="/x/mine")).notes
    commands = [command for one in notes for remedy in one.remedies for command in remedy.commands]
    assert "caffeup up ssd --into /x/mine --replace-depthwise" in commands


def test_of_a_tree_that_is_not_here_yet_nothing_is_claimed() -> None:
    told = plan_of(tree(features=(), seen=False)).decision("depthwise")
    assert told.value == "known when the tree is here"


def test_a_factory_of_another_shape_is_no_conflict(caffe: Path) -> None:
    """The layer goes in; what nobody asked for by name must not stop a build of an unknown fork."""
    factory = caffe / "src" / "caffe" / "layer_factory.cpp"
    text = factory.read_text()
    factory.write_text(text.replace("R(Convolution, GetConvolutionLayer);", "R(\n    Convolution,\n    GetConvolutionLayer\n);"))
    assert factory.read_text() != text
    plan = plan_of(tree(features=inspect(caffe, FACTS).features))
    assert of_depthwise(plan) == ["depthwise-layer"]
    assert "by its name alone" in plan.decision("depthwise").value


def test_it_goes_in_and_out_whole(caffe: Path) -> None:
    before = snapshot(caffe)
    done = engine.apply(str(caffe), depthwise(caffe), FACTS)
    assert states(done) == {"depthwise-auto": "done caffeup", "depthwise-layer": "done caffeup"}
    for path in LAYER:
        assert (caffe / path).read_bytes() == (PATCHES / Path(path).name).read_bytes()
    factory = (caffe / "src/caffe/layer_factory.cpp").read_text()
    assert factory.count('#include "caffe/layers/depthwise_conv_layer.hpp"\n') == 1
    assert "REGISTER_LAYER_CREATOR(Convolution, GetConvolutionLayer);" not in factory
    assert factory.count("REGISTER_LAYER_CREATOR(Convolution, ") == 1
    after = snapshot(caffe, ours=True)
    assert set(states(engine.apply(str(caffe), depthwise(caffe), FACTS)).values()) == {"done caffeup"}
    assert snapshot(caffe, ours=True) == after
    engine.revert(str(caffe))
    assert snapshot(caffe) == before


def test_without_auto_the_factory_is_taken_back(caffe: Path) -> None:
    engine.apply(str(caffe), depthwise(caffe), FACTS)
    engine.apply(str(caffe), depthwise(caffe, Request(auto_depthwise=False)), FACTS)
    assert (caffe / "src/caffe/layer_factory.cpp").read_text() == FACTORY
    assert (caffe / LAYER[0]).is_file()


def test_a_layer_of_the_tree_stays_and_is_told_of(caffe: Path) -> None:
    yonghenglh6(caffe)
    plan = depthwise(caffe)
    assert plan.fixes == ()
    [finding] = [one for one in plan.notes if one.id == "depthwise-own-layer"]
    assert "--replace-depthwise" in finding.remedies[0].commands[0]
    assert "dilation" in finding.why


def test_its_defects_are_a_warning_where_they_matter() -> None:
    own = tree(features=("layers:one-type", "layers:convolution-creator", "depthwise:own", "depthwise:yonghenglh6"))
    [finding] = [one for one in plan_of(own, Request(cpu=True)).notes if one.id == "depthwise-own-layer"]
    assert finding.severity is Severity.NOTE


def test_replacing_it_lasts_until_it_is_taken_back(caffe: Path) -> None:
    yonghenglh6(caffe)
    before = snapshot(caffe)
    engine.apply(str(caffe), depthwise(caffe, Request(replace_depthwise=True)), FACTS)
    assert (caffe / LAYER[1]).read_bytes() == (PATCHES / "depthwise_conv_layer.cpp").read_bytes()
    after = snapshot(caffe)
    engine.apply(str(caffe), depthwise(caffe), FACTS)
    assert snapshot(caffe) == after
    engine.revert(str(caffe), ("depthwise-auto",))  # what stays was asked for earlier
    assert (caffe / LAYER[1]).read_bytes() == (PATCHES / "depthwise_conv_layer.cpp").read_bytes()
    engine.revert(str(caffe))
    assert snapshot(caffe) == before


@pytest.mark.parametrize(
    "registration",
    [
        "REGISTER_LAYER_CLASS(ConvolutionDepthwise);",
        "REGISTER_LAYER_CLASS(DepthwiseConvolution);",
        "REGISTER_LAYER_CREATOR(DepthwiseConvolution, GetDepthwise);",
    ],
)
def test_no_name_is_registered_twice(caffe: Path, registration: str) -> None:
    path = "src/caffe/layers/conv_dw_layer.cpp"
    write(caffe, path, OTHER.format(registration))
    before = snapshot(caffe)
    assert depthwise(caffe).fixes == ()
    engine.apply(str(caffe), depthwise(caffe, Request(replace_depthwise=True)), FACTS)
    assert "REGISTER" not in (caffe / path).read_text()
    assert (caffe / LAYER[1]).read_bytes() == (PATCHES / "depthwise_conv_layer.cpp").read_bytes()
    after = snapshot(caffe)
    engine.apply(str(caffe), depthwise(caffe), FACTS)
    assert snapshot(caffe) == after
    engine.revert(str(caffe))
    assert snapshot(caffe) == before


def test_a_file_in_the_way_that_is_no_such_layer_is_not_overwritten(caffe: Path) -> None:
    write(caffe, LAYER[1], "// mine\n")
    with pytest.raises(PatchFailed) as caught:
        engine.apply(str(caffe), depthwise(caffe), FACTS)
    assert [finding.id for finding in caught.value.findings] == ["patch-file-in-the-way"]
    assert (caffe / LAYER[1]).read_text() == "// mine\n"


@pytest.mark.parametrize("path", LAYER)
def test_where_one_file_was_changed_all_stay_as_they_are(caffe: Path, path: str) -> None:
    engine.apply(str(caffe), depthwise(caffe), FACTS)
    (caffe / path).write_text("// mine\n")
    before = snapshot(caffe)
    assert states(engine.apply(str(caffe), depthwise(caffe), FACTS))["depthwise-layer"] == "edited"
    assert snapshot(caffe) == before


def test_its_own_registrations_are_not_taken_for_another_layers(caffe: Path) -> None:
    engine.apply(str(caffe), depthwise(caffe), FACTS)
    features = inspect(caffe, FACTS).features
    assert "depthwise:caffeup" in features
    assert not {"depthwise:own", "depthwise:yonghenglh6"}.intersection(features)


def test_all_files_are_one_entry() -> None:
    fix = FACTS.fix("depthwise-layer")
    assert fix is not None
    [entry] = entries_of(fix, "")
    assert tuple(path for path, _ in entry.whole) == LAYER


def test_tests_that_come_with_caffeup_are_counted_apart() -> None:
    names = {
        line.split("(")[1].split(",")[0]
        for file in PATCHES.parent.glob("*/test_*.cpp")
        for line in file.read_text().splitlines()
        if line.startswith(("TEST", "TYPED_TEST("))
    }
    assert {f"{name}/" for name in names} == set(OF_CAFFEUP)
