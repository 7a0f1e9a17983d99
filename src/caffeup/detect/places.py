"""The folders in which several probes look."""

from __future__ import annotations

import glob
from collections.abc import Iterable

from caffeup.detect.parse.system import parse_ld_so_conf
from caffeup.host import Host, path_folders
from caffeup.model.machine import System

LD_SO_CONF = "/etc/ld.so.conf"


def conda_prefix(host: Host) -> str:
    """The active conda environment, or empty."""
    prefix = host.env.get("CONDA_PREFIX", "").rstrip("/")
    return prefix if prefix.startswith("/") and host.is_dir(prefix) else ""


def prefix_library_folders(prefix: str, system: System) -> tuple[str, ...]:
    """Where libraries stand below a root that somebody gave."""
    root = prefix.rstrip("/")
    multiarch = (f"{root}/lib/{system.triplet}",) if system.triplet else ()
    return (f"{root}/lib", f"{root}/lib64", *multiarch)


def system_library_folders(host: Host, system: System) -> tuple[str, ...]:
    """What linker and loader search: the usual folders, then those of ld.so.conf."""
    multiarch = (f"/usr/lib/{system.triplet}",) if system.triplet else ()
    usual = ("/usr/local/lib", "/usr/local/lib64", *multiarch, "/usr/lib64", "/usr/lib")
    return existing(host, (*usual, *_loader_folders(host, LD_SO_CONF, 0)))


def system_include_folders(host: Host, system: System) -> tuple[str, ...]:
    """What the compiler searches by itself."""
    multiarch = (f"/usr/include/{system.triplet}",) if system.triplet else ()
    return existing(host, ("/usr/local/include", *multiarch, "/usr/include"))


def _loader_folders(host: Host, path: str, depth: int) -> tuple[str, ...]:
    folders, includes = parse_ld_so_conf(host.read_text(path) or "")
    if depth < 3:
        for pattern in includes:
            absolute = pattern if pattern.startswith("/") else f"/etc/{pattern}"
            folders += tuple(folder for one in host.glob(absolute) for folder in _loader_folders(host, one, depth + 1))
    return folders


def data_folder(host: Host) -> str:
    """The folder of caffeup in the user's data, as platformdirs has it; empty where there is no home folder."""
    data = host.env.get("XDG_DATA_HOME", "")
    if not data.startswith("/"):
        home = host.env.get("HOME", "").rstrip("/")
        data = f"{home}/.local/share" if home.startswith("/") else ""
    return f"{data.rstrip('/')}/caffeup" if data else ""


def site_folders(host: Host) -> tuple[str, ...]:
    """Package folders of the Pythons in the usual places, in which NVIDIA's wheels may be installed."""
    env = host.env
    home = env.get("HOME", "")
    roots = [env.get("VIRTUAL_ENV", ""), conda_prefix(host), f"{home}/.local" if home else "", "/usr/local", "/usr"]
    pyenv = env.get("PYENV_ROOT", "") or (f"{home}/.pyenv" if home else "")
    patterns = [f"{glob.escape(root.rstrip('/'))}/lib/python3*/*-packages" for root in roots if root.startswith("/")]
    if pyenv.startswith("/"):
        patterns.append(f"{glob.escape(pyenv)}/versions/*/lib/python3*/site-packages")
    found = [folder for pattern in patterns for folder in host.glob(pattern)]
    return tuple(dict.fromkeys(found))


def variable_folders(host: Host, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Folders of search-path variables, with the variable's name."""
    return tuple((folder, name) for name in names for folder in path_folders(host.env, name))


def existing(host: Host, folders: Iterable[str]) -> tuple[str, ...]:
    """Those that are there, each real folder once, under the name that came first."""
    found: dict[str, str] = {}
    for folder in folders:
        real = host.real_path(folder)
        if real is not None and host.is_dir(folder):
            found.setdefault(real, folder.rstrip("/") or "/")
    return tuple(found.values())
