"""cuDNN's versions, whose number changed its form."""

from __future__ import annotations

from typing import Optional

import pytest
from packaging.version import Version

from caffeup.detect.parse.cudnn import parse_cudnn_version, version_of_number
from caffeup.detect.parse.versions import soname_version


def header(major: int, minor: int, patch: int) -> str:
    return f"#define CUDNN_MAJOR {major}\n#define CUDNN_MINOR {minor}\n#define CUDNN_PATCHLEVEL {patch}\n#define CUDNN_VERSION (CUDNN_MAJOR * 1000)\n"


@pytest.mark.parametrize("parts", [(4, 0, 7), (5, 1, 10), (6, 0, 21), (7, 6, 5), (8, 9, 7), (9, 14, 0)])
def test_of_the_three_macros(parts: tuple[int, int, int]) -> None:
    assert parse_cudnn_version(header(*parts)) == Version(".".join(map(str, parts)))


@pytest.mark.parametrize(
    ("number", "version"),
    [
        (3007, "3.0.7"),
        (5110, "5.1.10"),
        (7605, "7.6.5"),
        (8907, "8.9.7"),
        (90100, "9.1.0"),
        (91400, "9.14.0"),
        (100203, "10.2.3"),
        (0, None),
        (-5, None),
        (999, None),
        (10**9, None),
    ],
)
def test_of_the_number(number: int, version: Optional[str]) -> None:
    assert version_of_number(number) == (Version(version) if version else None)
    assert parse_cudnn_version(f"#define CUDNN_VERSION {number}") == (Version(version) if version else None)


@pytest.mark.parametrize(
    "text", ["", '#include "cudnn_version.h"', "#define CUDNN_VERSION (CUDNN_MAJOR * 1000)", "#define CUDNN_MAJOR x"]
)
def test_a_header_that_says_nothing(text: str) -> None:
    assert parse_cudnn_version(text) is None


def test_crlf_and_spaces() -> None:
    assert parse_cudnn_version("#  define\tCUDNN_MAJOR  8\r\n#define CUDNN_MINOR 1\r\n") == Version("8.1.0")


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("libcudnn.so.9.14.0", "9.14.0"),
        ("libcudnn.so.8", "8"),
        ("libcudnn.so", None),
        ("libcudnn.so.", None),
        ("libcudnn.so.8.x", None),
        ("libcudnn.so.8.bak", None),
    ],
)
def test_of_a_file_name(name: str, version: Optional[str]) -> None:
    assert soname_version(name) == (Version(version) if version else None)
