"""Plan to text: Makefile.config through its template. Same plan, same bytes; what make must not see never gets in."""

from __future__ import annotations

import re
import textwrap

from jinja2 import BaseLoader, Environment, StrictUndefined

from caffeup.bundle import bundled
from caffeup.errors import CannotBuild
from caffeup.model.base import Value
from caffeup.model.plan import ConfigLine, Plan

_WIDTH = 118
_GROUPS = (
    (
        "What is built",
        ("CPU_ONLY", "USE_CUDNN", "USE_NCCL", "USE_OPENCV", "OPENCV_VERSION", "USE_LEVELDB", "USE_LMDB", "USE_HDF5"),
    ),
    (
        "Compilers",
        (
            "CUSTOM_CXX",
            "CUDA_DIR",
            "CUDA_ARCH",
            "COMMON_FLAGS",
            "CXXFLAGS",
            "NVCCFLAGS",
            "WARNINGS",
            "export PATH",
            "export SOURCE_DATE_EPOCH",
        ),
    ),
    ("BLAS", ("BLAS", "BLAS_INCLUDE", "BLAS_LIB")),
    ("Python", ("PYTHON_LIBRARIES", "PYTHON_INCLUDE", "PYTHON_LIB", "WITH_PYTHON_LAYER")),
    ("Folders of headers and libraries", ("INCLUDE_DIRS", "LIBRARY_DIRS", "LIBRARIES", "LINKFLAGS", "LDFLAGS")),
    ("Folders of the build", ("BUILD_DIR", "RELEASE_BUILD_DIR", "DEBUG_BUILD_DIR", "DISTRIBUTE_DIR")),
)
_OTHERS = "Other settings"
SETTINGS = frozenset((*(key for _, keys in _GROUPS for key in keys), "TEST_GPUID", "Q"))
"""All that a plan sets."""
_KEY = re.compile(r"(?:export )?[A-Za-z_][A-Za-z0-9_]*")
_OPERATORS = frozenset((":=", "+=", "?=", "="))
_RUNS = re.compile(r"\$[({]\s*(?:shell|eval|file|guile|call|foreach|load)\b")


class Group(Value, kw_only=True):
    """Settings that stand together."""

    title: str
    lines: tuple[ConfigLine, ...]


def render_config(plan: Plan) -> str:
    """The text of Makefile.config; raise ``CannotBuild`` for a value that make cannot hold (a line break)."""
    environment = Environment(
        loader=BaseLoader(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - make's own escapes are applied, by the filters below
    )
    environment.globals.clear()
    environment.filters = {"comment": comment, "setting": setting}
    source = (bundled("templates") / "Makefile.config.j2").read_text(encoding="utf-8")
    return environment.from_string(source).render(groups=grouped(plan.config))


def grouped(lines: tuple[ConfigLine, ...]) -> tuple[Group, ...]:
    """In the order of the template's groups; the lines of one key keep their order, as later ones add to earlier ones."""
    known = {key for _, names in _GROUPS for key in names}
    groups = []
    for title, names in _GROUPS:
        inside = tuple(one for key in names for one in lines if one.key == key)
        if inside:
            groups.append(Group(title=title, lines=inside))
    rest = tuple(one for one in lines if one.key not in known)
    return (*groups, Group(title=_OTHERS, lines=rest)) if rest else tuple(groups)


def setting(line: ConfigLine) -> str:
    """One assignment, its words escaped for make; nothing in it makes make run a program, whoever wrote the plan."""
    if not _KEY.fullmatch(line.key) or line.operator not in _OPERATORS:
        raise CannotBuild("the plan has a setting that is no assignment", details=repr(f"{line.key} {line.operator}"))
    if line.raw and any(_RUNS.search(word) for word in line.value):
        raise CannotBuild(f"{line.key} cannot be written: make would run a program for it", details=repr(line.value))
    for word in line.value:
        if any(char in word for char in "\n\r\0") or (not line.raw and any(char.isspace() for char in word)):
            raise CannotBuild(f"{line.key} cannot be written: make would take its value apart", details=repr(line.value))
    words = " ".join(line.value if line.raw else (escaped(word) for word in line.value))
    # A backslash at the end of a line would take the next line in: an empty reference stands after it.
    end = "$()" if words.endswith("\\") else ""
    return f"{'override ' if line.override else ''}{line.key} {line.operator} {words}{end}".rstrip(" ")


def escaped(word: str) -> str:
    """A word for the right side of an assignment: ``$`` and ``#`` mean themselves, and so do backslashes before ``#``."""
    before, hashes, after = word.partition("#")
    if not hashes:
        return word.replace("$", "$$")
    slashes = len(before) - len(before.rstrip("\\"))
    return f"{(before + chr(92) * slashes).replace('$', '$$')}\\#{escaped(after)}"


def comment(text: str) -> tuple[str, ...]:
    """A reason as comment lines; nothing in it can end the comment or go on in the next line."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    lines = textwrap.wrap(" ".join(plain.split()), _WIDTH, break_long_words=False, break_on_hyphens=False)
    return tuple(f"# {one}{' .' if one.endswith(chr(92)) else ''}" for one in lines) or ("#",)
