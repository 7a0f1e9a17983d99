"""Which known incompatibilities this machine and tree meet, and the settings that come of them."""

from __future__ import annotations

from typing import Optional

import msgspec
from packaging.version import Version

from caffeup.facts.ranges import Range
from caffeup.model.base import Value
from caffeup.model.fix import Advice, AnyRemedy, Edit, Fix, Install, NewFile, Setting, Shim, ShimLibrary
from caffeup.model.machine import System
from caffeup.model.plan import ConfigLine, PlannedFix
from caffeup.model.tree import Tree
from caffeup.plan.part import Part, line
from caffeup.plan.places import LINKS

VERSIONED = ("cuda", "cudnn", "gcc", "clang", "opencv", "protobuf", "boost", "glog", "hdf5", "python", "numpy", "skimage")
_TITLES = {
    "cuda": "CUDA",
    "cudnn": "cuDNN",
    "opencv": "OpenCV",
    "boost": "Boost",
    "hdf5": "HDF5",
    "python": "Python",
    "skimage": "scikit-image",
}
_DONE_BY_CAFFEUP = (Shim, ShimLibrary, Edit, NewFile, Setting)


class Decided(Value, kw_only=True):
    """What the other decisions came to: what conditions of fixes are compared with."""

    versions: dict[str, Version] = msgspec.field(default_factory=dict)
    """By the names of ``model.fix.Condition``; absent: not used in this build."""
    unknown: tuple[str, ...] = ()
    """Used in this build, but their version could not be told."""
    wishes: tuple[str, ...] = ()
    """Names of fixes' ``wish`` that the plan decided for."""
    gpu: bool
    system: System
    tree: Tree


class Selection(Value, kw_only=True):
    """The planned fixes, and what they add to Makefile.config."""

    fixes: tuple[PlannedFix, ...] = ()
    shim_libraries: bool = False
    part: Part = Part()


def select_fixes(fixes: tuple[Fix, ...], decided: Decided) -> Selection:
    """Every fix whose condition holds, that the tree has not solved itself, and for which there is something to do."""
    planned: list[PlannedFix] = []
    parts: list[ConfigLine] = []
    packages: list[str] = []
    libraries = False
    for fix in fixes:
        because = applies(fix, decided)
        if because is None:
            continue
        planned.append(PlannedFix(id=fix.id, because=because))
        for remedy in fix.remedy:
            libraries = libraries or isinstance(remedy, ShimLibrary)
            if isinstance(remedy, Setting):
                parts += _setting(remedy, decided, because)
            elif isinstance(remedy, Install):
                packages.append(remedy.library)
    return Selection(fixes=tuple(planned), shim_libraries=libraries, part=Part(config=tuple(parts), packages=tuple(packages)))


def applies(fix: Fix, decided: Decided) -> Optional[str]:
    """Why this fix is planned; None where it is not."""
    if fix.harmless or not any(isinstance(remedy, _DONE_BY_CAFFEUP) for remedy in fix.remedy):
        return None
    if not _is_applied(fix, decided.tree) and any(str(marker) in decided.tree.markers for marker in fix.unless):
        return None
    reasons = _holds(fix, decided)
    if reasons is None or (not reasons and not fix.when.wish and not _for_everyone(fix)):
        return None
    return f"{fix.title}: {', '.join(reasons)}" if reasons else fix.title


def _is_applied(fix: Fix, tree: Tree) -> bool:
    """Whether it was applied by caffeup: then the tree's text is no longer what the markers speak of."""
    return any(name == fix.id or name.startswith(f"{fix.id}/") for name in tree.applied)


def _for_everyone(fix: Fix) -> bool:
    """A row without a condition is planned only where it brings files: a setting or an edit must say when."""
    return any(isinstance(remedy, NewFile) for remedy in fix.remedy)


def _holds(fix: Fix, decided: Decided) -> Optional[tuple[str, ...]]:
    """The values that make the condition hold; None where it does not."""
    when, reasons = fix.when, []
    if when.wish and when.wish not in decided.wishes:
        return None
    for name in VERSIONED:
        wanted = getattr(when, name)
        if wanted is None:
            continue
        version = decided.versions.get(name)
        if version is not None and version in Range.parse(wanted):
            reasons.append(f"{_TITLES.get(name, name)} {version}")
        elif version is None and name in decided.unknown and _harmless_where_not_needed(fix.remedy):
            reasons.append(f"{_TITLES.get(name, name)} of unknown version")
        else:
            return None
    mode, system = ("gpu" if decided.gpu else "cpu"), decided.system
    for given, have in (
        (when.fork, {decided.tree.fork}),
        (when.distro, {system.distro, *system.distro_like}),
        (when.arch, {system.arch}),
    ):
        if given and not have & set(given):
            return None
        reasons += sorted(have & set(given))
    if when.mode is not None and when.mode != mode:
        return None
    reasons += [f"{mode} build"] if when.mode else []
    for marker in when.tree:
        if str(marker) not in decided.tree.markers and not _is_applied(fix, decided.tree):
            return None
        reasons.append(f"“{marker.contains}” in {marker.file}" if marker.contains else marker.file)
    if when.place_for_edit and fix.place not in decided.tree.markers and not _is_applied(fix, decided.tree):
        return None
    return tuple(reasons)


def _harmless_where_not_needed(remedies: tuple[AnyRemedy, ...]) -> bool:
    """A shim does nothing where the real header still has the thing."""
    return bool(remedies) and all(isinstance(remedy, (Shim, Advice)) for remedy in remedies)


def _setting(setting: Setting, decided: Decided, because: str) -> list[ConfigLine]:
    """A line of Makefile.config; where the tree's Makefile would ignore the key, ``override`` reaches it or nothing does."""
    words = setting.value.split()
    operator = "+=" if setting.append else ":="
    if setting.key in decided.tree.config_keys:
        return [line(setting.key, *words, because=because, operator=operator)]
    # With `override` the Makefile's own assignments are ignored, additions too: only a whole value may go that way.
    if setting.key in decided.tree.overridable and not setting.append:
        return [line(setting.key, *words, because=because, operator=operator, override=True)]
    return []


def shim_lines(tree: Tree, *, libraries: bool) -> Part:
    """The shims' folders, before all others: several forks pass INCLUDE_DIRS with -isystem, which -I beats."""
    lines = []
    if "COMMON_FLAGS" in tree.config_keys:
        lines.append(
            line("COMMON_FLAGS", f"-I{LINKS}/include", because="caffeup's shims come before the headers that they complete")
        )
    if libraries and "LIBRARY_DIRS" in tree.config_keys:
        lines.append(line("LIBRARY_DIRS", f"{LINKS}/lib", because="stand-ins for libraries that were renamed or vanished"))
    return Part(config=tuple(lines))
