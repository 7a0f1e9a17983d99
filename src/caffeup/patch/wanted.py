"""From a plan to the entries of the patch list: what each would put where."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Optional, Union

from caffeup.bundle import bundled
from caffeup.errors import PatchFailed
from caffeup.facts.tables import Facts
from caffeup.model.fix import Edit, Fix, NewFile, Shim, ShimLibrary
from caffeup.model.plan import Plan
from caffeup.patch.edits import EditSpec, parse_edit
from caffeup.patch.images import HOME, Disk, Image, digest
from caffeup.patch.ledger import EntryRecord

INCLUDE = f"{HOME}/include"
LIB = f"{HOME}/lib"
CONFIG = "Makefile.config"
EMPTY_ARCHIVE = b"!<arch>\n"
_LIBRARY_NAME = re.compile(r"[A-Za-z0-9_+.-]+")

OnDisk = Union[Shim, ShimLibrary, Edit, NewFile]


@dataclass(frozen=True)
class Wanted:
    """One entry that the plan calls for."""

    id: str
    fix: str
    kind: str
    because: str
    whole: tuple[tuple[str, Image], ...] = ()
    """Whole files: path in the tree and what shall stand there."""
    spec: Optional[EditSpec] = None
    text: str = ""
    replaces: bool = False
    """Whether it may take the place of files of the tree's own."""
    headers: tuple[str, ...] = ()
    """Headers of a shim, as they are included."""
    recorded: str = ""
    """Fingerprint of an entry that is taken from the ledger."""

    @property
    def fingerprint(self) -> str:
        """Hash of what is to be written."""
        if self.recorded:
            return self.recorded
        parts = [self.kind, self.text, *(f"{path}\0{image.link}\0{image.stamp().sha256}" for path, image in self.whole)]
        return digest("\0".join(parts).encode())


def wanted_entries(plan: Plan, facts: Facts, config: Optional[str]) -> tuple[Wanted, ...]:
    """Every entry of the plan, in the order in which they are applied; ``config`` None: the configuration is not ours."""
    found: list[Wanted] = []
    for link in plan.links:
        image = Image(link=link.target)
        found.append(
            _whole(f"link:{link.name}", "", "link", "paths in Makefile.config are relative", f"{HOME}/{link.name}", image)
        )
    for planned in plan.fixes:
        fix = facts.fix(planned.id)
        if fix is None:
            raise PatchFailed(f"the plan names a fix that the facts do not have: {planned.id}", commands=("caffeup plan",))
        found += entries_of(fix, planned.because, replace=plan.request.replace_depthwise)
    given = {path for one in found for path, _ in one.whole}
    for library in plan.stand_ins:
        path, image = shim_library(library)
        if path not in given:
            because = f"the tree links {library.name}, which is {library.links or 'nothing'} here"
            found.append(_whole(f"library:{library.name}", "", "library", because, path, image))
    if config is not None:
        found.append(_whole(CONFIG, "", "config", "the plan's settings", CONFIG, Image(config.encode())))
    return tuple(found)


def entry_of(record: EntryRecord, disk: Disk) -> Wanted:
    """An applied entry as it is, so that it stays when others go."""
    spec = _parse(record.id, record.text) if record.kind == "edit" else None
    whole = tuple((path, disk.read(path)) for path in record.files) if spec is None else ()
    if record.kind == "config":
        whole = whole[:1]
    whole = tuple((path, image) for path, image in whole if not image.absent)
    text, print_ = record.text, record.fingerprint
    return Wanted(
        record.id, record.fix, record.kind, record.because, whole=whole, spec=spec, text=text, replaces=True, recorded=print_
    )


def entries_of(fix: Fix, because: str, *, replace: bool = False) -> tuple[Wanted, ...]:
    """The entries of one fix: its shims, shim libraries and edits, one each, and its new files as one."""
    files = tuple(remedy for remedy in fix.remedy if isinstance(remedy, NewFile))
    remedies: list[OnDisk] = [remedy for remedy in fix.remedy if isinstance(remedy, (Shim, ShimLibrary, Edit))]
    remedies += files[:1]  # stands for all of them
    kinds = Counter(type(remedy) for remedy in remedies)
    seen: Counter[type] = Counter()
    found = []
    for remedy in remedies:
        seen[type(remedy)] += 1
        name = fix.id
        if len(remedies) > 1:
            name += f"/{_KINDS[type(remedy)]}"
            name += f"-{seen[type(remedy)]}" if kinds[type(remedy)] > 1 else ""
        if isinstance(remedy, NewFile):
            found.append(_files(name, fix.id, because, files, replace=replace))
        else:
            found.append(_entry(name, fix.id, because, remedy))
    return tuple(found)


_KINDS: dict[type, str] = {Shim: "shim", ShimLibrary: "library", Edit: "edit", NewFile: "file"}


def _files(name: str, fix: str, because: str, files: tuple[NewFile, ...], *, replace: bool) -> Wanted:
    whole = tuple((posixpath.normpath(one.target), Image(_bundle(one.source))) for one in files)
    return Wanted(name, fix, "file", because, whole=whole, replaces=replace)


def _entry(name: str, fix: str, because: str, remedy: Union[Shim, ShimLibrary, Edit]) -> Wanted:
    if isinstance(remedy, Shim):
        whole = tuple((f"{INCLUDE}/{header}", Image(_bundle(f"shims/{source}"))) for source, header in shim_files(remedy))
        headers = tuple(header for _, header in shim_files(remedy))
        return Wanted(name, fix, "shim", because, whole=whole, headers=headers)
    if isinstance(remedy, ShimLibrary):
        path, image = shim_library(remedy)
        return _whole(name, fix, "library", because, path, image)
    text = _bundle(f"edits/{remedy.edit}.toml").decode()
    return Wanted(name, fix, "edit", because, spec=_parse(remedy.edit, text), text=text)


def _whole(name: str, fix: str, kind: str, because: str, path: str, image: Image) -> Wanted:
    return Wanted(name, fix, kind, because, whole=((path, image),))


def _parse(name: str, text: str) -> EditSpec:
    try:
        return parse_edit(text)
    except ValueError as error:
        raise PatchFailed(f"the edit {name} of caffeup is not well-formed", details=str(error)) from error


def shim_files(shim: Shim) -> tuple[tuple[str, str], ...]:
    """Of each header, the path under patches/shims/ and the name as included (the first folder only groups shims)."""
    return tuple((source, source.split("/", 1)[-1]) for source in shim.headers)


def shim_library(library: ShimLibrary) -> tuple[str, Image]:
    """The file that answers to ``-l<name>``: an archive without members, or a linker script."""
    names = library.links.split()
    for name in (library.name, *names):
        if not _LIBRARY_NAME.fullmatch(name):
            raise PatchFailed(f"no name for a library: {name!r}")
    if not names:
        return f"{LIB}/lib{library.name}.a", Image(EMPTY_ARCHIVE)
    script = (
        f"/* made by caffeup: -l{library.name} is {library.links} here */\nINPUT({' '.join(f'-l{name}' for name in names)})\n"
    )
    return f"{LIB}/lib{library.name}.so", Image(script.encode())


def _bundle(path: str) -> bytes:
    place = Path(bundled("patches"), path)
    try:
        return place.read_bytes()
    except OSError as error:
        raise PatchFailed(f"a file of caffeup's own is missing: patches/{path}", details=str(error)) from error
