"""Every machine under tests/machines/ gives the expected plan, Makefile.config and explanation.

``request.toml`` in a machine's folder says what is asked for and for which tree; without it: the default, and BVLC's tree.
"""

from __future__ import annotations

from pathlib import Path
from typing import Callable

import pytest

from caffeup.model.base import Value, from_json, from_toml, to_json
from caffeup.model.machine import Machine
from caffeup.model.plan import Plan, Request
from caffeup.plan.explain import explain_all
from caffeup.plan.make import make_plan
from caffeup.render import render_config
from planvalues import FACTS, TREES

FOLDERS = sorted(file.parents[1] for file in (Path(__file__).parents[1] / "machines").glob("*/expected/machine.json"))


class Asked(Value, kw_only=True):
    """request.toml."""

    tree: str = "bvlc"
    request: Request = Request()


def planned(folder: Path) -> Plan:
    file = folder / "request.toml"
    asked = from_toml(file.read_bytes(), Asked) if file.is_file() else Asked()
    machine = from_json((folder / "expected" / "machine.json").read_bytes(), Machine)
    return make_plan(machine, TREES[asked.tree], asked.request, FACTS)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_planned_as_expected(folder: Path, golden: Callable[[Path, str], None]) -> None:
    plan = planned(folder)
    assert from_json(to_json(plan), Plan) == plan
    golden(folder / "expected" / "plan.json", to_json(plan))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_configured_as_expected(folder: Path, golden: Callable[[Path, str], None]) -> None:
    golden(folder / "expected" / "Makefile.config", render_config(planned(folder)))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_explained_as_expected(folder: Path, golden: Callable[[Path, str], None]) -> None:
    golden(folder / "expected" / "explain.txt", explain_all(planned(folder)))
