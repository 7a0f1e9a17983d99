"""What is wrong with a tree before anything is built: half clones, names that a shell would run, other software inside."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

from caffeup.model.base import Value
from caffeup.model.finding import Confidence, Evidence, Finding, Remedy, Severity
from caffeup.model.tree import ConfigState, Origin
from caffeup.source.checkout import Checkout
from caffeup.source.makefile import Makefile
from caffeup.source.survey import Survey

NEEDED = (
    "src/caffe/proto/caffe.proto",
    "src/caffe/layer_factory.cpp",
    "src/caffe/net.cpp",
    "src/caffe/blob.cpp",
    "src/caffe/util/io.cpp",
    "include/caffe/caffe.hpp",
    "include/caffe/common.hpp",
    "include/caffe/layer.hpp",
    "include/caffe/net.hpp",
    "include/caffe/blob.hpp",
    "tools/caffe.cpp",
)
CODE = (".cpp", ".cu", ".cuh", ".hpp", ".h", ".proto", ".py")
COMPILED = ("src/", "tools/", "examples/", "python/", "include/", "matlab/")
PLAIN = re.compile(r"[A-Za-z0-9_.+@%=,~/-]*")
"""Characters that neither make nor the shell that Caffe's Makefile calls takes for its own."""
SHOWN = 5


class Look(Value, kw_only=True):
    """Everything that an examination reads."""

    survey: Survey
    makefile: Optional[Makefile]
    checkout: Optional[Checkout]
    config: ConfigState
    origin: Origin


def examine(look: Look) -> tuple[Finding, ...]:
    """All findings, in the order of their severity."""
    checks = (_makefile, _half, _writable, _names, _path, _strangers, _build_folder, _config, _damage)
    found = [finding for check in checks for finding in check(look)]
    order = (Severity.PROBLEM, Severity.WARNING, Severity.NOTE, Severity.OK)
    return tuple(sorted(found, key=lambda finding: order.index(finding.severity)))


def _evidence(names: list[str], text: str = "") -> tuple[Evidence, ...]:
    shown = [Evidence(where=printable(name), text=text) for name in names[:SHOWN]]
    if len(names) > SHOWN:
        shown.append(Evidence(where=f"and {len(names) - SHOWN} more"))
    return tuple(shown)


def printable(name: str) -> str:
    """A file's name for people: what cannot be printed is escaped."""
    shown = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown)


def _quoted(root: Path) -> str:
    return shlex.quote(str(root))


def _makefile(look: Look) -> Iterator[Finding]:
    survey = look.survey
    if look.makefile is None:
        only_cmake = survey.has("CMakeLists.txt")
        yield Finding(
            id="tree-no-makefile",
            severity=Severity.PROBLEM,
            title="this tree has no Makefile" + (", only CMake" if only_cmake else ""),
            why="caffeup configures and builds through Makefile.config. Sources can still be patched, and the layer added."
            if only_cmake
            else "Without a Makefile nothing can be built; the checkout may be half.",
            evidence=(Evidence(where="Makefile", text="not there"),),
            affects="build",
            remedies=(
                Remedy(
                    text="Take BVLC's Makefile of the same age into the tree.",
                    commands=(f"git -C {_quoted(survey.root)} log --diff-filter=D --oneline -- Makefile",),
                ),
            ),
        )
    elif not look.makefile.reads_config:
        yield Finding(
            id="tree-makefile-without-config",
            severity=Severity.PROBLEM,
            title="this tree's Makefile does not read Makefile.config",
            why="Settings written there would have no effect.",
            evidence=(Evidence(where="Makefile", text="no include of Makefile.config"),),
            affects="build",
        )
    raw = survey.read("Makefile") or b""
    if b"\r\n" in raw:
        yield Finding(
            id="tree-crlf",
            severity=Severity.PROBLEM,
            title="the Makefile has Windows line ends",
            why="make takes the carriage return as part of names and values, and nothing is found.",
            evidence=(
                Evidence(where="Makefile", line=1, text=raw.split(b"\n", 1)[0].decode("utf-8", "backslashreplace").strip()),
            ),
            affects="build",
            remedies=(
                Remedy(
                    text="Check the tree out again with Unix line ends.",
                    commands=(
                        f"git -C {_quoted(survey.root)} -c core.autocrlf=false checkout -- .",
                        f"cd {_quoted(survey.root)} && grep -rlI $'\\r$' . --exclude-dir=.git | xargs -d '\\n' sed -i 's/\\r$//'",
                    ),
                ),
            ),
        )


