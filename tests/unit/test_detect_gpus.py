"""GPUs from each source, and each reason for which there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.version import Version

from caffeup.detect.gpus import probe_graphics
from caffeup.detect.system import probe_system
from caffeup.facts.load import load_facts
from caffeup.model.base import ComputeCapability
from caffeup.model.finding import Finding
from caffeup.model.machine import GpuState, Graphics
from fakehost import FakeHost, write_machine

PCI = "/sys/bus/pci/devices/0000:01:00.0"
ON_BUS = {f"{PCI}/vendor": "0x10de\n", f"{PCI}/class": "0x030000\n"}
MODULE = {"/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue\n"}
NVML = '[nvml]\nlibrary = "libnvidia-ml.so.1"\nrelease = "550.54.15"\ncuda = 12040\n'
TWO = (
    NVML
    + '[[nvml.devices]]\nname = "A"\ncompute_capability = [8, 6]\nuuid = "GPU-a"\n[[nvml.devices]]\nname = "B"\ncompute_capability = [6, 1]\nuuid = "GPU-b"\n'
)


def probe(host: FakeHost) -> tuple[Graphics, tuple[Finding, ...]]:
    return probe_graphics(host, load_facts(), probe_system(host))


def ids(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.id for finding in findings]


def test_no_device_is_no_problem(tmp_path: Path) -> None:
    graphics, findings = probe(write_machine(tmp_path))
    assert graphics.state is GpuState.NONE
    assert [one.where for one in graphics.tried] == ["NVML (libnvidia-ml.so.1)", "libcuda (libcuda.so.1)", "nvidia-smi"]
    assert findings == ()


def test_a_sound_chip_of_nvidia_is_no_gpu(tmp_path: Path) -> None:
    graphics, _ = probe(write_machine(tmp_path, files={f"{PCI}/vendor": "0x10de\n", f"{PCI}/class": "0x040300\n"}))
    assert graphics.state is GpuState.NONE


def test_a_device_without_a_driver(tmp_path: Path) -> None:
    graphics, findings = probe(write_machine(tmp_path, files=ON_BUS))
    assert graphics.state is GpuState.NO_DRIVER
    assert ids(findings) == ["gpu-no-driver"]


def test_a_driver_whose_library_is_of_another_release(tmp_path: Path) -> None:
    toml = '[nvml]\nlibrary = "libnvidia-ml.so.1"\nerror = "Driver/library version mismatch"\n'
    graphics, findings = probe(
        write_machine(tmp_path, files={**ON_BUS, **MODULE, "/dev/nvidia0": "", "/dev/nvidiactl": ""}, toml=toml)
    )
    assert graphics.state is GpuState.DRIVER_SILENT
    assert graphics.driver is not None
    assert graphics.driver.release == Version("550.54.15")
    assert graphics.driver.evidence.endswith(": 550.54.15")
    assert ids(findings) == ["gpu-driver-silent"]
    assert "Driver/library version mismatch" in [one.text for one in findings[0].evidence]


@pytest.mark.parametrize(
    ("status", "words"), [(9, "exit 9: NVIDIA-SMI has failed"), (124, "no answer within 5 s"), (126, "exit 126")]
)
def test_an_nvidia_smi_that_fails_or_hangs(tmp_path: Path, status: int, words: str) -> None:
    said = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n" if status == 9 else ""
    commands = f"$ /usr/bin/nvidia-smi * *\n? {status}\n{said}"
    graphics, _ = probe(write_machine(tmp_path, files={**ON_BUS, **MODULE}, programs=["/usr/bin/nvidia-smi"], commands=commands))
    assert graphics.state is GpuState.DRIVER_SILENT
    assert graphics.tried[-1].outcome.startswith(words)


@pytest.mark.parametrize("file", ["/.dockerenv", "/run/.containerenv", "/.singularity.d/env"])
def test_a_container_without_its_machines_gpu(tmp_path: Path, file: str) -> None:
    graphics, findings = probe(write_machine(tmp_path, files={**ON_BUS, **MODULE, file: ""}))
    assert graphics.state is GpuState.HIDDEN
    assert ids(findings) == ["gpu-hidden"]


def test_libcuda_answers_where_nvml_is_not_there(tmp_path: Path) -> None:
    toml = '[libcuda]\nlibrary = "/usr/lib/wsl/lib/libcuda.so.1"\ncuda = 12060\n[[libcuda.devices]]\nname = "NVIDIA GeForce RTX 4070"\ncompute_capability = [8, 9]\n'
    graphics, _ = probe(write_machine(tmp_path, toml=toml))
    assert graphics.state is GpuState.PRESENT
    assert (graphics.gpus[0].via, graphics.gpus[0].evidence) == ("libcuda", "/usr/lib/wsl/lib/libcuda.so.1")
    assert graphics.driver is not None
    assert graphics.driver.cuda == Version("12.6")


def test_nvidia_smi_answers_last_and_an_old_one_is_asked_less(tmp_path: Path) -> None:
    commands = """$ /usr/bin/nvidia-smi --query-gpu=name,memory.total,driver_version,uuid,compute_cap,mig.mode.current --format=csv,noheader,nounits
