"""What a Caffe Makefile says, read as text: what it takes from Makefile.config, what it links, what it appends. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from caffeup.model.base import Value

ASSIGNMENT = re.compile(r"^\s*(?:export\s+|override\s+)*([A-Za-z_][\w.]*)\s*(\?=|\+=|::?=|=)\s*(.*)$", re.DOTALL)
REFERENCE = re.compile(r"\$[({]([A-Za-z_][A-Za-z0-9_]*)(?=[)}:])")
DEFINED = re.compile(r"^\s*(?:else\s+)?ifn?def\s+([A-Za-z_]\w*)")
FOREACH = re.compile(r"\$\(foreach\s+([A-Za-z_]\w*)\s*,")
RULE = re.compile(r"^[^\s#=:][^=#]*?::?(?!=)")
STANDARD = re.compile(r"-std=(\S+)")
INCLUDE = re.compile(r"^\s*[-s]?include\s+(\S.*)$")
MAKES_OWN = frozenset(
    {"MAKE", "RM", "CURDIR", "SHELL", "MAKEFLAGS", "MAKECMDGOALS", "MAKEFILE_LIST", "AR", "CC", "MAKEOVERRIDES"}
)
FLAGS = frozenset({"COMMON_FLAGS", "CXXFLAGS", "NVCCFLAGS", "CFLAGS", "LINKFLAGS"})
NOT_LINUX = ("$(OSX)", "Darwin", "$(OSX_")


class Line(Value, kw_only=True):
    """One logical line (continuations joined)."""

    text: str
    number: int
    """Of its first line in the file, from 1."""
    recipe: bool
    conditions: tuple[str, ...]
    """The conditionals around it, as written; an ``else`` branch has ``else`` before it."""

    @property
    def for_linux(self) -> bool:
        """Whether it stands outside the branches for other systems."""
        return not any(
            any(sign in one for sign in NOT_LINUX) and not one.startswith("else ") and "ifneq" not in one
            for one in self.conditions
        )


class Makefile(Value, kw_only=True):
    """The report on one Makefile."""

    reads_config: bool
    """Whether it includes Makefile.config."""
    config_keys: tuple[str, ...] = ()
    overridable: tuple[str, ...] = ()
    build_dir: str = ""
    libraries: tuple[str, ...] = ()
    isystem: bool = False
    standard: str = ""
    cpu_only: bool = False
    one_test_binary: bool = False
    examples: bool = False
    """Whether it compiles what is under examples/."""


def read_makefile(text: str) -> Makefile:
    """Read a Makefile; what cannot be understood is passed over."""
    lines = tuple(logical_lines(text))
    start, reads_config = _after_include(lines)
    body = lines[start:]
    before = {found.group(1) for line in lines[:start] for found in [ASSIGNMENT.match(line.text)] if found}
    keys, overridable = _variables(body, before)
    return Makefile(
        reads_config=reads_config,
        config_keys=keys,
        overridable=overridable,
        build_dir=_build_dir(body),
        libraries=_libraries(body),
        isystem=any(
            "-isystem" in line.text and "$(includedir)" in line.text.replace("${includedir}", "$(includedir)") for line in body
        ),
        standard=_standard(body),
        cpu_only=any("-DCPU_ONLY" in line.text for line in body),
        one_test_binary="$(TEST_ALL_BIN)" in text and "test_all.testbin" in text,
        examples="EXAMPLE_SRCS" in text,
    )


def logical_lines(text: str) -> Iterator[Line]:
    """Join continuations, drop comments, follow conditionals, and tell recipes from the rest."""
    conditions: list[str] = []
    in_rule = False
    for number, raw in _joined(text):
        recipe = in_rule and raw.startswith("\t")
        line = raw if recipe else _without_comment(raw)
        word = line.split(None, 1)[0].split("(", 1)[0] if line.strip() else ""
        if word in {"ifeq", "ifneq", "ifdef", "ifndef"}:
            conditions.append(line.strip())
        elif word == "else" and conditions:
            rest = line.strip()[4:].strip()
            conditions[-1] = rest or f"else {conditions[-1]}"
        elif word == "endif":
            if conditions:
                conditions.pop()
            continue
        elif line.strip() and not recipe:
            in_rule = not ASSIGNMENT.match(line) and bool(RULE.match(line))
        if line.strip():
            yield Line(text=line, number=number, recipe=recipe, conditions=tuple(conditions))


def included(text: str) -> tuple[str, ...]:
    """Names of the files that it includes, as far as they are plain."""
    found = [INCLUDE.match(line.text) for line in logical_lines(text) if not line.recipe]
    return tuple(name for match in found if match for name in match.group(1).split() if "$" not in name)


def _joined(text: str) -> Iterator[tuple[int, str]]:
    pending, first = "", 1
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if line.endswith("\\"):
            pending += line[:-1] + " "
        else:
            yield first, pending + line
            pending, first = "", number + 1
    if pending:
        yield first, pending


def _without_comment(line: str) -> str:
    found = re.search(r"(?<!\\)#", line)
    return line[: found.start()] if found else line


def _after_include(lines: tuple[Line, ...]) -> tuple[int, bool]:
    """Where the lines after the include of Makefile.config begin, and whether there is one."""
    names = {"Makefile.config"}
    for number, line in enumerate(lines):
        assigned = ASSIGNMENT.match(line.text)
        if assigned and assigned.group(3).strip() == "Makefile.config":
            names |= {f"$({assigned.group(1)})", f"${{{assigned.group(1)}}}"}
        found = INCLUDE.match(line.text)
        if found and names.intersection(found.group(1).split()):
            return number + 1, True
    return 0, False


def _variables(lines: tuple[Line, ...], before: set[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names whose first use is a reading, ``?=`` or ``+=``; and names that are set first and read later."""
    bound = {name for line in lines for name in FOREACH.findall(line.text)}
    first: dict[str, str] = {}
    read: set[str] = set()
    for line in lines:
        if not line.for_linux:
            continue
        assigned = None if line.recipe else ASSIGNMENT.match(line.text)
        used = REFERENCE.findall(assigned.group(3) if assigned else line.text) + DEFINED.findall(line.text)
        for name in used:
            first.setdefault(name, "read")
        read.update(used)
        if assigned:
            name, operator = assigned.group(1), assigned.group(2)
            first.setdefault(name, "read" if operator in {"?=", "+="} else "set")
    ours = {name for name in first if name not in bound | before | MAKES_OWN}
    keys = {name for name in ours if first[name] == "read"}
    return tuple(sorted(keys)), tuple(sorted((ours - keys) & read))


