"""Which libraries are linked, where they are, what is switched off, and what has to be installed. Driven by the table."""

from __future__ import annotations

from typing import Optional

from caffeup.facts.libraries import Kind, LibraryRow, Need
from caffeup.facts.ranges import Range
from caffeup.model.base import Value
from caffeup.model.finding import Finding, Severity
from caffeup.model.machine import Library
from caffeup.model.plan import Alternative, ConfigLine, Decision, Link, Switch
from caffeup.plan.case import Case
from caffeup.plan.part import Part, conflict, decision, join, line, note, remedy
from caffeup.plan.places import linked_anyway, loaded_anyway, placed, searched_anyway

_WITHOUT = {
    "USE_OPENCV": "no image input: data layers that read images, and tools such as convert_imageset, do nothing",
    "USE_LEVELDB": "no LevelDB as a data source",
    "USE_LMDB": "no LMDB as a data source",
    "USE_HDF5": "no HDF5 as a data source, and no snapshots in HDF5",
}
_NAMED = {"USE_OPENCV": "opencv", "USE_LEVELDB": "leveldb", "USE_LMDB": "lmdb", "USE_HDF5": "hdf5"}


class Folders(Value, kw_only=True):
    """Folders that one library adds, as they stand in Makefile.config."""

    include_dirs: tuple[str, ...] = ()
    library_dirs: tuple[str, ...] = ()
    run_paths: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()


class Libraries(Value, kw_only=True):
    """The decision on all of them."""

    used: tuple[Library, ...] = ()
    off: tuple[str, ...] = ()
    """Keys that were switched off."""
    part: Part = Part()

    def version(self, name: str) -> Optional[object]:
        """The version of a library that is used."""
        return next((one.version for one in self.used if one.name == name), None)


def choose_libraries(case: Case) -> Libraries:
    """Every row that a build links: BLAS, Python's parts and optional ones are decided elsewhere."""
    used: list[Library] = []
    parts: list[Part] = []
    off: list[str] = []
    rows = [row for row in case.rows if row.kind is Kind.LIBRARY]
    for row in rows:
        if _is_required(row, case):
            found = case.library(row.id)
            parts.append(_required(row, found, case))
            used += [found] if found is not None else []
    switches = dict.fromkeys(row.switch for row in rows if row.need is Need.SWITCH and case.reads(row.switch))
    for key in switches:
        group = [row for row in rows if row.switch == key and row.need is Need.SWITCH]
        libraries, part, is_off = _switched(key, group, case)
        used += libraries
        parts.append(part)
        off += [key] if is_off else []
    parts += [_folders_part(library, case) for library in used]
    return Libraries(used=tuple(used), off=tuple(off), part=join(parts))


def folders(library: Library, case: Case) -> Folders:
    """Where a library's headers and files are, without folders that compiler and linker search anyway."""
    includes, libraries, runs = [], [], []
    links: list[Link] = []
    system, prefixes = case.machine.system, case.machine.prefixes
    for at, path in enumerate(library.include_dirs):
        if not searched_anyway(path, system):
            place = placed(path, f"{library.name}-include{at or ''}", prefixes)
            includes.append(place.name)
            links += place.links
    for at, path in enumerate(library.library_dirs):
        place = placed(path, f"{library.name}-lib{at or ''}", prefixes)
        if not linked_anyway(path, system):
            libraries.append(place.name)
            links += place.links
        if not loaded_anyway(path, system):
            runs.append(place.name)
            links += place.links
    return Folders(
        include_dirs=tuple(includes), library_dirs=tuple(libraries), run_paths=tuple(runs), links=tuple(dict.fromkeys(links))
    )


def folder_lines(found: Folders, because: str) -> tuple[ConfigLine, ...]:
    """INCLUDE_DIRS and LIBRARY_DIRS of one library."""
    lines = []
    if found.include_dirs:
        lines.append(line("INCLUDE_DIRS", *found.include_dirs, because=because, operator="+="))
    if found.library_dirs:
        lines.append(line("LIBRARY_DIRS", *found.library_dirs, because=because, operator="+="))
    return tuple(lines)


def said(library: Library) -> str:
    """``OpenCV``-like words for a found library: its version and how it was found."""
    return f"{library.version or 'of unknown version'} ({library.via})"


def rejected(name: str, case: Case) -> tuple[Alternative, ...]:
    """The candidates that were not taken."""
    return tuple(
        Alternative(
            value=f"{name} {one.version or ''} in {one.prefix or one.evidence}".replace("  ", " "),
            because="the chosen one comes first",
        )
        for one in case.libraries(name)[1:]
    )


def _is_required(row: LibraryRow, case: Case) -> bool:
    """Whether nothing can be built without it."""
    if row.need is Need.LINKED:
        return bool(case.tree.libraries) and _linked(row, case)
    return row.need is Need.ALWAYS or (row.need is Need.SWITCH and not case.reads(row.switch) and _linked(row, case))


def _linked(row: LibraryRow, case: Case) -> bool:
    """Whether the tree's Makefile links any library of the row."""
    names = {name for alternative in row.link for name in alternative}
    return not case.tree.libraries or bool(names & set(case.tree.libraries))


