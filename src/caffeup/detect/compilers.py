"""Host compilers for C++: every gcc and clang, each tried on a program, because an installed one may be broken."""

from __future__ import annotations

import glob
import re
from typing import Optional

import msgspec

from caffeup.detect.parse.compiler import first_error, parse_compiler
from caffeup.detect.places import conda_prefix
from caffeup.detect.side_by_side import each
from caffeup.host import NOT_EXECUTABLE, RAN_OUT_OF_TIME, Host, Output, path_folders
from caffeup.model.finding import Evidence, Finding, Severity
from caffeup.model.machine import Attempt, Compiler, Missing

USUAL_FOLDERS = ("/usr/local/bin", "/usr/bin")
PATTERNS = ("*g++*", "*clang++*")
NAME = re.compile(r"(?:(?P<conda>[\w]+-conda(?:_\w+)?-linux-gnu)-)?(?:g\+\+|clang\+\+)(?:-[0-9.]{1,8})?")
"""A compiler for this machine: cross compilers (``aarch64-linux-gnu-g++``) are somebody else's."""
SECONDS = 8.0
MASQUERADES = frozenset(("ccache", "distcc", "sccache", "icecc"))
EMPTY_PROGRAM = "#include <cstddef>\nint main() { return 0; }\n"
"""cstddef needs the standard library's headers and its machine's configuration, and costs a tenth of <string>."""


class Compilers(msgspec.Struct, frozen=True):
    """The probe's answer."""

    compilers: tuple[Compiler, ...] = ()
    missing: tuple[Missing, ...] = ()
    findings: tuple[Finding, ...] = ()


class _Candidate(msgspec.Struct, frozen=True):
    path: str
    via: str


def probe_compilers(host: Host) -> Compilers:
    """Each real compiler once, in PATH's order, under the first name that leads to it."""
    answers = each(lambda candidate: _try(host, candidate), _candidates(host))
    compilers = tuple(compiler for compiler, _, _ in answers if compiler is not None) or ()
    tried = tuple(attempt for _, attempt, _ in answers if attempt is not None)
    findings = tuple(finding for _, _, finding in answers if finding is not None)
    missing = () if any(one.works for one in compilers) else (Missing(what="C++ compiler", tried=tried or _nowhere(host)),)
    return Compilers(compilers=compilers, missing=missing, findings=findings)


def _nowhere(host: Host) -> tuple[Attempt, ...]:
    folders = dict.fromkeys((*path_folders(host.env), *USUAL_FOLDERS))
    return tuple(Attempt(where=f"{folder}/g++, clang++", outcome="not there") for folder in folders)


def _candidates(host: Host) -> tuple[_Candidate, ...]:
    on_path = path_folders(host.env)
    found: dict[str, _Candidate] = {}
    for folder in dict.fromkeys((*on_path, *USUAL_FOLDERS)):
        via = f"PATH {folder}" if folder in on_path else f"folder {folder}"
        for path in _in_folder(host, folder):
            real = host.real_path(path) or path
            if real.rpartition("/")[2] not in MASQUERADES:
                found.setdefault(real, _Candidate(path=path, via=via))
    return tuple(found.values())


def _in_folder(host: Host, folder: str) -> tuple[str, ...]:
    """Plain names first: ``g++`` is what a Makefile calls."""
    paths = {path for pattern in PATTERNS for path in host.glob(f"{glob.escape(folder)}/{pattern}")}
    fitting = [path for path in paths if NAME.fullmatch(path.rpartition("/")[2]) and host.which(path)]
    return tuple(sorted(fitting, key=lambda path: (len(path), path)))


def _try(host: Host, candidate: _Candidate) -> tuple[Optional[Compiler], Optional[Attempt], Optional[Finding]]:
    """One call tells what it is and whether it compiles: ``-v`` and a program on standard input."""
    argv = (candidate.path, "-v", "-x", "c++", "-fsyntax-only", "-")
    output = host.run(argv, timeout=SECONDS, stdin=EMPTY_PROGRAM)
    says = parse_compiler(output.stderr) if output is not None else None
    if output is None or says is None:
        return None, Attempt(where=candidate.path, outcome=_outcome(output)), _silent(candidate, output)
    works = output.status == 0
    compiler = Compiler(
        via=candidate.via + (" (conda)" if _is_conda(host, candidate.path, says.target) else ""),
        evidence=f"{candidate.path} -v",
        kind=says.kind,
        path=candidate.path,
        version=says.version,
        works=works,
        target=says.target,
    )
    return (
        compiler,
        None if works else Attempt(where=candidate.path, outcome=_outcome(output)),
        None if works else _broken(compiler, output),
    )


def _outcome(output: Optional[Output]) -> str:
    if output is None:
        return "not there"
    words = {RAN_OUT_OF_TIME: "no answer in time", NOT_EXECUTABLE: "cannot be executed"}.get(
        output.status, f"exit {output.status}"
    )
    return f"{words}: {first_error(output.stderr)}".removesuffix(": ")


def _is_conda(host: Host, path: str, target: str) -> bool:
    prefix = conda_prefix(host)
    folder = path.rpartition("/")[0]
    in_conda = bool(prefix and path.startswith(f"{prefix}/")) or host.is_dir(f"{folder.rpartition('/')[0]}/conda-meta")
    return in_conda or "-conda" in target


def _silent(candidate: _Candidate, output: Optional[Output]) -> Finding:
    return Finding(
        id="compiler-silent",
        severity=Severity.NOTE,
        title=f"{candidate.path} ({candidate.via}) does not answer like a compiler",
        evidence=(Evidence(where=f"{candidate.path} -v", text=_outcome(output)),),
    )


def _broken(compiler: Compiler, output: Output) -> Finding:
    return Finding(
        id="compiler-broken",
        severity=Severity.WARNING,
        title=f"{compiler.path} ({compiler.kind} {compiler.version}) does not compile an empty program",
        why="It lacks parts of its own, or the standard library's headers: often the package libstdc++-N-dev.",
        evidence=(Evidence(where=f"{compiler.path} -x c++ -fsyntax-only -", text=first_error(output.stderr)),),
    )
