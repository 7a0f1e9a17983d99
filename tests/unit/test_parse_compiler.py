"""gcc, clang, and the versions that other programs print."""

from __future__ import annotations

from typing import Optional

import pytest
from packaging.version import Version

from caffeup.detect.parse.compiler import CompilerSays, first_error, parse_compiler
from caffeup.detect.parse.versions import first_version, parse_version


@pytest.mark.parametrize(
    ("text", "kind", "version", "target"),
    [
        (
            "Using built-in specs.\nTarget: x86_64-linux-gnu\ngcc version 12.2.0 (Debian 12.2.0-14) \n",
            "gcc",
            "12.2.0",
            "x86_64-linux-gnu",
        ),
        (
            "Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu\nThread model: posix\n",
            "clang",
            "14.0.6",
            "x86_64-pc-linux-gnu",
        ),
        ("clang version 18.1.3 (https://example.org gcc version 3.0)\n", "clang", "18.1.3", ""),
        ("Ubuntu clang version 11.0.0-2~ubuntu20.04.1\n", "clang", "11.0.0", ""),
        (
            "Target: x86_64-conda-linux-gnu\ngcc version 12.4.0 (conda-forge gcc 12.4.0-0) \n",
            "gcc",
            "12.4.0",
            "x86_64-conda-linux-gnu",
        ),
        ("gcc version 4.8 20140120 (prerelease)\n", "gcc", "4.8", ""),
    ],
)
def test_what_it_is(text: str, kind: str, version: str, target: str) -> None:
    assert parse_compiler(text) == CompilerSays(kind=kind, version=Version(version), target=target)


def test_something_else() -> None:
    assert parse_compiler("icpc: command not found\n") is None


def test_the_first_error_is_shown_and_not_the_last() -> None:
    text = "note: x\nlimits.h:3: fatal error: bits/c++config.h: No such file\ncompilation terminated.\n"
    assert first_error(text) == "limits.h:3: fatal error: bits/c++config.h: No such file"
    assert first_error("a\nb\n") == "b"
    assert first_error("") == ""


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("GNU Make 4.3\nBuilt for x86_64-pc-linux-gnu\n", "4.3"),
        ("git version 2.39.5", "2.39.5"),
        ("git version 2.34.1.windows.1", "2.34.1"),
        ("libprotoc 3.21.12", "3.21.12"),
        ("libprotoc 25.3", "25.3"),
        ("ccache version 4.7.5\nFeatures: http-storage", "4.7.5"),
        ("cmake version 3.30.0-rc1", "3.30.0"),
        ("1.8.1", "1.8.1"),
        ("none", None),
    ],
)
def test_versions_of_programs(text: str, version: Optional[str]) -> None:
    assert first_version(text) == (Version(version) if version else None)


@pytest.mark.parametrize("text", ["", "x", "1." * 200, "9" * 5000, "1.0\0"])
def test_what_is_no_version(text: str) -> None:
    assert parse_version(text) is None