? 2
Field "compute_cap" is not a valid field to query.
$ /usr/bin/nvidia-smi --query-gpu=name,memory.total,driver_version,uuid --format=csv,noheader,nounits
GeForce GTX 1070, 8114, 410.48, GPU-1
$ /usr/bin/nvidia-smi
| NVIDIA-SMI 410.48     Driver Version: 410.48      CUDA Version: 10.0     |
"""
    graphics, _ = probe(write_machine(tmp_path, programs=["/usr/bin/nvidia-smi"], commands=commands))
    assert graphics.gpus[0].compute_capability == ComputeCapability(6, 1)
    assert graphics.driver is not None
    assert (graphics.driver.release, graphics.driver.cuda) == (Version("410.48"), Version("10.0"))


def test_a_driver_too_old_to_say_its_cuda_is_looked_up(tmp_path: Path) -> None:
    toml = '[nvml]\nlibrary = "x"\nrelease = "384.130"\n[[nvml.devices]]\nname = "GeForce GTX 1070"\n'
    graphics, _ = probe(write_machine(tmp_path, toml=toml))
    assert graphics.driver is not None
    assert graphics.driver.cuda == Version("9.0")
    assert graphics.gpus[0].compute_capability == ComputeCapability(6, 1)


@pytest.mark.parametrize(
    ("setting", "indices", "state"),
    [("1", [1], GpuState.PRESENT), ("", [], GpuState.HIDDEN), ("GPU-b,0", [1, 0], GpuState.PRESENT)],
)
def test_cuda_visible_devices_is_respected_and_said(tmp_path: Path, setting: str, indices: list[int], state: GpuState) -> None:
    graphics, findings = probe(write_machine(tmp_path, toml=TWO, env={"CUDA_VISIBLE_DEVICES": setting}))
    assert [gpu.index for gpu in graphics.gpus] == indices
    assert graphics.state is state
    assert graphics.tried[-1].where == f"env CUDA_VISIBLE_DEVICES={setting}"
    assert ids(findings) == ([] if len(indices) == 2 else ["gpu-visible-devices"])


def test_a_jetson_is_told_by_its_device_tree(tmp_path: Path) -> None:
    files = {
        "/proc/device-tree/compatible": "nvidia,p3737-0000+p3701-0000\0nvidia,tegra234\0",
        "/proc/device-tree/model": "NVIDIA Jetson AGX Orin Developer Kit\0",
        "/etc/nv_tegra_release": "# R36 (release), REVISION: 4.3, GCID: 1\n",
    }
    host = write_machine(tmp_path, files=files, toml='[own]\narch = "aarch64"\n')
    system = probe_system(host)
    assert (system.jetson, system.l4t, system.arch) == ("NVIDIA Jetson AGX Orin Developer Kit", "36.4.3", "aarch64")
    graphics, _ = probe(host)
    assert graphics.state is GpuState.PRESENT
    assert graphics.gpus[0].name == "NVIDIA Jetson AGX Orin Developer Kit"
    assert (graphics.gpus[0].via, graphics.gpus[0].compute_capability) == ("device tree", ComputeCapability(8, 7))


def test_a_jetson_with_an_unknown_chip_asks_on(tmp_path: Path) -> None:
    files = {"/proc/device-tree/compatible": "nvidia,tegra999\0"}
    graphics, _ = probe(write_machine(tmp_path, files=files))
    assert graphics.state is GpuState.DRIVER_SILENT
    assert graphics.tried[0].outcome == "no chip in it that is known"


def test_the_modules_release_completes_what_libcuda_says(tmp_path: Path) -> None:
    toml = '[libcuda]\nlibrary = "libcuda.so.1"\ncuda = 12060\n[[libcuda.devices]]\nname = "A"\ncompute_capability = [8, 9]\n'
    graphics, _ = probe(write_machine(tmp_path, files=MODULE, toml=toml))
    assert graphics.driver is not None
    assert (graphics.driver.release, graphics.driver.cuda) == (Version("550.54.15"), Version("12.6"))
    assert graphics.driver.via == "libcuda; kernel module"


def test_a_driver_that_hangs_for_one_is_not_asked_by_others(tmp_path: Path) -> None:
    toml = '[nvml]\nerror = "no answer within 15 s"\n[libcuda]\nlibrary = "libcuda.so.1"\n[[libcuda.devices]]\nname = "A"\n'
    graphics, _ = probe(write_machine(tmp_path, files={**ON_BUS, **MODULE}, toml=toml))
    assert graphics.state is GpuState.DRIVER_SILENT
    assert [one.outcome for one in graphics.tried] == ["no answer within 15 s"]
