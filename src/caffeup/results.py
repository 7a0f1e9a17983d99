"""What each command prints with ``--json``, by the type of the value; docs/schemas/ is written from it.

``python -m caffeup.results FOLDER`` writes the JSON schemas, one file a type.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

TYPES = {
    "bench": "caffeup.model.bench:BenchReport",
    "checks": "caffeup.model.outcome:Check[]",
    "clean": "caffeup.app.clean:Size[]",
    "compared": "caffeup.model.lock:Compared",
    "cuda-leaving": "caffeup.app.cuda_toolkits:Leaving",
    "cuda-reason": "caffeup.app.cuda_toolkits:Reason",
    "cuda-toolkits": "caffeup.app.cuda_toolkits:Sides",
    "differences": "caffeup.model.lock:Difference[]",
    "demo": "caffeup.model.bench:DemoReport",
    "explanation": "caffeup.model.explanation:Explanation",
    "figure": "caffeup.model.gpus:Figure",
    "figures": "caffeup.model.gpus:Figure[]",
    "findings": "caffeup.model.finding:Finding[]",
    "fixes": "caffeup.model.fix:Fix[]",
    "forks": "caffeup.facts.forks:Fork[]",
    "killed": "caffeup.model.gpus:Killed",
    "lines": "builtins:str[]",
    "machine": "caffeup.model.machine:Machine",
    "net-check": "caffeup.model.net:NetReport",
    "net-cut": "caffeup.model.net_model:CutReport",
    "net-memory": "caffeup.model.net_model:MemoryReport",
    "net-merge": "caffeup.model.net_model:MergeReport",
    "net-rewrite": "caffeup.model.net:NetRewrite",
    "net-written": "caffeup.model.net_model:Written",
    "patches": "caffeup.model.outcome:PatchEntry[]",
    "plan": "caffeup.model.plan:Plan",
    "report": "caffeup.model.outcome:Report",
    "room": "caffeup.model.gpus:Room",
    "snapshot": "caffeup.model.gpus:Snapshot",
    "titles": "builtins:str{}",
    "tune": "caffeup.model.bench:TuneReport",
}
"""Name of the schema, and the type; ``[]``: an array of it, ``{}``: an object of such values."""

COMMANDS = {
    "bench": ("bench",),
    "build": ("report",),
    "clean": ("clean", "lines"),
    "cuda list": ("cuda-toolkits",),
    "cuda remove": ("cuda-leaving",),
    "cuda why": ("cuda-reason",),
    "demo": ("demo",),
    "detect": ("machine",),
    "diagnose": ("findings",),
    "doctor": ("findings",),
    "explain": ("explanation", "titles"),
    "gpu": ("snapshot",),
    "gpu explain": ("figure", "figures"),
    "gpu free": ("room",),
    "gpu kill": ("killed",),
    "lock diff": ("compared",),
    "lock update": ("differences",),
    "lock verify": ("compared",),
    "net check": ("net-check",),
    "net classes": ("net-cut",),
    "net convert": ("net-rewrite",),
    "net draw": ("net-written",),
    "net memory": ("net-memory",),
    "net merge-bn": ("net-merge",),
    "net new": ("net-written",),
    "net revert": ("net-rewrite",),
    "net tune": ("tune",),
    "patch apply": ("patches",),
    "patch list": ("fixes",),
    "patch preview": ("patches",),
    "patch revert": ("patches",),
    "patch status": ("patches",),
    "plan": ("plan", "lines"),
    "rollback": ("checks",),
    "up": ("report", "plan", "forks"),
    "verify": ("checks",),
}
"""What may come of each command that takes ``--json``; the first is the usual."""


def type_of(name: str) -> Any:
    """The type behind a schema's name, as ``from_json`` takes it."""
    where = TYPES[name]
    module, _, kind = where.rstrip("[]{}").partition(":")
    found: Any = getattr(import_module(module), kind)
    if where.endswith("[]"):
        return tuple[found, ...]
    return dict[str, found] if where.endswith("{}") else found


def schema_text(name: str) -> str:
    """The schema as it is published: the same type gives the same bytes."""
    from caffeup.model.base import schema_of  # noqa: PLC0415

    printed = sorted(command for command, kinds in COMMANDS.items() if name in kinds)
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        "$comment": f"printed with --json by: {', '.join(f'caffeup {one}' for one in printed)}",
    }
    return json.dumps({**head, **schema_of(type_of(name))}, indent=2, ensure_ascii=False) + "\n"


def write(folder: Path) -> None:
    """One file a schema; files of schemas that are no more are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.json"):
        if old.stem not in TYPES:
            old.unlink()
    for name in TYPES:
        (folder / f"{name}.json").write_text(schema_text(name), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
