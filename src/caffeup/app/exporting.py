"""``caffeup export``: from a tree that is here to a script, a Dockerfile or an Apptainer definition."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import msgspec

from caffeup import __version__
from caffeup.app.locking import read_lock
from caffeup.app.missing import to_install
from caffeup.app.planning import merged
from caffeup.app.session import Session, find_tree, remembered_request
from caffeup.app.state import FOLDER, LOCK
from caffeup.app.treework import require_buildable
from caffeup.bundle import bundled
from caffeup.errors import DependencyError, UsageError
from caffeup.export.image import image_row, images_for, packaged, require_packaged, with_image
from caffeup.export.recipe import FORMS, Packages, Recipe, Written
from caffeup.export.words import render
from caffeup.facts.images import ImageFile
from caffeup.facts.libraries import Kind
from caffeup.model.lock import Lock
from caffeup.model.machine import Machine, Python
from caffeup.model.plan import Plan, Request
from caffeup.model.tree import Tree
from caffeup.patch import engine
from caffeup.patch.images import Disk, Image
from caffeup.patch.wanted import wanted_entries
from caffeup.plan.packages import required
from caffeup.render import render_config

_LARGEST = 1 << 20
"""Bytes of a file that could be a source; what is larger is data."""
_SOURCES = {
    *(".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".hxx", ".inl", ".in", ".m", ".proto", ".py", ".sh", ".txt", ".cmake"),
    ".example",
    "",
}
_NO_SOURCES = {".git", "build", ".build_release", ".build_debug", "distribute", "__pycache__"}
_OURS = ("undo", "include", "lib", "deps")
_ALSO = {"git": ("git", "ca-certificates"), "index": ("python3-pip",)}
"""Packages that fetch a tree; the names are the same in all distributions that have them."""


class Exported(msgspec.Struct, frozen=True):
    """What was written, and what whoever uses it should know."""

    text: str
    notes: tuple[str, ...] = ()


def export_tree(session: Session, form: str, named: str, given: Request) -> Exported:
    """The tree's plan in another form. Changes nothing; raises ``UsageError``, ``CannotBuild`` or ``DependencyError``."""
    if form not in FORMS:
        raise UsageError(f"There is no form {form!r}.", advice=f"Give {', '.join(FORMS)}.")
    root = find_tree(named)
    request = merged(remembered_request(root), given)
    machine, tree = session.machine(request.prefixes, request.python, request.cuda), session.tree(root)
    lock = read_lock(root / LOCK) if (root / LOCK).is_file() else Lock()
    recipe = _recipe(session, machine, tree, request, lock, container=form != "sh")
    script = render(recipe, _template("sh"))
    text = script if form == "sh" else render(recipe, _template(form), script)
    return Exported(text, tuple(_notes(tree, recipe, lock)))


def _recipe(session: Session, machine: Machine, tree: Tree, request: Request, lock: Lock, *, container: bool) -> Recipe:
    images = session.facts.reader.table("images", ImageFile)
    plan = session.plan(machine, tree, request)
    row = None
    if container:
        machine = packaged(machine)
        toolkit = next((one for one in machine.toolkits if str(one.version) == _toolkit(plan, machine)), None)
        if plan.gpu and toolkit is not None:
            row = image_row(machine, toolkit, images)
            cudnn = next((one.version for one in machine.cudnn_headers), None) if plan.cudnn else None
            machine = with_image(machine, toolkit, row, cudnn=cudnn)
        request = msgspec.structs.replace(request, cuda="", prefixes=(), deps="")
        plan = session.plan(machine, tree, request)
        require_packaged(plan)
    require_buildable(plan)
    _require_installed(session, machine, plan)
    found = images_for(machine, plan, images, row) if container else None
    packages = _packages(session, machine, tree, plan, lock)
    fork = next((one for one in session.facts.forks if one.id == tree.fork), None)
    sdist = fork.sdist if fork is not None and tree.origin.kind == "sdist" else None
    known = fork.failures if fork is not None else ()
    known = tuple(one for one in known if (one.gpu if plan.gpu else one.cpu))
    return Recipe(
        plan=plan,
        system=machine.system,
        origin=tree.origin if sdist is None else msgspec.structs.replace(tree.origin, sha256=sdist.sha256),
        package=f"{sdist.name}=={sdist.version}" if sdist is not None else "",
        packages=packages,
        files=_changes(Path(tree.root), plan, session),
        left_out=tuple(one.test for one in known if one.test.endswith(".cpp")),
        failing=tuple(one.test for one in known if not one.test.endswith(".cpp")),
        version=__version__,
        image_build=found.build if found is not None else "",
        image_run=found.run if found is not None else "",
    )


