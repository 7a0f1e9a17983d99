"""From machine, tree and plan to a lock: versions and words, no paths of this machine. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Optional

import msgspec

from caffeup.facts.libraries import Kind
from caffeup.facts.tables import Facts
from caffeup.model.base import Value
from caffeup.model.lock import Lock, Setting
from caffeup.model.machine import Machine, Python, Toolkit
from caffeup.model.plan import Plan, Request
from caffeup.model.tree import Tree

_OF_EACH_RUN = frozenset(("source", "into", "cuda", "python", "prefixes", "jobs", "tests", "distribute", "yes", "force"))
"""Wishes that say where things are, or that change nothing in what is built."""
_NO_SETTING = frozenset(("Q", "TEST_GPUID"))
_VERSIONED = re.compile(r"\d+(?:\.\d+)+\S*")


class Seen(Value, kw_only=True):
    """What must be read from the disk for a lock."""

    content: str = ""
    """Hash of the sources as they came."""
    patches: dict[str, str] = msgspec.field(default_factory=dict)
    packages: dict[str, str] = msgspec.field(default_factory=dict)
    built: dict[str, str] = msgspec.field(default_factory=dict)
    home: str = ""
    """The user's home folder, which a lock calls ``~``."""


def make_lock(machine: Machine, tree: Tree, plan: Plan, facts: Facts, seen: Seen, release: str) -> Lock:
    """The lock of one build; without its products where nothing is built yet."""
    toolkit = chosen_toolkit(machine, plan)
    return Lock(
        caffeup=release,
        tree=_filled(fork=tree.fork, source=_source(plan.request, tree), commit=tree.origin.commit, content=seen.content),
        request=wishes(plan.request),
        needs=_filled(
            arch=machine.system.arch,
            driver=facts.minimum_driver(toolkit.version) if toolkit is not None else "",
            gpus=", ".join((*(str(one) for one in plan.sass), *([f"{plan.ptx}+PTX"] if plan.ptx else []))),
        ),
        tools=_tools(machine, plan, toolkit),
        libraries=_libraries(plan, facts),
        packages=dict(seen.packages),
        settings=_settings(plan, seen.home),
        patches=dict(seen.patches),
        built=dict(seen.built),
    )


def wishes(request: Request) -> dict[str, Setting]:
    """What was asked for beyond the defaults, as far as it changes what is built."""
    plain = Request()
    found: dict[str, Setting] = {}
    for name in Request.__struct_fields__:
        value = getattr(request, name)
        if name not in _OF_EACH_RUN and value != getattr(plain, name):
            found[name] = value if isinstance(value, (bool, tuple)) else str(value)
    return found


def chosen_toolkit(machine: Machine, plan: Plan) -> Optional[Toolkit]:
    """The toolkit that the plan took."""
    taken = decided(plan, "toolkit")
    return next((one for one in machine.toolkits if f"CUDA {one.version} in {one.root}" == taken), None)


def decided(plan: Plan, key: str) -> str:
    """The value of a decision; empty where there is none."""
    return next((one.value for one in plan.decisions if one.key == key), "")


def _source(request: Request, tree: Tree) -> str:
    """A name or an address; a folder of this machine is nothing to find it by."""
    origin = tree.origin
    if origin.url:
        return origin.url
    return origin.branch if origin.kind == "sdist" else ("" if "/" in request.source else request.source)


def _tools(machine: Machine, plan: Plan, toolkit: Optional[Toolkit]) -> dict[str, str]:
    compiler = next((one for one in machine.compilers if one.path == plan.compiler), None)
    protoc = next((one for one in machine.programs if one.path == plan.protoc), None)
    python = next((one for one in machine.pythons if one.executable == plan.python), None) if plan.python else None
    return _filled(
        compiler=f"{compiler.kind} {compiler.version}" if compiler is not None else "",
        cuda=str(toolkit.version) if toolkit is not None else "",
        cudnn=decided(plan, "cudnn") if plan.cudnn else "",
        protoc=str(protoc.version) if protoc is not None and protoc.version is not None else "",
        glibc=str(machine.system.glibc or ""),
        standard=decided(plan, "standard"),
        **(_python(python) if python is not None else {}),
    )


def _python(python: Python) -> dict[str, str]:
    versions = {"numpy": python.numpy, "protobuf_for_python": python.protobuf, "skimage": python.skimage}
    return {"python": str(python.version), **{name: str(one) for name, one in versions.items() if one is not None}}


def _libraries(plan: Plan, facts: Facts) -> dict[str, str]:
    names = {row.id for row in facts.libraries if row.kind is Kind.LIBRARY} | {"blas"}
    shown = {one.key: one.value for one in plan.decisions if one.key in names}
    return {key: value for key, value in shown.items() if _VERSIONED.search(value)}


def _settings(plan: Plan, home: str) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for line in plan.config:
        if line.key == "CUSTOM_CXX" or line.key in _NO_SETTING:
            continue
        found.setdefault(line.key, []).extend(_at_home(word, home) for word in line.value)
    return {key: " ".join(words) for key, words in found.items()}


def _at_home(word: str, home: str) -> str:
    return re.sub(rf"(^|[=,:])(-[IL])?{re.escape(home)}(?=/|$)", r"\1\2~", word) if home.strip("/") else word


def _filled(**values: str) -> dict[str, str]:
    return {key: value for key, value in values.items() if value}


def request_of(lock: Lock, given: Request) -> Request:
    """What to ask for to build a lock: its own wishes, and of this run where things are and what is done besides.

    Raises ``ValueError`` (``msgspec.ValidationError`` is one) for wishes that this caffeup does not know.
    """
    kept = {name: getattr(given, name) for name in _OF_EACH_RUN}
    asked = dict(lock.request)
    if "arch" not in asked and lock.needs.get("gpus"):
        asked["arch"] = tuple(dict.fromkeys(one.removesuffix("+PTX") for one in lock.needs["gpus"].split(", ")))
    if set(asked) & _OF_EACH_RUN:
        raise ValueError(f"a lock does not say {', '.join(sorted(set(asked) & _OF_EACH_RUN))}")
    return msgspec.structs.replace(msgspec.convert(asked, Request), **kept)


def names_of_packages(plan: Plan, machine: Machine, facts: Facts, family: str) -> Iterable[str]:
    """The distribution's packages that a build here rests on."""
    system = machine.system
    python = next((one.version for one in machine.pythons if one.executable == plan.python), None)
    wanted: Mapping[str, str] = _libraries(plan, facts)
    blas = decided(plan, "blas").partition(" ")[0]
    found = dict.fromkeys(_BASE.get(family, ()))
    compiler = next((one for one in machine.compilers if one.path == plan.compiler), None)
    if compiler is not None and family == "debian":  # there "g++" is only a name for it
        found[f"{'g++' if compiler.kind == 'gcc' else compiler.kind}-{compiler.version.major}"] = None
    for row in facts.libraries:
        if row.id in wanted or row.id in _ALWAYS or row.id == blas or (plan.python and row.id in _FOR_PYTHON):
            found.update(dict.fromkeys(row.packages_on(family, system.distro, system.distro_version, python) or ()))
    return found


_BASE = {
    "debian": ("binutils", "libc6-dev"),
    "fedora": ("binutils", "glibc-devel"),
    "suse": ("binutils", "glibc-devel"),
    "arch": ("binutils", "glibc"),
}
"""Linker, assembler and start files: no library of Caffe's, and in every product all the same."""
_ALWAYS = ("g++", "protoc")
_FOR_PYTHON = ("numpy", "boost-python", "python-dev")
