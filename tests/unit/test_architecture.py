"""The laws of the house, checked on the code itself."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "caffeup"
MODULES = sorted(path for path in SOURCE.rglob("*.py"))

# What each part may import of caffeup itself; a part not named here may import anything but cli.
MAY_IMPORT = {
    "model": {"model"},
    "errors": {"model"},
    "bundle": set(),
    "facts": {"model", "facts", "errors"},
    "host": {"model", "driver_query"},
    "driver_query": {"model"},
    "gpu_query": set(),
    "cuda_query": set(),
    "driver_child": {"model", "host"},
    "live": {"model", "driver_child"},
    "gpu": {"model", "facts", "gpu"},
    "recording": {"model", "host", "transcript"},
    "transcript": {"model", "host"},
    "disk": {"errors"},
    "stream": {"model", "errors"},
    "passthrough": {"model", "errors"},
    "detect": {"model", "facts", "host", "detect", "errors"},
    "plan": {"model", "facts", "plan"},
    "render": {"model", "facts", "bundle", "errors", "render"},
    "lock": {"model", "facts", "errors", "lock"},
    "diagnose": {"model", "facts", "diagnose"},
    "net": {"model", "facts", "errors", "net"},
    "export": {"model", "facts", "errors", "export"},
    "bench": {"model", "errors", "net", "gpu", "bench"},
}
PURE = ("model", "facts", "plan", "diagnose", "detect/parse", "gpu/", "bench/", "lock/", "export/")
TOUCHES_DISK = {"open", "read_text", "read_bytes", "write_text", "write_bytes", "exists", "is_file", "is_dir", "mkdir", "unlink"}


def part_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("caffeup"):
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("caffeup.")}
    return found - {"__version__"}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_downward(path: Path) -> None:
    allowed = MAY_IMPORT.get(part_of(path))
    names = imported(path)
    if allowed is not None:
        assert names <= allowed, f"{path.name} imports {sorted(names - allowed)}"
    elif part_of(path) not in {"cli", "__main__"}:
        assert "cli" not in names


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_pure_parts_touch_no_disk(path: Path) -> None:
    where = path.relative_to(SOURCE).as_posix()
    if not where.startswith(PURE) or where == "facts/load.py":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            assert name not in TOUCHES_DISK, f"{where}:{node.lineno} calls {name}"


def test_exit_codes_are_unique() -> None:
    from caffeup import errors

    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.CaffeupError)]
    codes = [kind.exit_code for kind in kinds] + [errors.BUG, errors.INTERRUPTED]
    assert len(codes) == len(set(codes))
