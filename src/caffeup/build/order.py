"""The order in which objects are linked: Caffe's Makefile takes them as ``find`` gives them, in the file system's order."""

from __future__ import annotations

from caffeup.build.makefile import Variables

_LINKED = "OBJS"
"""What the library is linked from, in every fork's Makefile."""


def link_order(variables: Variables) -> dict[str, str]:
    """Make's variable with the library's objects sorted by name; nothing where they are, or where a Makefile has none."""
    found = variables.words(_LINKED)
    told = tuple(sorted(found))
    return {_LINKED: " ".join(told)} if told != found else {}
