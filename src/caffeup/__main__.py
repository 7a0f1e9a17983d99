"""``python -m caffeup``, and the program of that name."""

from __future__ import annotations

import sys


def start() -> None:
    """Run it; Ctrl-C counts from the first moment."""
    try:
        from caffeup.cli.main import run  # noqa: PLC0415  # what takes long to load is loaded where Ctrl-C is caught

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    start()
