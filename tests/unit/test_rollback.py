"""The build before is kept until the new one works, runs where it lies, and can be returned to; what is rebuilt after an upgrade."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Optional

import msgspec
import pytest
from packaging.version import Version
from test_up import TESTS, OnDebian, Quiet, go, library_source

from caffeup.app import rollback
from caffeup.app.lock_contents import built
from caffeup.app.rollback import keep, kept, roll_back
from caffeup.app.state import FOLDER, load_state, save_state
from caffeup.app.treework import last_plan
from caffeup.app.up import Up
from caffeup.build.makefile import Variables
from caffeup.build.stale import fingerprint, remove_stale
from caffeup.errors import BuildFailed, CaffeupError, DiskError, NotBuilt
from caffeup.model.base import from_json, to_json
from caffeup.model.machine import Driver, Machine
from caffeup.model.plan import Plan, Request
from planvalues import cudnn, gcc, gpu, machine, plan, toolkit

VARIABLES = Variables(values={"BUILD_DIR": ".build_release", "CXX": "g++", "CUDA_DIR": ".caffeup/cuda"})


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str], dict[str, str]]:
    """A tree that was built, and built again with another source: what each build gave."""
    root = tmp_path_factory.mktemp("twice") / "tiny"
    shutil.copytree(TESTS / "trees" / "tiny", root)
    go(root, tests=False)
    first = built(last_plan(root))
    source = library_source(root)
    source.write_text(source.read_text() + '\nextern "C" int added_later() { return 7; }\n')
    go(root, tests=False)
    return root, first, built(last_plan(root))


@pytest.fixture
def tree(twice: tuple[Path, dict[str, str], dict[str, str]], tmp_path: Path) -> Path:
    shutil.copytree(twice[0], tmp_path / "tiny", symlinks=True)
    return tmp_path / "tiny"


def test_the_build_before_comes_back_and_up_goes_on_from_there(
    tree: Path, twice: tuple[Path, dict[str, str], dict[str, str]]
) -> None:
    _, first, second = twice
    assert first != second
    assert built(last_plan(tree)) == second
    checks = roll_back(OnDebian(), Quiet(), str(tree))
    assert checks
    assert all(check.ok for check in checks)
    assert built(last_plan(tree)) == first
    assert built(last_plan(tree)) == built(last_plan(tree))
    go(tree, tests=False)
    assert built(last_plan(tree)) == second


def test_it_runs_where_it_is_kept(tree: Path) -> None:
    program = tree / FOLDER / "previous" / "build" / "tools" / "caffe"
    said = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    assert str(tree / FOLDER / "previous") in said, "it loads the library that is kept with it"
    assert dict(rollback.in_place(tree))["PATH"] == str(program.parent)


def test_a_build_that_fails_leaves_it_and_names_the_way_back(tree: Path) -> None:
    source = library_source(tree)
    source.write_text(source.read_text() + "\nint broken( {\n")
    for _ in range(2):
        with pytest.raises(BuildFailed) as caught:
            go(tree, tests=False)
        assert f"caffeup rollback {tree}" in caught.value.commands
    assert all(check.ok for check in roll_back(OnDebian(), Quiet(), str(tree)))


def test_what_somebody_wrote_in_python_stays(tree: Path) -> None:
    mine = tree / "python" / "caffe" / "__init__.py"
    mine.write_text("mine = 1\n")
    roll_back(OnDebian(), Quiet(), str(tree))
    assert mine.read_text() == "mine = 1\n"


@pytest.mark.parametrize("half", ["new without a list", "between the renames", "old left over"])
def test_a_kill_while_keeping_leaves_one_whole(tree: Path, half: str) -> None:
    home = tree / FOLDER
    if half == "new without a list":
        (home / "previous.new" / "build").mkdir(parents=True)
    elif half == "between the renames":
        (home / "previous").rename(home / "previous.old")
        (home / "previous.new").mkdir()
    else:
        shutil.copytree(home / "previous", home / "previous.old", symlinks=True)
    assert roll_back(OnDebian(), Quiet(), str(tree))
    assert not (home / "previous.new").exists()
    assert not (home / "previous.old").exists()


def test_a_kill_while_putting_back_is_gone_on_with(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = rollback._put
    done: list[Path] = []

    def killed(source: Path, place: Path, is_: str) -> None:
        if done:
            raise KeyboardInterrupt
        done.append(place)
        real(source, place, is_)

    monkeypatch.setattr(rollback, "_put", killed)
    with pytest.raises(KeyboardInterrupt):
        roll_back(OnDebian(), Quiet(), str(tree))
    monkeypatch.undo()
    assert all(check.ok for check in roll_back(OnDebian(), Quiet(), str(tree)))


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "", ".git/config", ".caffeup/state.json", "a/../../b"])
def test_names_that_lead_elsewhere_are_not_followed(tree: Path, name: str) -> None:
    place = tree / FOLDER / "previous" / "kept.json"
    found = from_json(place.read_bytes(), rollback.Kept)
    place.write_text(to_json(msgspec.structs.replace(found, files={name: "->x"})))
    assert kept(tree) is None
    with pytest.raises(NotBuilt):
        roll_back(OnDebian(), Quiet(), str(tree))


def test_what_was_damaged_is_not_put_back(tree: Path) -> None:
    before = built(last_plan(tree))
    library = next((tree / FOLDER / "previous" / ".build_release" / "lib").glob("libcaffe.so.*"))
    library.write_bytes(library.read_bytes()[:100])
    with pytest.raises(CaffeupError, match="is not what was kept"):
        roll_back(OnDebian(), Quiet(), str(tree))
    assert built(last_plan(tree)) == before


def test_a_link_in_its_place_is_refused(tree: Path, tmp_path: Path) -> None:
    shutil.rmtree(tree / FOLDER / "previous")
    (tree / FOLDER / "previous").symlink_to(tmp_path)
    with pytest.raises(DiskError):
        roll_back(OnDebian(), Quiet(), str(tree))


def test_without_room_nothing_is_kept_and_the_older_one_stays(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (tree / FOLDER / "previous" / "kept.json").read_bytes()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    assert not keep(tree, last_plan(tree))
    assert (tree / FOLDER / "previous" / "kept.json").read_bytes() == before


def test_a_build_that_did_not_pass_its_checks_is_not_kept(tree: Path) -> None:
    before = (tree / FOLDER / "previous" / "kept.json").read_bytes()
    state = load_state(tree)
    save_state(tree, msgspec.structs.replace(state, stages=tuple(one for one in state.stages if one.name != "verify")))
    assert not keep(tree, last_plan(tree))
    assert (tree / FOLDER / "previous" / "kept.json").read_bytes() == before


class WithDriver(OnDebian):
    """The same machine with an NVIDIA driver."""

    release = "580.65.06"

    def machine(self, prefixes: tuple[str, ...] = (), python: str = "", cuda: str = "") -> Machine:
        found = super().machine(prefixes, python, cuda)
        driver = Driver(via="nvml", release=Version(self.release))
        return msgspec.structs.replace(found, graphics=msgspec.structs.replace(found.graphics, driver=driver))


class WithNewerDriver(WithDriver):
    release = "590.44.01"


def test_a_new_driver_is_told_and_builds_nothing(tree: Path) -> None:
    request = Request(source=str(tree), python="none", tests=False, cpu=True)
    Up(WithDriver(), Quiet(), request).run()
    ui = Quiet()
    report = Up(WithNewerDriver(), ui, request).run()
    assert any("nothing is built anew for it" in text for text in ui.said)
    assert {stage.name: stage.state for stage in report.stages}["build"] == "unchanged"


def on_gpu(cuda: str = "13.0", version: str = "9.14.0", driver: str = "580.65.06", compiler: str = "13.3") -> Plan:
    found = machine(gpu("a card", "9.0"), driver=driver, toolkits=(toolkit(cuda),), compilers=(gcc(compiler),), **cudnn(version))
    return plan(found)


def objects(root: Path) -> None:
    for name, text in {
        "src/caffe/net.o": "_ZN5caffe3NetIfE", "src/caffe/common.o": "cudaGetDevice", "src/caffe/layer_factory.o": "CuDNNConvolution",
        "cuda/src/caffe/layers/relu_layer.o": "cudaLaunchKernel", "cuda/src/caffe/layers/cudnn_relu_layer.o": "cudnnForward",
        "lib/libcaffe.so.1.0.0": "", "src/caffe/proto/caffe.pb.h": "",
    }.items():  # fmt: skip
        place = root / ".build_release" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"\x7fELF" + text.encode())


@pytest.mark.parametrize(
    ("new", "gone", "because"),
    [
        (on_gpu(driver="590.44.01"), set(), ""),
        (on_gpu(version="9.15.0"), {"layer_factory.o", "cudnn_relu_layer.o", "libcaffe.so.1.0.0"}, "cudnn 9.14.0 → 9.15.0"),
        (
            on_gpu(cuda="13.1"),
            {"common.o", "layer_factory.o", "relu_layer.o", "cudnn_relu_layer.o", "libcaffe.so.1.0.0"},
            "CUDA 13.1 in",
        ),
        (
            on_gpu(compiler="12.3"),
            {"net.o", "common.o", "layer_factory.o", "relu_layer.o", "cudnn_relu_layer.o"},
            "gcc 12.3",
        ),
        (
            on_gpu(version="8.9.7"),
            {"net.o", "common.o", "layer_factory.o", "relu_layer.o", "cudnn_relu_layer.o", "libcaffe.so.1.0.0"},
            "cudnn 9.14.0 → ",
        ),
    ],
    ids=["driver", "cudnn", "toolkit", "compiler", "another cudnn"],
)
def test_only_what_depends_on_it_is_built_anew(tmp_path: Path, new: Plan, gone: set[str], because: Optional[str]) -> None:
    remove_stale(tmp_path, fingerprint(tmp_path, on_gpu(), VARIABLES), VARIABLES)
    objects(tmp_path)
    before = {path.name for path in (tmp_path / ".build_release").rglob("*") if path.is_file()}
    stale = remove_stale(tmp_path, fingerprint(tmp_path, new, VARIABLES), VARIABLES)
    left = {path.name for path in (tmp_path / ".build_release").rglob("*") if path.is_file()}
    assert before - left == gone
    assert (because or "") in stale.because
