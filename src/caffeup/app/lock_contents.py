"""What of a tree goes into its lock: hashes of the sources as they came, of what is put in, and of what is built."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from caffeup import __version__
from caffeup.app.planning import Planned
from caffeup.app.session import Session
from caffeup.app.treework import products
from caffeup.errors import CaffeupError
from caffeup.lock.make import Seen, make_lock, names_of_packages
from caffeup.model.lock import Lock
from caffeup.model.plan import Plan
from caffeup.patch.images import Disk
from caffeup.patch.ledger import Ledger, load_ledger
from caffeup.patch.wanted import wanted_entries

_SOURCES = ("Makefile", "include", "src", "tools", "examples", "python")
_MADE = re.compile(r".*(?:_pb2\.py|\.so|\.pyc|\.o|\.testbin|\.pb\.h|\.pb\.cc)|\..*")
_ASKS = {
    "debian": ("dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Status}\\n"),
    "fedora": ("rpm", "-q", "--qf", "%{NAME} %{EVR} installed\\n"),
    "suse": ("rpm", "-q", "--qf", "%{NAME} %{EVR} installed\\n"),
    "arch": ("pacman", "-Q"),
}


def lock_of(session: Session, planned: Planned) -> Lock:
    """What a build by this plan rests on, and what is built now."""
    plan = planned.plan
    seen = Seen(
        content=content(planned.root),
        patches=_patches(session, plan),
        packages=_packages(session, planned),
        built=built(plan),
        home=session.host.env.get("HOME", ""),
    )
    return make_lock(planned.machine, planned.tree, plan, session.facts, seen, __version__)


def content(root: Path) -> str:
    """One hash of the sources as they came: what caffeup put in is left out, what it changed counts as it was."""
    try:
        ledger = load_ledger(Disk(str(root)))
    except CaffeupError:
        ledger = Ledger()
    total = sha256()
    for name in sorted(_source_files(root)):
        record = ledger.file(name)
        if record is not None and record.before.absent:
            continue  # caffeup's own file: its hash is among the patches
        found = _hash(root / name)
        if record is not None and found == record.after.sha256:
            found = record.before.sha256
        total.update(f"{name}\0{found}\n".encode("utf-8", "surrogateescape"))
    return f"sha256:{total.hexdigest()}"


def _source_files(root: Path) -> Iterator[str]:
    for top in _SOURCES:
        if (root / top).is_file():
            yield top
        for folder, names, files in os.walk(root / top):
            names[:] = [name for name in names if not _MADE.fullmatch(name) and name != "__pycache__"]
            inside = Path(folder).relative_to(root)
            for name in files:
                if not _MADE.fullmatch(name) and (top != "examples" or name.endswith((".cpp", ".hpp", ".cu", ".h"))):
                    yield (inside / name).as_posix()


def built(plan: Plan) -> dict[str, str]:
    """Hashes of the products that are there: library, program, Python module, and the objects of the depthwise layer."""
    root = Path(plan.tree)
    found = [*products(plan)]
    layers = root / plan.build_dir
    found += sorted((*layers.glob("src/caffe/layers/*depthwise*.o"), *layers.glob("cuda/src/caffe/layers/*depthwise*.o")))
    return {path.relative_to(root).as_posix(): f"sha256:{_hash(path)}" for path in found if path.is_file()}


def _hash(path: Path) -> str:
    total = sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                total.update(chunk)
    except OSError as error:
        return f"unreadable: {error.strerror}"
    return total.hexdigest()


def _patches(session: Session, plan: Plan) -> dict[str, str]:
    """Of each shim, file and edit, the hash of what is put in; links and the configuration tell of this machine only."""
    wanted = wanted_entries(plan, session.facts, None)
    return {one.id: f"sha256:{one.fingerprint}" for one in wanted if one.kind not in {"link", "config"}}


def _packages(session: Session, planned: Planned) -> dict[str, str]:
    """Packages of the distribution with their versions; nothing where its manager does not say."""
    system = planned.machine.system
    distro = session.facts.distros.distro_of(system.distro, system.distro_like)
    if distro is None or distro.id not in _ASKS or planned.plan.request.deps:
        return {}
    names = tuple(names_of_packages(planned.plan, planned.machine, session.facts, distro.id))
    answer = session.host.run((*_ASKS[distro.id], *names)) if names else None
    rows = [line.split(" ") for line in (answer.stdout if answer is not None else "").splitlines()]
    return {row[0]: row[1] for row in rows if len(row) >= 2 and row[0] in names and row[2:] in ([], ["installed"])}
