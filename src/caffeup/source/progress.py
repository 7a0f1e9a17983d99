"""What a fetch tells about itself while it goes on."""

from __future__ import annotations

from typing import Callable

Progress = Callable[[str, int, int], None]
"""Called with what goes on (``receiving``), how much is done, and of how much; 0 where that is not known."""


def silent(_what: str, _done: int, _total: int) -> None:
    """Say nothing."""
