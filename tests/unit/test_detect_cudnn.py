"""Every cudnn.h and libcudnn, and whether they agree."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.version import Version

from caffeup.detect.cudnn import Cudnn, agree, probe_cudnn
from caffeup.detect.system import probe_system
from caffeup.model.machine import Toolkit
from fakehost import FakeHost, write_machine

LIB = "/usr/lib/x86_64-linux-gnu"
INCLUDE = "/usr/include/x86_64-linux-gnu"


def defines(version: str) -> str:
    return "".join(f"#define CUDNN_{name} {part}\n" for name, part in zip(("MAJOR", "MINOR", "PATCHLEVEL"), version.split(".")))


def probe(host: FakeHost, *prefixes: str, toolkits: tuple[Toolkit, ...] = ()) -> Cudnn:
    return probe_cudnn(host, probe_system(host), toolkits, prefixes)


def ids(cudnn: Cudnn) -> list[str]:
    return [finding.id for finding in cudnn.findings]


def library(version: str, folder: str = LIB) -> tuple[dict[str, str], dict[str, str]]:
    major = version.split(".", maxsplit=1)[0]
    real = f"{folder}/libcudnn.so.{version}"
    return {real: ""}, {f"{folder}/libcudnn.so": f"{folder}/libcudnn.so.{major}", f"{folder}/libcudnn.so.{major}": real}


def test_none_says_where_was_looked(tmp_path: Path) -> None:
    cudnn = probe(write_machine(tmp_path, files={"/usr/include/x.h": "", f"{LIB}/x.so": ""}))
    assert [missing.what for missing in cudnn.missing] == ["cudnn.h", "libcudnn"]
    assert "/usr/include (the compiler's own folder)" in [one.where for one in cudnn.missing[0].tried]
    assert cudnn.findings == ()


def test_debians_alternatives(tmp_path: Path) -> None:
    files, links = library("8.9.7")
    files |= {f"{INCLUDE}/cudnn_v8.h": '#include "cudnn_version.h"\n', f"{INCLUDE}/cudnn_version_v8.h": defines("8.9.7")}
    links |= {"/usr/include/cudnn.h": "/etc/alternatives/libcudnn", "/etc/alternatives/libcudnn": f"{INCLUDE}/cudnn_v8.h"}
    cudnn = probe(write_machine(tmp_path, files=files, links=links))
    (header,) = cudnn.headers
    assert (header.directory, header.version, header.evidence) == (
        "/usr/include",
        Version("8.9.7"),
        f"{INCLUDE}/cudnn_version_v8.h",
    )
    assert [(one.version, one.linkable) for one in cudnn.libraries] == [(Version("8.9.7"), True)]
    assert cudnn.findings == ()


def test_another_major_behind_the_alternatives_is_said(tmp_path: Path) -> None:
    files, links = library("9.5.1")
    files |= {f"{INCLUDE}/cudnn_v9.h": "", f"{INCLUDE}/cudnn_version_v9.h": defines("9.5.1"), f"{INCLUDE}/cudnn_v8.h": ""}
    links |= {f"{INCLUDE}/cudnn.h": f"{INCLUDE}/cudnn_v9.h"}
    cudnn = probe(write_machine(tmp_path, files=files, links=links))
    assert ids(cudnn) == ["cudnn-not-chosen"]
    assert [one.where for one in cudnn.findings[0].evidence] == [f"{INCLUDE}/cudnn_v8.h"]


def test_header_and_library_of_two_releases(tmp_path: Path) -> None:
    files, links = library("8.9.7")
    cudnn = probe(write_machine(tmp_path, files={**files, "/usr/include/cudnn.h": defines("7.6.5")}, links=links))
    assert ids(cudnn) == ["cudnn-disagree"]


def test_a_header_alone_and_a_library_that_cannot_be_linked(tmp_path: Path) -> None:
    files = {"/usr/include/cudnn.h": defines("7.6.5")}
    assert ids(probe(write_machine(tmp_path / "a", files=files))) == ["cudnn-disagree"]
    cudnn = probe(write_machine(tmp_path / "b", files={**files, f"{LIB}/libcudnn.so.7.6.5": ""}))
    assert [one.linkable for one in cudnn.libraries] == [False]
    assert ids(cudnn) == ["cudnn-disagree"]


def test_wheels_have_only_the_major_in_the_librarys_name(tmp_path: Path) -> None:
    root = "/venv/lib/python3.11/site-packages/nvidia/cudnn"
    files = {f"{root}/include/cudnn.h": "", f"{root}/include/cudnn_version.h": defines("9.14.0"), f"{root}/lib/libcudnn.so.9": ""}
    cudnn = probe(write_machine(tmp_path, files=files, env={"VIRTUAL_ENV": "/venv"}))
    assert [one.version for one in cudnn.headers] == [Version("9.14.0")]
    assert [(one.version, one.linkable) for one in cudnn.libraries] == [(Version("9"), False)]
    assert cudnn.findings == (), "no fault of the machine"


def test_in_the_toolkit_in_a_prefix_and_by_variables(tmp_path: Path) -> None:
    toolkit = Toolkit(via="x", root="/opt/cuda", version=Version("12.2"), include_dirs=("/opt/cuda/include",), library_dirs=())
    files = {
        f"{root}/include/cudnn.h": defines(version)
        for root, version in (("/opt/cuda", "8.9.7"), ("/p/usr", "9.1.0"), ("/r", "7.6.5"), ("/usr", "6.0.21"))
    }
    files |= {"/c/cudnn.h": defines("5.1.10"), "/opt/cuda/lib64/libcudnn.so": "", "/l/libcudnn.so.5.1.10": ""}
    env = {"CUDNN_ROOT": "/r", "CPATH": "/c", "LD_LIBRARY_PATH": "/l:/none"}
    cudnn = probe(write_machine(tmp_path, files=files, env=env), "/p", toolkits=(toolkit,))
    assert [(str(one.version), one.via) for one in cudnn.headers] == [
        ("9.1.0", "--prefix /p"),
        ("7.6.5", "env CUDNN_ROOT"),
        ("5.1.10", "env CPATH"),
        ("8.9.7", "toolkit /opt/cuda"),
        ("6.0.21", "the compiler's own folder"),
    ]
    assert [(one.file, one.version, one.linkable) for one in cudnn.libraries] == [
        ("/l/libcudnn.so.5.1.10", Version("5.1.10"), False),
        ("/opt/cuda/lib64/libcudnn.so", None, True),
    ]


@pytest.mark.parametrize(
    ("toml", "outcome"), [('unreadable = ["/usr/include/cudnn.h"]\n', "unreadable"), ("", "no version in it")]
)
def test_a_header_that_says_nothing_is_said(tmp_path: Path, toml: str, outcome: str) -> None:
    cudnn = probe(write_machine(tmp_path, files={"/usr/include/cudnn.h": "nothing\n"}, toml=toml))
    assert cudnn.headers == ()
    assert [(one.where, one.outcome) for one in cudnn.missing[0].tried] == [("/usr/include/cudnn.h", outcome)]


@pytest.mark.parametrize(
    ("header", "library", "same"),
    [
        ("9.14.0", "9.14.0", True),
        ("9.14.0", "9", True),
        ("9.14.0", "9.13.0", False),
        ("8.9.7", "9", False),
        ("8.9.7", None, False),
    ],
)
def test_agree(header: str, library: str | None, same: bool) -> None:
    assert agree(Version(header), Version(library) if library else None) is same


@pytest.mark.parametrize("prefix", ["", "relative", "."])
def test_a_prefix_that_is_no_absolute_path_is_not_looked_at(tmp_path: Path, prefix: str) -> None:
    cudnn = probe(write_machine(tmp_path, files={"/usr/include/cudnn.h": defines("7.6.5")}), prefix)
    assert [one.via for one in cudnn.headers] == ["the compiler's own folder"]
