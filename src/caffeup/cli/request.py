"""A request from a command's options."""

from __future__ import annotations

import os
from typing import Optional

from caffeup.disk import as_path
from caffeup.errors import UsageError
from caffeup.model.base import ComputeCapability
from caffeup.model.plan import Request, Switch

_BLAS = ("open", "atlas", "mkl")


def make_request(
    *,
    source: str = "",
    into: str = "",
    cpu: bool = False,
    no_cudnn: bool = False,
    no_opencv: bool = False,
    arch: str = "",
    cuda: str = "",
    python: str = "",
    blas: str = "",
    prefix: Optional[list[str]] = None,
    jobs: Optional[int] = None,
    no_tests: bool = False,
    distribute: bool = False,
    yes: bool = False,
    force: Optional[list[str]] = None,
) -> Request:
    """Check what can be checked without looking at the machine; raise ``UsageError`` with the way to write it."""
    if blas and blas not in _BLAS:
        raise UsageError(f"--blas {blas}: choose one of {', '.join(_BLAS)}.")
    return Request(
        source=source or "ssd",
        into=into,
        cpu=cpu,
        cudnn=Switch.OFF if no_cudnn else Switch.AUTO,
        opencv=Switch.OFF if no_opencv else Switch.AUTO,
        arch=_arch(arch),
        cuda=cuda,
        python=python,
        blas=blas,
        prefixes=tuple(_prefix(one) for one in prefix or ()),
        jobs=jobs,
        tests=not no_tests,
        distribute=distribute,
        yes=yes,
        force=tuple(force or ()),
    )


def _arch(text: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    for word in words:
        if word in {"native", "all"}:
            continue
        try:
            ComputeCapability.parse(word)
        except ValueError as error:
            raise UsageError(
                f"--arch: {error}.", advice="Write --arch native, --arch all, or compute capabilities: --arch 8.6,8.9."
            ) from None
    return tuple(word if word in {"native", "all"} else str(ComputeCapability.parse(word)) for word in words)


def _prefix(text: str) -> str:
    folder = as_path(text)
    if not folder.is_dir():
        raise UsageError(f"--prefix {text}: there is no such folder.")
    return os.path.abspath(folder)  # noqa: PTH100  # links are kept as the user gave them
