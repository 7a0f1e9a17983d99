"""Toolkits in every place, each once."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.version import Version

from caffeup.detect.system import probe_system
from caffeup.detect.toolkits import Toolkits, probe_toolkits
from caffeup.facts.load import load_facts
from caffeup.model.base import ComputeCapability
from caffeup.model.machine import ToolkitLayout
from fakehost import FakeHost, write_machine

LISTS = "$ {nvcc} --list-gpu-code\nsm_75\nsm_90\n$ {nvcc} --list-gpu-arch\ncompute_75\ncompute_90\n"
HOST_CONFIG = "#if __GNUC__ > 12\n#error -- unsupported GNU version! gcc versions later than 12 are not supported!\n"


def probe(host: FakeHost, *prefixes: str) -> Toolkits:
    return probe_toolkits(host, load_facts(), probe_system(host), prefixes)


def files_of(root: str, number: int = 12020) -> dict[str, str]:
    libraries = {f"{root}/lib64/lib{name}.so": "" for name in ("cudart", "cublas", "curand")}
    headers = {f"{root}/include/{name}.h": "" for name in ("cuda_runtime", "cublas_v2", "curand")}
    return {
        **libraries,
        **headers,
        f"{root}/include/cuda.h": f"#define CUDA_VERSION {number}\n",
        f"{root}/include/crt/host_config.h": HOST_CONFIG,
    }


def test_none_says_where_was_looked(tmp_path: Path) -> None:
    found = probe(write_machine(tmp_path))
    assert found.toolkits == ()
    assert [one.where for one in found.missing[0].tried][:3] == ["nvcc on PATH", "glob /usr/local/cuda*", "glob /opt/cuda*"]


def test_one_toolkit_by_many_ways_is_one(tmp_path: Path) -> None:
    host = write_machine(
        tmp_path,
        files=files_of("/usr/local/cuda-12.2"),
        programs=["/usr/local/cuda-12.2/bin/nvcc"],
        links={"/usr/local/cuda": "/usr/local/cuda-12.2", "/usr/bin/nvcc": "/usr/local/cuda-12.2/bin/nvcc"},
        commands=LISTS.format(nvcc="/usr/local/cuda/bin/nvcc"),
        env={"CUDA_HOME": "/usr/local/cuda/", "CUDA_PATH": "/usr/local/cuda-12.2"},
    )
    (toolkit,) = probe(host).toolkits
    assert toolkit.via == "env CUDA_HOME; env CUDA_PATH; /usr/bin/nvcc on PATH; glob /usr/local/cuda*"
    assert toolkit.root == "/usr/local/cuda"
    assert (toolkit.version, toolkit.max_gcc, toolkit.missing, toolkit.asked) == (Version("12.2"), 12, (), True)
    assert toolkit.sass == (ComputeCapability(7, 5), ComputeCapability(9, 0))
    assert toolkit.evidence == "/usr/local/cuda/include/cuda.h"


def test_a_wrapper_script_is_asked_where_nvcc_really_is(tmp_path: Path) -> None:
    nvcc = "/opt/nvidia/cuda/bin/nvcc"
    host = write_machine(
        tmp_path,
        files=files_of("/opt/nvidia/cuda"),
        programs=["/usr/bin/nvcc", nvcc],
        commands="$ /usr/bin/nvcc --dryrun -x cu /dev/null\n! #$ _HERE_=/opt/nvidia/cuda/bin\n! #$ TOP=/opt/nvidia/cuda/bin/..\n"
        + LISTS.format(nvcc=nvcc),
    )
    (toolkit,) = probe(host).toolkits
    assert (toolkit.root, toolkit.nvcc, toolkit.via) == ("/opt/nvidia/cuda", nvcc, "/usr/bin/nvcc on PATH, nvcc --dryrun TOP")


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("? 124\n", "exit 124"),
        ("? 1\n! nvcc fatal: x\n", "exit 1: nvcc fatal: x"),
        ("! #$ TOP=/gone\n", "not there"),
        ("no settings\n", "no CUDA toolkit in it"),
    ],
)
def test_a_wrapper_that_leads_nowhere_is_said(tmp_path: Path, answer: str, outcome: str) -> None:
    host = write_machine(tmp_path, programs=["/usr/bin/nvcc"], commands="$ /usr/bin/nvcc --dryrun -x cu /dev/null\n" + answer)
    found = probe(host)
    assert found.toolkits == ()
    assert outcome in [one.outcome for one in found.missing[0].tried]


def test_a_toolkit_of_pip_wheels_for_cuda_13_counts_versioned_libraries(tmp_path: Path) -> None:
    root = "/venv/lib/python3.12/site-packages/nvidia/cu13"
    files = {path.replace("/lib64/", "/lib/").replace(".so", ".so.13"): text for path, text in files_of(root, 13000).items()}
    files[f"{root}/include/cccl/cuda/version"] = ""
    host = write_machine(
        tmp_path,
        files=files,
        programs=[f"{root}/bin/nvcc"],
        commands=LISTS.format(nvcc=f"{root}/bin/nvcc"),
        env={"VIRTUAL_ENV": "/venv"},
    )
    (toolkit,) = probe(host).toolkits
    assert (toolkit.layout, toolkit.version, toolkit.missing) == (ToolkitLayout.WHEELS, Version("13.0"), ())
    assert toolkit.include_dirs == (f"{root}/include", f"{root}/include/cccl")


def test_a_toolkit_of_split_wheels_has_no_nvcc(tmp_path: Path) -> None:
    root = "/venv/lib/python3.10/site-packages/nvidia"
    files = {
        f"{root}/cuda_runtime/include/cuda_runtime.h": "",
        f"{root}/cuda_runtime/include/cuda_runtime_api.h": "#define CUDART_VERSION  12010\n",
        f"{root}/cuda_runtime/lib/libcudart.so.12": "",
        f"{root}/cublas/include/cublas_v2.h": "",
        f"{root}/cublas/lib/libcublas.so.12": "",
    }
    (toolkit,) = probe(write_machine(tmp_path, files=files, env={"VIRTUAL_ENV": "/venv"})).toolkits
    assert (toolkit.layout, toolkit.version, toolkit.nvcc) == (ToolkitLayout.SPLIT_WHEELS, Version("12.1"), "")
    assert toolkit.missing == ("curand", "nvcc")
    assert toolkit.sass == ()
    assert toolkit.include_dirs == (f"{root}/cuda_runtime/include", f"{root}/cublas/include")


def test_parts_that_lack_are_named(tmp_path: Path) -> None:
    files = files_of("/opt/cuda")
    del files["/opt/cuda/lib64/libcublas.so"], files["/opt/cuda/include/curand.h"]
    (toolkit,) = probe(write_machine(tmp_path, files=files)).toolkits
    assert toolkit.missing == ("cublas", "curand", "nvcc")


def test_a_silent_nvcc_leaves_the_table_of_facts(tmp_path: Path) -> None:
    files = files_of("/opt/cuda", 11080)
    del files["/opt/cuda/include/crt/host_config.h"]
    host = write_machine(tmp_path, files=files, programs=["/opt/cuda/bin/nvcc"], commands="$ /opt/cuda/bin/nvcc *\n? 126\n")
    (toolkit,) = probe(host).toolkits
    assert not toolkit.asked
    assert toolkit.sass[-1] == ComputeCapability(9, 0)
    assert toolkit.max_gcc == 11


def test_a_header_that_cannot_be_read_leaves_nvccs_own_word(tmp_path: Path) -> None:
    host = write_machine(
        tmp_path,
        files=files_of("/opt/cuda"),
        programs=["/opt/cuda/bin/nvcc"],
        toml='unreadable = ["/opt/cuda/include/cuda.h"]\n',
        commands=LISTS.format(nvcc="/opt/cuda/bin/nvcc")
        + "$ /opt/cuda/bin/nvcc --version\nCuda compilation tools, release 12.2, V12.2.140\n",
    )
    (toolkit,) = probe(host).toolkits
    assert (toolkit.version, toolkit.evidence) == (Version("12.2"), "/opt/cuda/bin/nvcc --version")


def test_no_version_anywhere_is_said(tmp_path: Path) -> None:
    found = probe(write_machine(tmp_path, files={"/opt/cuda/include/cuda_runtime.h": ""}))
    assert found.toolkits == ()
    assert ("/opt/cuda", "no version in it") in [(one.where, one.outcome) for one in found.missing[0].tried]


@pytest.mark.parametrize("value", ["/gone", "relative/cuda", "/empty", "/usr/local/cuda\n"])
def test_a_stale_cuda_home_is_said_and_others_are_found(tmp_path: Path, value: str) -> None:
    host = write_machine(tmp_path, files={**files_of("/opt/cuda"), "/empty/x": ""}, env={"CUDA_HOME": value})
    found = probe(host)
    assert [toolkit.root for toolkit in found.toolkits] == ["/opt/cuda"]
    assert [finding.id for finding in found.findings] == ["cuda-home-stale"]
    assert found.findings[0].evidence[0].text == value


def test_two_variables_with_two_toolkits_are_said(tmp_path: Path) -> None:
    host = write_machine(tmp_path, files={**files_of("/a"), **files_of("/b", 11080)}, env={"CUDA_HOME": "/a", "CUDA_PATH": "/b"})
    found = probe(host)
    assert [toolkit.root for toolkit in found.toolkits] == ["/a", "/b"]
    assert [finding.id for finding in found.findings] == ["cuda-home-conflict"]


def test_a_root_that_the_user_names_is_looked_at_and_changes_no_order(tmp_path: Path) -> None:
    host = write_machine(tmp_path, files={**files_of("/srv/somewhere/cuda"), **files_of("/opt/cuda", 11080)})
    facts, system = load_facts(), probe_system(host)
    assert [one.root for one in probe_toolkits(host, facts, system).toolkits] == ["/opt/cuda"]
    found = probe_toolkits(host, facts, system, (), "/srv/somewhere/cuda/").toolkits
    assert [(one.root, one.via) for one in found][1] == ("/srv/somewhere/cuda", "--cuda /srv/somewhere/cuda/")
    assert [one.root for one in probe_toolkits(host, facts, system, (), "12.4").toolkits] == ["/opt/cuda"]


def test_a_prefix_comes_first(tmp_path: Path) -> None:
    host = write_machine(tmp_path, files={**files_of("/home/user/cuda [1]"), **files_of("/opt/cuda", 11080)})
    found = probe(host, "/home/user/cuda [1]/", "/nowhere")
    assert [(toolkit.root, toolkit.missing) for toolkit in found.toolkits] == [
        ("/home/user/cuda [1]", ("nvcc",)),
        ("/opt/cuda", ("nvcc",)),
    ]
    assert found.toolkits[0].via == "--prefix /home/user/cuda [1]/"