def _toolkit(plan: Plan, machine: Machine) -> str:
    """The release that the plan has chosen, by its root."""
    target = next((link.target for link in plan.links if link.name == "cuda"), "")
    chosen = next((one for one in machine.toolkits if one.root == target), next(iter(machine.toolkits), None))
    return str(chosen.version) if chosen is not None else ""


def _require_installed(session: Session, machine: Machine, plan: Plan) -> None:
    """What a library needs is known by its version, and that only when it is here."""
    lacking = required(plan)
    if lacking or plan.lay_out:
        wanted = to_install(session, machine, plan, lacking)
        raise DependencyError(
            "What an export pins is taken from this machine, and something that a build needs is not here: "
            f"{', '.join(lacking) or 'CUDA'}.",
            commands=(wanted.command,) if wanted.command else (),
        )


def _packages(session: Session, machine: Machine, tree: Tree, plan: Plan, lock: Lock) -> Packages:
    """All that a bare machine of this kind would miss, with the versions of the lock, or those that are installed here."""
    python = next((one for one in machine.pythons if one.executable == plan.python), None)
    stripped = msgspec.structs.replace(
        machine, libraries=(), programs=(), compilers=(), pythons=(_bare(python),) if python is not None else ()
    )
    rows = session.plan(stripped, tree, plan.request).packages
    as_root = msgspec.structs.replace(machine.system, root=True)
    wanted = to_install(session, msgspec.structs.replace(machine, system=as_root), plan, [one for one in rows if one != "ccache"])
    kinds = {row.id: row for row in session.facts.libraries}
    ours = [one for one in rows if kinds[one].kind is Kind.PYTHON and one not in ("python-dev", "boost-python")]
    run = to_install(session, msgspec.structs.replace(machine, system=as_root), plan, ours).packages if ours else ()
    run = (*(("python3",) if python is not None and python.executable == "/usr/bin/python3" else ()), *run)
    if not wanted.manager:
        return Packages(manager="")
    manager = session.facts.distros.manager_named(wanted.manager)
    source = "index" if tree.origin.kind == "sdist" else "git" if tree.origin.url else ""
    here = dict(_versions(session, manager.id, wanted.packages))
    packages = tuple(one for one in wanted.packages if one in here or one not in wanted.optional)
    names = tuple(dict.fromkeys((*packages, *run, "patch", *_ALSO.get(source, ()))))
    return Packages(
        manager=manager.id,
        first=wanted.first,
        before=manager.paste[:-1],
        install=manager.paste[-1],
        names=names,
        versions=tuple(sorted({**dict(_versions(session, manager.id, names)), **_pins(lock, names)}.items())),
        python=run,
    )


def _pins(lock: Lock, names: tuple[str, ...]) -> dict[str, str]:
    return {name: version for name, version in lock.packages.items() if name in names and version}


def _bare(python: Python) -> Python:
    return msgspec.structs.replace(
        python,
        include="",
        library="",
        library_dir="",
        numpy=None,
        numpy_include="",
        boost_python="",
        boost_python_dir="",
        protobuf=None,
        skimage=None,
        six=None,
    )


