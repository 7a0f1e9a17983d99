"""What has to be done to get from nothing to a built tree, as a value; the templates say it in their own languages."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Optional

from caffeup.errors import CannotBuild
from caffeup.export import quoting
from caffeup.export.differences import patch_of
from caffeup.model.base import Value
from caffeup.model.machine import System
from caffeup.model.plan import Plan
from caffeup.model.tree import Origin

_COMMIT = re.compile(r"[0-9a-f]{7,64}")
FORMS = {"docker": "Dockerfile", "apptainer": "apptainer.def", "sh": "export.sh"}
"""What ``caffeup export`` can write, and its template."""


class Written(Value, kw_only=True):
    """One file, link or edit in the tree: what stood there, and what shall."""

    path: str
    before: Optional[bytes] = None
    after: Optional[bytes] = None
    link: str = ""
    executable: bool = False


class Packages(Value, kw_only=True):
    """What the distribution's package manager brings."""

    manager: str
    """Row of distros.toml."""
    first: tuple[str, ...] = ()
    """Commands that switch repositories on."""
    before: tuple[str, ...] = ()
    """Commands before the one that installs."""
    install: str = ""
    """The command that the names follow."""
    names: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    """Of those that are installed where the plan was made."""
    python: tuple[str, ...] = ()
    """Those of them that pycaffe needs when it runs."""


class Recipe(Value, kw_only=True):
    """Everything."""

    plan: Plan
    system: System
    origin: Origin
    package: str = ""
    """``name==version`` of an sdist in the package index."""
    packages: Packages
    files: tuple[Written, ...] = ()
    left_out: tuple[str, ...] = ()
    """Test sources that do not compile, and are known not to."""
    failing: tuple[str, ...] = ()
    """Tests that are known to fail."""
    version: str = ""
    """caffeup's own."""
    image_build: str = ""
    image_run: str = ""

    @property
    def fetched(self) -> str:
        """Where the tree comes from: ``git``, ``index``, or empty where only the person knows."""
        if self.package:
            return "index"
        return "git" if self.origin.url and self.commit else ""

    @property
    def commit(self) -> str:
        """The commit, where it is one."""
        return self.origin.commit if _COMMIT.fullmatch(self.origin.commit) else ""

    @property
    def name(self) -> str:
        """The tree's folder."""
        return f"caffe-{self.plan.fork}" if self.plan.fork != "unknown" else "caffe"


def configure_lines(recipe: Recipe) -> str:
    """Shell commands that put links, files and edits in place, in the tree's folder."""
    made: list[str] = []
    for one in sorted(recipe.files, key=lambda one: one.path):
        if one.link:
            made.append(f"point {quoting.word(one.path)} {quoting.word(one.link)}")
        elif one.before is None or one.after is None:
            mode = " executable" if one.executable else ""
            made.append(quoting.heredoc(f"put {quoting.word(one.path)}{mode}", one.after or b""))
    edited = tuple(one for one in recipe.files if one.before is not None and one.after is not None and not one.link)
    if edited:
        sums = (_sums({one.path: one.before or b"" for one in edited}), _sums({one.path: one.after or b"" for one in edited}))
        made += [quoting.heredoc(f"holds {name}", text) for name, text in zip(("before", "after"), sums)]
        made.append(quoting.heredoc("edit", patch_of(tuple((one.path, one.before or b"", one.after or b"") for one in edited))))
    return "\n".join(made) + "\n"


def _sums(files: Mapping[str, bytes]) -> bytes:
    """Lines for ``sha256sum -c``."""
    lines = []
    for path, data in sorted(files.items()):
        if "\n" in path or "\\" in path:
            raise CannotBuild(
                "A file whose name has a line break or a backslash in it cannot be edited by a script.", details=repr(path)
            )
        lines.append(f"{hashlib.sha256(data).hexdigest()}  {path}\n")
    return "".join(lines).encode("utf-8", "surrogateescape")


def pinned(packages: Packages) -> tuple[str, ...]:
    """Names with versions, as the package manager takes them."""
    sign = {"apt": "=", "dnf": "-", "zypper": "="}.get(packages.manager)
    known = dict(packages.versions)
    return tuple(f"{name}{sign}{known[name]}" if sign and name in known else name for name in packages.names)
