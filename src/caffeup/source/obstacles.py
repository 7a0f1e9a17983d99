"""What lies in a tree and does not belong to its sources: other software, links out of it, build folders, settings."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator

from caffeup.model.finding import Confidence, Evidence, Finding, Remedy, Severity
from caffeup.model.tree import ConfigState
from caffeup.source.commands import commands_when_read
from caffeup.source.look import SHOWN, Look, evidence_of, printable, quoted
from caffeup.source.makefile import included

LONGEST = 200
"""Of a command that is shown."""
SOURCES = ("src/", "include/", "tools/", "examples/", "python/", "Makefile", "CMakeLists.txt")


def strangers(look: Look) -> Iterator[Finding]:
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
            evidence=evidence_of(tops),
            affects="build",
            remedies=(
                Remedy(
                    text="Move it out of the tree, or give it a name that begins with a dot.",
                    commands=tuple(f"cd {quoted(survey.root)} && mv {shlex.quote(name)} ../" for name in tops[:SHOWN]),
                ),
            ),
        )


def build_folder(look: Look) -> Iterator[Finding]:
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
        remedies=(Remedy(text="Move it away.", commands=(f"cd {quoted(survey.root)} && mv {name} {name}-cmake",)),),
    )


def foreign_config(look: Look) -> Iterator[Finding]:
    """Whose Makefile.config it is, and whether it names what is not there."""
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
        if found and not os.path.exists(found.group(2)):  # noqa: PTH110  # Path.exists raises for what others may not enter
            yield Evidence(where="Makefile.config", line=number, text=f"{found.group(1)} := {found.group(2)}, which is not there")


def links_out(look: Look) -> Iterator[Finding]:
    """Sources that are links to somewhere else: an edit would change what is not in the tree."""
    survey = look.survey
    top = os.path.realpath(survey.root)
    out = [name for name in survey.links if name.startswith(SOURCES) and not _inside(os.path.realpath(survey.root / name), top)]
    if out:
        yield Finding(
            id="tree-links-out",
            severity=Severity.WARNING,
            title="sources of this tree are links to files outside it",
            why="They may change without the tree, and caffeup does not edit what is outside it.",
            evidence=evidence_of(out),
            affects="patch",
            remedies=(
                Remedy(text="Put copies in their place, if you trust them.", commands=(f"ls -l {quoted(survey.root / out[0])}",)),
            ),
        )


def own_folder(look: Look) -> Iterator[Finding]:
    """Caffeup writes into .caffeup; a link there would lead its writes somewhere else."""
    folder = look.survey.root / ".caffeup"
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        yield Finding(
            id="tree-own-folder",
            severity=Severity.PROBLEM,
            title=".caffeup is " + ("a link" if folder.is_symlink() else "no folder"),
            why="caffeup keeps its notes in a folder of that name, and does not write through a link that it did not make.",
            evidence=evidence_of([".caffeup"]),
            affects="tree",
            remedies=(Remedy(text="Look where it leads, and remove it.", commands=(f"ls -ld {quoted(folder)}",)),),
        )


def commands(look: Look) -> Iterator[Finding]:
    """What make runs as soon as it reads the Makefile, before anything is built."""
    seen: list[Evidence] = []
    read: set[str] = set()
    pending = ["Makefile"]
    while pending:
        name = pending.pop(0)
        text = look.survey.text(name)
        if text is None or name in read:
            continue
        read.add(name)
        # Makefile.config is left out: the one that make will read is caffeup's.
        pending += [
            os.path.normpath(one) for one in included(text) if one != "Makefile.config" and not one.startswith(("/", ".."))
        ]
        for one in commands_when_read(text):
            under = f"  ({one.condition})" if one.condition else ""
            seen.append(Evidence(where=name, line=one.line, text=printable(f"{one.text}{under}")[:LONGEST]))
    if not seen:
        return
    first = seen[0]
    more = Evidence(where=f"and {len(seen) - SHOWN} more")
    yield Finding(
        id="tree-makefile-runs-commands",
        severity=Severity.WARNING,
        title="this Makefile runs commands when it is read",
        why="make runs them at once, whatever is asked of it: caffeup's configure and build do, but no command that only shows.",
        evidence=(*seen[:SHOWN], more) if len(seen) > SHOWN else tuple(seen),
        affects="build",
        remedies=(
            Remedy(
                text="Look at them before you go on, unless you know where this tree is from.",
                commands=(f"sed -n {first.line}p {quoted(look.survey.root / first.where)}",),
            ),
        ),
    )


def _inside(real: str, top: str) -> bool:
    return real == top or real.startswith(f"{top}/")
