"""What is wrong with a tree before anything is built: half clones, names that a shell would run, other software inside."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator

from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.source.look import Look, evidence_of, printable, quoted
from caffeup.source.obstacles import build_folder, commands, foreign_config, links_out, own_folder, strangers
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
MANY = 4
"""So many empty sources are no accident of the authors."""
CODE = (".cpp", ".cu", ".cuh", ".hpp", ".h", ".proto", ".py")
COMPILED = ("src/", "tools/", "examples/", "python/", "include/", "matlab/")
PLAIN = re.compile(r"[A-Za-z0-9_.+@%=,~/-]*")
"""Characters that neither make nor the shell that Caffe's Makefile calls takes for its own."""


def examine(look: Look) -> tuple[Finding, ...]:
    """All findings, in the order of their severity."""
    checks = (_makefile, _half, _writable, _names, _path, _damage)
    others = (strangers, links_out, own_folder, build_folder, commands, foreign_config)
    found = [finding for check in (*checks, *others) for finding in check(look)]
    order = (Severity.PROBLEM, Severity.WARNING, Severity.NOTE, Severity.OK)
    return tuple(sorted(found, key=lambda finding: order.index(finding.severity)))


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
                    commands=(f"git -C {quoted(survey.root)} log --diff-filter=D --oneline -- Makefile",),
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
                        f"git -C {quoted(survey.root)} -c core.autocrlf=false checkout -- .",
                        f"cd {quoted(survey.root)} && grep -rlI $'\\r$' . --exclude-dir=.git | xargs -d '\\n' sed -i 's/\\r$//'",
                    ),
                ),
            ),
        )


def _half(look: Look) -> Iterator[Finding]:
    """A clone or copy that was broken off."""
    survey, checkout = look.survey, look.checkout
    root = quoted(survey.root)
    gone = [name for name in NEEDED if not survey.has(name)]
    empty = _emptied(look)
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
            evidence=evidence_of(list(dict.fromkeys([*gone, *missing])), "not there") + evidence_of(empty, "empty"),
            affects="tree",
            remedies=(remedy,),
        )
    elif missing:
        yield Finding(
            id="tree-files-deleted",
            severity=Severity.NOTE,
            title=f"{len(missing)} tracked file{'s are' if len(missing) > 1 else ' is'} not there",
            evidence=evidence_of(missing, "not there"),
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


def _emptied(look: Look) -> list[str]:
    """Sources that are empty and were not meant to be: BVLC's opencl branch has one that is."""
    survey, checkout = look.survey, look.checkout
    empty = [
        name
        for name in survey.files
        if name.startswith(("src/caffe/", "include/caffe/")) and name.endswith(CODE[:6]) and _empty(survey, name)
    ]
    if checkout and checkout.commit:
        return [name for name in empty if name in checkout.changed or name in NEEDED]
    return empty if len(empty) >= MANY else [name for name in empty if name in NEEDED]


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
                    commands=(f"cp -r {quoted(root)} ~/{shlex.quote(root.name)}", f"caffeup up ~/{shlex.quote(root.name)}"),
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
            evidence=evidence_of(seen),
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


def _damage(look: Look) -> Iterator[Finding]:
    survey = look.survey
    if survey.unreadable:
        yield Finding(
            id="tree-unreadable",
            severity=Severity.WARNING,
            title="parts of this tree cannot be read",
            why="What is in them is not in this report, and make will fail on them.",
            evidence=evidence_of(survey.unreadable, "unreadable"),
            affects="build",
            remedies=(Remedy(text="Make them readable for you.", commands=(f"sudo chown -R $(id -un) {quoted(survey.root)}",)),),
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
