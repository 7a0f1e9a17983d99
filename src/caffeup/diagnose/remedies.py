"""What mends a fix, as commands that can be pasted."""

from __future__ import annotations

import re
import shlex

import msgspec

from caffeup.diagnose.context import Context
from caffeup.facts.distros import DistroFile
from caffeup.facts.libraries import LibraryFile, LibraryRow
from caffeup.facts.tables import Facts
from caffeup.model.finding import Remedy
from caffeup.model.fix import Advice, AnyRemedy, Edit, Fix, Install, NewFile, Setting, Shim, ShimLibrary

TREE = "TREE"
"""Stands for the tree's folder in an advice's commands and words."""

SHOWN = 3
"""Headers that are named one by one."""

_NAMED = re.compile(rf"(\bcaffeup (?:env|patch \w+|plan)) {TREE}\b")
_PIECE = re.compile(rf"\b{TREE}\b")


def remedies(fix: Fix, facts: Facts, context: Context) -> tuple[Remedy, ...]:
    """The remedies of one fix here, what caffeup does by itself first."""
    made = [_remedy(one, facts, context) for one in fix.remedy]
    done: dict[Remedy, None] = {}
    for remedy in sorted(made, key=lambda one: not one.by_caffeup):
        done[remedy] = None
    return _joined(tuple(done))


def _joined(found: tuple[Remedy, ...]) -> tuple[Remedy, ...]:
    """Remedies that are one and the same command are one remedy."""
    joined: list[Remedy] = []
    for remedy in found:
        if joined and remedy.by_caffeup and joined[-1].by_caffeup and joined[-1].commands == remedy.commands:
            joined[-1] = msgspec.structs.replace(joined[-1], text=f"{joined[-1].text}; {remedy.text}")
        else:
            joined.append(remedy)
    return tuple(joined)


def _remedy(one: AnyRemedy, facts: Facts, context: Context) -> Remedy:
    if isinstance(one, Advice):
        commands = tuple(here(command, context) for command in one.commands)
        return Remedy(text=here(one.text, context), commands=commands, by_caffeup=any(map(_ours, commands[:1])))
    if isinstance(one, Install):
        return _install(one.library, facts, context)
    return Remedy(text=_words(one), commands=(here(f"caffeup up {TREE}", context),), by_caffeup=True)


def _ours(command: str) -> bool:
    """Whether this command makes caffeup mend it (and not only look)."""
    return command.startswith("caffeup up ")


def _words(one: AnyRemedy) -> str:
    if isinstance(one, Shim):
        names = tuple(header.partition("/")[2] or header for header in one.headers)  # the first folder is the shim's own
        return f"caffeup puts its {_few(names)} before the library's own, which gives back what was removed"
    if isinstance(one, ShimLibrary):
        stand_in = f"for {one.links}" if one.links else "an empty one"
        return f"caffeup puts a stand-in for the library {one.name} into .caffeup/lib, {stand_in}"
    if isinstance(one, Edit):
        return f"caffeup makes the smallest edit that helps ({one.edit})"
    if isinstance(one, NewFile):
        return f"caffeup adds {one.target}"
    if isinstance(one, Setting):
        return f"caffeup writes into Makefile.config: {one.key} {'+=' if one.append else ':='} {one.value}"
    raise TypeError(type(one).__name__)


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= SHOWN else f"{', '.join(names[:SHOWN])} and {len(names) - SHOWN} more headers"


def here(text: str, context: Context) -> str:
    """The text with the tree that is meant."""
    if not context.tree:  # it finds a tree below the current folder by itself
        text = _NAMED.sub(r"\1", text)
    return _PIECE.sub(lambda _: _tree(context), text)


def _tree(context: Context) -> str:
    return shlex.quote(context.tree) if context.tree else "."


def _install(library: str, facts: Facts, context: Context) -> Remedy:
    rows: LibraryFile = facts.reader.table("libraries", LibraryFile)
    distros: DistroFile = facts.reader.table("distros", DistroFile)
    row = next((one for one in rows.library if one.id == library), None)
    title = row.title if row else library
    family = distros.distro_of(context.distro, context.distro_like)
    if row is not None and family is not None:
        names = row.packages_on(family.id, context.distro, context.distro_version, context.versions.get("python"))
        if names:
            command = _for_people(distros.manager_named(family.manager).install)
            return Remedy(text=f"install {title}", commands=(shlex.join(("sudo", *command, *names)),))
    return Remedy(text=f"install {title}{_everywhere(row)}")


def _for_people(words: tuple[str, ...]) -> list[str]:
    """The command as a person types it, who answers questions and needs no settings for that."""
    kept: list[str] = []
    for before, word in zip(("", *words), words):
        if before != "-o" and word not in {"-o", "-q", "-y", "--yes", "--assumeyes", "--noconfirm", "--non-interactive"}:
            kept.append(word)
    return kept


def _everywhere(row: LibraryRow | None) -> str:
    """The package's name by family, for a log whose distribution is not known."""
    if row is None:
        return ""
    named = {entry.family: " ".join(entry.names) for entry in reversed(row.packages) if not entry.distro and not entry.python}
    return f" ({', '.join(f'{family}: {names}' for family, names in sorted(named.items()))})" if named else ""
