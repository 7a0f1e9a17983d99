"""protoc in the roots that the user gave; it comes before any on PATH."""

from __future__ import annotations

from collections.abc import Sequence

from caffeup.detect.parse.protobuf import parse_protoc
from caffeup.detect.roots import Root, triplet_of, user_roots
from caffeup.host import Host
from caffeup.model.machine import Attempt, Program, System


def probe_protocs(host: Host, system: System, prefixes: Sequence[str] = ()) -> tuple[tuple[Program, ...], tuple[Attempt, ...]]:
    """Those that run, and those that do not; an unpacked one is given the libraries beside it."""
    found: list[Program] = []
    failed: list[Attempt] = []
    for root in user_roots(host, prefixes, triplet_of(system)):
        for path in host.which(f"{root.path}/bin/protoc"):
            output = host.run((*_with_libraries(root), path, "--version"))
            version = parse_protoc(output.stdout) if output is not None and output.status == 0 else None
            if version is not None:
                found.append(Program(via=root.via, evidence=f"{path} --version", name="protoc", path=path, version=version))
                continue
            reason = "not there" if output is None else f"exit {output.status}: {(output.stderr or output.stdout).strip()[:200]}"
            failed.append(Attempt(where=path, outcome=reason))
    return tuple(found), tuple(failed)


def _with_libraries(root: Root) -> tuple[str, ...]:
    return ("env", f"LD_LIBRARY_PATH={':'.join(root.libs)}") if root.libs else ()
