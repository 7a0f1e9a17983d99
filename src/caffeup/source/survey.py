"""One walk over a tree, and one reading of each file that a marker names. Nothing of the tree is run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Optional

from caffeup.model.fix import Marker

SKIPPED = frozenset({".git", ".caffeup", ".hg", ".svn", "node_modules", "__pycache__"})
LARGEST = 4 << 20
"""Markers are sought in sources; what is larger is data."""
MOST_FILES = 200_000


class Survey:
    """Names of all files of a tree (relative, with ``/``), and answers about markers."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: list[str] = []
        self.folders: list[str] = []
        self.links: list[str] = []
        """Symbolic links; they are among the files too, also those to folders, which are not entered."""
        self.unreadable: list[str] = []
        self.cut = False
        """Whether there were more files than anybody's Caffe has, so that the walk ended early."""
        self._content: dict[str, Optional[bytes]] = {}
        self._answers: dict[Marker, bool] = {}
        self._walk()

    def read(self, name: str) -> Optional[bytes]:
        """A file's bytes, read once; None where it is absent, unreadable, no plain file or too large."""
        if name not in self._content:
            self._content[name] = self._load(name)
        return self._content[name]

    def text(self, name: str) -> Optional[str]:
        """A file as text, undecodable bytes replaced."""
        content = self.read(name)
        return None if content is None else content.decode("utf-8", "replace")

    def has(self, name: str) -> bool:
        """Whether there is such a file or folder."""
        return (self.root / name).exists()

    def holds(self, marker: Marker) -> bool:
        """Whether the marker stands in the tree."""
        if marker not in self._answers:
            self._answers[marker] = self._find(marker)
        return self._answers[marker]

    def that_hold(self, markers: Iterable[Marker]) -> tuple[str, ...]:
        """The markers that stand in the tree, as text, sorted."""
        return tuple(sorted({str(one) for one in markers if self.holds(one)}))

    def matching(self, pattern: str) -> list[str]:
        """Files that fit a pattern: ``*`` within one name, ``**`` over folders."""
        if "*" not in pattern and "?" not in pattern:
            return [pattern] if self.has(pattern) else []
        fits = re.compile(_regex(pattern)).fullmatch
        return [name for name in self.files if fits(name)]

    def _find(self, marker: Marker) -> bool:
        if not _stays_inside(marker.file):
            return False
        names = self.matching(marker.file)
        if not marker.contains:
            return bool(names)
        wanted = marker.contains.encode()
        return any(wanted in (self.read(name) or b"") for name in names)

    def _load(self, name: str) -> Optional[bytes]:
        path = self.root / name
        try:
            if not path.is_file() or path.stat().st_size > LARGEST:
                return None
            return path.read_bytes()
        except OSError:
            self.unreadable.append(name)
            return None

    def _walk(self) -> None:
        pending = [("", str(self.root))]
        while pending:
            prefix, folder = pending.pop()
            try:
                with os.scandir(folder) as entries:
                    found = sorted(entries, key=lambda entry: entry.name)
            except OSError:
                self.unreadable.append(prefix.rstrip("/") or ".")
                continue
            for entry in found:
                name = f"{prefix}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    self.folders.append(name)
                    if entry.name not in SKIPPED:
                        pending.append((f"{name}/", entry.path))
                else:
                    self.files.append(name)
                    if entry.is_symlink():
                        self.links.append(name)
            if len(self.files) > MOST_FILES:
                self.cut = True
                return


def _stays_inside(pattern: str) -> bool:
    return not pattern.startswith("/") and ".." not in pattern.split("/")


def _regex(pattern: str) -> str:
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    turned = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(turned.get(piece, re.escape(piece)) for piece in pieces)
