"""Edits as one patch that fits its files to the byte."""

from __future__ import annotations

import difflib


def patch_of(files: tuple[tuple[str, bytes, bytes], ...]) -> bytes:
    """A unified diff of these files: path, what stood there, what shall."""
    parts: list[bytes] = []
    for path, before, after in sorted(files):
        name = path.encode("utf-8", "surrogateescape")
        lines = difflib.diff_bytes(difflib.unified_diff, _lines(before), _lines(after), b"a/" + name, b"b/" + name)
        parts += [line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in lines]
    return b"".join(parts)


def _lines(data: bytes) -> list[bytes]:
    """Lines with their ends; only a line feed ends one."""
    whole = [line + b"\n" for line in data.split(b"\n")]
    last = whole.pop()[:-1]
    return [*whole, last] if last else whole
