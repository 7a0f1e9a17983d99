"""An edit goes out of a file that somebody changed since, and takes nothing of theirs along."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caffeup.facts.load import load_facts
from caffeup.model.outcome import PatchState
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
