"""Commands as this person can type them: the program's name, the way to become root; and what the terminal can."""

from __future__ import annotations

import os
import re
import shutil

# The program as a command, in a shell's quotes or in a sentence; not its name alone, and not the end of a path.
_COMMANDS = (
    "up detect doctor plan configure patch build verify bench demo diagnose explain export run gpu net env clean "
    "lock cuda rollback"
)
_OURS = re.compile(rf"(?<![\w./-])caffeup(?= (?:(?:{_COMMANDS.replace(' ', '|')})(?![\w-])|--\w))")


def name() -> str:
    """As the bootstrap script says; ``caffeup`` where it was installed."""
    return os.environ.get("CAFFEUP_COMMAND") or "caffeup"


def of_checkout() -> bool:
    """Whether the bootstrap script of a checkout was called: it has a command more, which is not in the program."""
    return bool(os.environ.get("CAFFEUP_COMMAND"))


def as_typed(command: str) -> str:
    """A command to paste, or a sentence with one in it, with the name that works for this person."""
    return _OURS.sub(lambda _: name(), command)


def prompted(command: str) -> str:
    """A command behind the prompt of who has to type it: ``$ sudo apt-get …``; where there is no sudo, ``as root: apt-get …``."""
    steps = command.split(" && ")
    if not any(step.startswith("sudo ") for step in steps) or _has_sudo():
        return f"$ {as_typed(command)}"
    plain = " && ".join(step.removeprefix("sudo ") for step in steps)
    return f"$ {plain}" if os.geteuid() == 0 else f"as root: {plain}"


def draws() -> bool:
    """Whether the terminal takes the signs that draw a line anew."""
    return os.environ.get("TERM", "dumb") != "dumb"


def _has_sudo() -> bool:
    return os.geteuid() != 0 and shutil.which("sudo") is not None
