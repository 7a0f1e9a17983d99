"""The system: distribution, architecture, what surrounds it, and what this process may use of it."""

from __future__ import annotations

from caffeup.detect.parse.system import (
    ancestors,
    cores_of_quota,
    parse_cgroups,
    parse_cpu_max,
    parse_device_tree,
    parse_limit,
    parse_meminfo,
    parse_os_release,
    parse_tegra_release,
    wsl_of_kernel,
)
from caffeup.detect.parse.versions import parse_version
from caffeup.host import Host
from caffeup.model.machine import Container, System

CGROUPS = "/sys/fs/cgroup"
DEBIAN_TRIPLETS = {"armv7l": "arm-linux-gnueabihf", "i686": "i386-linux-gnu", "ppc64le": "powerpc64le-linux-gnu"}
CONTAINER_FILES = (
    ("/.singularity.d", Container.APPTAINER),
    ("/run/.containerenv", Container.PODMAN),
    ("/.dockerenv", Container.DOCKER),
)
CONTAINER_WORDS = (
    ("kubepods", Container.KUBERNETES),
    ("docker", Container.DOCKER),
    ("libpod", Container.PODMAN),
    ("podman", Container.PODMAN),
    ("apptainer", Container.APPTAINER),
    ("singularity", Container.APPTAINER),
    ("lxc", Container.LXC),
)


def probe_system(host: Host) -> System:
    """Everything about the system; what cannot be told has its default."""
    own = host.own
    release = parse_os_release(host.read_text("/etc/os-release") or host.read_text("/usr/lib/os-release") or "")
    total, available = _memory(host)
    compatible = parse_device_tree(host.read_bytes("/proc/device-tree/compatible") or b"")
    jetson = any(name.startswith("nvidia,tegra") for name in compatible)
    return System(
        distro=release.get("ID", "").lower() or "unknown",
        distro_like=tuple(release.get("ID_LIKE", "").lower().split()),
        distro_version=release.get("VERSION_ID", ""),
        distro_codename=release.get("VERSION_CODENAME", "") or release.get("UBUNTU_CODENAME", ""),
        arch=own.arch,
        triplet=_triplet(host, own.arch),
        kernel=own.kernel,
        glibc=parse_version(own.glibc),
        wsl=wsl_of_kernel(own.kernel),
        container=_container(host),
        jetson=(_board(host) or "Jetson") if jetson else "",
        l4t=parse_tegra_release(host.read_text("/etc/nv_tegra_release") or "") if jetson else "",
        cores=_cores(host),
        memory_bytes=total,
        memory_available_bytes=available,
        disk_available_bytes=own.disk_available_bytes,
        root=own.uid == 0,
        sudo=own.uid == 0 or _sudo(host),
    )


def _board(host: Host) -> str:
    return next(iter(parse_device_tree(host.read_bytes("/proc/device-tree/model") or b"")), "").strip()


def _triplet(host: Host, arch: str) -> str:
    """Debian's multiarch folder, where the system has one."""
    triplet = DEBIAN_TRIPLETS.get(arch, f"{arch}-linux-gnu")
    return triplet if host.is_dir(f"/usr/lib/{triplet}") else ""


def _container(host: Host) -> Container:
    if host.env.get("KUBERNETES_SERVICE_HOST"):
        return Container.KUBERNETES
    for path, kind in CONTAINER_FILES:
        if host.exists(path):
            return kind
    said = (host.read_text("/run/systemd/container") or host.env.get("container", "")).strip()
    words = f"{said} {host.read_text('/proc/1/cgroup') or ''}"
    for word, kind in CONTAINER_WORDS:
        if word in words:
            return kind
    return Container.OTHER if said and said != "wsl" else Container.NONE


def _memory(host: Host) -> tuple[int, int]:
    """Total and available, as far as the control groups allow."""
    info = parse_meminfo(host.read_text("/proc/meminfo") or "")
    total = info.get("MemTotal", 0)
    available = info.get("MemAvailable", info.get("MemFree", 0) + info.get("Cached", 0))
    for limit_file, usage_file in _memory_files(host):
        limit = parse_limit(host.read_text(limit_file) or "")
        if limit is not None and limit < total:
            total = limit
            used = parse_limit(host.read_text(usage_file) or "") or 0
            available = min(available, max(0, limit - used))
    return total, available


def _memory_files(host: Host) -> list[tuple[str, str]]:
    groups = parse_cgroups(host.read_text("/proc/self/cgroup") or "")
    second = [f"{CGROUPS}{group}/memory" for group in ancestors(groups.get("", "/"))]
    first = [f"{CGROUPS}/memory{group}/memory" for group in ancestors(groups.get("memory", "/"))]
    return [(f"{one}.max", f"{one}.current") for one in second] + [
        (f"{one}.limit_in_bytes", f"{one}.usage_in_bytes") for one in first
    ]


def _cores(host: Host) -> int:
    groups = parse_cgroups(host.read_text("/proc/self/cgroup") or "")
    limits = [parse_cpu_max(host.read_text(f"{CGROUPS}{group}/cpu.max") or "") for group in ancestors(groups.get("", "/"))]
    for group in ancestors(groups.get("cpu", "/")):
        folder = f"{CGROUPS}/cpu{group}"
        quota = host.read_text(f"{folder}/cpu.cfs_quota_us")
        limits.append(cores_of_quota(quota, host.read_text(f"{folder}/cpu.cfs_period_us") or "") if quota else None)
    return max(1, min([host.own.cores, *(limit for limit in limits if limit is not None)]))


def _sudo(host: Host) -> bool:
    """Whether sudo needs no password; a slow directory service is not waited for."""
    output = host.run(("sudo", "-n", "true"), timeout=2.0)
    return output is not None and output.status == 0
