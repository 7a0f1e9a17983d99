"""caffeup's convolution through cuDNN: when it is planned, and what it puts into a tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from caffeup.bundle import bundled
from caffeup.facts.load import load_facts
from caffeup.model.plan import Plan, PlannedFix, Request
from caffeup.patch import engine
from caffeup.source.inspect import inspect
from patchtools import snapshot, tree_with_factory
from planvalues import cudnn, gpu, machine, plan, toolkit, tree

FACTS = load_facts()
H200 = gpu("NVIDIA H200", "9.0")
GTX_1080_TI = gpu("NVIDIA GeForce GTX 1080 Ti", "6.1")
FACTORY = """\
#include "caffe/layer.hpp"
#include "caffe/layer_factory.hpp"

namespace caffe {

template <typename Dtype>
shared_ptr<Layer<Dtype> > GetConvolutionLayer(const LayerParameter& param) {
  if (param.convolution_param().engine() == ConvolutionParameter_Engine_CAFFE) {
    return shared_ptr<Layer<Dtype> >(new ConvolutionLayer<Dtype>(param));
#ifdef USE_CUDNN
  } else {
    return shared_ptr<Layer<Dtype> >(new CuDNNConvolutionLayer<Dtype>(param));
#endif
  }
}

REGISTER_LAYER_CREATOR(Convolution, GetConvolutionLayer);
"""
FEATURES = ("layers:one-type", "layers:convolution-creator", "layers:cudnn-convolution")


def planned(made: Plan) -> bool:
    return any(fix.id == "cudnn-shared-conv" for fix in made.fixes)


def on_h200(**request: Any) -> Plan:
    features = request.pop("features", FEATURES)
    return plan(machine(H200, toolkits=(toolkit("13.0"),), **cudnn("9.14.0")), tree(features=features), **request)


def test_it_takes_the_place_of_the_trees_own() -> None:
    made = on_h200()
    assert planned(made)
    assert made.decision("cudnn-convolution").value == "caffeup's"
    assert "one handle" in made.decision("cudnn-convolution").because


def test_the_trees_own_stays_where_asked_for() -> None:
    made = on_h200(cudnn_conv=False)
    assert not planned(made)
    assert made.decision("cudnn-convolution").because == "asked for with --tree-cudnn-conv"


@pytest.mark.parametrize("features", [FEATURES[:2], FEATURES[1:], ()])
def test_a_tree_that_it_does_not_fit_keeps_its_own(features: tuple[str, ...]) -> None:
    made = on_h200(features=features)
    assert not planned(made)
    assert "another way" in made.decision("cudnn-convolution").because


def test_before_cudnn_7_there_are_no_groups() -> None:
    made = plan(machine(GTX_1080_TI, toolkits=(toolkit("8.0"),), **cudnn("6.0.21")))
    assert not planned(made)
    assert "no groups" in made.decision("cudnn-convolution").because


def test_without_cudnn_there_is_nothing_to_decide() -> None:
    made = plan(machine(H200, toolkits=(toolkit("13.0"),)))
    assert not planned(made)
    assert "cudnn-convolution" not in {one.key for one in made.decisions}


@pytest.fixture
def caffe(tmp_path: Path) -> Path:
    return tree_with_factory(tmp_path / "caffe", FACTORY)


def with_fixes(root: Path, *names: str) -> Plan:
    fixes = tuple(PlannedFix(id=name, because="") for name in names)
    return Plan(tree=str(root), fork="bvlc", request=Request(), gpu=True, cudnn=True, fixes=fixes)


def test_it_goes_in_and_out_whole_beside_the_depthwise_layer(caffe: Path) -> None:
    before = snapshot(caffe)
    engine.apply(str(caffe), with_fixes(caffe, "cudnn-shared-conv", "depthwise-auto", "depthwise-layer"), FACTS)
    for path in (
        "include/caffe/layers/cudnn_shared_conv_layer.hpp",
        "src/caffe/layers/cudnn_shared_conv_layer.cpp",
        "src/caffe/test/test_cudnn_shared_conv_layer.cpp",
    ):
        assert (caffe / path).read_bytes() == (bundled("patches") / "convolution" / Path(path).name).read_bytes()
    factory = (caffe / "src/caffe/layer_factory.cpp").read_text()
    assert factory.count('#include "caffe/layers/cudnn_shared_conv_layer.hpp"\n') == 1
    assert "new CuDNNConvolutionLayer" not in factory
    assert factory.count("new CuDNNSharedConvLayer<Dtype>(param)") == 1
    assert set(FEATURES) <= set(inspect(caffe, FACTS).features)  # the next plan is the same
    engine.apply(str(caffe), with_fixes(caffe, "depthwise-auto", "depthwise-layer"), FACTS)
    assert "new CuDNNConvolutionLayer<Dtype>(param)" in (caffe / "src/caffe/layer_factory.cpp").read_text()
    engine.revert(str(caffe))
    assert snapshot(caffe) == before
