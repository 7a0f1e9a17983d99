"""Edits that meet in one file: whichever of them a plan calls for, and in whichever order, each does its work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations
from pathlib import Path

import pytest

from caffeup.bundle import bundled
from caffeup.facts.load import load_facts
from caffeup.model.fix import Edit
from caffeup.model.outcome import PatchState
from caffeup.patch.edits import EditSpec, parse_edit, work_out
from patchtools import EMPTIED_DECONVOLUTION

EDITS: dict[str, EditSpec] = {
    remedy.edit: parse_edit((bundled("patches") / "edits" / f"{remedy.edit}.toml").read_text())
    for fix in load_facts().fixes
    for remedy in fix.remedy
    if isinstance(remedy, Edit)
}
"""All of them, in the order in which the engine applies them."""

CLASSES = """\
  bp::class_<Net<Dtype>, shared_ptr<Net<Dtype> >, boost::noncopyable>("Net", bp::no_init);
  bp::class_<Blob<Dtype>, shared_ptr<Blob<Dtype> >, boost::noncopyable>("Blob", bp::no_init);
"""
LAYER_ONLY = "  bp::register_ptr_to_python<shared_ptr<Layer<Dtype> > >();\n"
LAST = "  // import_array1() forces a void return value.\n  import_array1();\n"
MODULES = {
    "2014": f"BOOST_PYTHON_MODULE(_caffe) {{\n{CLASSES}\n  import_array();\n}}\n\n}}  // namespace caffe\n",
    "2015": f"BOOST_PYTHON_MODULE(_caffe) {{\n  // Net\n{CLASSES}{LAYER_ONLY}\n{LAST}}}\n\n}}  // namespace caffe\n",
    "numpy first": f"BOOST_PYTHON_MODULE(_caffe)\n{{\n  import_array1();\n{CLASSES}{LAYER_ONLY}}}\n\n}}  // namespace caffe\n",
    "2016": f"  bp::register_ptr_to_python<shared_ptr<PTR > >();\n\nBOOST_PYTHON_MODULE(_caffe) {{\n{CLASSES}{LAST}}}\n",
}
IO = """\
import numpy as np
import skimage.io


def load_image(filename, color=True):
    return skimage.img_as_float(skimage.io.imread(filename, as_grey=not color))


def resize_image(im, new_dims):
    return resize(im, new_dims)


def oversample(images, crop_dims):
    crop_dims = np.array(crop_dims)
    for ix in xrange(4):
        for name, value in images.iteritems():
            yield name, value
"""
CLASSIFIER = """\
import numpy as np


def predict(crop, input_):
        input_ = input_[:, crop[0]:crop[2], crop[1]:crop[3], :]
        return [one for one in xrange(len(input_))]
"""
FACTORY = """\
#include "caffe/layer_factory.hpp"

template <typename Dtype>
shared_ptr<Layer<Dtype> > GetConvolutionLayer(const LayerParameter& param) {
  return shared_ptr<Layer<Dtype> >(new CuDNNConvolutionLayer<Dtype>(param));
}

REGISTER_LAYER_CREATOR(Convolution, GetConvolutionLayer);
REGISTER_LAYER_CREATOR(DepthwiseConvolution, GetDepthwiseConvolutionLayer);
"""
KERNELS = """\
#include "caffe/layers/own_layer.hpp"

static __inline__ __device__ double atomicAdd(double* address, double val) {
  return *address += val;
}

template <typename Dtype>
void OwnLayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom,
    const vector<Blob<Dtype>*>& top) {
}

