"""What the system's own files say: os-release, meminfo, control groups, NVIDIA's Tegra release."""

from __future__ import annotations

import math
import re
from typing import Optional

_NO_LIMIT = 1 << 60
"""Control groups of version 1 write a limit near 2^63 where there is none."""


def parse_os_release(text: str) -> dict[str, str]:
    """Keys and unquoted values; lines that are no assignment are skipped."""
    found = {}
    for line in text.splitlines():
        key, equals, value = line.strip().partition("=")
        if equals and key.isidentifier():
            found[key] = _unquoted(value.strip())
    return found


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return re.sub(r"\\(.)", r"\1", value[1:-1])
    return value


def parse_meminfo(text: str) -> dict[str, int]:
    """Bytes by name (``MemTotal``)."""
    found = re.findall(r"^(\w+):[ \t]+([0-9]{1,15})[ \t]*kB", text, re.MULTILINE)
    return {name: int(number) * 1024 for name, number in found}


def parse_limit(text: str) -> Optional[int]:
    """A memory limit or usage in bytes; None for ``max`` and whatever means no limit."""
    digits = text.strip()
    if not re.fullmatch(r"[0-9]{1,20}", digits):
        return None
    return int(digits) if int(digits) < _NO_LIMIT else None


def parse_cpu_max(text: str) -> Optional[int]:
    """Whole cores of version 2's ``cpu.max`` (``150000 100000`` is 2); None where there is no limit."""
    quota, _, period = text.strip().partition(" ")
    return cores_of_quota(quota, period)


def cores_of_quota(quota: str, period: str) -> Optional[int]:
    """Cores that a quota within a period allows, rounded up; None where there is no limit."""
    numbers = [int(one) if re.fullmatch(r"[0-9]{1,15}", one.strip()) else 0 for one in (quota, period)]
    if not all(numbers):
        return None
    return max(1, math.ceil(numbers[0] / numbers[1]))


def parse_cgroups(text: str) -> dict[str, str]:
    """The group's path by controller, from /proc/self/cgroup; version 2's has the name ""."""
    found = {}
    for line in text.splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3 and parts[2].startswith("/"):
            for controller in parts[1].split(","):
                found[controller] = parts[2]
    return found


def ancestors(group: str) -> tuple[str, ...]:
    """The group and all above it, to the root, without a last slash: ``/a/b``, ``/a``, ``""``."""
    parts = [part for part in group.split("/") if part and part != ".."]
    return tuple("".join(f"/{part}" for part in parts[:count]) for count in range(len(parts), -1, -1))


def wsl_of_kernel(release: str) -> int:
    """0, 1 or 2: Microsoft's kernel for WSL 2 says so in its name; WSL 1 only pretends to be one."""
    lower = release.lower()
    if "microsoft" not in lower:
        return 0
    return 1 if re.search(r"-microsoft$", lower) else 2


def parse_tegra_release(text: str) -> str:
    """``35.4.1`` of ``# R35 (release), REVISION: 4.1, ...``; empty for anything else."""
    found = re.search(r"#\s*R([0-9]{1,4})\b.*?REVISION:\s*([0-9]{1,4}(?:\.[0-9]{1,4})*)", text)
    return f"{found[1]}.{found[2]}" if found else ""


def parse_device_tree(data: bytes) -> tuple[str, ...]:
    """The strings of a device tree property."""
    return tuple(part for part in data.decode("utf-8", "replace").split("\0") if part)


def parse_ld_so_conf(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Folders, and patterns of files to include."""
    folders, includes = [], []
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if len(words) > 1 and words[0] == "include":
            includes += words[1:]
        elif words and words[0].startswith("/"):
            folders.append(words[0])
    return tuple(folders), tuple(includes)
