"""An edit goes out of a file that somebody changed since, and takes nothing of theirs along."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caffeup.cli.main import main
from caffeup.errors import PatchFailed
from caffeup.facts.load import load_facts
from caffeup.model.outcome import PatchEntry, PatchState
from caffeup.model.plan import Plan, PlannedFix, Request
from caffeup.patch import engine
from caffeup.patch.untangle import without
from patchtools import tree_with_factory

FACTS = load_facts()
FACTORY = """\
#include "caffe/layer_factory.hpp"

template <typename Dtype>
shared_ptr<Layer<Dtype> > GetConvolutionLayer(
    const LayerParameter& param) {
  return shared_ptr<Layer<Dtype> >(new ConvolutionLayer<Dtype>(param));
}

REGISTER_LAYER_CREATOR(Convolution, GetConvolutionLayer);
"""


@pytest.fixture
def applied(tmp_path: Path) -> Path:
    root = tree_with_factory(tmp_path / "caffe", FACTORY)
    fixes = tuple(PlannedFix(id=name, because="") for name in ("depthwise-layer", "depthwise-auto"))
    engine.apply(str(root), Plan(tree=str(root), fork="bvlc", request=Request(), gpu=False, fixes=fixes), FACTS)
    assert "DepthwiseConvLayer" in (root / "src/caffe/layer_factory.cpp").read_text()
    return root


def test_what_somebody_wrote_stays_and_the_tree_still_compiles(applied: Path) -> None:
    """Otherwise the file would go on including the header that goes."""
    factory = applied / "src" / "caffe" / "layer_factory.cpp"
    factory.write_text(f"// mine\n{factory.read_text()}\n// mine too\n")
    factory.chmod(0o755)
    done = {entry.id: entry for entry in engine.revert(str(applied))}
    assert done["depthwise-auto"].state is PatchState.REVERTED
    assert "stays" in done["depthwise-auto"].because
    assert factory.read_text() == f"// mine\n{FACTORY}\n// mine too\n"
    assert factory.stat().st_mode & 0o777 == 0o755
    assert not (applied / "include/caffe/layers/depthwise_conv_layer.hpp").exists()
    assert engine.status(str(applied)) == ()


def test_where_they_changed_what_caffeup_wrote_all_stays(applied: Path) -> None:
    factory = applied / "src" / "caffe" / "layer_factory.cpp"
    text = factory.read_text().replace("GetConvolutionOrDepthwiseLayer", "MyOwn")
    factory.write_text(text)
    done = {entry.id: entry for entry in engine.revert(str(applied))}
    assert done["depthwise-auto"].state is PatchState.EDITED
    assert factory.read_text() == text


def test_a_ledger_that_does_not_tell_what_was_written_changes_nothing(applied: Path) -> None:
    factory = applied / "src" / "caffe" / "layer_factory.cpp"
    text = f"// mine\n{factory.read_text()}"
    factory.write_text(text)
    ledger = applied / ".caffeup" / "ledger.json"
    ledger.write_text(ledger.read_text().replace("A depthwise one without", "Another one without"))
    done = {entry.id: entry for entry in engine.revert(str(applied))}
    assert done["depthwise-auto"].state is PatchState.EDITED
    assert factory.read_text() == text


IO = """\
def load_image(filename, color=True):
    return imread(filename, as_grey=not color)


def oversample(images, crop_dims):
    crop_dims = np.array(crop_dims)
"""


@pytest.fixture
def pycaffe(tmp_path: Path) -> tuple[Path, Plan]:
    """Two edits of one file: one whose place is gone once it is applied, and one that knows itself again."""
    root = tree_with_factory(tmp_path / "caffe", FACTORY)
    (root / "python" / "caffe").mkdir(parents=True)
    (root / "python" / "caffe" / "io.py").write_text(IO)
    fixes = tuple(PlannedFix(id=name, because="") for name in ("skimage-as-grey", "pycaffe-int-sizes"))
    plan = Plan(tree=str(root), fork="bvlc", request=Request(), gpu=False, fixes=fixes)
    engine.apply(str(root), plan, FACTS)
    return root, plan


def states(entries: tuple[PatchEntry, ...]) -> dict[str, PatchState]:
    return {one.fix: one.state for one in entries}


def test_every_edit_of_a_changed_file_is_known_as_applied(pycaffe: tuple[Path, Plan]) -> None:
    root, plan = pycaffe
    changed = root / "python" / "caffe" / "io.py"
    applied = changed.read_text()
    assert applied.count("as_gray") == applied.count("astype(int)") == 1
    changed.write_text(f"{applied}# mine\n")
    both = dict.fromkeys(("skimage-as-grey", "pycaffe-int-sizes"), PatchState.EDITED)
    assert states(engine.status(str(root), plan, FACTS)) == states(engine.apply(str(root), plan, FACTS)) == both
    changed.write_text(applied)
    assert states(engine.revert(str(root))) == dict.fromkeys(both, PatchState.REVERTED), "none has been forgotten meanwhile"
    assert changed.read_text() == IO


def test_an_edit_that_somebody_took_out_by_hand_is_put_in_again(pycaffe: tuple[Path, Plan]) -> None:
    root, plan = pycaffe
    changed = root / "python" / "caffe" / "io.py"
    changed.write_text(changed.read_text().replace("as_gray", "as_grey") + "# mine\n")
    assert states(engine.apply(str(root), plan, FACTS))["skimage-as-grey"] is PatchState.DONE
    assert "as_gray" in changed.read_text()
    assert changed.read_text().endswith("# mine\n")


def test_what_revert_leaves_in_is_no_success(applied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    factory = applied / "src" / "caffe" / "layer_factory.cpp"
    factory.write_text(factory.read_text().replace("GetConvolutionOrDepthwiseLayer", "MyOwn"))
    assert main(["patch", "revert", str(applied)]) == PatchFailed.exit_code
    assert "layer_factory.cpp" in capsys.readouterr().err


LINES = st.lists(st.sampled_from([f"{word}\n".encode() for word in ("a", "b", "c", "d")]), max_size=8)


@given(LINES, LINES, LINES, LINES, LINES)
def test_what_is_taken_out_is_what_was_put_in(
    head: list[bytes], old: list[bytes], ours: list[bytes], tail: list[bytes], mine: list[bytes]
) -> None:
    def text(*parts: list[bytes]) -> bytes:
        return b"".join(line for part in parts for line in part)

    theirs = [b"x" + line for line in mine]
    put = [b"y" + line for line in ours]
    before, after = text(head, old, tail), text(head, put, tail)
    for now, wanted in (
        (text(theirs, head, put, tail), text(theirs, head, old, tail)),
        (text(head, put, tail, theirs), text(head, old, tail, theirs)),
    ):
        found = without(before, after, now)
        assert found in (None, wanted)
        assert without(before, after, after) in (None, before)


def test_a_place_that_is_there_twice_is_none() -> None:
    assert without(b"a\nb\n", b"a\nnew\nb\n", b"a\nnew\nb\na\nnew\nb\n") is None
    assert without(b"a\nb\n", b"a\nnew\nb\n", b"0\na\nnew\nb\n1\n") == b"0\na\nb\n1\n"
