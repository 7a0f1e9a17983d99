"""Gets a tree: by name from the catalogue, from a git address, an archive, or a folder that is used where it is."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Optional, Union

import msgspec

from caffeup.disk import as_path
from caffeup.errors import SourceError, UsageError
from caffeup.facts.forks import Fork
from caffeup.facts.tables import Facts
from caffeup.host import Host
from caffeup.model.base import Value
from caffeup.model.tree import Origin
from caffeup.source import archive as archives
from caffeup.source import catalogue, git, index
from caffeup.source.checkout import COMMIT, read_checkout, without_credentials
from caffeup.source.git_said import cannot_reach
from caffeup.source.inspect import looks_like_caffe
from caffeup.source.origin import OURS, hide_from_git, origin_of, recorded_origin, told, write_origin
from caffeup.source.problems import BadArchive, NoAccess, Occupied, Unreachable, disk_error
from caffeup.source.progress import Progress, silent
from caffeup.source.staging import put_in_place, staging


class Place(Value, kw_only=True):
    """Where a tree can be had, resolved from what the user typed."""

    kind: str
    """``git``, ``sdist``, ``archive`` or ``folder``."""
    name: str
    """For the folder: ``ssd``."""
    catalogue: str = ""
    """The catalogue's name, where it is from there."""
    url: str = ""
    branch: str = ""
    commit: str = ""
    path: str = ""
    """Of an archive or folder."""


def resolve(source: str, facts: Facts) -> Place:
    """What is meant: a catalogue's name (``ssd``, ``ssd@<commit>``), a folder, an archive, or a git address (``…#branch``)."""
    name, _, revision = source.partition("@")
    row = catalogue.named(name, facts)
    if row is not None:
        return _from_catalogue(row, revision)
    if source.startswith("-") or not source or "\0" in source:
        raise UsageError(f"this is no source: {source!r}", commands=("caffeup up ssd",))
    path = as_path(source)
    with suppress(OSError):
        if path.is_dir():
            return _from_folder(path)
        if path.is_file():
            return Place(kind="archive", name=_plain(_stem(path.name)), path=str(path.absolute()))
    if "://" in source or "::" in source or git.is_git_url(source):
        return _from_url(source)
    raise _nothing(source, facts)


def default_folder(source: str, facts: Facts) -> str:
    """Where the tree goes unless ``--into`` says otherwise: the folder itself where the source is one, else ``caffe-<name>``."""
    place = resolve(source, facts)
    return place.path if place.kind == "folder" else f"caffe-{place.name}"


def fetch(
    source: str,
    into: Union[str, Path],
    facts: Facts,
    host: Host,
    *,
    progress: Progress = silent,
    asked_for: str = "",
) -> Origin:
    """Have the tree in the folder ``into``, and say where it came from; one that is there already is used. Nothing of it is run.

    Raise ``Unreachable`` where its host does not answer: ``catalogue.substitute_for`` may know another tree, which is then
    fetched with ``asked_for``.
    """
    place = resolve(source, facts)
    target = as_path(str(into)).absolute()
    if place.kind == "folder":
        return _use_folder(Path(place.path))
    there = _already_there(place, target)
    if there is not None:
        return there
    try:
        return _bring(place, target, facts, host, progress, asked_for)
    except NoAccess as problem:
        if not place.catalogue:
            raise
        raise Unreachable(  # the catalogue's trees are public: something between here and there says no
            f"no way to {without_credentials(place.url)} from here", details=problem.details, commands=problem.commands
        ) from problem


def require_free(source: str, into: Union[str, Path], facts: Facts) -> None:
    """Raise ``Occupied`` where something else stands in the folder that ``fetch`` would fill."""
    _already_there(resolve(source, facts), as_path(str(into)).absolute())


def reach(source: str, into: Union[str, Path], facts: Facts, host: Host) -> str:
    """The address that ``fetch`` would ask; raise what it would raise, as far as that can be told. Nothing is written."""
    place = resolve(source, facts)
    _already_there(place, as_path(str(into)).absolute())
    if place.kind == "archive":
        archives.look(Path(place.path))
    shown = without_credentials(place.url)
    why = git.unanswered(place.url, host) if place.kind == "git" else None
    if why is not None:
        raise Unreachable(cannot_reach(shown, why), advice="Check the network, and git's proxy settings.")
    return shown or place.path or f"{place.name} from the Python package index"


def _from_catalogue(row: Fork, revision: str) -> Place:
    if row.sdist is not None:
        if revision:
            raise UsageError(f"{row.id} is one fixed archive, {row.sdist.version}; it has no {revision}")
        return Place(kind="sdist", name=row.id, catalogue=row.id)
    commit = revision if re.fullmatch(r"[0-9a-f]{7,64}", revision) else ""
    branch = revision if revision and not commit else row.branch
    return Place(kind="git", name=row.id, catalogue=row.id, url=row.url, branch=branch, commit=commit)


