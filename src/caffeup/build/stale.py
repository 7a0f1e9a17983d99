"""Removes objects that were made with other settings: Caffe's Makefile does not depend on its Makefile.config."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

import msgspec

from caffeup.build import products
from caffeup.build.makefile import Variables
from caffeup.disk import read_plain, write_atomically
from caffeup.model.base import Value, from_json, to_json
from caffeup.model.plan import Plan

# Decisions that say which headers and libraries an object was made with. What only the command line shows is not repeated here.
_FOR_CXX = ("compiler", "opencv", "protobuf", "boost", "hdf5", "blas", "glog", "standard")
_SHOWN = 4
_FOR_CUDA = ("compiler", "toolkit", "protobuf", "boost", "glog", "standard")
# Through common.hpp every object includes the headers of CUDA and cuDNN, and few use them. Within one major release the
# headers change for those alone: a symbol of theirs has the name in it. Another major release is another matter.
_MARKS = {
    "toolkit": (b"cuda", b"cublas", b"curand", b"cudnn", b"CuDNN", b"nccl"),
    "cudnn": (b"cudnn", b"CuDNN"),
}
_WORDS = {
    "cxx": "C++ objects",
    "cuda": "GPU code",
    "link": "library and programs",
    "python": "pycaffe",
    "protoc": "what protoc makes",
    "toolkit": "objects that use CUDA",
    "cudnn": "objects that use cuDNN",
}


class Fingerprint(Value):
    """What the products of a build depend on besides their sources."""

    cxx: str
    cuda: str
    link: str
    python: str
    protoc: str
    toolkit: str = ""
    cudnn: str = ""
    parts: dict[str, str] = msgspec.field(default_factory=dict)
    """What these digests were made of, by names for people; a value behind ``#`` is a digest itself."""

    def same_as(self, other: Optional[Fingerprint], kind: str) -> bool:
        """Whether products of this kind fit both."""
        return other is not None and bool(getattr(self, kind) == getattr(other, kind))


KINDS = ("cxx", "cuda", "link", "python", "protoc")


class Stale(Value):
    """What was removed because of other settings."""

    kinds: tuple[str, ...] = ()
    what: str = ""
    """The kinds in words: ``GPU code, library and programs``."""
    files: int = 0
    """0 where only modules that protoc made were there and nothing was ever built: a tree may come with them."""
    because: str = ""
    """What changed, for people: ``opencv 4.5.4 → 4.6.0, options of nvcc``."""


def fingerprint(root: Path, plan: Plan, variables: Variables) -> Fingerprint:
    """Taken from what make really would say to the compilers, the shims, and which libraries were chosen."""
    shims = _content(root / ".caffeup" / "include")
    shim_libraries = _content(root / ".caffeup" / "lib")
    links = "\n".join(f"{link.name} {link.target}" for link in plan.links)
    headers = "\n".join(f"{link.name} {link.target}" for link in plan.links if not _of_cuda(link.name))
    major = "\n".join(_major(_decided(plan, (key,))) for key in _MARKS)
    cxx = (
        variables.text("CXX"),
        _identity(plan.compiler),
        variables.text("CXXFLAGS"),
        shims,
        headers,
        _decided(plan, _FOR_CXX),
        major,
    )
    nvcc = _identity(str(root / variables.text("CUDA_DIR") / "bin" / "nvcc")) if variables.text("CUDA_DIR") else ""
    cuda = (variables.text("NVCCFLAGS"), variables.text("CUDA_ARCH"), nvcc, shims, headers, _decided(plan, _FOR_CUDA), major)
    marked = _decided(plan, tuple(_MARKS))
    link = (*cxx[:2], variables.text("LINKFLAGS"), variables.text("LDFLAGS"), shim_libraries, links, marked)
    python = (*link, variables.text("PYTHON_LDFLAGS"), plan.python, _identity(plan.python))
    return Fingerprint(
        cxx=_digest(*cxx),
        cuda=_digest(*cuda),
        link=_digest(*link),
        python=_digest(*python),
        protoc=_digest(plan.protoc, _identity(plan.protoc), _decided(plan, ("protobuf",))),
        toolkit=_digest(_decided(plan, ("toolkit",)), nvcc),
        cudnn=_digest(_decided(plan, ("cudnn",))),
        parts={
            **{
                one.key: one.value
                for one in plan.decisions
                if one.key in (*_FOR_CXX, *_MARKS) or (one.key == "python" and plan.python)
            },
            "file of the compiler": f"#{_digest(cxx[1])}",
            "options of the compiler": f"#{_digest(cxx[2])}",
            "options of nvcc": f"#{_digest(*cuda[:2])}",
            "file of nvcc": f"#{_digest(nvcc)}",
            "link line": f"#{_digest(*link[2:4])}",
            "headers and libraries put into the tree": f"#{_digest(shims, shim_libraries, links)}",
        },
    )


