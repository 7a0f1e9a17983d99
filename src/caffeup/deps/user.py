"""The distribution's packages in the user's data folder: whole or not at all; a run that was ended is gone on with.

``.part-<set>-<digest>/root`` is filled, one package after the other; what is done is noted beside it. When all is in it, links
and run paths are made to fit, the mark is written, and it is renamed. So what has the set's name is whole.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Callable

import msgspec

from caffeup.deps.alone import PART, alone, begun, disk_error
from caffeup.deps.install import Runner
from caffeup.deps.system import InstallPlan
from caffeup.deps.user_apt import Apt, Archive, Wanted
from caffeup.deps.user_elf import lead_home, library_folders
from caffeup.deps.user_links import Choice, gather, make_choices, mend_links
from caffeup.deps.user_unpack import is_whole, unpack
from caffeup.detect.unpacked import MARK, Mark
from caffeup.disk import read_plain, write_atomically
from caffeup.errors import DependencyError, DiskError
from caffeup.facts.distros import DistroFile
from caffeup.host import Host
from caffeup.model.base import Value, to_json
from caffeup.source.progress import Progress

MARGIN = 200 << 20
"""Bytes that must be left on the disk afterwards."""
APT = "apt"
"""apt's lists and downloads, beside the sets."""


class Size(Value, kw_only=True):
    """What is to be told before anything is downloaded."""

    packages: int
    download_bytes: int
    disk_bytes: int


class Work(Value, kw_only=True):
    """What unpacking needs of whoever asks for it."""

    host: Host
    run: Runner
    """Runs apt: with a log, and its progress on the screen."""
    ask: Callable[[Size], bool]
    free_bytes: Callable[[Path], int]
    progress: Progress


def make_set(root: Path, plan: InstallPlan, triplet: str, distros: DistroFile, work: Work) -> tuple[str, ...]:
    """Make the set's root; nothing to do where it is there. What should be told. Raises ``DependencyError`` or ``DiskError``."""
    manager = distros.manager_named(plan.manager)
    try:
        with alone(root.parent, work.progress):
            if is_made(root):
                return ()
            apt = Apt(root.parent / APT, manager, distros, work.run)
            apt.prepare()
            wanted = apt.want((*plan.packages, *manager.unpack_with), plan.optional)
            return _make(root, plan.packages, wanted, apt, triplet, distros, work)
    except OSError as error:
        raise disk_error(error, root.parent) from error


def is_made(root: Path) -> bool:
    """Whether the set was unpacked to its end."""
    return (root / MARK).is_file()


# --- one set ----------------------------------------------------------------------------------------------


def _make(
    root: Path, asked: tuple[str, ...], wanted: Wanted, apt: Apt, triplet: str, distros: DistroFile, work: Work
) -> tuple[str, ...]:
    kept_out = [one for one in wanted.archives if any(row.holds(one.name) for row in (*distros.guard, *distros.keep_out))]
    archives = [one for one in wanted.archives if one not in kept_out]
    part = _part(root, archives)
    ahead = [one for one in archives if not _note(part, one).is_file()]
    absent = [one for one in ahead if not is_whole(apt.downloads / one.file, one)]
    size = Size(
        packages=len(archives),
        download_bytes=sum(one.bytes for one in absent),
        disk_bytes=(wanted.transaction.disk_bytes or 0) * len(ahead) // max(len(archives), 1),
    )
    if not work.ask(size):
        raise DependencyError("nothing was downloaded: no consent was given", advice="Say yes, or give --yes.")
    _check_space(size, root.parent, work)
    if absent:
        for one in absent:  # apt itself takes one of the right size for whole
            (apt.downloads / one.file).unlink(missing_ok=True)
        apt.download(wanted.packages, len(wanted.archives))
    made = part / "root"
    made.mkdir(parents=True, exist_ok=True)
    for at, one in enumerate(ahead):
        work.progress(f"unpacking {one.name}", len(archives) - len(ahead) + at, len(archives))
        found = unpack(work.host, _file(apt, one), part / "stage", made)
        write_atomically(_note(part, one), json.dumps(msgspec.to_builtins(found)))
    work.progress("links and run paths", 0, 0)
    _finish(made, part, archives, triplet, work.host)
    said = Mark(asked=tuple(sorted(asked)), packages={one.name: one.version for one in archives})
    write_atomically(made / MARK, to_json(said))
    if root.exists():  # what a removal that was ended left
        shutil.rmtree(root)
    os.sync()
    made.rename(root)
    _sweep(root.parent, apt)
    missing = (f"not among the packages here, and left out: {' '.join(wanted.left_out)}",) if wanted.left_out else ()
    kept = (f"left to the system: {' '.join(one.name for one in kept_out)}",) if kept_out else ()
    return (*wanted.notes, *missing, *kept)


def _part(root: Path, archives: list[Archive]) -> Path:
    """The folder for exactly these files; what an earlier run began with others is of no use."""
    digest = sha256("\n".join(sorted(one.digest for one in archives)).encode()).hexdigest()[:12]
    part = root.with_name(f"{PART}{root.name}-{digest}")
    for other in root.parent.glob(f"{PART}{root.name}-*"):
        if other != part:
            shutil.rmtree(other)
    return part


def _note(part: Path, archive: Archive) -> Path:
    """The note that a package was unpacked, with the names that its scripts would make links of."""
    return part / f"{archive.digest}.json"


def _file(apt: Apt, archive: Archive) -> Path:
    """The downloaded file, as apt's lists have it; a local repository's is where it lies."""
    from urllib.parse import unquote  # noqa: PLC0415

    places = [apt.downloads / archive.file]
    if archive.uri.startswith("file:"):
        places.append(Path("/" + unquote(archive.uri[5:]).lstrip("/")))
    for file in places:
        if is_whole(file, archive):
            return file
    raise DependencyError(
        f"{archive.file} is not what the package lists say",
        details=f"{archive.uri}\n{archive.algorithm} {archive.digest}",
        advice="Run the same command again: it is downloaded anew.",
    )


def _finish(made: Path, part: Path, archives: list[Archive], triplet: str, host: Host) -> None:
    """Every step may be done twice: a run may end in the midst of it."""
    found: list[Choice] = []
    for one in archives:
        with suppress(msgspec.MsgspecError):
            found += msgspec.json.decode(read_plain(_note(part, one)), type=list[Choice])
    make_choices(made, found)
    mend_links(made)
    folders = library_folders(made, triplet)
    gather(folders)
    own = made / "usr/bin/patchelf"
    path = ":".join(str(folder) for folder in folders)
    patchelf = ("env", f"LD_LIBRARY_PATH={path}", str(own)) if own.is_file() else ("patchelf",)
    lead_home(host, made, folders, patchelf)


def _check_space(size: Size, home: Path, work: Work) -> None:
    needed = size.download_bytes + size.disk_bytes + MARGIN
    free = work.free_bytes(home)
    if free < needed:
        raise DiskError(
            f"The packages need {needed >> 20} MiB in {home}, and {free >> 20} MiB are free.",
            advice="Free some space, or let XDG_DATA_HOME name a folder on another disk.",
            commands=(f"df -h {shlex.quote(str(home))}",),
        )


def _sweep(home: Path, apt: Apt) -> None:
    """Downloads and notes are of no use any more; another set's begun folder stays."""
    for path in begun(home):
        if not (path / "root").exists():
            shutil.rmtree(path, ignore_errors=True)
    shutil.rmtree(apt.downloads, ignore_errors=True)
