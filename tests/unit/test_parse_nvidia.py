"""nvidia-smi, the module's own word, and CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

from typing import Optional

import pytest
from packaging.version import Version

from caffeup.detect.parse import nvidia
from caffeup.detect.parse.nvidia import SMI_FIELDS, SMI_NEW_FIELDS, SmiRow
from caffeup.model.base import ComputeCapability
from caffeup.model.machine import Gpu

FIELDS = (*SMI_FIELDS, *SMI_NEW_FIELDS)


def test_rows_of_nvidia_smi() -> None:
    text = "NVIDIA H200, 143771, 580.159.04, GPU-1, 9.0, Disabled\nNVIDIA A100, [N/A], 580.159.04, GPU-2, [N/A], Enabled\n"
    first, second = nvidia.parse_smi_rows(text, FIELDS)
    assert first == SmiRow(
        name="NVIDIA H200",
        memory_bytes=143771 << 20,
        release="580.159.04",
        uuid="GPU-1",
        compute_capability=ComputeCapability(9, 0),
    )
    assert (second.memory_bytes, second.compute_capability, second.mig) == (None, None, True)


def test_lines_that_are_no_rows_are_skipped() -> None:
    text = "WARNING: infoROM is corrupted at gpu 0000:5E:00.0\n\nGeForce GTX 1070, 8114, 384.130, GPU-1\nNo devices were found\n"
    assert [row.name for row in nvidia.parse_smi_rows(text, SMI_FIELDS)] == ["GeForce GTX 1070"]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("| NVIDIA-SMI 580.65.06   Driver Version: 580.65.06   CUDA Version: 13.0     |", "13.0"),
        ("| CUDA Version: N/A |", None),
        ("CUDA UMD Version: 13.3", "13.3"),
    ],
)
def test_cuda_in_the_banner(text: str, version: Optional[str]) -> None:
    assert nvidia.parse_smi_cuda(text) == (Version(version) if version else None)


@pytest.mark.parametrize(
    ("text", "release"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  384.130  Wed Mar 21 03:37:26 PDT 2018\nGCC version:  gcc version 5.4.0",
            "384.130",
        ),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (x@)", "580.159.04"),
        ("GCC version: gcc 13.2.0", ""),
    ],
)
def test_the_modules_release_keeps_its_zeros(text: str, release: str) -> None:
    assert nvidia.parse_proc_version(text) == release


@pytest.mark.parametrize(
    ("number", "version"), [(8000, "8.0"), (11040, "11.4"), (12080, "12.8"), (13000, "13.0"), (0, None), (-1, None)]
)
def test_cuda_as_a_number(number: int, version: Optional[str]) -> None:
    assert nvidia.cuda_of_number(number) == (Version(version) if version else None)


GPUS = tuple(Gpu(via="x", index=index, name="g", uuid=f"GPU-{index}a{index}b", mig=index == 2) for index in range(3))


@pytest.mark.parametrize(
    ("setting", "indices"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("-1", []),
        ("1", [1]),
        ("2,0", [2, 0]),
        ("0, 1", [0, 1]),
        ("0,7,1", [0]),
        ("NoDevFiles", []),
        ("GPU-1a", [1]),
        ("GPU-2a2b,0", [2, 0]),
        ("MIG-5f8e", [2]),
        ("0,0", [0]),
    ],
)
def test_visible_devices_end_at_the_first_that_is_none(setting: Optional[str], indices: list[int]) -> None:
    assert [gpu.index for gpu in nvidia.visible(GPUS, setting)] == indices
