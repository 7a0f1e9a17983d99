"""Where templates/ and patches/ are: inside the wheel, or at the top of a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def bundled(name: str) -> Path:
    """Folder ``templates`` or ``patches``; raise ``FileNotFoundError`` naming both places where neither has it."""
    places = (_PACKAGE / "_bundle" / name, _PACKAGE.parents[1] / name)
    for place in places:
        if place.is_dir():
            return place
    raise FileNotFoundError(f"caffeup's own {name} are missing; looked in {places[0]} and {places[1]}")