def _from_folder(path: Path) -> Place:
    bare = (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()
    if bare and not (path / "src").exists():
        return Place(kind="git", name=_plain(path.name.removesuffix(".git")), url=path.absolute().as_uri())
    return Place(kind="folder", name=_plain(path.absolute().name), path=str(path.absolute()))


def _from_url(source: str) -> Place:
    address, _, revision = source.partition("#")
    git.checked_url(address)
    if address.lower().split("?", 1)[0].endswith(archives.SUFFIXES):
        raise UsageError(
            f"caffeup does not download archives that it has no hash of: {without_credentials(address)}",
            advice="Download it yourself, look at it, and give caffeup the file.",
            commands=(
                f"curl -fLO {shlex.quote(without_credentials(address))}",
                f"caffeup up ./{shlex.quote(address.rpartition('/')[2])}",
            ),
        )
    if not git.is_git_url(address):
        raise UsageError(
            f"caffeup gives no such address to git: {without_credentials(address)}", advice="It takes https, ssh, git and file."
        )
    words = [word for word in re.split(r"[/:]", address.removesuffix("/").removesuffix(".git")) if word]
    name = words[-2] if len(words) > 1 and words[-1] == "caffe" else words[-1]
    commit = revision if COMMIT.fullmatch(revision) else ""
    branch = "" if commit else revision
    return Place(kind="git", name=_plain(f"{name}-{branch}" if branch else name), url=address, branch=branch, commit=commit)


def _plain(name: str) -> str:
    """A name for a folder that neither make nor a shell stumbles over."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.").removeprefix("caffe-") or "tree"


def _stem(name: str) -> str:
    return next((name[: -len(suffix)] for suffix in archives.SUFFIXES if name.lower().endswith(suffix)), name)


def _nothing(source: str, facts: Facts) -> SourceError:
    known = ", ".join(row.id for row in catalogue.trees(facts))
    path_like = "/" in source or source.lower().endswith(archives.SUFFIXES)
    what = "there is no such file or folder" if path_like else "neither a name of the catalogue nor a file or folder"
    return SourceError(
        f"{source}: {what}", advice=f"The catalogue has {known}.", commands=("caffeup up --list", "caffeup up ssd")
    )


def _use_folder(folder: Path) -> Origin:
    looks_like_caffe(folder)
    with suppress(OSError):  # a read-only tree is a finding of its own
        hide_from_git(folder)
    return origin_of(folder, read_checkout(folder))


def _already_there(place: Place, target: Path) -> Optional[Origin]:
    """The tree that stands at the target, if it is the one that is wanted; None where nothing stands there."""
    if not target.is_symlink() and not target.exists():
        return None
    with suppress(OSError):
        if target.is_dir() and not os.listdir(target):  # noqa: PTH208
            return None
    have = recorded_origin(target)
    shown = shlex.quote(str(target))
    if have is not None and _same(have, place):
        now = origin_of(target, read_checkout(target))
        if not place.commit or now.commit.startswith(place.commit):
            return now
        raise Occupied(
            f"{target} is at commit {now.commit[:12]}, not {place.commit[:12]}",
            advice="caffeup moves no tree that you may have changed. Check it out yourself, or name another folder with --into.",
            commands=(f"git -C {shown} fetch --depth 1 origin {place.commit}", f"git -C {shown} checkout {place.commit}"),
        )
    source = place.catalogue or without_credentials(place.url) or place.path
    raise Occupied(
        f"{target} is there already, and is "
        + (f"a tree from {told(have)}" if have else "without a note that caffeup fetched it"),
        advice="Nothing in it was touched. Use it as it is, or name another folder with --into.",
        commands=(f"caffeup up {shown}", f"caffeup up {shlex.quote(source)} --into {shlex.quote(f'{target}-2')}"),
    )


def _same(have: Origin, place: Place) -> bool:
    if have.asked_for and have.asked_for == place.catalogue:
        return True
    if place.kind == "git":
        same_branch = not place.branch or not have.branch or have.branch == place.branch
        return have.kind == "git" and have.url == without_credentials(place.url) and same_branch
    if place.kind == "archive":
        with suppress(OSError):
            return have.kind == "archive" and have.sha256 == archives.sha256_of(Path(place.path))
        return False
    return have.kind == "sdist"


def _bring(place: Place, target: Path, facts: Facts, host: Host, progress: Progress, asked_for: str) -> Origin:
    """Make the tree beside the target, look whether it is one, and put it there."""
    with staging(target) as part, _disk(target.parent):
        made, origin = _make(place, part, facts, host, progress)
        looks_like_caffe(made, shown=place.url or place.path or place.name)
        if os.path.lexists(made / OURS):  # as a link it would lead our writes out of the tree; as a folder it would speak for us
            raise BadArchive(
                f"{place.url or place.name} is refused: it brings a .caffeup of its own", advice="Nothing of it was kept."
            )
        origin = msgspec.structs.replace(origin, asked_for=asked_for)
        write_origin(made, origin)
        put_in_place(made, target)
    return origin


def _make(place: Place, part: Path, facts: Facts, host: Host, progress: Progress) -> tuple[Path, Origin]:
    tree = part / "tree"
    if place.kind == "git":
        git.clone(place.url, tree, branch=place.branch, commit=place.commit, env=host.env, progress=progress)
        now = read_checkout(tree)
        commit, branch = (now.commit, now.branch or place.branch) if now else ("", place.branch)
        return tree, Origin(kind="git", url=without_credentials(place.url), branch=branch, commit=commit)
    tree.mkdir()
    if place.kind == "archive":
        file = Path(place.path)
        progress("unpacking", 0, 0)
        unpacked = archives.unpack(file, tree)
        return archives.single_top(tree), Origin(kind="archive", url=file.name, sha256=unpacked.sha256)
    row = catalogue.named(place.catalogue, facts)
    if row is None or row.sdist is None:
        raise UsageError(f"the catalogue has no archive for {place.catalogue}")
    wanted = index.pinned(row.sdist)
    file = index.download(wanted, part, run=index.runner(host, part), python=index.pythons(host), progress=progress)
    progress("unpacking", 0, 0)
    archives.unpack(file, tree, sha256=wanted.sha256)
    return archives.single_top(tree), Origin(
        kind="sdist", url=row.url, branch=f"{wanted.name} {wanted.version}", sha256=wanted.sha256
    )


@contextmanager
def _disk(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise disk_error(error, folder) from error
