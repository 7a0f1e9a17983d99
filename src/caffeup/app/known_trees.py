"""The trees that caffeup has built for this user, wherever they lie: a list in the user's state folder."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Optional

import msgspec

from caffeup.app.session import looks_like_a_tree
from caffeup.disk import read_plain, write_atomically
from caffeup.model.base import Value, from_json, to_json

_MOST = 500


class Known(Value, kw_only=True):
    """Folders of trees, the newest last."""

    trees: tuple[str, ...] = ()


def known_trees(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Those that are still there."""
    return tuple(Path(one) for one in _read(env).trees if looks_like_a_tree(Path(one)))


def remember_tree(env: Mapping[str, str], root: Path) -> None:
    """Add a tree to the list; a list that cannot be written stops nothing."""
    place = _place(env)
    if place is None:
        return
    before = _read(env).trees
    if before[-1:] == (str(root),):
        return
    now = (*(one for one in before if one != str(root) and looks_like_a_tree(Path(one))), str(root))
    with suppress(OSError):
        write_atomically(place, to_json(Known(trees=now[-_MOST:])))


def _read(env: Mapping[str, str]) -> Known:
    place = _place(env)
    if place is not None:
        with suppress(OSError, msgspec.MsgspecError, ValueError):
            found = from_json(read_plain(place), Known)
            return msgspec.structs.replace(found, trees=tuple(one for one in found.trees if one.startswith("/")))
    return Known()


def _place(env: Mapping[str, str]) -> Optional[Path]:
    home = env.get("HOME", "")
    state = env.get("XDG_STATE_HOME", "")
    if not state.startswith("/"):
        state = f"{home}/.local/state" if home.startswith("/") else ""
    return Path(state, "caffeup", "trees.json") if state else None
