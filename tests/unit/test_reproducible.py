"""Two builds of the same tree, in different folders and with files found in another order, give the same bytes."""

from __future__ import annotations

import hashlib
import shutil
import stat
from pathlib import Path
from typing import Optional

import pytest
from test_up import TESTS, go

from caffeup.build.debris import remove_debris
from caffeup.build.makefile import Variables
from caffeup.build.order import link_order
from caffeup.model.plan import ConfigLine, Plan
from caffeup.render import render_config
from planvalues import gcc, gpu, machine, plan, toolkit


def products(root: Path) -> dict[str, str]:
    built = root / ".build_release"
    kinds = ("*.o", "*.bin", "*.so*", "*.a")
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for kind in kinds
        for path in sorted(built.rglob(kind))
    }


def reversed_find(folder: Path) -> str:
    """A ``find`` that tells the files in another order, as another file system would."""
    real = shutil.which("find")
    script = folder / "find"
    folder.mkdir()
    script.write_text(f'#!/bin/sh\n{real} "$@" | sort -r\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(folder)


def test_another_folder_and_another_order_of_files_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "a", tmp_path / "some" / "deeper" / "b"
    for root in (first, second):
        shutil.copytree(TESTS / "trees" / "tiny", root)
    go(first, tests=False)
    monkeypatch.setenv("PATH", f"{reversed_find(tmp_path / 'bin')}:/usr/local/bin:/usr/bin:/bin")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    go(second, tests=False)
    log = (second / ".caffeup" / "logs" / "build.log").read_text()
    assert "OBJS=" in log, "the other order was seen"
    made = products(first)
    assert made == products(second)
    assert any(name.endswith("libcaffe.so.0.1.0") for name in made)


def test_objects_are_linked_in_the_order_of_their_names() -> None:
    assert link_order(Variables(values={"OBJS": "b.o a.o"})) == {"OBJS": "a.o b.o"}
    assert link_order(Variables(values={"OBJS": "a.o b.o"})) == {}
    assert link_order(Variables(values={})) == {}


def plan_with(cuda: Optional[str]) -> Plan:
    if cuda is None:
        return plan(machine())
    return plan(machine(gpu("a card", "8.0"), toolkits=(toolkit(cuda),), compilers=(gcc("9.4"),)))


def lines(plan: Plan, key: str) -> list[ConfigLine]:
    return [one for one in plan.config if one.key == key]


@pytest.mark.parametrize(("cuda", "has"), [("13.0", True), ("11.2", True), ("11.1", False), (None, False)])
def test_nvcc_names_no_temporary_files_where_it_can(cuda: Optional[str], has: bool) -> None:
    said = [word for one in lines(plan_with(cuda), "NVCCFLAGS") for word in one.value]
    assert ("--objdir-as-tempdir" in said) is has


def test_dates_are_the_same_in_every_build() -> None:
    assert "export SOURCE_DATE_EPOCH := 315532800\n" in render_config(plan_with(None))


def test_what_a_killed_nvcc_leaves_beside_an_object_goes(tmp_path: Path) -> None:
    layers = tmp_path / ".build_release" / "cuda" / "src" / "caffe" / "layers"
    layers.mkdir(parents=True)
    ends = "cpp1.ii cpp4.ii compute_75.cubin cubin cudafe1.c cudafe1.cpp cudafe1.gpu cudafe1.stub.c fatbin fatbin.c module_id ptx"
    left = [layers / f"a_layer.o.{end}" for end in ends.split()]
    kept = [layers / "a_layer.o.warnings.txt", layers / "mine.c", layers / "mine.ptx"]
    for path in (*left, *kept):
        path.write_text("x")
    remove_debris(tmp_path)
    assert sorted(layers.iterdir()) == sorted(kept)