def _required(row: LibraryRow, found: Optional[Library], case: Case) -> Part:
    if row.id == "opencv" and case.request.opencv is Switch.OFF:
        return Part(conflicts=(_opencv_required("Its Makefile has no USE_OPENCV."),))
    if found is None:
        linked = "this tree's Makefile links it" if case.tree.seen else "Caffe's Makefiles link it"
        why = "every build links it" if row.need is Need.ALWAYS else linked
        return Part(packages=(row.id,), notes=(missing(row, why),))
    value = str(found.version) if found.version else "yes"
    part = Part(
        decisions=(
            decision(row.id, value, f"found: {said(found)}", fact=f"libraries.toml#{row.id}", rejected=rejected(row.id, case)),
        )
    )
    lacking = _lacking_parts(row, found, case)
    if lacking:
        title = f"{row.title} {found.version or ''} is there, but without {', '.join(lacking)}, which this tree links".replace(
            "  ", " "
        )
        return join(
            [
                part,
                Part(packages=(row.id,), notes=(note("library-incomplete", title, severity=Severity.PROBLEM, affects=row.id),)),
            ]
        )
    return part


def _opencv_required(why: str) -> Finding:
    return conflict("opencv-required", "OpenCV cannot be left out of this tree", why, remedies=(remedy("leave out --no-opencv"),))


def missing(row: LibraryRow, why: str, severity: Severity = Severity.PROBLEM) -> Finding:
    """A library that has to be installed; PROBLEM: nothing can be built before."""
    return note("missing-library", f"{row.title} is missing", why, severity=severity, affects=row.id)


def _lacking_parts(row: LibraryRow, found: Library, case: Case) -> tuple[str, ...]:
    if not found.libraries or found.version is None:
        return ()
    return tuple(
        part.name
        for part in row.parts
        if part.needed
        and part.name in case.tree.libraries
        and part.name not in found.libraries
        and found.version in Range.parse(part.needed)
    )


def _switched(key: str, rows: list[LibraryRow], case: Case) -> tuple[list[Library], Part, bool]:
    found = [one for row in rows if (one := case.library(row.id)) is not None]
    lacking = [row for row in rows if case.library(row.id) is None]
    name = _NAMED.get(key, rows[0].id)
    wish = case.request.opencv if key == "USE_OPENCV" else Switch.AUTO
    heedless = next((one.partition("::")[2] for one in case.tree.unheeded if one.startswith(f"{key}::")), "")
    unasked = f"{heedless} includes its headers and does not ask for {key}"
    if wish is Switch.OFF and heedless:
        return [], Part(conflicts=(_opencv_required(f"{unasked}."),)), False
    if wish is Switch.OFF:
        part = Part(
            decisions=(decision(name, "off", "asked for with --no-opencv"),), config=(line(key, "0", because="asked for"),)
        )
        return [], part, True
    if not lacking:
        decisions: list[Decision] = []
        for one in found:
            value = str(one.version) if one.version else "yes"
            decisions.append(
                decision(
                    one.name, value, f"found: {said(one)}", fact=f"libraries.toml#{one.name}", rejected=rejected(one.name, case)
                )
            )
        config = [line(key, "1", because=f"{', '.join(f'{one.name} {said(one)}' for one in found)}")]
        config += _opencv_version(found, case) if key == "USE_OPENCV" else []
        return found, Part(decisions=tuple(decisions), config=tuple(config)), False
    titles = " and ".join(row.title for row in lacking)
    without = _WITHOUT.get(key, f"the build goes without ({key})")
    if wish is Switch.ON or heedless:
        why = unasked if heedless else "asked for with --opencv"
        part = Part(packages=tuple(row.id for row in lacking), notes=tuple(missing(row, why) for row in lacking))
        return found, part, False
    absent = tuple(missing(row, f"{key} := 0: {without}.", Severity.NOTE) for row in lacking)
    part = Part(
        decisions=(decision(name, "off until installed" if case.may_install else "off", f"{titles} not found: {without}"),),
        config=(line(key, "0", because=f"{titles} not found: {without}"),),
        notes=absent,
        packages=tuple(row.id for row in lacking) if case.may_install else (),
    )
    return [], part, True


def _opencv_version(found: list[Library], case: Case) -> list[ConfigLine]:
    version = found[0].version
    if not case.reads("OPENCV_VERSION"):
        return []
    if version is not None and version.major >= 3:
        because = f"OpenCV {version}: from 3 on, reading images is in opencv_imgcodecs; the Makefile knows only the word 3 for it"
        return [line("OPENCV_VERSION", "3", because=because)]
    if version is None and "opencv_imgcodecs" in found[0].libraries:
        return [line("OPENCV_VERSION", "3", because="there is an opencv_imgcodecs, so it is 3 or newer")]
    return []


def _folders_part(library: Library, case: Case) -> Part:
    found = folders(library, case)
    return Part(config=folder_lines(found, f"{library.name} {said(library)}"), links=found.links, run_paths=found.run_paths)
