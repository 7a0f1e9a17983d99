"""One package's files into the root that all of a set share. No script of it runs."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from pathlib import Path
from typing import Optional

from caffeup.deps.user_apt import Archive
from caffeup.deps.user_links import Choice, choices, in_usr, place_link
from caffeup.errors import CaffeupError, DependencyError, DiskError
from caffeup.host import Host, Output

SECONDS = 900.0
_CHUNK = 1 << 20
_SHOWN = 3
"""Lines of what dpkg-deb says: on a full disk tar says one for each file."""


def is_whole(file: Path, archive: Archive) -> bool:
    """Whether this is the file that apt's signed lists name."""
    if not file.is_file() or file.stat().st_size != archive.bytes:
        return False
    digest = hashlib.new(archive.algorithm.lower())
    with file.open("rb") as held:
        while piece := held.read(_CHUNK):
            digest.update(piece)
    return digest.hexdigest() == archive.digest


def unpack(host: Host, file: Path, stage: Path, root: Path) -> tuple[Choice, ...]:
    """Unpack beside, then move into the root; what its scripts would make links of."""
    if stage.exists():
        shutil.rmtree(stage)
    stage.mkdir(parents=True)
    output = host.run(("dpkg-deb", "-x", str(file), str(stage)), timeout=SECONDS)
    if output is None or output.status != 0:
        raise _failed(file, output)
    _merge(stage, root)
    shutil.rmtree(stage)
    script = host.run(("dpkg-deb", "-I", str(file), "postinst"), timeout=SECONDS)
    return tuple(choices(script.stdout)) if script is not None and script.status == 0 else ()


def _merge(stage: Path, root: Path) -> None:
    for folder, names, files in os.walk(stage):
        inside = os.path.relpath(folder, stage)
        Path(folder).chmod(0o755)  # one that its owner may not write could not be emptied
        Path(os.path.realpath(root / in_usr(inside))).mkdir(parents=True, exist_ok=True)  # where another's link leads
        for name in (*names, *files):
            path = Path(folder, name)
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                place_link(root, f"{inside}/{name}", os.readlink(path))  # noqa: PTH115
            elif stat.S_ISREG(mode):
                path.chmod(stat.S_IMODE(mode) & 0o777 | 0o644)
                place = root / in_usr(f"{inside}/{name}")
                if not place.is_dir():
                    path.replace(place)


def _failed(file: Path, output: Optional[Output]) -> CaffeupError:
    said = f"{output.stderr}\n{output.stdout}".strip() if output is not None else "there is no dpkg-deb"
    first = "\n".join(said.splitlines()[:_SHOWN])
    if "No space left on device" in said or "Disk quota exceeded" in said:
        return DiskError(
            f"the disk is full: {file.parent.parent}",
            details=first,
            advice="Free some space, or let XDG_DATA_HOME name a folder on another disk. What was done is kept.",
        )
    return DependencyError(f"{file.name} could not be unpacked", details=first)
