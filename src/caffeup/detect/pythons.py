"""Pythons that pycaffe could be built for: each is asked once, all at the same time."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Optional

from packaging.version import Version

from caffeup.detect.parse.boost_python import choose
from caffeup.detect.parse.library_version import agrees, from_file_name
from caffeup.detect.parse.python_answer import Answer, parse_answer
from caffeup.detect.python_query import MARK, query
from caffeup.detect.roots import Root, system_roots, triplet_of, user_roots
from caffeup.host import NOT_EXECUTABLE, RAN_OUT_OF_TIME, Host, Output
from caffeup.model.machine import Attempt, Library, Missing, Python, PythonKind, System

MOST = 16
SECONDS = 8.0
MANAGED = (".asdf/installs/python", ".local/share/mise/installs/python", ".local/share/uv/python")
"""Where asdf, mise and uv keep their Pythons, below the home folder."""
_PYTHON = re.compile(r"^python[23]?(\.[0-9]+)?$")


class Pythons(NamedTuple):
    """What the probe found."""

    pythons: tuple[Python, ...]
    missing: tuple[Missing, ...]
    tried: tuple[Attempt, ...]
    """Candidates that are no Python, or do not answer."""


class _Candidate(NamedTuple):
    path: str
    via: str


def probe_pythons(
    host: Host, system: System, libraries: Sequence[Library] = (), prefixes: Sequence[str] = (), asked_for: str = ""
) -> Pythons:
    """Every distinct interpreter, in PATH's order first; ``libraries`` tell which Boost its Boost.Python must belong to.

    ``asked_for`` is a Python named by the user, asked in any case.
    """
    triplet = triplet_of(system)
    users = user_roots(host, prefixes, triplet)
    roots = (*users, *system_roots(host, triplet))
    tried: list[Attempt] = []
    candidates = _distinct(host, _candidates(host, asked_for), tried)
    tried += [Attempt(where=late.path, outcome=f"not asked: {MOST} others come first") for late in candidates[MOST:]]
    script = query(_package_folders(host, users))
    with ThreadPoolExecutor(max_workers=MOST) as pool:
        outputs = list(pool.map(lambda one: _ask(host, one.path, script), candidates[:MOST]))
    boost = next((library.version for library in libraries if library.name == "boost"), None)
    shared = _boost_python_files(host, [folder for root in roots for folder in root.libs], boost)
    found: list[Python] = []
    for candidate, output in zip(candidates, outputs):
        answer = parse_answer(output.stdout, MARK) if output is not None else None
        if answer is None:
            tried.append(Attempt(where=candidate.path, outcome=_failure(output)))
        elif answer.implementation != "cpython":
            tried.append(Attempt(where=candidate.path, outcome=f"is {answer.implementation}, for which there is no Boost.Python"))
        else:
            found.append(_python(host, candidate, answer, users, shared))
    missing = () if found else (Missing(what="python", tried=tuple(tried)),)
    return Pythons(tuple(found), missing, tuple(tried))


def _candidates(host: Host, asked_for: str) -> Iterator[_Candidate]:
    for path in host.which(asked_for) if asked_for else ():
        yield _Candidate(path, "--python")
    for name in ("python3", "python", "python2"):
        for path in host.which(name):
            yield _Candidate(path, "PATH")
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        folder = host.env.get(variable, "")
        if folder.startswith("/"):
            yield _Candidate(f"{folder.rstrip('/')}/bin/python", f"env {variable}")
    for pattern in ("/usr/bin/python[23]*", "/usr/local/bin/python[23]*"):
        for path in sorted(host.glob(pattern), key=_newest_first):
            if _PYTHON.match(path.rpartition("/")[2]):
                yield _Candidate(path, f"glob {pattern}")
    home = host.env.get("HOME", "").rstrip("/")
    pyenv = glob.escape(host.env.get("PYENV_ROOT", "").rstrip("/") or f"{home}/.pyenv")
    conda = [
        f"{base}/{name}" for base in (home, "/opt") for name in ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "conda")
    ]
    managed = [f"{glob.escape(home)}/{folder}/*/bin/python3" for folder in MANAGED]
    patterns = [
        f"{pyenv}/versions/*/bin/python",
        *managed,
        *(f"{folder}/bin/python" for folder in conda),
        "/opt/python*/bin/python3",
    ]
    for pattern in patterns:
        for path in sorted(host.glob(pattern), key=_newest_first) if "*" in pattern else (pattern,):
            yield _Candidate(path, f"glob {pattern}" if "*" in pattern else f"usual folder {pattern}")


def _newest_first(path: str) -> tuple[tuple[int, ...], str]:
    """With pyenv the comes last by name; of more than can be asked, the oldest are left out."""
    return tuple(-int(number) for number in re.findall(r"\d+", path)), path


def _distinct(host: Host, candidates: Iterator[_Candidate], tried: list[Attempt]) -> list[_Candidate]:
    kept: dict[str, _Candidate] = {}
    for candidate in candidates:
        real = host.real_path(candidate.path)
        if real is None:
            continue
        folder = candidate.path.rpartition("/")[0]
        if folder.endswith("/shims"):
            if not any(attempt.where == candidate.path for attempt in tried):
                tried.append(Attempt(where=candidate.path, outcome="a shim: the versions behind it are asked themselves"))
            continue
        environment = host.real_path(folder.rpartition("/")[0]) or ""
        is_venv = host.exists(f"{environment}/pyvenv.cfg")  # its python is only a link to the one it was made from
        kept.setdefault(environment if is_venv else real, candidate)
    return list(kept.values())


def _ask(host: Host, path: str, script: str) -> Optional[Output]:
    # -E: caffeup's own PYTHONPATH and PYTHONHOME, or the user's, must not answer for this Python.
    return host.run((path, "-E", "-"), timeout=SECONDS, stdin=script)


def _failure(output: Optional[Output]) -> str:
    if output is None:
        return "not there"
    if output.status == RAN_OUT_OF_TIME:
        return f"no answer within {SECONDS:.0f} s"
    if output.status == NOT_EXECUTABLE:
        return "cannot be executed"
    lines = [line.strip() for line in output.stderr.splitlines() if line.strip()]
    return f"exit {output.status}: {lines[-1][:200] if lines else 'no answer in its output'}"


def _package_folders(host: Host, users: Sequence[Root]) -> tuple[str, ...]:
    """Folders with Python packages in the user's roots: those of unpacked distribution packages, or of ``pip --prefix``."""
    found: list[str] = []
    for root in users:
        base = glob.escape(root.path.rstrip("/"))
        for lib in (f"{base}/lib", f"{base}/lib64"):
            for pattern in (f"{lib}/python3/dist-packages", f"{lib}/python*/site-packages", f"{lib}/python*/dist-packages"):
                found += host.glob(pattern)
    return tuple(dict.fromkeys(found))


