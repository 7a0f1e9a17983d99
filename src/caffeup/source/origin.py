"""Where a tree came from: ``.caffeup/origin.json``, what git says, or just the folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Optional

import msgspec

from caffeup.disk import read_plain, write_atomically
from caffeup.model.base import from_json, to_json
from caffeup.model.tree import Origin
from caffeup.source.checkout import Checkout, git_folder

OURS = ".caffeup"
FILE = "origin.json"
HIDDEN = ("/.caffeup/", "/Makefile.config", "/Makefile.config.before-caffeup")


def recorded_origin(root: Path) -> Optional[Origin]:
    """What was written when caffeup fetched the tree; None where it did not, or the file is damaged."""
    try:
        return from_json(read_plain(root / OURS / FILE), Origin)
    except (OSError, msgspec.MsgspecError, ValueError):
        return None


def told(origin: Origin) -> str:
    """In words: ``https://… 89380f1d4e``, ``brocolli-caffe 9.0.2 (package index, sha256 c6410cc60bdd…)``."""
    digest = f"sha256 {origin.sha256[:12]}…" if origin.sha256 else ""
    if origin.kind == "sdist":
        return f"{origin.branch or origin.url} ({', '.join(word for word in ('package index', digest) if word)})"
    where = origin.url or origin.kind
    return f"{where} ({digest})" if digest else f"{where} {origin.commit[:10]}".rstrip()


def origin_of(root: Path, checkout: Optional[Checkout]) -> Origin:
    """The recorded origin brought up to date with the checkout, or what the checkout alone says."""
    recorded = recorded_origin(root)
    if checkout is None:
        return recorded or Origin(kind="folder")
    if recorded is None:
        return Origin(kind="git", url=checkout.url, branch=checkout.branch, commit=checkout.commit, dirty=checkout.dirty)
    if recorded.kind != "git":
        return msgspec.structs.replace(recorded, dirty=checkout.dirty)
    return msgspec.structs.replace(
        recorded, commit=checkout.commit or recorded.commit, branch=checkout.branch or recorded.branch, dirty=checkout.dirty
    )


def write_origin(root: Path, origin: Origin) -> None:
    """Record the origin, and hide caffeup's folder from the tree's ``git status``."""
    write_atomically(root / OURS / FILE, to_json(origin))
    hide_from_git(root)


def hide_from_git(root: Path) -> None:
    """Name our files in ``.git/info/exclude``: the tracked .gitignore stays as it is."""
    folder = git_folder(root)
    if folder is None:
        return
    common = folder / "commondir"
    if common.is_file():
        folder = (folder / common.read_text("utf-8").strip()).resolve()
    exclude = folder / "info" / "exclude"
    try:
        text = exclude.read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        text = ""
    wanted = [line for line in HIDDEN if not re.search(rf"^{re.escape(line)}\s*$", text, re.MULTILINE)]
    if not wanted:
        return
    if text and not text.endswith("\n"):
        text += "\n"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_bytes((text + "# caffeup's\n" + "\n".join(wanted) + "\n").encode("utf-8", "surrogateescape"))
