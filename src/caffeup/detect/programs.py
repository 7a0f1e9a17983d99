"""Programs that a build needs or can use: every copy on PATH and in /usr/bin."""

from __future__ import annotations

from caffeup.detect.parse.versions import first_version
from caffeup.detect.side_by_side import each
from caffeup.host import Host
from caffeup.model.machine import Attempt, Missing, Program

ASKED = ("make", "git", "ccache", "protoc", "pkg-config", "cmake")
"""Programs that are asked for their version."""
NOTED = ("ldconfig", "nvidia-smi")
"""Programs whose version tells nothing, or that would wait for a driver."""
NEEDED = ("make",)
SYSTEM_FOLDERS = ("/usr/local/bin", "/usr/bin", "/usr/sbin", "/sbin")


def probe_programs(host: Host) -> tuple[tuple[Program, ...], tuple[Missing, ...]]:
    """Each real file once, in PATH's order."""
    places = tuple((name, path, via) for name in (*ASKED, *NOTED) for path, via in _places(host, name))
    programs = each(lambda place: _ask(host, *place), places)
    found = {program.name for program in programs}
    missing = tuple(
        Missing(what=name, tried=(Attempt(where=f"{name} on PATH", outcome="not there"),)) for name in NEEDED if name not in found
    )
    return programs, missing


def _places(host: Host, name: str) -> tuple[tuple[str, str], ...]:
    found: dict[str, tuple[str, str]] = {}
    for path in host.which(name):
        found.setdefault(host.real_path(path) or path, (path, f"PATH {path.rpartition('/')[0]}"))
    for folder in SYSTEM_FOLDERS:
        path = f"{folder}/{name}"
        real = host.real_path(path)
        if real is not None and real not in found and host.which(path):
            found[real] = (path, f"folder {folder}")
    return tuple(found.values())


def _ask(host: Host, name: str, path: str, via: str) -> Program:
    if name not in ASKED:
        return Program(via=via, evidence=path, name=name, path=path)
    output = host.run((path, "--version"))
    version = first_version(output.stdout) if output is not None and output.status == 0 else None
    return Program(via=via, evidence=f"{path} --version", name=name, path=path, version=version)
