"""What a CUDA toolkit says of itself: its version, what it compiles for, and which compilers it accepts."""

from __future__ import annotations

import re
from typing import Any, Optional

import msgspec
from packaging.version import Version

from caffeup.detect.parse.versions import define, parse_version
from caffeup.model.base import ComputeCapability, Value


class DryRun(Value):
    """Where nvcc really is, whatever wrapper was called."""

    here: str = ""
    """Folder of the nvcc that ran."""
    top: str = ""
    """Root of its toolkit; empty in a distribution's packages, whose nvcc.profile sets none."""


def parse_version_json(text: str) -> Optional[Version]:
    """version.json, from CUDA 11.1."""
    try:
        content: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    cuda = content.get("cuda") if isinstance(content, dict) else None
    version = cuda.get("version") if isinstance(cuda, dict) else None
    return parse_version(version) if isinstance(version, str) else None


def parse_version_txt(text: str) -> Optional[Version]:
    """version.txt, up to CUDA 11.0: ``CUDA Version 8.0.61``."""
    found = re.search(r"CUDA Version\s+([0-9]{1,3}(?:\.[0-9]{1,5}){1,3})", text)
    return Version(found[1]) if found else None


def parse_cuda_h(text: str) -> Optional[Version]:
    """``CUDA_VERSION`` of cuda.h, or ``CUDART_VERSION`` of cuda_runtime_api.h: 13000 is 13.0."""
    number = define(text, "CUDA_VERSION") or define(text, "CUDART_VERSION")
    return Version(f"{number // 1000}.{number % 1000 // 10}") if number and number >= 1000 else None


def parse_nvcc_version(text: str) -> Optional[Version]:
    """``nvcc --version``: ``release 13.0, V13.0.88``. Only the release: V counts the compiler, not the toolkit."""
    found = re.search(r"release\s+([0-9]{1,3}\.[0-9]{1,3})", text)
    return Version(found[1]) if found else None


def parse_code_list(text: str) -> tuple[ComputeCapability, ...]:
    """Compute capabilities of ``sm_90`` or ``compute_90`` in the text, ascending; without ``sm_90a`` and ``sm_100f``."""
    found = re.findall(r"(?<![\w])(?:sm|compute)_([0-9]{2,4})(?![0-9A-Za-z_])", text)
    return tuple(sorted({ComputeCapability.parse(digits) for digits in found}))


def parse_help(text: str) -> tuple[tuple[ComputeCapability, ...], tuple[ComputeCapability, ...]]:
    """SASS and PTX of ``nvcc --help``, for the toolkits before 11 that cannot list them."""
    return (
        parse_code_list(" ".join(re.findall(r"(?<!\w)sm_[0-9]+\w?", text))),
        parse_code_list(" ".join(re.findall(r"(?<!\w)compute_[0-9]+\w?", text))),
    )


def parse_max_gcc(text: str) -> Optional[int]:
    """The newest gcc that host_config.h accepts: of its message, else of its condition."""
    found = re.search(r"gcc versions later than ([0-9]{1,3})(?:\.[0-9]+)? are not supported", text)
    found = found or re.search(r"^[ \t]*#[ \t]*if[ \t]+\(?__GNUC__[ \t]*>[ \t]*([0-9]{1,3})", text, re.MULTILINE)
    return int(found[1]) if found else None


def parse_max_clang(text: str) -> Optional[int]:
    """The newest clang that host_config.h accepts."""
    found = re.search(r"unsupported clang version! clang version must be less than ([0-9]{1,3})\b", text)
    return int(found[1]) - 1 if found else None


def parse_dryrun(text: str) -> DryRun:
    """``nvcc --dryrun``: its settings stand in lines that begin with ``#$``."""
    settings = dict(re.findall(r"^#\$ (_HERE_|TOP)=(.*?)[ \t\r]*$", text, re.MULTILINE))
    return DryRun(here=settings.get("_HERE_", ""), top=settings.get("TOP", ""))