_ASK = {
    "apt": ("dpkg-query", "-W", "-f=${Package} ${Version} ${db:Status-Status}\n"),
    "dnf": ("rpm", "-q", "--qf", "%{NAME} %{VERSION}-%{RELEASE} installed\n"),
    "zypper": ("rpm", "-q", "--qf", "%{NAME} %{VERSION}-%{RELEASE} installed\n"),
}


def _versions(session: Session, manager: str, names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """What is installed here of these packages."""
    asked = session.host.run((*_ASK[manager], *names)) if manager in _ASK else None
    found: dict[str, str] = {}
    for line in asked.stdout.splitlines() if asked is not None else ():
        parts = line.split()
        if len(parts) == 3 and parts[2] == "installed" and parts[0] in names:
            found[parts[0]] = parts[1]
    return tuple(sorted(found.items()))


# --- what goes into the tree ------------------------------------------------------------------------------


def _changes(root: Path, plan: Plan, session: Session) -> tuple[Written, ...]:
    """What the plan changes in the tree as it was fetched, worked out on a copy of its sources."""
    config = render_config(plan)
    with tempfile.TemporaryDirectory(prefix="caffeup-") as scratch:
        copy = Path(scratch, "tree")
        _copy_sources(root, copy)
        engine.revert(str(copy))
        disk = Disk(str(copy))
        there = msgspec.structs.replace(plan, tree=str(copy))
        entries = engine.preview(str(copy), there, session.facts, config)
        whole = {path for one in wanted_entries(plan, session.facts, config) for path, _ in one.whole}
        touched = sorted({*whole, *(path for entry in entries for path in entry.files)})
        before = {path: Image() if path in whole else disk.read(path) for path in touched}
        engine.apply(str(copy), there, session.facts, config)
        return tuple(_written(path, image, disk.read(path)) for path, image in before.items())


def _written(path: str, before: Image, after: Image) -> Written:
    return Written(
        path=path,
        before=before.data,
        after=after.data,
        link=after.link,
        executable=bool(after.data is not None and after.mode & 0o100),
    )


def _copy_sources(root: Path, copy: Path) -> None:
    """Sources, and what is needed to take out what caffeup applied; no data, no products."""
    for folder, names, files in os.walk(root):
        here = Path(folder)
        inside = here.relative_to(root)
        ours = inside.parts[:1] == (FOLDER,)
        if ours:
            names[:] = [name for name in names if inside.parts != (FOLDER,) or name in _OURS]
        else:
            names[:] = [name for name in names if name not in _NO_SOURCES and not (here / name).is_symlink()]
        (copy / inside).mkdir(parents=True, exist_ok=True)
        for path in (here / name for name in (*names, *files)):
            if path.is_symlink():
                if ours:
                    (copy / inside / path.name).symlink_to(path.readlink())
            elif path.is_file() and (ours or _is_source(path)):
                shutil.copy2(path, copy / inside / path.name)


def _is_source(path: Path) -> bool:
    named = path.suffix in _SOURCES or path.name.startswith("Makefile")
    return named and path.stat().st_size <= _LARGEST


def _template(form: str) -> str:
    return (bundled("templates") / f"{FORMS[form]}.j2").read_text(encoding="utf-8")


def _notes(tree: Tree, recipe: Recipe, lock: Lock) -> list[str]:
    notes = []
    locked = lock.tree.get("commit", "")
    if locked and locked != tree.origin.commit:
        notes.append(f"the lock is of commit {locked[:10]}, and the tree is at {tree.origin.commit[:10]}: this is of the tree")
    if tree.origin.dirty:
        notes.append(
            f"the tree has changes that are not in its commit {tree.origin.commit[:10]}: they are not in what was written"
        )
    if not recipe.fetched:
        notes.append("where this tree comes from is not known: whoever builds by this must have it")
    elif recipe.fetched == "git" and "://" not in tree.origin.url and "@" not in tree.origin.url:
        notes.append(f"the tree was cloned from {tree.origin.url}, which another machine does not have")
    return notes
