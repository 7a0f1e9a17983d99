"""No parser raises, whatever a program or a file says."""

from __future__ import annotations

from typing import Any, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caffeup.detect.parse import compiler, cudnn, nvidia, system, toolkit, versions
from caffeup.model.machine import Gpu

FRAGMENTS = (
    "#define CUDNN_MAJOR ", "#define CUDNN_VERSION ", "#define CUDA_VERSION ", "CUDA Version ", "release ", '{"cuda": {"version": "', "sm_", "compute_",
    "gcc versions later than ", "#if __GNUC__ > ", "clang version must be less than ", "unsupported clang version! ", "#$ TOP=", "#$ _HERE_=", "gcc version ",
    "clang version ", "Target: ", "NVRM version: x ", "MemTotal: ", " kB", "ID=", '"', "0::/", "1:cpu:/", "# R", " REVISION: ", "GPU-", "MIG-", ",", ".", "\n", "\0", "\r",
    "9", "99999999999999999999999999", "٣", "²", "-1", "\ud800", "\x85", "\u2028", "libcudnn.so.", "include /etc/*", "max 100000", "0 0", "1 0",
)  # fmt: skip
TEXT = st.one_of(st.text(), st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=5)), max_size=20).map("".join))
GPUS = (Gpu(via="x", index=0, name="a", uuid="GPU-1"), Gpu(via="x", index=1, name="b", uuid="GPU-2", mig=True))

PARSERS: tuple[Callable[[str], Any], ...] = (
    versions.parse_version,
    versions.first_version,
    versions.soname_version,
    lambda text: versions.define(text, text[:10]),
    system.parse_os_release,
    system.parse_meminfo,
    system.parse_limit,
    system.parse_cpu_max,
    lambda text: system.cores_of_quota(text, text),
    lambda text: [system.ancestors(group) for group in system.parse_cgroups(text).values()],
    system.wsl_of_kernel,
    system.parse_tegra_release,
    lambda text: system.parse_device_tree(text.encode("utf-8", "surrogatepass")),
    system.parse_ld_so_conf,
    lambda text: nvidia.parse_smi_rows(text, (*nvidia.SMI_FIELDS, *nvidia.SMI_NEW_FIELDS)),
    lambda text: nvidia.parse_smi_rows(text, ("name",)),
    nvidia.parse_smi_cuda,
    nvidia.parse_proc_version,
    lambda text: nvidia.visible(GPUS, text),
    toolkit.parse_version_json,
    toolkit.parse_version_txt,
    toolkit.parse_cuda_h,
    toolkit.parse_nvcc_version,
    toolkit.parse_code_list,
    toolkit.parse_help,
    toolkit.parse_max_gcc,
    toolkit.parse_max_clang,
    toolkit.parse_dryrun,
    cudnn.parse_cudnn_version,
    compiler.parse_compiler,
    compiler.first_error,
)


@pytest.mark.parametrize("number", range(len(PARSERS)))
@given(text=TEXT)
def test_no_parser_raises_on_any_text(number: int, text: str) -> None:
    PARSERS[number](text)


@given(st.integers())
def test_no_number_is_too_odd(number: int) -> None:
    cudnn.version_of_number(number)
    nvidia.cuda_of_number(number)


@given(st.binary())
def test_no_device_tree_is_too_odd(data: bytes) -> None:
    assert "" not in system.parse_device_tree(data)
