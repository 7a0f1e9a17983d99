"""caffeup: from a bare Linux machine to a Caffe that is built for exactly its GPU, and works.

For scripts: ``caffeup.api`` (docs/api.md) and ``caffeup.errors``, both loaded when first used. The functions are not
here itself, as ``detect``, ``plan``, ``build`` and ``diagnose`` are packages of the program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from caffeup import api, errors

__version__ = "0.1.0"
__all__ = ["__version__", "api", "errors"]


def __getattr__(name: str) -> ModuleType:
    """The two public modules, when they are first asked for."""
    if name not in ("api", "errors"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # noqa: PLC0415  # `import caffeup` alone stays light

    return importlib.import_module(f"{__name__}.{name}")
