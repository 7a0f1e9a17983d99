"""What stands at a path of a tree, and the only code that reads and writes there.

Every write is a new file beside the old one, synced and renamed over it, so that a kill leaves the old or the new.
Every path is checked first: one that leads out of the tree through a link is refused.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Optional

from caffeup.errors import CaffeupError, DiskError, PatchFailed
from caffeup.model.base import Value
from caffeup.model.finding import Evidence, Finding, Remedy, Severity

HOME = ".caffeup"
UNDO = f"{HOME}/undo"
_SCRATCH = ".caffeup-new"


class Stamp(Value, kw_only=True):
    """What stands at a path, told by its hash; nothing given: nothing stands there."""

    sha256: str = ""
    link: str = ""
    mode: int = 0
    mtime_ns: int = 0

    def same(self, other: Stamp) -> bool:
        """Whether both have the same content, whatever their times and modes."""
        return (self.sha256, self.link) == (other.sha256, other.link)

    @property
    def absent(self) -> bool:
        """Whether nothing stands there."""
        return not self.sha256 and not self.link


@dataclass(frozen=True)
class Image:
    """What stands at a path: bytes, a link, or nothing. A time of 0 is "when it is written"."""

    data: Optional[bytes] = None
    link: str = ""
    mode: int = 0o644
    mtime_ns: int = 0

    @property
    def absent(self) -> bool:
        """Whether nothing stands there."""
        return self.data is None and not self.link

    def same(self, other: Image) -> bool:
        """Whether both have the same content, whatever their times and modes."""
        return (self.data, self.link) == (other.data, other.link)

    def stamp(self) -> Stamp:
        """Its hash, mode and time."""
        if self.data is not None:
            return Stamp(sha256=digest(self.data), mode=self.mode, mtime_ns=self.mtime_ns)
        return Stamp(link=self.link)


ABSENT = Image()


def digest(data: bytes) -> str:
    """SHA-256 of the bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


class Disk:
    """The files of one tree."""

    def __init__(self, root: str) -> None:
        self.root = Path(root)
        self._real = os.path.realpath(root)

    def locate(self, path: str) -> Path:
        """Where the relative path stands; ``PatchFailed`` where it would lead out of the tree."""
        parts = Path(path).parts
        if not parts or Path(path).is_absolute() or ".." in parts or "\0" in path:
            refuse("patch-path", f"{path!r} is no path inside the tree", path)
        place = self.root / path
        parent = os.path.realpath(place.parent)
        if parent != self._real and not parent.startswith(self._real.rstrip("/") + "/"):
            refuse("patch-link-leads-out", f"{path} leads out of the tree, to {parent}", path)
        return place

    def read(self, path: str) -> Image:
        """What stands at the path; ``PatchFailed`` for a folder, a device or a file that cannot be read."""
        place = self.locate(path)
        try:
            status = place.lstat()
            if stat.S_ISLNK(status.st_mode):
                return Image(link=str(place.readlink()))
            if not stat.S_ISREG(status.st_mode):
                refuse("patch-not-a-file", f"{path} is not a file", path)
            return Image(place.read_bytes(), mode=stat.S_IMODE(status.st_mode), mtime_ns=status.st_mtime_ns)
        except (FileNotFoundError, NotADirectoryError):
            return ABSENT
        except OSError as error:
            refuse("patch-unreadable", f"{path} cannot be read: {error.strerror}", path)

    def resolve(self, path: str) -> str:
        """The path with links followed, relative to the tree; ``PatchFailed`` where that leads out of it."""
        real = os.path.realpath(self.locate(path))
        if not real.startswith(self._real.rstrip("/") + "/"):
            refuse("patch-link-leads-out", f"{path} is a link that leads out of the tree, to {real}", path)
        return os.path.relpath(real, self._real)

    def put(self, path: str, image: Image) -> None:
        """Make the path hold the image, in one step; folders on the way are made."""
        place = self.locate(path)
        if image.absent:
            with suppress(FileNotFoundError):
                place.unlink()
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        scratch = self.scratch(path)
        with suppress(FileNotFoundError):
            scratch.unlink()
        if image.link:
            scratch.symlink_to(image.link)
        else:
            _write(scratch, image)
        scratch.replace(place)

    def scratch(self, path: str) -> Path:
        """Where a new version of the path is written before it is renamed."""
        place = self.locate(path)
        return place.with_name(f".{place.name}{_SCRATCH}")

    def keep(self, image: Image) -> None:
        """Put the bytes among the pre-images, named by their hash."""
        if image.data is not None:
            path = f"{UNDO}/{digest(image.data)}"
            if not self.locate(path).exists():
                self.put(path, Image(image.data, mode=0o600))

    def kept(self, stamp: Stamp) -> Image:
        """The pre-image that the stamp tells of; ``PatchFailed`` where its bytes are gone or damaged."""
        if not stamp.sha256:
            return Image(link=stamp.link)
        stored = self.read(f"{UNDO}/{stamp.sha256}").data
        if stored is None or digest(stored) != stamp.sha256:
            refuse("patch-undo-lost", f"the pre-image {UNDO}/{stamp.sha256} is missing or damaged", UNDO)
        return Image(stored, mode=stamp.mode, mtime_ns=stamp.mtime_ns)

    def missing_folders(self, path: str) -> tuple[str, ...]:
        """Folders that writing the path will make, outermost first."""
        folders = [str(folder) for folder in Path(path).parents if str(folder) != "."]
        return tuple(folder for folder in reversed(folders) if not self.locate(folder).is_dir())

    def prune(self, folders: tuple[str, ...]) -> None:
        """Remove those of the folders that are empty, innermost first."""
        for folder in sorted(folders, key=len, reverse=True):
            with suppress(OSError):
                self.locate(folder).rmdir()

    def writable(self, path: str) -> bool:
        """Whether the path is writable by its mode; root may write anywhere, but a read-only file is meant to stay."""
        try:
            return bool(self.locate(path).stat().st_mode & 0o222)
        except OSError:
            return True


def _write(scratch: Path, image: Image) -> None:
    handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(image.data or b"")
        os.fchmod(file.fileno(), image.mode)
        file.flush()
        os.fsync(file.fileno())
    if image.mtime_ns:
        os.utime(scratch, ns=(image.mtime_ns, image.mtime_ns))


def refuse(id_: str, title: str, path: str, *, why: str = "", remedies: tuple[Remedy, ...] = ()) -> NoReturn:
    """Raise ``PatchFailed`` with one finding about a path."""
    finding = Finding(
        id=id_, severity=Severity.PROBLEM, title=title, why=why, evidence=(Evidence(where=path),), remedies=remedies
    )
    raise PatchFailed(title, findings=(finding,))


def disk_error(error: OSError, root: str) -> CaffeupError:
    """The error to raise for a write that failed."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    what = "the disk is full" if full else f"{error.filename or root} cannot be written: {error.strerror}"
    return DiskError(
        what,
        details="Nothing is half-applied: what was written has been taken back.",
        commands=("df -h .",) if full else (f"ls -ld {root}",),
    )