def _boost_python_files(host: Host, folders: Sequence[str], boost: Optional[Version]) -> list[tuple[str, dict[str, str]]]:
    """``{name: file it leads to}`` for each folder, only of the Boost whose headers are used."""
    found = []
    for folder in dict.fromkeys(folders):
        files: dict[str, str] = {}
        for path in host.glob(f"{glob.escape(folder)}/libboost_python*"):
            name, _, ending = path.rpartition("/")[2].removeprefix("lib").rpartition(".")
            if ending in ("a", "so"):  # in this order: the linker takes the .so of two, and an archive tells no version
                files[name] = host.real_path(path) or path
        fitting = {name: file for name, file in files.items() if boost is None or agrees(boost, from_file_name(file), 2)}
        if fitting:
            found.append((folder, fitting))
    return found


def _kind(host: Host, answer: Answer) -> PythonKind:
    pyenv = host.env.get("PYENV_ROOT", "").rstrip("/")
    if answer.conda:
        return PythonKind.CONDA
    if answer.prefix != answer.base_prefix:
        return PythonKind.VENV
    if answer.prefix == "/usr":
        return PythonKind.SYSTEM
    if "/.pyenv/versions/" in answer.prefix or (pyenv and answer.prefix.startswith(f"{pyenv}/versions/")):
        return PythonKind.PYENV
    return PythonKind.LOCAL


def _own(host: Host, answer: Answer) -> bool:
    own = host.own.prefix
    return bool(own) and (host.real_path(own) or own) == (host.real_path(answer.prefix) or answer.prefix)


def _python(
    host: Host, candidate: _Candidate, answer: Answer, users: Sequence[Root], shared: Sequence[tuple[str, dict[str, str]]]
) -> Python:
    kind = _kind(host, answer)
    boosts = list(shared)
    if kind is PythonKind.CONDA:
        boosts = _boost_python_files(host, [f"{answer.prefix}/lib"], None) + boosts
    name, folder = _boost_python(boosts, answer.release, guess=kind is PythonKind.SYSTEM)
    include, library_dir = _unpacked(host, answer, users)
    modules = (answer.numpy, answer.protobuf, answer.skimage, answer.six)
    return Python(
        via=candidate.via,
        evidence=candidate.path,
        executable=candidate.path,
        version=answer.release,
        kind=kind,
        include=include,
        library=f"python{answer.number}" if library_dir else "",
        library_dir=library_dir,
        numpy=answer.numpy.number,
        numpy_include=answer.numpy.include,
        boost_python=name,
        boost_python_dir=folder,
        protobuf=answer.protobuf.number,
        skimage=answer.skimage.number,
        six=answer.six.number,
        paths=tuple(dict.fromkeys(module.path for module in modules if module.path)),
        own=_own(host, answer),
    )


def _boost_python(boosts: Sequence[tuple[str, dict[str, str]]], version: Version, *, guess: bool) -> tuple[str, str]:
    for certain in (False, True) if guess else (False,):
        for folder, files in boosts:
            name = choose(files, version, guess=certain)
            if name is not None:
                return name, folder
    return "", ""


def _unpacked(host: Host, answer: Answer, users: Sequence[Root]) -> tuple[str, str]:
    """Headers and libpython: the Python's own, or those of an unpacked development package."""
    include, library_dir = answer.include, answer.library_dir
    for root in users:
        if not include:
            here = (f"{folder}/python{answer.number}" for folder in root.includes)
            include = next((folder for folder in here if host.exists(f"{folder}/Python.h")), "")
        if not library_dir:
            library_dir = next((folder for folder in root.libs if host.exists(f"{folder}/libpython{answer.number}.so")), "")
    return include, library_dir