def _half(look: Look) -> Iterator[Finding]:
    """A clone or copy that was broken off."""
    survey, checkout = look.survey, look.checkout
    root = _quoted(survey.root)
    gone = [name for name in NEEDED if not survey.has(name)]
    empty = [
        name
        for name in survey.files
        if name.startswith(("src/caffe/", "include/caffe/")) and name.endswith(CODE[:6]) and _empty(survey, name)
    ]
    missing = list(checkout.missing) if checkout else []
    broken = [name for name in (*gone, *empty) if not name.startswith("tools/")] or [
        n for n in missing if n.startswith(("src/", "include/"))
    ]
    if broken:
        remedy = (
            Remedy(
                text="Let git put the missing files back; this loses your changes to tracked files.",
                commands=(f"git -C {root} checkout -- .",),
            )
            if checkout and checkout.commit
            else Remedy(text="Fetch the tree again into another folder.", commands=("caffeup up ssd --into caffe-fresh",))
        )
        yield Finding(
            id="tree-half",
            severity=Severity.PROBLEM,
            title="this tree is not whole",
            why="A clone, a copy or an unpacking was broken off: files that every Caffe has are missing or empty.",
            evidence=_evidence(list(dict.fromkeys([*gone, *missing])), "not there") + _evidence(empty, "empty"),
            affects="tree",
            remedies=(remedy,),
        )
    elif missing:
        yield Finding(
            id="tree-files-deleted",
            severity=Severity.NOTE,
            title=f"{len(missing)} tracked file{'s are' if len(missing) > 1 else ' is'} not there",
            evidence=_evidence(missing, "not there"),
            remedies=(Remedy(text="Let git put them back.", commands=(f"git -C {root} checkout -- {shlex.quote(missing[0])}",)),),
        )
    if checkout and checkout.locked:
        yield Finding(
            id="tree-git-locked",
            severity=Severity.WARNING,
            title="git was killed in this tree, or still works in it",
            why="As long as index.lock stands there git refuses to change anything.",
            evidence=(Evidence(where=".git/index.lock"),),
            remedies=(
                Remedy(
                    text="When no git runs there any more, remove the lock.",
                    commands=(f"rm {root}/.git/index.lock", f"git -C {root} status"),
                ),
            ),
        )


def _empty(survey: Survey, name: str) -> bool:
    try:
        return (survey.root / name).stat().st_size == 0
    except OSError:
        return False


def _writable(look: Look) -> Iterator[Finding]:
    root = look.survey.root
    try:
        read_only = bool(os.statvfs(root).f_flag & os.ST_RDONLY)
    except OSError:
        read_only = False
    if read_only or not os.access(root, os.W_OK | os.X_OK):
        yield Finding(
            id="tree-read-only",
            severity=Severity.PROBLEM,
            title="this tree cannot be written",
            why="Makefile.config, the build folder and caffeup's notes go into the tree.",
            evidence=(Evidence(where=str(root), text="on a read-only file system" if read_only else "no write permission"),),
            affects="build",
            remedies=(
                Remedy(
                    text="Work on a copy.",
                    commands=(f"cp -r {_quoted(root)} ~/{shlex.quote(root.name)}", f"caffeup up ~/{shlex.quote(root.name)}"),
                ),
            ),
        )


def _names(look: Look) -> Iterator[Finding]:
    """Caffe's Makefile hands every folder's name, and every source's, to a shell."""
    survey = look.survey
    seen = [name for name in survey.folders if not name.startswith(".") and not PLAIN.fullmatch(name)]
    seen += [name for name in survey.files if name.startswith(COMPILED) and name.endswith(CODE) and not PLAIN.fullmatch(name)]
    seen += [name for name in (*survey.folders, *survey.files) if name.startswith("-")]
    if seen:
        yield Finding(
            id="tree-unsafe-name",
            severity=Severity.PROBLEM,
            title="names in this tree would be run by the shell, or split by make",
            why="Caffe's Makefile passes names of folders and sources to a shell: a blank splits them; $, quotes or ; do worse.",
            evidence=_evidence(seen),
            affects="build",
            remedies=(Remedy(text="Look at these names; rename or remove them."),),
        )


def _path(look: Look) -> Iterator[Finding]:
    root = str(look.survey.root)
    bad = sorted({char for char in root if not PLAIN.fullmatch(char) and char.isascii()})
    if bad:
        listed = " ".join("blank" if char == " " else repr(char) for char in bad)
        yield Finding(
            id="tree-path",
            severity=Severity.WARNING,
            title="the path of this tree has characters that make and shells take for their own",
            why="Caffe's Makefile uses relative paths, so most of it works; absolute paths into the tree do not.",
            evidence=(Evidence(where=printable(root), text=listed),),
            affects="build",
            remedies=(
                Remedy(
                    text="Move the tree to a path of letters, digits and - _ . /", commands=(f"mv {shlex.quote(root)} ~/caffe",)
                ),
            ),
        )


