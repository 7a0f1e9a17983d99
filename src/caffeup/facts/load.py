"""Reads the tables of facts: ours, and the user's extra folders merged over them by row id."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from caffeup.errors import UsageError
from caffeup.facts.tables import Facts
from caffeup.model.base import from_toml
from caffeup.model.fix import Fix

R = TypeVar("R", bound=msgspec.Struct)
HERE = Path(__file__).parent


def load_facts(extra: tuple[str, ...] = ()) -> Facts:
    """The facts, with the TOML files of ``extra`` folders merged in; tables are read when first asked."""
    for folder in extra:
        if not Path(folder).is_dir():
            raise UsageError(f"no folder of facts: {folder}")
    return Facts(reader=FileReader((HERE, *(Path(folder) for folder in extra))))


class FileReader:
    """Reads one table at a time from folders; a later folder's row replaces the row with its id, or is added."""

    def __init__(self, folders: tuple[Path, ...]) -> None:
        self._folders = folders

    def table(self, name: str, kind: type[R]) -> R:
        """The table ``name``.toml of all folders; ``UsageError`` for what cannot be read as one."""
        merged = kind()
        for folder in self._folders:
            path = folder / f"{name}.toml"
            if path.is_file():
                merged = merge(merged, _decode(path, kind))
        return merged

    def fixes(self) -> tuple[Fix, ...]:
        """All of fixes/*.toml, by id; a file's name is its row's id."""
        found: dict[str, Fix] = {}
        for folder in self._folders:
            for path in (folder / "fixes").glob("*.toml"):
                row = _decode(path, Fix)
                if f"{row.id}.toml" != path.name:
                    raise UsageError(f"the fix {row.id!r} stands in {path.name}: name the file {row.id}.toml")
                found[row.id] = row
        return tuple(found[name] for name in sorted(found))


def merge(ours: R, theirs: R) -> R:
    """Both, field by field; rows with the same id are replaced in place, new ones go to the end."""
    changed: dict[str, Any] = {}
    for field in type(ours).__struct_fields__:
        rows = {row.id: row for row in getattr(ours, field)}
        added = getattr(theirs, field)
        if len({row.id for row in added}) != len(added):
            raise UsageError(f"a row of [[{field}]] stands twice")
        rows.update((row.id, row) for row in added)
        changed[field] = tuple(rows.values())
    return msgspec.structs.replace(ours, **changed)


def _decode(path: Path, kind: type[R]) -> R:
    try:
        return from_toml(path.read_bytes(), kind)
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        raise UsageError(f"cannot read the facts in {path}", details=str(error)) from error
