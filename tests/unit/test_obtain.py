"""The tree that ``up`` takes: what is asked, and what is not asked in vain."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from test_up import TESTS, Quiet

from caffeup.app.obtain import look_ahead, obtain, resolve
from caffeup.app.session import Session
from caffeup.app.stages import Stages
from caffeup.facts.load import load_facts
from caffeup.model.plan import Request
from caffeup.model.tree import Origin
from caffeup.source.origin import write_origin
from caffeup.source.problems import Occupied, Unreachable

FACTS = load_facts()


@pytest.fixture
def unreachable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in; the host of the SSD tree does not answer."""

    def answer(*_: object, **__: object) -> None:
        raise Unreachable("no way to it from here")

    monkeypatch.setattr("caffeup.source.fetch.git.clone", answer)
    monkeypatch.setattr("caffeup.app.obtain.reach", answer)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def take(ui: Quiet) -> Path:
    request = Request()
    return obtain(Session(facts=FACTS), ui, Stages(ui), request, resolve(request, FACTS))


def test_a_stand_in_is_not_offered_where_its_folder_is_taken(unreachable: Path) -> None:
    shutil.copytree(TESTS / "trees" / "tiny", unreachable / "caffe-brocolli")
    ui = Quiet(answer=True)
    with pytest.raises(Occupied) as caught:
        take(ui)
    assert not any("in its place" in text for text in ui.said)
    assert f"caffeup up {unreachable / 'caffe-brocolli'}" in caught.value.commands
    with pytest.raises(Occupied):
        look_ahead(Session(facts=FACTS), ui, Request())


def test_a_stand_in_that_was_taken_earlier_is_taken_again_without_a_question(unreachable: Path) -> None:
    tree = unreachable / "caffe-brocolli"
    shutil.copytree(TESTS / "trees" / "tiny", tree)
    write_origin(tree, Origin(kind="sdist", asked_for="ssd"))
    ui = Quiet()
    assert take(ui) == tree
    assert not any("in its place" in text for text in ui.said)
