"""docs/schemas/: current, and what the commands print with ``--json`` keeps to them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest
import typer.main

from caffeup.app.session import Session
from caffeup.cli.main import app, main
from caffeup.model.base import from_json
from caffeup.model.machine import Machine
from caffeup.results import COMMANDS, TYPES, schema_text, type_of, write

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
SCHEMAS = ROOT / "docs" / "schemas"
MACHINE = from_json((TESTS / "machines" / "debian12-no-gpu" / "expected" / "machine.json").read_bytes(), Machine)
NET = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 8 dim: 9 dim: 9 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param { num_output: 8 group: 8 kernel_size: 3 } }
"""
KINDS: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None),
}  # fmt: skip


def leaves(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every command, by its words."""
    for name, command in group.commands.items():
        words = f"{path} {name}".strip()
        yield words, command
        if hasattr(command, "commands"):
            yield from leaves(command, words)


def takes_json(command: Any) -> bool:
    return any("--json" in one.opts for one in command.params)


def faults(value: Any, schema: dict[str, Any], root: dict[str, Any], where: str = "$") -> list[str]:
    """What is wrong with a value by those words of JSON Schema that stand in ours; other words are a fault too."""
    notes = {"title", "description", "default", "discriminator", "$defs", "$schema", "$comment"}
    known = {"type", "enum", "$ref", "anyOf", "items", "prefixItems", "minItems", "maxItems", "properties", "required"}
    strange = schema.keys() - notes - known - {"additionalProperties"}
    found = [f"{where}: the schema has {sorted(strange)}"] if strange else []
    if "$ref" in schema:
        return faults(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, where)
    if "anyOf" in schema:
        each = [faults(value, one, root, where) for one in schema["anyOf"]]
        return [] if [] in each else [f"{where}: none of {len(each)} fits: {min(each, key=len)}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where}: {value!r} is none of {schema['enum']}"]
    if "type" in schema and (
        not isinstance(value, KINDS[schema["type"]]) or (isinstance(value, bool) and schema["type"] != "boolean")
    ):
        return [f"{where}: {value!r} is no {schema['type']}"]
    if isinstance(value, dict):
        for name in schema.get("required", ()):
            found += [] if name in value else [f"{where}: {name} is missing"]
        for name, one in value.items():
            own = schema.get("properties", {}).get(name, schema.get("additionalProperties", True))
            if own is False:
                found.append(f"{where}: {name} is not in the schema")
            elif isinstance(own, dict):
                found += faults(one, own, root, f"{where}.{name}")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(f"{where}: {len(value)} items")
        head = schema.get("prefixItems", [])
        for at, one in enumerate(value):
            own = head[at] if at < len(head) else schema.get("items", True)
            if isinstance(own, dict):
                found += faults(one, own, root, f"{where}[{at}]")
    return found


def published(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    return schema


@pytest.mark.parametrize("name", sorted(TYPES))
def test_the_published_schema_is_current(name: str, golden: Callable[[Path, str], None]) -> None:
    """Written anew by ``pytest --bless`` or ``python -m caffeup.results docs/schemas``."""
    golden(SCHEMAS / f"{name}.json", schema_text(name))


def test_nothing_else_is_published(tmp_path: Path) -> None:
    assert {path.stem for path in SCHEMAS.glob("*.json")} == set(TYPES)
    (tmp_path / "gone.json").touch()
    write(tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == set(TYPES)


def test_every_command_with_json_has_a_schema() -> None:
    """A new one needs a row in caffeup/results.py."""
    printing = {words for words, command in leaves(typer.main.get_command(app)) if takes_json(command)}
    assert printing == set(COMMANDS)
    assert {kind for kinds in COMMANDS.values() for kind in kinds} == set(TYPES)


def test_the_checker_sees_faults() -> None:
    schema = published("plan")
    good = {"tree": "/t", "fork": "bvlc", "request": {}, "gpu": False}
    assert faults(good, schema, schema) == []
    for bad in (
        {**good, "gpu": 1},
        {**good, "word": 1},
        {"tree": "/t"},
        {**good, "sass": [[8]]},
        {**good, "request": {"cudnn": "x"}},
    ):
        assert faults(bad, schema, schema)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(Session, "machine", lambda *_named: MACHINE)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(TESTS / "trees" / "tiny", tmp_path / "tiny")
    (tmp_path / "net.prototxt").write_text(NET)
    return tmp_path / "tiny"


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ("machine", "detect"),
        ("findings", "doctor"),
        ("findings", "doctor tiny"),
        ("plan", "plan tiny"),
        ("plan", "up tiny --dry-run"),
        ("lines", "plan tiny --explain mode"),
        ("lines", "plan tiny --why-not 8.6"),
        ("forks", "up --list"),
        ("fixes", "patch list --all"),
        ("patches", "patch preview tiny"),
        ("patches", "patch status tiny"),
        ("findings", "diagnose {logs}/opencv4-c-constants/gcc7.log"),
        ("findings", "diagnose {logs}/arch-too-old/{first}"),
        ("explanation", "explain gpu-dropped"),
        ("explanation", "explain opencv4-c-constants"),
        ("titles", "explain"),
        ("clean", "clean tiny"),
        ("snapshot", "gpu"),
        ("figures", "gpu explain"),
        ("figure", "gpu explain utilization"),
        ("net-check", "net check net.prototxt"),
        ("net-rewrite", "net convert net.prototxt -o out.prototxt"),
        ("net-memory", "net memory net.prototxt"),
        ("net-written", "net new mobilenet-ssd -o new.prototxt"),
        ("net-written", "net draw net.prototxt -o net.svg"),
    ],
)
def test_what_is_printed_keeps_to_its_schema(schema: str, arguments: str, tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = min(path.name for path in (TESTS / "logs" / "arch-too-old").iterdir())
    words = arguments.format(logs=TESTS / "logs", first=first).split()
    main([*words, "--json"])
    text = capsys.readouterr().out
    value = json.loads(text)
    rules = published(schema)
    assert faults(value, rules, rules) == []
    from_json(text, type_of(schema))


@pytest.mark.parametrize("name", sorted(TYPES))
def test_the_values_of_the_schema_say_which_form_they_have(name: str) -> None:
    """A reader can tell a newer form: what is an object and a report of its own has ``schema``."""
    kind = type_of(name)
    fields = getattr(kind, "__struct_fields__", None)
    if fields is not None and name not in {"figure", "room"}:
        assert "schema" in fields
