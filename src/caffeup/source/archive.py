"""Unpacks an archive that nobody vouches for: every member is checked, nothing leads out, ``.git`` is dropped unread."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import tarfile
import zipfile
import zlib
from dataclasses import dataclass, field
from lzma import LZMAError
from pathlib import Path
from typing import IO

from caffeup.source.look import printable
from caffeup.source.problems import BadArchive, disk_error
from caffeup.source.readers import Member, Members, TooMuch, open_members

LARGEST_TREE = 4 << 30
MOST_MEMBERS = 100_000
CHUNK = 1 << 20
DROPPED = {".git", ".caffeup"}
"""A foreign .git can name programs and hold secrets; a foreign .caffeup would speak for caffeup."""
DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    LZMAError,
    EOFError,
    TooMuch,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
SUFFIXES = (".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar", ".zip")


@dataclass
class Unpacked:
    """What came of it."""

    sha256: str
    dropped: list[str] = field(default_factory=list)


@dataclass
class _State:
    root: Path
    archive: str
    links: dict[str, str] = field(default_factory=dict)
    written: int = 0
    members: int = 0


def sha256_of(path: Path) -> str:
    """A file's hash, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(CHUNK):
            digest.update(piece)
    return digest.hexdigest()


def unpack(archive: Path, into: Path, *, sha256: str = "", largest: int = LARGEST_TREE) -> Unpacked:
    """Unpack into an empty folder of ours. Raise ``BadArchive`` naming the member; ``DiskError`` where writing fails.

    Files get the caller's owner and mode 644 or 755 (less the umask). Links are made last: nothing is written through one.
    """
    actual = _checked(archive, sha256)
    result = Unpacked(sha256=actual)
    state = _State(root=into, archive=archive.name)
    try:
        with open_members(archive, largest) as members:
            for member in members:
                _take(member, members, state, result, largest)
        _make_links(state)
    except DAMAGE as error:
        raise _damaged(archive, error) from error
    except OSError as error:
        if error.errno is None:  # what gzip and bz2 raise for bad data
            raise _damaged(archive, error) from error
        raise disk_error(error, into.parent) from error
    return result


def look(archive: Path) -> None:
    """Raise ``BadArchive`` for what is no archive at all, or is cut off at its start."""
    try:
        with open_members(archive, LARGEST_TREE) as members:
            next(iter(members), None)
    except (*DAMAGE, ValueError) as error:
        raise _damaged(archive, error) from error


def _damaged(archive: Path, error: Exception) -> BadArchive:
    shown = shlex.quote(str(archive))
    return BadArchive(
        f"{archive.name} is damaged, or no archive that can be read",
        details=f"{type(error).__name__}: {error}",
        advice="Download it again and compare its hash.",
        commands=(f"sha256sum {shown}", f"file {shown}"),
    )


def single_top(folder: Path) -> Path:
    """The only folder at the top of an unpacked archive, or the folder itself."""
    names = list(folder.iterdir())
    if len(names) == 1 and names[0].is_dir() and not names[0].is_symlink():
        return names[0]
    return folder


def _checked(archive: Path, sha256: str) -> str:
    try:
        actual = sha256_of(archive)
    except OSError as error:
        raise BadArchive(
            f"cannot read {archive}", details=str(error), commands=(f"ls -l {shlex.quote(str(archive))}",)
        ) from error
    if sha256 and actual != sha256:
        raise BadArchive(
            f"{archive.name} is not what it should be: its hash differs",
            details=f"expected sha256 {sha256}\n     got sha256 {actual}",
            advice="The download was cut or changed on the way. Nothing of it was unpacked.",
        )
    return actual


def _refuse(state: _State, name: str, why: str) -> BadArchive:
    return BadArchive(
        f"{state.archive} is refused: {printable(name)} {why}",
        advice="An archive of a source tree has no reason for this. Nothing of it was kept.",
    )


