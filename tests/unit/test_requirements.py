"""What src/ imports is what pyproject.toml asks for, or an installation lacks it where a checkout has it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "src" / "caffeup").rglob("*.py"))
IMPORTED_BY_MSGSPEC = {("toml", "encode"): "tomli_w", ("yaml", "encode"): "yaml", ("yaml", "decode"): "yaml"}
"""What msgspec imports only when it is called; it asks for none of it."""


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared() -> frozenset[str]:
    lines = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    return frozenset(plain(re.match(r"[\w.-]+", line)[0]) for line in lines)  # type: ignore[index]


@cache
def allowed() -> frozenset[str]:
    return frozenset(("caffeup", "__future__", *(module for name in declared() for module in modules_of(name))))


def modules_of(name: str) -> Iterator[str]:
    try:
        files = distribution(name).files or ()
    except PackageNotFoundError:  # only for another Python
        yield name.replace("-", "_")
        return
    for file in files:
        first = file.parts[0]
        yield first.partition(".")[0] if len(file.parts) == 1 else first


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            whole: Any = node.value
            if isinstance(whole.value, ast.Name) and whole.value.id == "msgspec":
                yield IMPORTED_BY_MSGSPEC.get((whole.attr, node.attr), "msgspec")


def standard(name: str) -> bool:
    names = getattr(sys, "stdlib_module_names", None)
    if names is not None:
        return name in names
    spec = find_spec(name)
    return spec is not None and "site-packages" not in str(spec.origin)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_every_import_is_of_a_declared_dependency(path: Path) -> None:
    strange = {name for name in imported(path) if name not in allowed() and not standard(name)}
    assert not strange


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_the_lock_files_have_every_dependency(lock: str) -> None:
    locked = {plain(name) for name in re.findall(r"^([\w.-]+)==", (ROOT / lock).read_text(), re.MULTILINE)}
    assert declared() <= locked


def test_a_call_of_msgspec_that_imports_more_is_seen(tmp_path: Path) -> None:
    code = tmp_path / "a.py"
    code.write_text("import msgspec\nprint(msgspec.toml.encode({}), msgspec.json.encode({}))\n")
    assert set(imported(code)) == {"msgspec", "tomli_w"}
