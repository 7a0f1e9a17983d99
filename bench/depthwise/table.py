"""Prints the measurements of `bench --json` and torch_times.py as one table, and the layers that miss a bound."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

DIRECTIONS = ("forward", "backward data", "backward weights")


def bound(row: dict[str, Any]) -> float:
    """The time allowed: 1.25 x the bytes at the copy rate; at batch 1, 1.5 x the copy of the input and one launch."""
    return float(1.5 * row["copy"] + row["launch"] if row["batch"] == 1 else 1.25 * row["bound"])


def line(row: dict[str, Any]) -> str:
    """One layer; for each direction the time, its ratio to the bytes at the copy rate, and how many times slower others are."""
    cells = []
    for i in range(3):
        ours = row["ours"][i]
        others = [f"{row[name][i] / ours:5.1f}" if any(row.get(name, [0])) else "    -" for name in ("torch", "cudnn")]
        miss = " " if ours <= bound(row) else "*"
        cells.append(f"{ours:7.2f}{miss}{ours / row['bound']:5.2f} {others[0]} {others[1]}")
    shape = f"{row['net']:7s}{row['layer']:13s}{row['channels']:5d} x{row['size']:4d} k{row['kernel']} s{row['stride']}"
    return f"{shape} {row['copy']:7.2f} {row['bound']:7.2f} | " + " | ".join(cells)


def main() -> None:
    """The table of the file named on the command line."""
    rows = [json.loads(text) for text in Path(sys.argv[1]).read_text().splitlines()]
    for batch in sorted({row["batch"] for row in rows}, reverse=True):
        print(f"batch {batch}, us; per direction: time (* over its bound), ratio to bytes at the copy rate,")
        print("how many times slower PyTorch and cuDNN are")
        print(f"{'layer':37s} {'copy':>6s} {'bytes':>7s} | " + " | ".join(f"{name:24s}" for name in DIRECTIONS))
        chosen = [row for row in rows if row["batch"] == batch]
        for row in chosen:
            print(line(row))
        for i, name in enumerate(DIRECTIONS):
            missed = sum(row["ours"][i] > bound(row) for row in chosen)
            others = [(row, other) for row in chosen for other in ("torch", "cudnn") if any(row.get(other, [0]))]
            slower = sum(row["ours"][i] > row[other][i] for row, other in others)
            print(f"{name}: {missed} of {len(chosen)} over the bound, slower than another library {slower} times")


if __name__ == "__main__":
    main()