def _take(member: Member, members: Members, state: _State, result: Unpacked, largest: int) -> None:
    state.members += 1
    if state.members > MOST_MEMBERS:
        raise _refuse(state, member.name, f"is member {MOST_MEMBERS + 1}; no Caffe tree has so many files")
    state.written += max(member.size, 0)
    if state.written > largest:
        raise _refuse(state, member.name, f"brings the unpacked size over {largest >> 20} MiB")
    parts = _parts(member.name, state)
    if not parts:
        return
    if any(part.lower() in DROPPED for part in parts):
        if parts[-1].lower() in DROPPED:
            result.dropped.append("/".join(parts))
        return
    name = "/".join(parts)
    above = ["/".join(parts[:count]) for count in range(1, len(parts))]
    through = next((folder for folder in above if folder in state.links), "")
    if through:
        raise _refuse(state, member.name, f"would be written through the link {printable(through)}")
    _place(member, members, state, name)


def _parts(name: str, state: _State) -> list[str]:
    if name.startswith("/") or re.match(r"[A-Za-z]:[\\/]|\\", name):
        raise _refuse(state, name, "has an absolute path")
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if ".." in parts:
        raise _refuse(state, name, "leads out with ..")
    if "\0" in name or any(len(os.fsencode(part)) > 255 for part in parts):
        raise _refuse(state, name[:80], "has a name that no file can have")
    return parts


def _place(member: Member, members: Members, state: _State, name: str) -> None:
    path = state.root / name
    if member.kind == "folder":
        _clear(path, state, member.name, folder=True)
        path.mkdir(parents=True, exist_ok=True)
    elif member.kind == "file":
        _clear(path, state, member.name)
        state.links.pop(name, None)
        path.parent.mkdir(parents=True, exist_ok=True)
        with members.content(member) as source:
            _write(path, source, executable=member.executable)
    elif member.kind == "link":
        _clear(path, state, member.name)
        if not _leads_inside(name, member.target):
            raise _refuse(state, member.name, f"is a link that leads out, to {printable(member.target)}")
        state.links[name] = member.target
    elif member.kind == "hard link":
        _copy_hard_link(member, state, name, path)
    else:
        raise _refuse(state, member.name, f"is a {member.kind}")


def _clear(path: Path, state: _State, name: str, *, folder: bool = False) -> None:
    """Room for a member: a later one replaces a file, as tar does; a file and a folder of one name are refused."""
    if path.is_dir():
        if not folder:
            raise _refuse(state, name, "is in it as a folder and as a file")
    elif path.exists():
        if folder:
            raise _refuse(state, name, "is in it as a file and as a folder")
        path.unlink()


def _copy_hard_link(member: Member, state: _State, name: str, path: Path) -> None:
    target = "/".join(_parts(member.target, state))
    origin = state.root / target
    if target in state.links or not origin.is_file():
        raise _refuse(state, member.name, f"is a link to {printable(member.target)}, which is no file of this archive before it")
    state.written += origin.stat().st_size
    if target == name:
        return
    _clear(path, state, member.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with origin.open("rb") as source:
        _write(path, source, executable=os.access(origin, os.X_OK))


def _write(path: Path, source: IO[bytes], *, executable: bool) -> None:
    mode = 0o777 if executable else 0o666
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(handle, "wb") as out:
        while piece := source.read(CHUNK):
            out.write(piece)


def _leads_inside(name: str, target: str) -> bool:
    """Whether a link's target stays in the tree, by its text."""
    if not target or target.startswith("/") or "\0" in target:
        return False
    depth = name.count("/")
    for part in target.split("/"):
        if part == "..":
            depth -= 1
        elif part not in {"", "."}:
            depth += 1
        if depth < 0:
            return False
    return True


def _make_links(state: _State) -> None:
    for name, target in state.links.items():
        path = state.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
    top = os.path.realpath(state.root)
    for name, target in state.links.items():  # a link over another link can lead out although neither does by its text
        real = os.path.realpath(state.root / name)
        if real != top and not real.startswith(f"{top}/"):
            raise _refuse(state, name, f"is a link that leads out, to {printable(target)}")
