"""Everything that must hold before a change goes in: lint, types, unit tests, and with --real a real Caffe."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent

STEPS: dict[str, list[object]] = {
    "lint": [BIN / "ruff", "check", "."],
    "format": [BIN / "ruff", "format", "--check", "."],
    "types": [BIN / "mypy"],
    "tests": [BIN / "python", "-m", "pytest", "-q", "-n", "auto", "tests/unit"],
}
ABOUT = {"types": "mypy reads all code; a minute or two without a word", "tests": "all unit tests; minutes"}
"""Of steps that are silent for long."""
REAL: dict[str, list[object]] = {"real builds": [BIN / "python", "-m", "pytest", "-q", "-s", "tests/real"]}


def main(arguments: list[str]) -> int:
    """Run all steps, also after one failed; say which failed."""
    if set(arguments) - {"--real", "--yes", "-y"}:
        sys.stderr.write("usage: caffeup.sh test [--real]\n")
        return 2
    steps = {**STEPS, **(REAL if "--real" in arguments else {})}
    env = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    failed = []
    for name, command in steps.items():
        sys.stdout.write(f"== {name}{': ' if name in ABOUT else ''}{ABOUT.get(name, '')}\n")
        sys.stdout.flush()
        start = time.monotonic()
        try:
            status = subprocess.call([str(word) for word in command], cwd=ROOT, env=env)
        except KeyboardInterrupt:
            sys.stdout.write(f"\n== {name}: stopped after {time.monotonic() - start:.0f} s\n")
            return 130
        if status:
            failed.append(name)
        sys.stdout.write(f"== {name}: {'failed' if name in failed else 'passed'} in {time.monotonic() - start:.0f} s\n")
    sys.stdout.write(f"failed: {', '.join(failed)}\n" if failed else "all passed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