def _strangers(look: Look) -> Iterator[Finding]:
    """Virtual environments and second trees inside: ``find`` takes their .cpp files for Caffe's."""
    survey = look.survey
    signs = ("pyvenv.cfg", "conda-meta", "site-packages")
    hosts = {name.rpartition("/")[0] for name in (*survey.files, *survey.folders) if name.rpartition("/")[2] in signs}
    hosts |= {
        name[: -len("/src/caffe/proto/caffe.proto")] for name in survey.files if name.endswith("/src/caffe/proto/caffe.proto")
    }
    tops = sorted(
        name for name in hosts if name and not name.startswith(".") and not any(name.startswith(f"{other}/") for other in hosts)
    )
    compiled = [name for name in tops if name.startswith(("src/caffe", "tools", "examples"))]
    if tops:
        yield Finding(
            id="tree-strangers",
            severity=Severity.PROBLEM if compiled else Severity.WARNING,
            title="other software lies inside this tree",
            why="Caffe's Makefile finds its sources by looking through all folders: "
            + (
                "these files would be compiled into Caffe."
                if compiled
                else "each of these folders is copied as an empty one into the build."
            ),
            evidence=_evidence(tops),
            affects="build",
            remedies=(
                Remedy(
                    text="Move it out of the tree, or give it a name that begins with a dot.",
                    commands=tuple(f"cd {_quoted(survey.root)} && mv {shlex.quote(name)} ../" for name in tops[:SHOWN]),
                ),
            ),
        )


def _build_folder(look: Look) -> Iterator[Finding]:
    """Caffe's Makefile begins with ``rm -r build``: a CMake build in it would be lost."""
    survey = look.survey
    name = (look.makefile.build_dir if look.makefile else "") or "build"
    folder = survey.root / name
    if look.makefile is None or folder.is_symlink() or not folder.is_dir():
        return
    yield Finding(
        id="tree-build-folder",
        severity=Severity.PROBLEM,
        title=f"{name}/ is a folder" + (" with a CMake build" if (folder / "CMakeCache.txt").exists() else ""),
        why=f"Caffe's Makefile removes {name} with all that is in it and puts a link there. caffeup does not let that happen.",
        evidence=(Evidence(where=f"{name}/", text="a folder, not a link"),),
        affects="build",
        remedies=(Remedy(text="Move it away.", commands=(f"cd {_quoted(survey.root)} && mv {name} {name}-cmake",)),),
    )


def _config(look: Look) -> Iterator[Finding]:
    survey = look.survey
    if look.config == ConfigState.OURS_EDITED:
        yield Finding(
            id="tree-config-edited",
            severity=Severity.NOTE,
            title="Makefile.config was written by caffeup and changed since",
            evidence=(Evidence(where="Makefile.config"),),
        )
    if look.config != ConfigState.FOREIGN:
        return
    stale = list(_stale_paths(survey.text("Makefile.config") or ""))
    yield Finding(
        id="tree-config-stale" if stale else "tree-config-foreign",
        severity=Severity.NOTE,
        title="there is a Makefile.config that caffeup did not write" + (", and it names what is not there" if stale else ""),
        why="It is kept as Makefile.config.before-caffeup when caffeup writes its own.",
        evidence=tuple(stale[:SHOWN]) or (Evidence(where="Makefile.config"),),
        affects="configure",
        confidence=Confidence.CERTAIN,
    )


def _stale_paths(text: str) -> Iterator[Evidence]:
    """Absolute paths in it that do not exist; the stock file's own list of guesses is not held against anybody."""
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(
            r"\s*(CUDA_DIR|BLAS_INCLUDE|BLAS_LIB|CUSTOM_CXX|MATLAB_DIR|ANACONDA_HOME|PYTHON_INCLUDE)\s*:?=\s*(/\S+)", line
        )
        if found and not Path(found.group(2)).exists():
            yield Evidence(where="Makefile.config", line=number, text=f"{found.group(1)} := {found.group(2)}, which is not there")


def _damage(look: Look) -> Iterator[Finding]:
    survey = look.survey
    if survey.unreadable:
        yield Finding(
            id="tree-unreadable",
            severity=Severity.WARNING,
            title="parts of this tree cannot be read",
            why="What is in them is not in this report, and make will fail on them.",
            evidence=_evidence(survey.unreadable, "unreadable"),
            affects="build",
            remedies=(Remedy(text="Make them readable for you.", commands=(f"sudo chown -R $(id -un) {_quoted(survey.root)}",)),),
        )
    if survey.cut:
        yield Finding(
            id="tree-huge",
            severity=Severity.WARNING,
            title="this tree has more files than were looked at",
            why="Data sets inside a tree make each call of make slow; something may have been overlooked.",
            evidence=(Evidence(where=str(survey.root), text=f"more than {len(survey.files)} files"),),
            remedies=(Remedy(text="Keep data outside the tree."),),
        )
