"""The doctor: each check ok, a note, a warning or a problem with what was seen; and the truth on a machine that lacks everything."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import planvalues
from caffeup.app.doctor import examine
from caffeup.app.doctor_build import build_findings
from caffeup.app.planning import Planned
from caffeup.app.session import Session
from caffeup.cli.main import main
from caffeup.cli.request import make_request
from caffeup.cli.show import examined
from caffeup.facts.load import load_facts
from caffeup.gpu.access import code_cache, device_nodes, node_paths, toolkit_folders
from caffeup.gpu.checks import condition
from caffeup.gpu.cuda_start import _REMEDIES, cuda_starts
from caffeup.gpu.snapshot import Around, on_cards
from caffeup.gpu.trouble import TROUBLES
from caffeup.model.base import from_json
from caffeup.model.finding import Finding, Severity
from caffeup.model.gpus import Card, CudaAnswer, CudaDevice, Instance, Node, Process, Reading, Snapshot
from caffeup.model.machine import Container, GpuState, Machine, System
from caffeup.verify.fatbin import Code, Kind
from fakehost import MACHINES, FakeHost
from fakelive import GIB, ME, MIB, NODES, FakeLive, card, listed, process

OK, NOTE, WARNING, PROBLEM = Severity.OK, Severity.NOTE, Severity.WARNING, Severity.PROBLEM
H200 = MACHINES / "h200-cuda130-cudnn914"
DEBIAN = System(distro="debian")
WORKS = CudaAnswer(
    cuda=13000,
    devices=(CudaDevice(index=0, name="NVIDIA H200", major=9, minor=0, memory_total=139 * GIB, multiprocessors=132, warp=32),),
)
Found = dict[str, Finding]


def open_node(path: str, **more: Any) -> Node:
    known: dict[str, Any] = {
        "there": True,
        "readable": True,
        "writable": True,
        "mode": "crw-rw-rw-",
        "owner": "root",
        "group": "root",
    }
    return Node(path=path, **{**known, **more})


def by_id(findings: Any) -> Found:
    return {one.id: one for one in findings}


class Machined(Session):
    """What detection gave, as it is recorded."""

    def __init__(self, name: str, **changed: Any) -> None:
        super().__init__(FakeHost(MACHINES / name), load_facts())
        self._found = replace(from_json((MACHINES / name / "expected" / "machine.json").read_bytes(), Machine), **changed)

    def machine(self, prefixes: Any = (), python: str = "", cuda: str = "") -> Machine:
        return self._found


def on(name: str, live: FakeLive, **changed: Any) -> Found:
    return by_id(examine(Machined(name, **changed), "", make_request(), live))


def h200(*cards: Card, **options: Any) -> FakeLive:
    nodes = [open_node(path) for path in (*NODES, "/usr/local/cuda-13.0")]
    return FakeLive(
        *(cards or (card(name="NVIDIA H200", persistence=True, ecc_uncorrected=0, temperature=31),)),
        nodes=options.pop("nodes", nodes),
        cuda=options.pop("cuda", WORKS),
        **options,
    )


class TestTheWhole:
    def test_a_machine_with_a_gpu_that_works(self) -> None:
        found = on("h200-cuda130-cudnn914", h200())
        for name in (
            "gpu-driver-answers",
            "gpu-device-nodes",
            "cuda-device",
            "cuda-folder",
            "cudnn-agree",
            "driver-and-runtime",
            "gpu-memory",
            "gpu-ecc",
            "gpu-persistence",
            "gpu-temperature",
            "gpu-compute-mode",
        ):
            assert found[name].severity is OK, name
            assert found[name].evidence, name
        assert "132 multiprocessors" in str(found["cuda-device"].evidence)

    def test_a_driver_whose_library_is_of_another_release(self) -> None:
        live = FakeLive(reading=Reading(error="Driver/library version mismatch", code=18))
        found = on("driver-silent-after-update", live)
        assert found["gpu-driver-mismatch"].severity is PROBLEM
        assert "gpu-driver-silent" not in found, "told once, and by what is known best"

    def test_without_a_gpu_that_is_said_and_nothing_is_asked(self) -> None:
        class Untouched(FakeLive):
            def reading(self) -> Any:
                raise AssertionError

        assert on("debian12-no-gpu", Untouched())["gpu-none"].severity is NOTE

    def test_a_machine_that_lacks_everything_is_not_called_ok(self) -> None:
        bare = {"compilers": (), "libraries": (), "programs": (), "pythons": (), "toolkits": (), "findings": ()}
        found = on("debian12-no-gpu", FakeLive(library=False), **bare)
        assert found["missing-needed"].severity is PROBLEM
        assert "build-needs" not in found
        said = "\n".join(examined(found.values()))
        assert not re.search(r"^ok:", said, re.MULTILINE)
        assert said.splitlines()[-1].startswith("1 problem")

    def test_a_toolkit_that_the_driver_is_too_old_for(self) -> None:
        machine = from_json((H200 / "expected" / "machine.json").read_bytes(), Machine)
        graphics = machine.graphics
        assert graphics.driver is not None
        from packaging.version import Version

        old = replace(graphics, driver=replace(graphics.driver, release=Version("535.54.3"), cuda=Version("12.2")))
        finding = on("h200-cuda130-cudnn914", h200(), graphics=old)["driver-and-runtime"]
        assert finding.severity is PROBLEM
        assert "CUDA driver version is insufficient" in finding.why

    @pytest.mark.parametrize("name", sorted(path.name for path in MACHINES.iterdir() if path.is_dir()))
    def test_no_recorded_machine_is_a_surprise(self, name: str) -> None:
        """Nothing answers, and then all that they have does; whatever is wrong has a remedy or a reason."""
        machine = from_json((MACHINES / name / "expected" / "machine.json").read_bytes(), Machine)
        cards = [card(gpu.index, name=gpu.name, compute_capability=gpu.compute_capability) for gpu in machine.graphics.gpus]
        for live in (FakeLive(library=False), FakeLive(reading=Reading(error="Unknown Error", code=999)), h200(*cards)):
            for one in on(name, live).values():
                assert one.severity in {OK, NOTE} or one.remedies or one.why or one.evidence, one.id
        silent = machine.graphics.state is not GpuState.NONE and not machine.graphics.gpus
        found = on(name, FakeLive(library=False))
        assert silent is ("gpu-driver-answers" not in found and "gpu-none" not in found)
        assert not silent or any(one.severity in {WARNING, PROBLEM} and one.id.startswith("gpu-") for one in found.values())


class TestExitCodes:
    @pytest.mark.parametrize(("severity", "code"), [(OK, 0), (NOTE, 0), (WARNING, 18), (PROBLEM, 1)])
    def test_by_the_worst(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], severity: Severity, code: int
    ) -> None:
        findings = (Finding(id="a", severity=OK, title="a"), Finding(id="b", severity=severity, title="b"))
        monkeypatch.setattr("caffeup.app.doctor.examine", lambda *_given: findings)
        assert main(["doctor"]) == code
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith(f"{severity}: ")
        assert lines[-1].endswith(" ok")
        assert main(["doctor", "--json"]) == code
        assert [one["id"] for one in json.loads(capsys.readouterr().out)] == ["a", "b"]


class TestDeviceNodes:
    def test_which_are_looked_at(self) -> None:
        cards = (card(0), card(1, minor=3))
        assert node_paths(cards, DEBIAN) == ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia3")
        assert node_paths(cards, replace(DEBIAN, wsl=2)) == ("/dev/dxg",)

    def test_a_group_is_joined(self) -> None:
        nodes = [open_node(path, mode="crw-rw----", group="video", readable=False, writable=False) for path in NODES]
        (one,) = device_nodes(nodes, DEBIAN)
        assert one.severity is PROBLEM
        assert one.remedies[0].commands == ('sudo usermod -aG video "$USER"',)
        assert "crw-rw---- root video" in str(one.evidence[0])

    def test_roots_alone_get_a_group_by_the_drivers_own_setting(self) -> None:
        (one,) = device_nodes([open_node("/dev/nvidia0", mode="crw-------", readable=False, writable=False)], DEBIAN)
        assert "NVreg_DeviceFileGID" in one.remedies[0].text

    @pytest.mark.parametrize(
        ("system", "words"),
        [
            (DEBIAN, "nvidia-modprobe"),
            (replace(DEBIAN, container=Container.DOCKER), "--gpus all"),
            (replace(DEBIAN, wsl=2), "wsl.exe --update"),
        ],
    )
    def test_missing_ones(self, system: System, words: str) -> None:
        (one,) = device_nodes([Node(path="/dev/nvidia-uvm")], system)
        assert one.severity is PROBLEM
        assert words in one.remedies[0].text + str(one.remedies[0].commands)

    def test_a_jetson_has_other_ones(self) -> None:
        system = replace(DEBIAN, jetson="Orin")
        (one,) = device_nodes([open_node("/dev/nvmap"), Node(path="/dev/nvhost-gpu")], system)
        assert one.severity is OK


def test_a_closed_toolkit_has_a_way_without_root() -> None:
    closed = open_node("/usr/local/cuda", folder=True, readable=False, mode="drwxr-x---", group="cuda")
    (one,) = toolkit_folders([closed, open_node("/opt/x"), Node(path="/nowhere")])
    assert one.severity is PROBLEM
    assert one.remedies[0].commands == ("caffeup up --cuda wheels",)
    assert list(toolkit_folders([Node(path="/nowhere")])) == []


def test_a_cache_of_roots() -> None:
    mine = open_node("/home/me/.nv/ComputeCache")
    assert list(code_cache(mine)) == []
    assert list(code_cache(Node(path="/home/me/.nv/ComputeCache"))) == []
    (one,) = code_cache(replace(mine, writable=False))
    assert one.severity is WARNING
    assert "CUDA_CACHE_PATH" in one.remedies[0].commands[0]


class TestCudaStarts:
    @pytest.mark.parametrize("code", [*_REMEDIES, 1, 0])
    def test_an_error_of_its_own_is_a_problem_with_a_remedy(self, code: int) -> None:
        (one,) = cuda_starts(CudaAnswer(error=f"cuInit: CUDA_ERROR ({code})", code=code))
        assert one.severity is PROBLEM
        assert one.remedies

    def test_no_library_is_a_problem_where_there_is_a_gpu(self) -> None:
        (one,) = cuda_starts(None)
        assert one.id == "cuda-library-missing"

    def test_nothing_shown(self) -> None:
        (one,) = cuda_starts(CudaAnswer(cuda=13000))
        assert one.severity is PROBLEM

    def test_what_device_query_tells(self) -> None:
        device = CudaDevice(index=0, name="RTX 4090", major=8, minor=9, clock_khz=2520000, l2_bytes=72 << 20, ecc=0, watchdog=1)
        first, second = cuda_starts(CudaAnswer(devices=(device,)))
        assert first.title == "CUDA starts; device 0 is RTX 4090, compute capability 8.9"
        assert [one.text for one in first.evidence] == ["2520 MHz", "73728 KiB L2", "ECC no, watchdog yes"]
        assert second.id == "cuda-watchdog"


def checked(one: Card, *processes: Process) -> Found:
    gpus = on_cards((one,), Around(processes=processes))
    return by_id(condition(Snapshot(state=GpuState.PRESENT, gpus=gpus), uid=ME))


class TestCondition:
    @pytest.mark.parametrize(
        ("figures", "name", "severity"),
        [
            ({"ecc_uncorrected": 0}, "gpu-ecc", OK),
            ({"ecc_uncorrected": 2}, "gpu-ecc-errors", WARNING),
            ({"repair_pending": True}, "gpu-memory-repair", WARNING),
            ({"repair_failed": True, "repair_pending": True}, "gpu-memory-worn", PROBLEM),
            ({"slowed_by": ("thermal slowdown (hardware)",), "temperature": 96}, "gpu-slowed", WARNING),
            ({"temperature": 92, "temperature_slowdown": 95}, "gpu-slowed", WARNING),
            ({"slowed_by": ("power cap",), "temperature": 60}, "gpu-power-cap", NOTE),
            ({"temperature": 40, "temperature_slowdown": 95}, "gpu-temperature", OK),
            ({"persistence": False}, "gpu-persistence", NOTE),
            ({"persistence": False, "display_active": True}, "gpu-persistence", OK),
            ({"persistence": True}, "gpu-persistence", OK),
            ({"compute_mode": "prohibited"}, "gpu-compute-mode", PROBLEM),
            ({"compute_mode": "exclusive-process"}, "gpu-compute-mode", NOTE),
            ({"mig": True}, "gpu-mig-empty", PROBLEM),
            ({"mig": True, "instances": (Instance(index=0, name="NVIDIA A100 MIG 3g.20gb"),)}, "gpu-mig", NOTE),
        ],
    )
    def test_figure_by_figure(self, figures: dict[str, Any], name: str, severity: Severity) -> None:
        found = checked(card(**figures))
        assert found[name].severity is severity
        assert found[name].evidence

    def test_what_a_card_does_not_tell_is_not_judged(self) -> None:
        assert checked(Card(index=0)) == {}

    def test_memory_that_is_taken_names_who_has_it(self) -> None:
        one = checked(card(used=24000 * MIB, listed=[listed(50, 24000)]), process(50))["gpu-memory-taken"]
        assert one.severity is WARNING
        assert "process 50 of me (python train.py)" in str(one.evidence[1])
        assert "caffeup gpu kill 50" in one.remedies[0].commands

    def test_nobody_is_told_to_end_anothers_process(self) -> None:
        one = checked(card(used=24000 * MIB, listed=[listed(50, 24000)]), process(50, uid=0, user="root"))["gpu-memory-taken"]
        assert not any("kill" in command for command in one.remedies[0].commands)

    def test_others_that_leave_room_are_a_note(self) -> None:
        assert checked(card(used=2000 * MIB, listed=[listed(50, 2000)]), process(50))["gpu-shared"].severity is NOTE

    def test_a_small_card_is_not_blamed_for_its_size(self) -> None:
        assert "gpu-memory-taken" not in checked(card(total=1 * GIB, used=200 * MIB))


class TestABuiltTree:
    """A library with code for 8.6, on other GPUs."""

    @staticmethod
    def found(folder: Path, monkeypatch: pytest.MonkeyPatch, codes: tuple[Code, ...], capability: str, **request: Any) -> Found:
        (folder / "build" / "lib").mkdir(parents=True)
        (folder / "build" / "lib" / "libcaffe.so").write_bytes(b"")
        monkeypatch.setattr("caffeup.verify.fatbin.read_fatbins", lambda _path: (codes,) if codes else ())
        machine = planvalues.machine(
            planvalues.gpu("A GPU", capability), toolkits=(planvalues.toolkit("12.4"),), **planvalues.cudnn("9.1.0")
        )
        plan = planvalues.plan(machine, **request)
        return by_id(build_findings(Planned(folder, machine, planvalues.tree(), plan)))

    @pytest.mark.parametrize(("capability", "severity"), [("8.6", OK), ("8.9", OK), ("8.0", PROBLEM), ("9.0", PROBLEM)])
    def test_code_for_the_gpu(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capability: str, severity: Severity) -> None:
        sass = Code(kind=Kind.SASS, made_for=planvalues.cc("8.6"))
        one = self.found(tmp_path, monkeypatch, (sass,), capability)["code-for-gpu"]
        assert one.severity is severity
        assert "SASS 8.6" in str(one.evidence[0])
        assert bool(one.remedies) is (severity is PROBLEM)

    def test_a_build_without_cuda(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.found(tmp_path, monkeypatch, (), "8.6")["built-without-cuda"].severity is WARNING

    def test_groups_on_cudnn(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.found(tmp_path / "a", monkeypatch, (), "8.6")["groups-on-cudnn"].severity is OK
        by_name = self.found(tmp_path / "b", monkeypatch, (), "8.6", auto_depthwise=False)
        assert by_name["groups-on-cudnn"].severity is WARNING

    def test_a_tree_that_was_not_built(self, tmp_path: Path) -> None:
        machine = planvalues.machine()
        assert list(build_findings(Planned(tmp_path, machine, planvalues.tree(), planvalues.plan(machine)))) == []


def test_no_remedy_opens_what_is_closed_to_all() -> None:
    """Never chmod 777, nor any chmod; sudo only beside what says who may."""
    source = Path(__file__).resolve().parents[2] / "src" / "caffeup"
    for path in (*(source / "gpu").glob("*.py"), *(source / "app").glob("doctor*.py"), *(source / "app").glob("gpu*.py")):
        text = path.read_text(encoding="utf-8")
        assert "chmod" not in text.replace("home.mkdir(mode=0o700)", ""), path.name
        assert "sudo rm" not in text, path.name
    assert all(one.remedy.text for one in TROUBLES.values())
