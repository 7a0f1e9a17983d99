"""The system's own files."""

from __future__ import annotations

from typing import Optional

import pytest

from caffeup.detect.parse import system


def test_os_release_in_all_its_quotes() -> None:
    text = '# remark\nID=debian\nNAME=\'Debian GNU/Linux\'\nPRETTY_NAME="a \\"b\\" c"\nID_LIKE="rhel fedora"\nbad line\nEMPTY=\n'
    assert system.parse_os_release(text) == {
        "ID": "debian",
        "NAME": "Debian GNU/Linux",
        "PRETTY_NAME": 'a "b" c',
        "ID_LIKE": "rhel fedora",
        "EMPTY": "",
    }


def test_meminfo() -> None:
    assert system.parse_meminfo("MemTotal:       16384 kB\nHugePages_Total:       0\nMemAvailable: x kB\n") == {
        "MemTotal": 16384 * 1024
    }


@pytest.mark.parametrize(
    ("text", "limit"),
    [("4294967296\n", 1 << 32), ("max\n", None), ("9223372036854771712\n", None), ("", None), ("-1", None), ("²", None)],
)
def test_memory_limits(text: str, limit: Optional[int]) -> None:
    assert system.parse_limit(text) == limit


@pytest.mark.parametrize(
    ("text", "cores"),
    [("max 100000\n", None), ("150000 100000\n", 2), ("20000 100000", 1), ("400000 100000", 4), ("1 0", None), ("x", None)],
)
def test_cpu_max(text: str, cores: Optional[int]) -> None:
    assert system.parse_cpu_max(text) == cores


def test_an_unlimited_quota_of_version_1_is_minus_one() -> None:
    assert system.cores_of_quota("-1\n", "100000\n") is None
    assert system.cores_of_quota("250000\n", "100000\n") == 3


def test_cgroups_of_both_versions() -> None:
    text = "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n1:name=systemd:/x\n0::/user.slice\nbad\n"
    groups = system.parse_cgroups(text)
    assert (groups["memory"], groups["cpu"], groups["cpuacct"], groups[""]) == (
        "/docker/abc",
        "/docker/abc",
        "/docker/abc",
        "/user.slice",
    )


def test_ancestors_end_at_the_root_and_never_leave_it() -> None:
    assert system.ancestors("/a/b") == ("/a/b", "/a", "")
    assert system.ancestors("/") == ("",)
    assert system.ancestors("/../../x") == ("/x", "")


@pytest.mark.parametrize(
    ("release", "wsl"),
    [
        ("5.15.153.1-microsoft-standard-WSL2", 2),
        ("4.4.0-19041-Microsoft", 1),
        ("6.1.0-28-amd64", 0),
        ("5.10.16.3-microsoft-custom", 2),
    ],
)
def test_wsl(release: str, wsl: int) -> None:
    assert system.wsl_of_kernel(release) == wsl


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("# R35 (release), REVISION: 4.1, GCID: 33958178, BOARD: t186ref", "35.4.1"),
        ("# R36 (release), REVISION: 4.3", "36.4.3"),
        ("L4T", ""),
    ],
)
def test_tegra_release(text: str, release: str) -> None:
    assert system.parse_tegra_release(text) == release


def test_ld_so_conf() -> None:
    text = "include /etc/ld.so.conf.d/*.conf\n/opt/lib # mine\n# /no\nhwcap 0 nosegneg\ninclude a b\n"
    assert system.parse_ld_so_conf(text) == (("/opt/lib",), ("/etc/ld.so.conf.d/*.conf", "a", "b"))
