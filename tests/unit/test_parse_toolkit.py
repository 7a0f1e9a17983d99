"""What toolkits of all ages say of themselves."""

from __future__ import annotations

from typing import Optional

import pytest
from packaging.version import Version

from caffeup.detect.parse import toolkit
from caffeup.detect.parse.toolkit import DryRun
from caffeup.model.base import ComputeCapability


def codes(*numbers: str) -> tuple[ComputeCapability, ...]:
    return tuple(ComputeCapability.parse(number) for number in numbers)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('{"cuda": {"name": "CUDA SDK", "version": "12.6.3"}, "cuda_cccl": {"version": "12.6.77"}}', "12.6.3"),
        ('{"cuda": {"version": 12}}', None),
        ('{"cuda": "12.6"}', None),
        ('["cuda"]', None),
        ("{", None),
        ('{"cuda": {"version": "newest"}}', None),
    ],
)
def test_version_json(text: str, version: Optional[str]) -> None:
    assert toolkit.parse_version_json(text) == (Version(version) if version else None)


@pytest.mark.parametrize(
    ("text", "version"),
    [("CUDA Version 8.0.61\nCUDA Patch Version 8.0.61.2\n", "8.0.61"), ("CUDA Version 10.2.89", "10.2.89"), ("8.0", None)],
)
def test_version_txt(text: str, version: Optional[str]) -> None:
    assert toolkit.parse_version_txt(text) == (Version(version) if version else None)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("#define CUDA_VERSION 13000", "13.0"),
        ("/* x */\n#  define CUDA_VERSION   7050 /* 7.5 */", "7.5"),
        ("#define CUDART_VERSION  11080", "11.8"),
        ("#define CUDA_VERSION 12", None),
        ("// #define CUDA_VERSION 13000", None),
        ("#define CUDA_VERSION_OTHER 13000", None),
        ("#if CUDA_VERSION >= 13000", None),
    ],
)
def test_cuda_h(text: str, version: Optional[str]) -> None:
    assert toolkit.parse_cuda_h(text) == (Version(version) if version else None)


def test_nvcc_version_is_the_release_and_not_the_compilers_own_number() -> None:
    text = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 13.0, V13.0.88\n"
    assert toolkit.parse_nvcc_version(text) == Version("13.0")
    assert toolkit.parse_nvcc_version("nvcc: command not found") is None


def test_code_lists_are_sorted_by_number_and_leave_out_variants() -> None:
    assert toolkit.parse_code_list("sm_90\nsm_90a\nsm_100\nsm_100f\nsm_75\nsm_120\n") == codes("7.5", "9.0", "10.0", "12.0")
    assert toolkit.parse_code_list("compute_75\ncompute_121\n") == codes("7.5", "12.1")


def test_help_of_a_toolkit_that_cannot_list() -> None:
    text = "Allowed values for this option:  'compute_20','compute_30',\n 'sm_20','sm_21','sm_30'.\n  --gpu-code sm_21\n"
    assert toolkit.parse_help(text) == (codes("2.0", "2.1", "3.0"), codes("2.0", "3.0"))


@pytest.mark.parametrize(
    ("text", "gcc"),
    [
        (
            "#if __GNUC__ > 15\n\n#error -- unsupported GNU version! gcc versions later than 15 are not supported! The nvcc flag",
            15,
        ),
        (
            "#if __GNUC__ > 4 || (__GNUC__ == 4 && __GNUC_MINOR__ > 9)\n#error -- unsupported GNU version! gcc versions later than 4.9 are not supported!",
            4,
        ),
        ("#if __GNUC__ > 5\n#error -- unsupported GNU version! gcc versions later than 5 are not supported!", 5),
        ("#if __GNUC__ > 8\n#endif", 8),
        ('#include "crt/host_config.h"', None),
        ("#if !defined(__GNUC__)", None),
    ],
)
def test_newest_gcc(text: str, gcc: Optional[int]) -> None:
    assert toolkit.parse_max_gcc(text) == gcc


@pytest.mark.parametrize(
    ("text", "clang"),
    [
        ("#error -- unsupported clang version! clang version must be less than 21 and greater than 3.2 . The nvcc", 20),
        ("#error -- unsupported HOS clang version! The version must be must be less than 21 and greater than 3.2", None),
        ("#error -- unsupported GNU version! gcc versions later than 6 are not supported!", None),
    ],
)
def test_newest_clang(text: str, clang: Optional[int]) -> None:
    assert toolkit.parse_max_clang(text) == clang


def test_dryrun_of_nvidias_layout_and_of_debians() -> None:
    text = "#$ _HERE_=/usr/local/cuda/bin\n#$ _THERE_=/x\n#$ TOP=/usr/local/cuda/bin/..\n#$ NVVMIR_LIBRARY_DIR=/y\n"
    assert toolkit.parse_dryrun(text) == DryRun(here="/usr/local/cuda/bin", top="/usr/local/cuda/bin/..")
    assert toolkit.parse_dryrun("#$ _HERE_=/usr/lib/nvidia-cuda-toolkit/bin\n") == DryRun(here="/usr/lib/nvidia-cuda-toolkit/bin")
    assert toolkit.parse_dryrun("nvcc fatal: no such option") == DryRun()
