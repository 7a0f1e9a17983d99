"""Tar and zip archives as one stream of members, with limits on what their headers may claim."""

from __future__ import annotations

import bz2
import gzip
import lzma
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol, cast

from typing_extensions import Self

CHUNK = 1 << 20
LARGEST_HEADER = 16 << 20
"""tarfile reads a whole extended header into memory."""
MAGIC = ((b"\x1f\x8b", "gz"), (b"BZh", "bz2"), (b"\xfd7zXZ\0", "xz"), (b"PK\x03\x04", "zip"), (b"PK\x05\x06", "zip"))


class TooMuch(Exception):
    """A header or a stream larger than any source tree's."""


@dataclass(frozen=True)
class Member:
    """One member."""

    name: str
    kind: str
    """``folder``, ``file``, ``link``, ``hard link``, or what else it is: ``device`` …"""
    size: int = 0
    executable: bool = False
    target: str = ""
    raw: Any = None


class Members(Protocol):
    """An open archive."""

    def __iter__(self) -> Iterator[Member]:
        """Members in their order."""
        ...

    def content(self, member: Member) -> IO[bytes]:
        """The bytes of a file."""
        ...


class Guarded:
    """A decompressed stream that gives up at a limit, and refuses reads as large as only a hostile header asks for."""

    def __init__(self, file: IO[bytes], limit: int) -> None:
        self._file = file
        self._limit = limit

    def read(self, size: int = -1) -> bytes:
        """At most ``size`` bytes."""
        if size < 0 or size > LARGEST_HEADER:
            raise TooMuch(f"a header of {size >> 20} MiB")
        self._check(size)
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go forward; going back is as slow as the format makes it."""
        if whence == 0:
            self._check(offset - self._file.tell())
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Where it stands."""
        return self._file.tell()

    def _check(self, more: int) -> None:
        if self._file.tell() + more > self._limit:
            raise TooMuch(f"more than {self._limit >> 20} MiB unpacked")


@contextmanager
def open_members(path: Path, largest: int) -> Iterator[Members]:
    """Open an archive by what it is, not by its name; ``ValueError`` where it is none."""
    with path.open("rb") as file:
        start = file.read(512)
        kind = next((name for magic, name in MAGIC if start.startswith(magic)), "")
        if not kind and start[257:262] == b"ustar":
            kind = "tar"
        file.seek(0)
        if kind == "zip":
            with zipfile.ZipFile(file) as archive:
                yield _Zip(archive)
            return
        if not kind:
            raise ValueError(_what_it_is(start))
        guarded = cast("IO[bytes]", Guarded(_decompressed(file, kind), largest + (largest >> 2)))
        with tarfile.open(fileobj=guarded, mode="r:") as archive_:
            yield _Tar(archive_, guarded)


def _decompressed(file: IO[bytes], kind: str) -> IO[bytes]:
    if kind == "gz":
        return cast("IO[bytes]", gzip.GzipFile(fileobj=file, mode="rb"))
    if kind == "bz2":
        return cast("IO[bytes]", bz2.BZ2File(file))
    if kind == "xz":
        return cast("IO[bytes]", lzma.LZMAFile(file))
    return file


def _what_it_is(start: bytes) -> str:
    if not start:
        return "the file is empty"
    if start.lstrip()[:1] == b"<":
        return "it is a web page: a login or an error message in place of the archive"
    if start.startswith(b"version https://git-lfs"):
        return "it is a pointer of git-lfs, not the file itself"
    return "neither tar (gz, bz2, xz) nor zip"


class _Tar:
    def __init__(self, archive: tarfile.TarFile, stream: IO[bytes]) -> None:
        self._archive = archive
        self._stream = stream

    def __iter__(self) -> Iterator[Member]:
        yield from self._members()
        while self._stream.read(CHUNK):  # the checksum stands behind the last member
            pass

    def _members(self) -> Iterator[Member]:
        for info in self._archive:
            yield Member(
                name=info.name,
                kind=_tar_kind(info),
                size=info.size if info.isreg() else 0,
                executable=bool(info.mode & 0o111),
                target=info.linkname,
                raw=info,
            )

    def content(self, member: Member) -> IO[bytes]:
        found = self._archive.extractfile(member.raw)
        if found is None:
            raise ValueError(f"no content for {member.name}")
        return found


def _tar_kind(info: tarfile.TarInfo) -> str:
    if info.isdir():
        return "folder"
    if info.isreg():
        return "file"
    if info.issym():
        return "link"
    if info.islnk():
        return "hard link"
    return "device" if info.isdev() and not info.isfifo() else "named pipe" if info.isfifo() else f"member of type {info.type!r}"


class _Zip:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def __iter__(self) -> Iterator[Member]:
        for info in self._archive.infolist():
            mode = info.external_attr >> 16 if info.create_system == 3 else 0
            yield self._member(info, mode)

    def _member(self, info: zipfile.ZipInfo, mode: int) -> Member:
        if info.flag_bits & 1:
            return Member(name=info.filename, kind="encrypted file")
        if info.is_dir():
            return Member(name=info.filename, kind="folder")
        if stat.S_ISLNK(mode):
            if info.file_size > 4096:
                raise TooMuch(f"the link {info.filename} has a target of {info.file_size} bytes")
            target = self._archive.read(info).decode("utf-8", "surrogateescape")
            return Member(name=info.filename, kind="link", target=target)
        if stat.S_IFMT(mode) and not stat.S_ISREG(mode):
            return Member(name=info.filename, kind="device or pipe")
        return Member(name=info.filename, kind="file", size=info.file_size, executable=bool(mode & 0o111), raw=info)

    def content(self, member: Member) -> IO[bytes]:
        return cast("IO[bytes]", _Exactly(self._archive.open(member.raw), member.size))


class _Exactly:
    """Reads no more than the directory of the zip file promised: there a lie is a bomb."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._left = size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, size: int) -> bytes:
        piece = self._file.read(size)
        self._left -= len(piece)
        if self._left < 0:
            raise TooMuch("a member is larger than it says")
        return piece