def _build_dir(lines: tuple[Line, ...]) -> str:
    """BUILD_DIR where the Makefile sets it to plain words before anything else uses it."""
    for line in lines:
        assigned = None if line.recipe else ASSIGNMENT.match(line.text)
        if assigned and assigned.group(1) == "BUILD_DIR":
            value = assigned.group(3).strip()
            return value if assigned.group(2) in {"=", ":="} and "$" not in value and not line.conditions else ""
        if "BUILD_DIR" in REFERENCE.findall(line.text):
            return ""
    return ""


def _libraries(lines: tuple[Line, ...]) -> tuple[str, ...]:
    """Every name in LIBRARIES and after ``-l``, whatever switch it hangs on, but not those of other systems."""
    found: dict[str, None] = {}
    for line in lines:
        assigned = None if line.recipe else ASSIGNMENT.match(line.text)
        if not assigned or not line.for_linux:
            continue
        words = re.sub(r"\$\([^()]*\)", " ", assigned.group(3)).split()
        if assigned.group(1) == "LIBRARIES":
            found.update((word, None) for word in words if re.fullmatch(r"[\w.+-]+", word))
        elif assigned.group(1) in {"LDFLAGS", "LINKFLAGS"}:
            found.update((word[2:], None) for word in words if re.fullmatch(r"-l[\w.+-]+", word))
    return tuple(found)


def _standard(lines: tuple[Line, ...]) -> str:
    last = ""
    for line in lines:
        assigned = None if line.recipe else ASSIGNMENT.match(line.text)
        if assigned and assigned.group(1) in FLAGS and line.for_linux:
            found = STANDARD.findall(assigned.group(3))
            last = found[-1] if found else last
    return last
