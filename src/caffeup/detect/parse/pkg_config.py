"""pkg-config's files: read as text, so that neither the program nor its search path matters."""

from __future__ import annotations

import re

from caffeup.model.base import Value

_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_OPERATORS = frozenset(("=", "<", ">", "<=", ">=", "!="))


class PackageFile(Value):
    """One ``.pc`` file."""

    version: str = ""
    requires: tuple[str, ...] = ()
    """Names only; the versions asked for are left out."""
    libraries: tuple[str, ...] = ()
    """Names given with ``-l``, in order."""


def parse_package_file(text: str) -> PackageFile:
    """Read a ``.pc`` file; what is not understood is passed over."""
    variables: dict[str, str] = {}
    fields: dict[str, str] = {}
    for line in text.replace("\\\n", " ").splitlines():
        match = re.match(r"\s*([A-Za-z0-9_.]+)\s*([:=])\s*(.*?)\s*$", line)
        if match is None:
            continue
        name, sign, value = match.groups()
        value = _expand(value, variables)
        (variables if sign == "=" else fields)[name] = value
    return PackageFile(
        version=fields.get("Version", ""),
        requires=_required(fields.get("Requires", "")),
        libraries=tuple(word[2:] for word in fields.get("Libs", "").split() if word.startswith("-l") and len(word) > 2),
    )


def _expand(text: str, variables: dict[str, str]) -> str:
    return _REFERENCE.sub(lambda match: variables.get(match.group(1), ""), text)


def _required(text: str) -> tuple[str, ...]:
    words = text.replace(",", " ").split()
    names = []
    skip = False
    for word in words:
        if skip or word in _OPERATORS:
            skip = not skip
            continue
        names.append(word)
    return tuple(names)
