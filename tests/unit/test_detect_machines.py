"""Every machine under tests/machines/ gives the expected value; adding one needs no Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from caffeup.detect.machine import detect
from caffeup.facts.load import load_facts
from caffeup.model.base import from_json, to_json
from caffeup.model.machine import Machine
from fakehost import MACHINES, FakeHost

FOLDERS = sorted(file.parent for file in MACHINES.glob("*/machine.toml"))
each_machine = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


@each_machine
def test_detected_as_expected(folder: Path, golden: Callable[[Path, str], None]) -> None:
    machine = detect(FakeHost(folder), load_facts())
    text = to_json(machine)
    assert from_json(text, Machine) == machine
    golden(folder / "expected" / "machine.json", text)


@each_machine
def test_links_are_relative_and_stay_inside(folder: Path) -> None:
    root = (folder / "root").resolve()
    for link in (path for path in root.rglob("*") if path.is_symlink()):
        assert not link.readlink().is_absolute(), link
        assert link.resolve().is_relative_to(root), link
        assert link.exists(), f"{link} leads nowhere"


@each_machine
def test_a_command_is_recorded_once_and_the_machine_is_described(folder: Path) -> None:
    host = FakeHost(folder)
    assert [argv for argv, count in Counter(one.argv for one in host.commands).items() if count > 1] == []
    assert host.record.title
    assert host.record.origin


@each_machine
def test_no_recorded_command_is_never_asked(folder: Path) -> None:
    """A recording that no probe asks for is left from another time and would only seem to test something."""
    host = FakeHost(folder)
    detect(host, load_facts())
    asked = set(host.ran)
    assert [one.argv for one in host.commands if not any(one.answers(argv) for argv in asked)] == []
