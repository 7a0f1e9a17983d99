"""A machine of a few files, made for one test; played back like those under tests/machines/."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Optional

import tomli_w

from fakehost import FakeHost

EMPTY = ""


def small_machine(
    folder: Path,
    files: Mapping[str, str],
    *,
    env: Optional[Mapping[str, str]] = None,
    commands: str = "",
    unreadable: tuple[str, ...] = (),
    own_prefix: str = "",
) -> FakeHost:
    """``files``: content by absolute path; ``-> target`` makes a link, a path ending in ``*`` an executable, in ``/`` a folder."""
    for path, content in files.items():
        place = folder / "root" / path.strip("/*")
        if path.endswith("/"):
            place.mkdir(parents=True, exist_ok=True)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if content.startswith("-> "):
            target = content[3:]
            place.symlink_to(os.path.relpath(folder / "root" / target[1:], place.parent) if target.startswith("/") else target)
            continue
        place.write_text(content)
        if path.endswith("*"):
            place.chmod(0o755)
    (folder / "root").mkdir(parents=True, exist_ok=True)
    (folder / "commands").mkdir(exist_ok=True)
    (folder / "commands" / "all.txt").write_text(commands)
    own = {"own": {"prefix": own_prefix}} if own_prefix else {}
    record = {"title": "small", "origin": "hand-made", "env": dict(env or {}), "unreadable": list(unreadable), **own}
    (folder / "machine.toml").write_text(tomli_w.dumps(record))
    return FakeHost(folder)
