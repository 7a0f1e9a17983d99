"""What stands in the way in the tree itself, and the settings that name its folders."""

from __future__ import annotations

import posixpath
import re
import shlex

from caffeup.model.finding import Finding, Severity
from caffeup.model.plan import ConfigLine
from caffeup.plan.case import Case
from caffeup.plan.part import Part, conflict, line, remedy

BUILD, RELEASE, DEBUG, DISTRIBUTE = "build", ".build_release", ".build_debug", "distribute"
_SAID_HERE = ("tree-no-makefile", "tree-makefile-without-config", "tree-path")
"""Findings of the inspection that the plan tells in its own words."""
_TROUBLE = re.compile(r"[\s$#\"'\\:;%&|<>()*?\[\]`]")


def check_tree(case: Case) -> tuple[Finding, ...]:
    """Conflicts of the tree: no Makefile, a path that make and the shell would not survive, and what its inspection found."""
    found = []
    if not case.tree.makefile:
        ways = [remedy("take a tree that has one", "caffeup up ssd")]
        why = "It has only CMake, which caffeup does not drive." if case.tree.cmake else ""
        found.append(conflict("no-makefile", "this tree has no Makefile", why, remedies=ways, affects=case.tree.root))
    elif not case.tree.config_keys:
        why = "Settings in Makefile.config would have no effect."
        found.append(conflict("no-config", "this tree's Makefile does not read Makefile.config", why, affects=case.tree.root))
    bad = sorted(set(_TROUBLE.findall(case.tree.root)))
    if bad:
        found.append(_bad_path(case, bad))
    found += [one for one in case.tree.findings if one.severity is Severity.PROBLEM and one.id not in _SAID_HERE]
    return tuple(found)


def tree_lines(case: Case, *, gpu: bool) -> Part:
    """Folders of the build: never empty, always inside the tree, since ``make clean`` removes them; what to know of the tree."""
    lines: list[ConfigLine] = []
    for key, value, because in (
        ("BUILD_DIR", BUILD, "the link to the newest build; `make clean` removes it"),
        ("RELEASE_BUILD_DIR", RELEASE, "objects and programs"),
        ("DEBUG_BUILD_DIR", DEBUG, "the same with DEBUG=1"),
        ("DISTRIBUTE_DIR", DISTRIBUTE, "for `make distribute`; `make clean` removes it"),
    ):
        if case.reads(key):
            lines.append(line(key, value, because=because))
    if gpu and case.reads("TEST_GPUID"):
        lines.append(line("TEST_GPUID", "0", because="the GPU that `make runtest` uses"))
    if case.reads("Q"):
        lines.append(line("Q", "@", because="short output; `make Q=` shows the commands", operator="?="))
    warned = tuple(one for one in case.tree.findings if one.severity is Severity.WARNING and one.id not in _SAID_HERE)
    return Part(config=tuple(lines), notes=warned)


def build_dir(case: Case) -> str:
    """The name of the link to the build: the tree's own where its Makefile insists."""
    return case.tree.build_dir or BUILD


def _bad_path(case: Case, bad: list[str]) -> Finding:
    names = {" ": "a blank", "\n": "a line break", "\t": "a tab"}
    words = ", ".join(names.get(char, char) for char in bad)
    plain = re.sub(r"[^A-Za-z0-9_./+-]+", "-", posixpath.basename(case.tree.root)).strip("-.") or "caffe"
    parent = posixpath.dirname(case.tree.root)
    target = posixpath.join("~" if _TROUBLE.search(parent) else parent, plain)
    command = f"mv {shlex.quote(case.tree.root)} {target if target.startswith('~') else shlex.quote(target)}"
    title = f"the path of the tree holds what make or the shell would misread: {words}"
    return conflict(
        "tree-path",
        title,
        "Caffe's Makefile passes paths through make and the shell unquoted.",
        remedies=(remedy("move the tree", command),),
        affects=case.tree.root,
    )
