"""What .git says of a checkout, read as files: no git is run, since a stranger's .git/config can name programs."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Optional
from urllib.parse import urlsplit, urlunsplit

from caffeup.model.base import Value

COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
SUBMODULE = 0o160000
LARGEST_INDEX = 64 << 20


class Entry(Value, kw_only=True):
    """One tracked file, as the index has it."""

    path: str
    mode: int
    sha: bytes
    size: int
    mtime: int


class Checkout(Value, kw_only=True):
    """A git checkout as far as it can be read."""

    commit: str = ""
    branch: str = ""
    url: str = ""
    """Of ``origin``, without credentials."""
    shallow: bool = False
    locked: bool = False
    """Whether an index.lock stands there: git was killed, or still works."""
    missing: tuple[str, ...] = ()
    """Tracked files that are not there."""
    changed: tuple[str, ...] = ()
    """Tracked files whose content differs from the index."""

    @property
    def dirty(self) -> bool:
        """Whether a tracked file is not as git has it."""
        return bool(self.missing or self.changed)


def git_folder(root: Path) -> Optional[Path]:
    """The .git folder of a checkout whose top is ``root`` (also of a worktree or submodule); None where it is none."""
    dot = root / ".git"
    if dot.is_dir():
        return dot
    text = _text(dot)
    if text.startswith("gitdir: "):
        target = (root / text[8:].strip()).resolve()
        return target if target.is_dir() else None
    return None


def read_checkout(root: Path) -> Optional[Checkout]:
    """What .git says; None where the folder is no checkout. Damage gives empty fields, not errors."""
    folder = git_folder(root)
    if folder is None:
        return None
    common = folder
    if _text(folder / "commondir"):
        common = (folder / _text(folder / "commondir").strip()).resolve()
    head = _text(folder / "HEAD").strip()
    branch = head[len("ref: refs/heads/") :] if head.startswith("ref: refs/heads/") else ""
    commit = head if COMMIT.fullmatch(head) else _resolve(folder, common, head[5:].strip())
    missing, changed = _compare(root, folder)
    return Checkout(
        commit=commit,
        branch=branch,
        url=without_credentials(_origin_url(_text(common / "config"))),
        shallow=(common / "shallow").is_file(),
        locked=(folder / "index.lock").exists(),
        missing=missing,
        changed=changed,
    )


def tracked(root: Path) -> frozenset[str]:
    """The files that git keeps, relative to the checkout; none where the folder is no checkout."""
    folder = git_folder(root)
    return frozenset(entry.path for entry in _index(folder / "index")) if folder is not None else frozenset()


def without_credentials(url: str) -> str:
    """A URL without user name and password; ``git@host:path`` keeps its user, which is no secret."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return re.sub(r"//[^/@]*@", "//", url)
    if not parts.scheme or "@" not in parts.netloc:
        return url
    user = f"{parts.username}@" if parts.scheme == "ssh" and parts.username and not parts.password else ""
    return urlunsplit((parts.scheme, f"{user}{host}{port}", parts.path, "", ""))


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace") if path.is_file() and path.stat().st_size < LARGEST_INDEX else ""
    except OSError:
        return ""


def _resolve(folder: Path, common: Path, name: str) -> str:
    if not name.startswith("refs/") or ".." in name.split("/"):
        return ""
    for place in (folder, common):
        found = _text(place / name).strip()
        if COMMIT.fullmatch(found):
            return found
    for line in _text(common / "packed-refs").splitlines():
        commit, _, ref = line.partition(" ")
        if ref == name and COMMIT.fullmatch(commit):
            return commit
    return ""


def _origin_url(config: str) -> str:
    section = ""
    for line in config.splitlines():
        stripped = line.strip()
        if stripped.startswith("["):
            section = stripped
        elif section == '[remote "origin"]' and re.match(r"url\s*=", stripped):
            return stripped.partition("=")[2].strip().strip('"')
    return ""


def _compare(root: Path, folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Tracked files that are missing, and those whose content differs; content is read only where size or time differ."""
    missing, changed = [], []
    for entry in _index(folder / "index"):
        path = os.fsencode(root) + b"/" + os.fsencode(entry.path)
        if stat.S_IFMT(entry.mode) == SUBMODULE:
            continue
        try:
            now = os.lstat(path)
        except OSError:
            missing.append(entry.path)
            continue
        same = now.st_size & 0xFFFFFFFF == entry.size and int(now.st_mtime) & 0xFFFFFFFF == entry.mtime
        if not same and _blob(path, now, len(entry.sha)) != entry.sha:
            changed.append(entry.path)
    return tuple(missing), tuple(changed)


def _blob(path: bytes, now: os.stat_result, length: int) -> bytes:
    """The name that git gives to a file's content."""
    digest = hashlib.sha256() if length == 32 else hashlib.sha1(usedforsecurity=False)
    try:
        if stat.S_ISLNK(now.st_mode):
            content = os.readlink(path)  # noqa: PTH115 - names may be any bytes
        elif stat.S_ISREG(now.st_mode):
            with open(path, "rb") as file:  # noqa: PTH123 - names may be any bytes
                content = file.read()
        else:
            return b""
    except OSError:
        return b""
    digest.update(b"blob %d\0" % len(content) + content)
    return digest.digest()


def _index(path: Path) -> Iterator[Entry]:
    """Entries of an index of version 2 to 4; nothing for what is not one."""
    try:
        raw = path.read_bytes() if path.stat().st_size < LARGEST_INDEX else b""
        sha256 = "objectformat = sha256" in _text(path.parent / "config").lower()
        yield from _entries(raw, 32 if sha256 else 20)
    except (OSError, struct.error, ValueError, IndexError):
        return


def _entries(raw: bytes, length: int) -> Iterator[Entry]:
    magic, version, count = struct.unpack_from(">4sII", raw, 0)
    if magic != b"DIRC" or version not in (2, 3, 4):
        return
    at, last = 12, b""
    for _ in range(count):
        start = at
        mtime, mode, size = struct.unpack_from(">8xI12xI8xI", raw, at)
        sha = raw[at + 40 : at + 40 + length]
        (flags,) = struct.unpack_from(">H", raw, at + 40 + length)
        at += 42 + length + (2 if flags & 0x4000 else 0)
        if version == 4:
            cut, at = _varint(raw, at)
            end = raw.index(b"\0", at)
            name, at = last[: len(last) - cut] + raw[at:end], end + 1
            last = name
        else:
            end = raw.index(b"\0", at)
            name = raw[at:end]
            at = start + ((end - start + 8) // 8) * 8
        yield Entry(path=os.fsdecode(name), mode=mode, sha=sha, size=size, mtime=mtime)


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = raw[at] & 0x7F
    while raw[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (raw[at] & 0x7F)
    return value, at + 1
