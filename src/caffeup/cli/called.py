"""What the person types to call this program: ``caffeup``, or the script of a checkout."""

from __future__ import annotations

import os


def name() -> str:
    """As the bootstrap script says; ``caffeup`` where it was installed."""
    return os.environ.get("CAFFEUP_COMMAND") or "caffeup"


def as_typed(command: str) -> str:
    """A command to paste, with the name that works for this person."""
    return f"{name()}{command.removeprefix('caffeup')}" if command.startswith("caffeup ") else command
