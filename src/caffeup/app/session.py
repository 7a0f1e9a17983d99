"""What every command starts from: host, facts, and the tree and request that are meant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Optional

from caffeup.app.state import FOLDER, load_state
from caffeup.disk import as_path
from caffeup.errors import SourceError, UsageError
from caffeup.facts.load import load_facts
from caffeup.facts.tables import Facts
from caffeup.host import Host, RealHost
from caffeup.model.machine import Machine
from caffeup.model.plan import Plan, Request
from caffeup.model.tree import Tree


class Session:
    """Host and facts, made once; machine, tree and plan on demand."""

    def __init__(self, host: Optional[Host] = None, facts: Optional[Facts] = None) -> None:
        self.host: Host = host or RealHost()
        self.facts = facts or load_facts()

    def machine(self, prefixes: tuple[str, ...] = (), python: str = "", cuda: str = "") -> Machine:
        """Everything detected on this machine; ``python`` and ``cuda`` are what the user named, wherever they are."""
        from caffeup.detect.machine import detect  # noqa: PLC0415  # not every command needs every probe

        return detect(self.host, self.facts, prefixes, python, cuda)

    def tree(self, root: Path) -> Tree:
        """What the tree in this folder is; raise ``SourceError`` where it is not a Caffe tree."""
        from caffeup.source.inspect import inspect  # noqa: PLC0415

        if any("\udc80" <= char <= "\udcff" for char in str(root)):
            raise SourceError(
                f"The path of this tree is no UTF-8 text: {os.fsencode(root)!r}.",
                advice="Neither JSON nor a Makefile.config can name it: rename the folder.",
            )
        return inspect(root, self.facts)

    def plan(self, machine: Machine, tree: Tree, request: Request) -> Plan:
        """Every decision."""
        from caffeup.plan.make import make_plan  # noqa: PLC0415

        if request.force:
            from caffeup.app.explaining import require_known  # noqa: PLC0415

            require_known(request.force, self.facts)
        return make_plan(machine, tree, request, self.facts)


def looks_like_a_tree(folder: Path) -> bool:
    """Whether a folder is meant when no tree is named."""
    return (folder / "src" / "caffe").is_dir() or (folder / FOLDER / "origin.json").is_file()


def require_tree(folder: Path) -> None:
    """Raise ``SourceError`` for a folder that is no tree, and in which caffeup never was."""
    if not looks_like_a_tree(folder) and not (folder / FOLDER).is_dir():
        raise SourceError(f"{folder} is not a Caffe tree.", advice="Name the folder that holds src/caffe.")


def find_tree(named: str) -> Path:
    """The tree that is meant: the one named, the current folder, or the only one right below it."""
    if named:
        folder = as_path(named)
        if not folder.is_dir():
            raise _no_folder(named)
        return folder.absolute()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if looks_like_a_tree(folder):
            return folder
    below = [folder for folder in sorted(here.glob("*")) if folder.is_dir() and looks_like_a_tree(folder)]
    if len(below) == 1:
        return below[0]
    if below:
        raise UsageError(
            "There are several trees here; name the one you mean.", details="\n".join(str(folder.name) for folder in below)
        )
    raise SourceError("There is no Caffe tree here.", advice="Name its folder, or get one:", commands=("caffeup up",))


def _no_folder(name: str) -> SourceError:
    """A name of the catalogue is no folder, but what is meant can be had."""
    from caffeup.source.catalogue import named  # noqa: PLC0415

    if named(name.partition("@")[0], load_facts()) is None:
        return SourceError(f"There is no folder {name}.")
    return SourceError(
        f"There is no folder {name}; it is the name of a tree that can be fetched.",
        advice="What would be done with it, and fetching it:",
        commands=(f"caffeup up {name} --dry-run", f"caffeup up {name}"),
    )


def remembered_request(root: Path) -> Request:
    """What was asked for when this tree was last built; the defaults where it never was."""
    return load_state(root).request or Request(source=str(root))
