"""Names of Boost.Python: a new one on nearly every release of every distribution."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Optional

from packaging.version import Version

_NAME = re.compile(r"^(?:lib)?boost_python(\d*)(?:-py(\d+))?(?=[-.]|$)")


def made_for(name: str) -> str:
    """The Python in a name: ``311``, ``35``; ``3`` or empty where it does not say exactly.

    >>> made_for("boost_python3-py36"), made_for("boost_python"), made_for("libboost_python310.so.1.74.0")
    ('36', '', '310')
    """
    match = _NAME.match(name)
    return (match.group(2) or match.group(1)) if match else ""


def choose(files: Mapping[str, str], python: Version, *, guess: bool) -> Optional[str]:
    """The name for ``-l`` among ``{name: file it leads to}``.

    A name that tells the Python exactly comes first, then one that leads to such a file. With ``guess`` also
    ``boost_python3`` for any Python 3 and ``boost_python`` for Python 2: their makers built them for one Python, unnamed.
    """
    wanted = f"{python.major}{python.minor}"
    names = sorted((name for name in files if _NAME.match(name)), key=lambda name: (len(name), name))
    for name in names:
        if made_for(name) == wanted:
            return name
    for name in names:
        if len(made_for(name)) < 2 and made_for(files[name].rpartition("/")[2]) == wanted:
            return name
    if not guess:
        return None
    for name in names:
        file = made_for(files[name].rpartition("/")[2])
        if len(file) < 2 and (made_for(name) or "2") == str(python.major):
            return name
    return None
