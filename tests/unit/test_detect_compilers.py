"""Compilers and programs: all of them, each once, and a broken one shows."""

from __future__ import annotations

from pathlib import Path

from packaging.version import Version

from caffeup.detect.compilers import probe_compilers
from caffeup.detect.programs import probe_programs
from fakehost import write_machine


def gcc(path: str, version: str = "12.2.0", status: int = 0, error: str = "") -> str:
    return f"$ {path} -v -x c++ -fsyntax-only -\n? {status}\n! Target: x86_64-linux-gnu\n! gcc version {version} (x)\n" + (
        f"! {error}\n" if error else ""
    )


def test_each_real_compiler_once_under_its_shortest_name(tmp_path: Path) -> None:
    host = write_machine(
        tmp_path,
        programs=["/usr/bin/x86_64-linux-gnu-g++-12", "/usr/bin/g++-9", "/usr/bin/aarch64-linux-gnu-g++", "/opt/x/bin/g++"],
        links={"/usr/bin/g++": "/usr/bin/x86_64-linux-gnu-g++-12", "/usr/bin/g++-12": "/usr/bin/x86_64-linux-gnu-g++-12"},
        commands=gcc("/usr/bin/g++") + gcc("/usr/bin/g++-9", "9.5.0") + gcc("/opt/x/bin/g++", "13.1.0"),
        env={"PATH": "/opt/x/bin:/nowhere"},
    )
    found = probe_compilers(host).compilers
    assert [(one.path, one.version, one.via) for one in found] == [
        ("/opt/x/bin/g++", Version("13.1.0"), "PATH /opt/x/bin"),
        ("/usr/bin/g++", Version("12.2.0"), "folder /usr/bin"),
        ("/usr/bin/g++-9", Version("9.5.0"), "folder /usr/bin"),
    ]


def test_ccache_is_no_compiler(tmp_path: Path) -> None:
    host = write_machine(
        tmp_path,
        programs=["/usr/bin/ccache", "/usr/bin/g++"],
        links={"/usr/lib/ccache/g++": "/usr/bin/ccache"},
        commands=gcc("/usr/bin/g++"),
        env={"PATH": "/usr/lib/ccache:/usr/bin"},
    )
    assert [one.path for one in probe_compilers(host).compilers] == ["/usr/bin/g++"]


def test_a_broken_one_is_kept_and_said(tmp_path: Path) -> None:
    error = "<stdin>:1:10: fatal error: cstddef: No such file or directory"
    host = write_machine(tmp_path, programs=["/usr/bin/g++"], commands=gcc("/usr/bin/g++", status=1, error=error))
    found = probe_compilers(host)
    assert [one.works for one in found.compilers] == [False]
    assert [(one.id, one.evidence[0].text) for one in found.findings] == [("compiler-broken", error)]
    assert [(one.what, one.tried[0].outcome) for one in found.missing] == [("C++ compiler", f"exit 1: {error}")]


def test_one_that_hangs_or_is_none_is_an_attempt(tmp_path: Path) -> None:
    commands = "$ /usr/bin/clang++ -v -x c++ -fsyntax-only -\n? 124\n$ /usr/bin/g++ -v -x c++ -fsyntax-only -\nhello\n"
    found = probe_compilers(write_machine(tmp_path, programs=["/usr/bin/clang++", "/usr/bin/g++"], commands=commands))
    assert found.compilers == ()
    assert [(one.where, one.outcome) for one in found.missing[0].tried] == [
        ("/usr/bin/g++", "exit 0"),
        ("/usr/bin/clang++", "no answer in time"),
    ]
    assert [one.id for one in found.findings] == ["compiler-silent", "compiler-silent"]


def test_no_compiler_says_where_was_looked(tmp_path: Path) -> None:
    found = probe_compilers(write_machine(tmp_path))
    assert [one.where for one in found.missing[0].tried] == ["/usr/bin/g++, clang++", "/usr/local/bin/g++, clang++"]


def test_a_clang_called_gxx_is_a_clang_and_condas_is_told(tmp_path: Path) -> None:
    path = "/c/bin/x86_64-conda-linux-gnu-clang++"
    host = write_machine(
        tmp_path,
        files={"/c/conda-meta/history": ""},
        programs=[path, "/usr/bin/g++"],
        commands=f"$ {path} -v -x c++ -fsyntax-only -\n! clang version 18.1.8\n! Target: x86_64-conda-linux-gnu\n"
        "$ /usr/bin/g++ -v -x c++ -fsyntax-only -\n! Debian clang version 14.0.6\n",
        env={"PATH": "/c/bin:/usr/bin"},
    )
    conda, system = probe_compilers(host).compilers
    assert (conda.via, conda.kind) == ("PATH /c/bin (conda)", "clang")
    assert (system.via, system.kind) == ("PATH /usr/bin", "clang")


def test_programs_all_copies_and_versions(tmp_path: Path) -> None:
    host = write_machine(
        tmp_path,
        programs=[
            "/usr/bin/protoc",
            "/opt/x/protoc",
            "/usr/bin/make",
            "/usr/sbin/ldconfig",
            "/usr/bin/nvidia-smi",
            "/usr/bin/git",
        ],
        links={"/opt/y/make": "/usr/bin/make"},
        commands="$ /usr/bin/protoc --version\nlibprotoc 3.21.12\n$ /opt/x/protoc --version\nlibprotoc 25.3\n$ /opt/y/make --version\nGNU Make 4.3\n$ /usr/bin/git --version\n? 127\n",
        env={"PATH": "/opt/x:/opt/y:/usr/bin"},
    )
    programs, missing = probe_programs(host)
    assert [(one.name, one.path, one.version and str(one.version)) for one in programs] == [
        ("make", "/opt/y/make", "4.3"),
        ("git", "/usr/bin/git", None),
        ("protoc", "/opt/x/protoc", "25.3"),
        ("protoc", "/usr/bin/protoc", "3.21.12"),
        ("ldconfig", "/usr/sbin/ldconfig", None),
        ("nvidia-smi", "/usr/bin/nvidia-smi", None),
    ]
    assert missing == ()


def test_make_is_missed(tmp_path: Path) -> None:
    assert [one.what for one in probe_programs(write_machine(tmp_path))[1]] == ["make"]
