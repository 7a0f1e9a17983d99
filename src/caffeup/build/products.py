"""What a build makes, told by name and place: all else that lies in the same folders is somebody's own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

_LIBRARY = re.compile(r".+(?:\.a|\.so(?:\.\d[\w.-]*)?)")
_LINKED = (".bin", ".testbin")
_TOLD = ("warnings.txt", "lint.txt", ".linked")
_OF_NVCC = re.compile(r".+\.o\.(?:\w+\.)*(?:ii|cubin|ptx|gpu|c|cpp|fatbin|module_id)")
"""What nvcc writes beside an object with ``--objdir-as-tempdir``, and leaves there where it is killed."""
_ELF = b"\x7fELF"


def kind(inside: str) -> str:
    """Which settings a file of a build's folder depends on; empty for what is no product.

    ``told``: words about a product; ``left``: what a killed nvcc leaves.
    """
    name = inside.rpartition("/")[2]
    if name.endswith((".pb.h", ".pb.cc")):
        return "protoc"
    if name.endswith(_LINKED) or _LIBRARY.fullmatch(name):
        return "link"
    if name.endswith((".o", ".d")):
        return "cuda" if inside.startswith("cuda/") else "cxx"
    if name.endswith(_TOLD):
        return "told"
    return "left" if inside.startswith("cuda/") and _OF_NVCC.fullmatch(name) else ""


def files(build: Path) -> Iterator[tuple[Path, str]]:
    """The products in a build's folder with their kinds; a ``.bin`` that no linker wrote is somebody's data."""
    for path in _walked(build):
        found = "" if path.is_symlink() else kind(path.relative_to(build).as_posix())
        if found and (found != "link" or path.suffix == ".a" or _of_a_linker(path)):
            yield path, found


def links(build: Path) -> Iterator[Path]:
    """The links that make puts beside programs and libraries: ``caffe`` to ``caffe.bin``."""
    for path in _walked(build):
        if path.is_symlink():
            target = os.path.basename(os.readlink(path))  # noqa: PTH115, PTH119  # a Path would drop "." and the last "/"
            if target == f"{path.name}.bin" or (_LIBRARY.fullmatch(path.name) and _LIBRARY.fullmatch(target)):
                yield path


def modules(root: Path) -> Iterator[Path]:
    """What ``make pycaffe`` links: ``python/caffe/_caffe.so``."""
    for path in sorted(root.glob("python/*/_*.so")):
        if path.name == f"_{path.parent.name}.so":
            yield path


def generated(root: Path) -> Iterator[Path]:
    """Python modules that protoc made of the tree's own .proto files."""
    for path in sorted(root.glob("python/*/proto/*_pb2.py")):
        if any(root.glob(f"src/*/proto/{_plain(path.name.removesuffix('_pb2.py'))}.proto")):
            yield path


def bytecode(root: Path) -> Iterator[Path]:
    """What Python keeps of pycaffe's own modules, of those too that protoc made and that are gone."""
    for path in sorted(root.glob("python/*/**/__pycache__/*.pyc")):
        name, package = path.name.partition(".")[0], path.parent.parent
        if (package / f"{name}.py").is_file() or name.endswith("_pb2"):
            yield path


def _plain(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name)


def _walked(build: Path) -> Iterator[Path]:
    for where, folders, names in os.walk(build):
        linked = [name for name in folders if os.path.islink(os.path.join(where, name))]  # noqa: PTH114, PTH118  # thousands
        yield from (Path(where, name) for name in sorted((*names, *linked)))


def _of_a_linker(path: Path) -> bool:
    """Whether it is an ELF file, or holds nothing yet: ends of a machine leave such."""
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except OSError:
        return False
    return head[:4] == _ELF or not head.strip(b"\0")