INSTANTIATE_LAYER_GPU_FUNCS(OwnLayer);
"""
HEADER = """\
template <typename Dtype>
class OwnLayer : public Layer<Dtype> {
 protected:
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom,
      const vector<Blob<Dtype>*>& top);
  virtual void Backward_gpu(const vector<Blob<Dtype>*>& top,
      const vector<bool>& propagate_down, const vector<Blob<Dtype>*>& bottom);
};
"""
COMMON = {
    "python/caffe/io.py": IO,
    "python/caffe/classifier.py": CLASSIFIER,
    "src/caffe/layer_factory.cpp": FACTORY,
    "src/caffe/layers/cudnn_deconv_layer.cpp": EMPTIED_DECONVOLUTION,
    "src/caffe/layers/own_layer.cu": KERNELS,
    "include/caffe/layers/own_layer.hpp": HEADER,
    "src/caffe/layers/multibox_loss_layer.cpp": "#ifdef CPU_ONLY\nSTUB_GPU(MultiBoxLossLayer);\n#endif\n\nREGISTER_LAYER_CLASS(MultiBoxLoss);\n",
}


class Fork:
    """The texts of one kind of tree, and which edits look at which of them."""

    def __init__(self, root: Path, module: str) -> None:
        self.texts = {path: text.encode() for path, text in {**COMMON, "python/caffe/_caffe.cpp": module}.items()}
        for path, data in self.texts.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
        self._matches = {name: [tuple(_found(root, spot.files)) for spot in spec.spots] for name, spec in EDITS.items()}
        self._beside = {name: [tuple(_found(root, spot.where_in)) for spot in spec.spots] for name, spec in EDITS.items()}

    def groups(self) -> set[tuple[str, ...]]:
        """Edits that each change the same file."""
        changing = {name: set(self.edit(name, self.texts)) for name in EDITS}
        return {tuple(name for name in EDITS if path in changing[name]) for path in self.texts} - {()}

    def edit(self, name: str, texts: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """The files that the edit changes."""
        beside = {at: tuple(texts[path] for path in paths) for at, paths in enumerate(self._beside[name])}
        outcome = work_out(EDITS[name], name, texts, dict(enumerate(self._matches[name])), beside)
        assert outcome.state is not PatchState.CONFLICTING, outcome.because
        return outcome.files

    def apply(self, names: Sequence[str]) -> dict[str, bytes]:
        """All of them; each changes something, and a second time nothing."""
        texts = dict(self.texts)
        for name in names:
            changed = self.edit(name, texts)
            assert changed, f"{name} has nothing to do after {names}"
            texts.update(changed)
        assert not any(self.edit(name, texts) for name in names)
        return texts


def _found(root: Path, globs: tuple[str, ...]) -> Iterator[str]:
    for pattern in globs:
        yield from (str(path.relative_to(root)) for path in sorted(root.glob(pattern)))


@pytest.fixture(params=sorted(MODULES))
def fork(request: pytest.FixtureRequest, tmp_path: Path) -> Fork:
    return Fork(tmp_path, MODULES[request.param])


def test_every_choice_of_them_fits(fork: Fork) -> None:
    for group in fork.groups():
        for count in range(len(group) + 1):
            for names in combinations(group, count):
                fork.apply(names)


def test_their_order_does_not_matter(fork: Fork) -> None:
    for group in fork.groups():
        results = [fork.apply(names) for names in permutations(group)]
        lines = [{path: Counter(data.splitlines()) for path, data in texts.items()} for texts in results]
        assert all(one == lines[0] for one in lines)


def test_the_texts_are_such_that_edits_meet(tmp_path: Path) -> None:
    """All edits are tried, and most together with others."""
    groups = set().union(*(Fork(tmp_path / kind, module).groups() for kind, module in MODULES.items()))
    assert {name for group in groups for name in group} == set(EDITS)
    assert ("pycaffe-numpy-first", "pycaffe-register-pointers", "pycaffe-import-array") in groups
    assert ("atomic-add-guard", "gpu-function-missing") in groups
    assert ("pycaffe-int-sizes", "pycaffe-python3", "pycaffe-resize-import", "pycaffe-as-gray") in groups


@pytest.mark.parametrize("kind", ["2014", "2015"])
def test_numpy_is_loaded_first_and_pointers_are_registered_last(kind: str, tmp_path: Path) -> None:
    texts = Fork(tmp_path, MODULES[kind]).apply(
        [name for name in EDITS if name in ("pycaffe-numpy-first", "pycaffe-register-pointers")]
    )
    module = texts["python/caffe/_caffe.cpp"].decode().partition("BOOST_PYTHON_MODULE(_caffe) {\n")[2].partition("\n}\n")[0]
    assert module.startswith("  import_array1();  // before the first property\n")
    assert module.endswith("  RegisterPointer<shared_ptr<Solver<Dtype> > >();")
