"""How long the quick commands take, as whole processes: median of several runs after one warm-up.

Usage: python bench/commands.py [TREE]      (TREE: a Caffe tree, for plan and patch; its files are not changed)
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 7


def seconds(command: list[str]) -> list[float]:
    """Wall-clock seconds of each counted run; a failing command (other than "has conflicts") ends the bench."""
    taken = []
    for run in range(RUNS + 1):
        begun = time.perf_counter()
        status = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        if status.returncode not in {0, 3}:
            sys.exit(f"{' '.join(command)}: {status.stderr.decode()}")
        if run:
            taken.append(time.perf_counter() - begun)
    return taken


def main(arguments: list[str]) -> None:
    """Print a row a command: median, fastest, slowest."""
    caffeup = [sys.executable, "-I", "-m", "caffeup"]
    rows = {"--help": ["--help"], "detect": ["detect", "--json"]}
    if arguments:
        rows["plan"] = ["plan", arguments[0], "--json"]
        rows["patch preview"] = ["patch", "preview", arguments[0]]
    for name, words in rows.items():
        taken = seconds([*caffeup, *words])
        print(f"{name:<14} median {statistics.median(taken):.3f} s   min {min(taken):.3f}   max {max(taken):.3f}")


if __name__ == "__main__":
    main(sys.argv[1:])