def _changes(old: Optional[Fingerprint], new: Fingerprint) -> str:
    if old is None:
        return "caffeup does not know how they were made"
    found = []
    for name in dict.fromkeys((*new.parts, *old.parts)):
        before, now = old.parts.get(name, "none"), new.parts.get(name, "none")
        if before != now:
            found.append(name if "#" in (before[:1], now[:1]) else f"{name} {before} → {now}")
    if not old.parts or not found:
        return "other settings"
    return ", ".join(found if len(found) <= _SHOWN else (*found[:_SHOWN], f"{len(found) - _SHOWN} more"))


def _decided(plan: Plan, keys: tuple[str, ...]) -> str:
    return "\n".join(f"{one.key}={one.value}" for one in plan.decisions if one.key in keys)


def _major(decision: str) -> str:
    """Up to the first number: ``cudnn=9`` of ``cudnn=9.14.0``, ``toolkit=CUDA 13``."""
    return re.match(r"[^\d.]*\d*", decision).group()  # type: ignore[union-attr]  # it matches any text


def _of_cuda(link: str) -> bool:
    return link.startswith(("cuda", "deps/cuda", "deps/cudnn"))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _identity(program: str) -> str:
    """Which file stands behind a program's name, and which edition of it."""
    if not program:
        return ""
    real = os.path.realpath(program)
    try:
        status = os.stat(real)  # noqa: PTH116  # realpath gave a string
    except OSError:
        return real
    return f"{real} {status.st_size} {status.st_mtime_ns}"


def _content(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(path.relative_to(folder).as_posix().encode("utf-8", "surrogateescape") + b"\0")
            digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def remove_stale(root: Path, new: Fingerprint, variables: Variables) -> Stale:
    """Remove the products that do not fit the new settings, then remember the new ones.

    Killed in between, the next run removes again. Products of a build that left no fingerprint do not fit.
    """
    where = root / ".caffeup" / "fingerprint.json"
    old = _read(where)
    if old == new:
        return Stale()
    kinds = tuple(kind for kind in KINDS if not new.same_as(old, kind))
    using = tuple(kind for kind in _MARKS if not new.same_as(old, kind) and not {"cxx", "cuda"} <= set(kinds))
    count, built = 0, old is not None
    for path in _stale_files(root, kinds, using, variables):
        path.unlink()
        count += 1
        built = built or not path.name.endswith("_pb2.py")
    write_atomically(where, to_json(new))
    if not count or not built:
        return Stale()
    every = (*kinds, *using)
    return Stale(kinds=every, what=", ".join(_WORDS[kind] for kind in every), files=count, because=_changes(old, new))


def _speaks(path: Path, marks: tuple[bytes, ...]) -> bool:
    """Whether an object has one of these words in it, among its symbols or its code; one that cannot be read has."""
    try:
        data = path.read_bytes()
    except OSError:
        return True
    return any(mark in data for mark in marks)


def _read(where: Path) -> Optional[Fingerprint]:
    try:
        return from_json(read_plain(where), Fingerprint)
    except (OSError, msgspec.MsgspecError, ValueError):
        return None


def _stale_files(root: Path, kinds: tuple[str, ...], using: tuple[str, ...], variables: Variables) -> Iterator[Path]:
    marks = tuple(mark for kind in using for mark in _MARKS[kind])
    for path, kind in products.files(root / variables.build_dir):
        if kind in kinds or (marks and kind in {"cxx", "cuda"} and path.suffix == ".o" and _speaks(path, marks)):
            yield path
    if "python" in kinds:
        yield from products.modules(root)
    if "protoc" in kinds:
        yield from products.generated(root)
