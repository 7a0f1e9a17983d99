"""Which GPUs a library holds code for: reads the containers that nvcc's fatbinary leaves in ELF sections.

A container is one compiled file. Its entries are PTX or SASS, as a rule compressed; their headers are not.
"""

from __future__ import annotations

import struct
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile

from caffeup.model.base import ComputeCapability, Value, Word

SECTIONS = (".nv_fatbin", "__nv_relfatbin")
"""Whole programs, and device code that is linked later (-dc)."""
_MAGIC = struct.pack("<I", 0xBA55ED50)
_CONTAINER = struct.Struct("<4sHHQ")
"""Magic, version, size of this header, size of the entries."""
_ENTRY = struct.Struct("<HHIQIIHHI")
"""Kind, version, size of this header, size of what follows; sizes and version of the code; at the end the architecture."""
_FLAGS = struct.Struct("<Q")
_FLAGS_AT = 40
_ARCH_ONLY, _FAMILY_ONLY = 0x100000, 0x200000


class Kind(Word):
    """What a GPU runs, or what the driver compiles for it first."""

    SASS = "SASS"
    PTX = "PTX"


_KINDS = {1: Kind.PTX, 2: Kind.SASS}


class Code(Value):
    """Code for one architecture."""

    kind: Kind
    made_for: ComputeCapability
    suffix: str = ""
    """``a``: for exactly this one; ``f``: for its family."""

    def __str__(self) -> str:
        return f"{self.kind} {self.made_for}{self.suffix}"

    def runs_on(self, gpu: ComputeCapability) -> bool:
        """Whether such a GPU can use it."""
        if self.suffix == "a":
            return self.made_for == gpu
        if self.kind is Kind.PTX and not self.suffix:
            return self.made_for <= gpu
        return self.made_for.major == gpu.major and self.made_for.minor <= gpu.minor


def parse_fatbin(data: bytes) -> tuple[tuple[Code, ...], ...]:
    """The code in each container of a section, in order; what cannot be read is passed over."""
    containers = []
    at = data.find(_MAGIC)
    while at >= 0:
        if at + _CONTAINER.size > len(data):
            break
        _, _, header, size = _CONTAINER.unpack_from(data, at)
        end = min(at + header + size, len(data))
        if header >= _CONTAINER.size:
            containers.append(_entries(data, at + header, end))
        at = data.find(_MAGIC, max(end, at + len(_MAGIC)))
    return tuple(containers)


def _entries(data: bytes, at: int, end: int) -> tuple[Code, ...]:
    found: list[Code] = []
    while at + _ENTRY.size <= end:
        number, _, header, size, _, _, _, _, arch = _ENTRY.unpack_from(data, at)
        if header < _ENTRY.size:
            break
        kind = _KINDS.get(number)
        if kind is not None and 10 <= arch < 10_000:
            known = header >= _FLAGS_AT + _FLAGS.size and at + _FLAGS_AT + _FLAGS.size <= end
            flags = _FLAGS.unpack_from(data, at + _FLAGS_AT)[0] if known else 0
            suffix = "a" if flags & _ARCH_ONLY else "f" if flags & _FAMILY_ONLY else ""
            found.append(Code(kind=kind, made_for=ComputeCapability(*divmod(arch, 10)), suffix=suffix))
        at += header + size
    return tuple(found)


def read_fatbins(path: Path) -> tuple[tuple[Code, ...], ...]:
    """The code in each container of an ELF file; empty where there is none, or where it is no ELF file."""
    try:
        with path.open("rb") as file:
            sections = [ELFFile(file).get_section_by_name(name) for name in SECTIONS]
            return tuple(container for one in sections if one is not None for container in parse_fatbin(one.data()))
    except (OSError, ELFError, ConstructError, ValueError):
        return ()
