"""NVIDIA's libraries, played by small ones that are compiled here."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from caffeup import host as host_module
from caffeup.host import RealHost
from caffeup.model.driver import Device, DriverAnswer

COMPILER = shutil.which("gcc") or shutil.which("cc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")

LIBCUDA = """
#include <stdlib.h>
#include <string.h>
int cuInit(unsigned flags) { return INIT; }
int cuDriverGetVersion(int* version) { *version = 12040; return 0; }
int cuDeviceGetCount(int* count) { const char* hidden = getenv("CUDA_VISIBLE_DEVICES"); *count = hidden ? 0 : 2; return 0; }
int cuDeviceGet(int* device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char* name, int length, int device) { strncpy(name, device ? "Second" : "First", length); return 0; }
int cuDeviceGetAttribute(int* value, int attribute, int device) { *value = attribute == 75 ? 8 : attribute == 76 ? 9 : -1; return 0; }
int cuDeviceTotalMem_v2(size_t* bytes, int device) { *bytes = (size_t)24 << 30; return 0; }
int cuDeviceGetUuid(unsigned char* uuid, int device) { memset(uuid, 0x11 + device, 16); return 0; }
"""
NVML = """
#include <string.h>
#include <unistd.h>
int nvmlInit_v2(void) { INIT }
int nvmlInitWithFlags(unsigned flags) { INIT }
int nvmlShutdown(void) { return 0; }
const char* nvmlErrorString(int code) { return code == 18 ? "Driver/library version mismatch" : "some error"; }
int nvmlSystemGetDriverVersion(char* text, unsigned length) { strncpy(text, "535.183.01", length); return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) { *device = (void*)(long)(index + 1); return index ? 999 : 0; }
int nvmlDeviceGetName(void* device, char* name, unsigned length) { strncpy(name, "NVIDIA GeForce RTX 4090", length); return 0; }
int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) { *major = 8; *minor = 9; return 0; }
"""


def machine_with(tmp_path: Path, soname: str, source: str, **env: str) -> RealHost:
    assert COMPILER is not None
    code = tmp_path / "fake.c"
    code.write_text(source)
    subprocess.run([COMPILER, "-shared", "-fPIC", "-w", "-o", str(tmp_path / soname), str(code)], check=True)
    return RealHost({**os.environ, "LD_LIBRARY_PATH": str(tmp_path), **env})


def test_libcuda_names_all_devices_whatever_the_environment_hides(tmp_path: Path) -> None:
    answer = machine_with(tmp_path, "libcuda.so.1", LIBCUDA.replace("INIT", "0"), CUDA_VISIBLE_DEVICES="-1").libcuda()
    assert answer == DriverAnswer(
        library="libcuda.so.1",
        cuda=12040,
        devices=(
            Device(
                name="First", compute_capability=(8, 9), memory_bytes=24 << 30, uuid="GPU-11111111-1111-1111-1111-111111111111"
            ),
            Device(
                name="Second", compute_capability=(8, 9), memory_bytes=24 << 30, uuid="GPU-12121212-1212-1212-1212-121212121212"
            ),
        ),
    )


def test_a_libcuda_that_cannot_begin_says_why(tmp_path: Path) -> None:
    answer = machine_with(tmp_path, "libcuda.so.1", LIBCUDA.replace("INIT", "803")).libcuda()
    assert answer == DriverAnswer(library="libcuda.so.1", cuda=12040, error="cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)")


def test_nvml_keeps_what_answers_and_counts_what_is_lost(tmp_path: Path) -> None:
    pytest.importorskip("pynvml")
    answer = machine_with(tmp_path, "libnvidia-ml.so.1", NVML.replace("INIT", "return 0;")).nvml()
    assert answer == DriverAnswer(
        library="libnvidia-ml.so.1",
        release="535.183.01",
        error="1 of 2 devices did not answer",
        devices=(Device(name="NVIDIA GeForce RTX 4090", compute_capability=(8, 9)),),
    )


def test_an_nvml_of_another_release_says_so(tmp_path: Path) -> None:
    pytest.importorskip("pynvml")
    answer = machine_with(tmp_path, "libnvidia-ml.so.1", NVML.replace("INIT", "return 18;")).nvml()
    assert answer is not None
    assert "mismatch" in answer.error.lower()
    assert answer.devices == ()


def test_a_driver_that_hangs_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pynvml")
    monkeypatch.setattr(host_module, "DRIVER_SECONDS", 1.0)
    answer = machine_with(tmp_path, "libnvidia-ml.so.1", NVML.replace("INIT", "sleep(600); return 0;")).nvml()
    assert answer == DriverAnswer(error="no answer within 1 s")


def test_a_library_that_crashes_is_an_error_and_no_crash(tmp_path: Path) -> None:
    answer = machine_with(tmp_path, "libcuda.so.1", LIBCUDA.replace("INIT", "*(volatile int*)0")).libcuda()
    assert answer is not None
    assert answer.error == "exit -11"
