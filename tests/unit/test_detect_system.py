"""The system and what this process may use of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.version import Version

from caffeup.detect.places import existing, site_folders, system_library_folders
from caffeup.detect.side_by_side import each
from caffeup.detect.system import probe_system
from caffeup.model.machine import Container
from fakehost import write_machine

MEMORY = "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n"


def test_nothing_known_has_defaults(tmp_path: Path) -> None:
    system = probe_system(write_machine(tmp_path))
    assert (system.distro, system.container, system.cores, system.glibc) == ("unknown", Container.NONE, 1, None)


def test_a_debian(tmp_path: Path) -> None:
    files = {
        "/usr/lib/os-release": 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n',
        "/usr/lib/x86_64-linux-gnu/x": "",
        "/proc/meminfo": MEMORY,
    }
    system = probe_system(write_machine(tmp_path, files=files, toml='[own]\ncores = 8\nglibc = "2.36"\nkernel = "6.1.0"\n'))
    assert (system.distro, system.distro_version, system.distro_codename) == ("debian", "12", "bookworm")
    assert (system.triplet, system.glibc, system.cores, system.memory_bytes) == ("x86_64-linux-gnu", Version("2.36"), 8, 8 << 30)


def test_limits_of_control_groups_version_2_hold_from_any_ancestor(tmp_path: Path) -> None:
    files = {
        "/proc/meminfo": MEMORY,
        "/proc/self/cgroup": "0::/system.slice/job.scope\n",
        "/sys/fs/cgroup/system.slice/memory.max": f"{2 << 30}\n",
        "/sys/fs/cgroup/system.slice/memory.current": f"{1 << 30}\n",
        "/sys/fs/cgroup/system.slice/job.scope/memory.max": "max\n",
        "/sys/fs/cgroup/system.slice/job.scope/cpu.max": "150000 100000\n",
    }
    system = probe_system(write_machine(tmp_path, files=files, toml="[own]\ncores = 16\n"))
    assert (system.cores, system.memory_bytes, system.memory_available_bytes) == (2, 2 << 30, 1 << 30)


def test_limits_of_control_groups_version_1(tmp_path: Path) -> None:
    files = {
        "/proc/meminfo": MEMORY,
        "/proc/self/cgroup": "4:memory:/docker/x\n3:cpu,cpuacct:/docker/x\n",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": f"{1 << 30}\n",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes": "0\n",
        "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "300000\n",
        "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    }
    system = probe_system(write_machine(tmp_path, files=files, toml="[own]\ncores = 16\n"))
    assert (system.cores, system.memory_bytes, system.memory_available_bytes) == (3, 1 << 30, 1 << 30)


@pytest.mark.parametrize(
    ("files", "env", "container"),
    [
        ({"/.dockerenv": ""}, {}, Container.DOCKER),
        ({"/run/.containerenv": ""}, {}, Container.PODMAN),
        ({"/.singularity.d/x": ""}, {}, Container.APPTAINER),
        ({"/.dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, Container.KUBERNETES),
        ({"/run/systemd/container": "lxc\n"}, {}, Container.LXC),
        ({}, {"container": "systemd-nspawn"}, Container.OTHER),
        ({"/proc/1/cgroup": "0::/kubepods/besteffort/pod1\n"}, {}, Container.KUBERNETES),
        ({"/proc/1/cgroup": "0::/init.scope\n"}, {}, Container.NONE),
        ({"/run/systemd/container": "wsl\n"}, {}, Container.NONE),
    ],
)
def test_containers(tmp_path: Path, files: dict[str, str], env: dict[str, str], container: Container) -> None:
    assert probe_system(write_machine(tmp_path, files=files, env=env)).container is container


@pytest.mark.parametrize(
    ("commands", "sudo"),
    [("$ sudo -n true\n", True), ("$ sudo -n true\n? 1\n! a password is required\n", False), ("$ sudo -n true\n? 124\n", False)],
)
def test_sudo_is_asked_without_a_password(tmp_path: Path, commands: str, sudo: bool) -> None:
    assert probe_system(write_machine(tmp_path, commands=commands, programs=["/usr/bin/sudo"])).sudo is sudo


def test_root_needs_no_sudo(tmp_path: Path) -> None:
    host = write_machine(tmp_path, toml="[own]\nuid = 0\n", programs=["/usr/bin/sudo"])
    system = probe_system(host)
    assert (system.root, system.sudo, host.ran) == (True, True, [])


def test_wsl(tmp_path: Path) -> None:
    assert probe_system(write_machine(tmp_path, toml='[own]\nkernel = "5.15.153.1-microsoft-standard-WSL2"\n')).wsl == 2


def test_folders_of_the_loader_each_once_and_a_file_that_includes_itself(tmp_path: Path) -> None:
    files = {
        "/etc/ld.so.conf": "include ld.so.conf.d/*.conf\n",
        "/etc/ld.so.conf.d/a.conf": "/opt/a\n/gone\ninclude /etc/ld.so.conf\n",
        "/opt/a/x": "",
        "/usr/lib/x": "",
    }
    host = write_machine(tmp_path, files=files, links={"/usr/lib64": "/usr/lib"})
    assert system_library_folders(host, probe_system(host)) == ("/usr/lib64", "/opt/a")
    assert existing(host, ("/opt/a/", "/opt/a", "/opt/a/x")) == ("/opt/a",)


def test_package_folders_of_every_kind(tmp_path: Path) -> None:
    folders = [
        "/v [1]/lib/python3.9/site-packages",
        "/home/u/.local/lib/python3.10/site-packages",
        "/usr/lib/python3/dist-packages",
        "/p/versions/3.12.1/lib/python3.12/site-packages",
    ]
    host = write_machine(
        tmp_path,
        files={f"{folder}/x": "" for folder in folders},
        env={"VIRTUAL_ENV": "/v [1]", "HOME": "/home/u", "PYENV_ROOT": "/p"},
    )
    assert list(site_folders(host)) == folders


def test_each_keeps_the_order_and_lets_errors_through() -> None:
    assert each(lambda number: number * 2, range(20)) == tuple(range(0, 40, 2))
    with pytest.raises(ZeroDivisionError):
        each(lambda number: 1 // number, (1, 0))
