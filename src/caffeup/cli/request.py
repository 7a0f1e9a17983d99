"""The options that make a request: written once here, given to every command that takes them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Callable, get_type_hints

from caffeup.cli import options

if TYPE_CHECKING:
    from caffeup.model.plan import Request

CHOICES = (
    "cpu", "no_cudnn", "no_opencv", "arch", "cuda", "python", "blas", "prefix", "deps",
    "tf32", "tree_cudnn_conv", "no_auto_depthwise", "replace_depthwise",
)  # fmt: skip
"""What decides how a tree is built."""
_BLAS = ("open", "atlas", "mkl")


def make_request(
    *,
    source: options.Source = "",
    into: options.Into = "",
    cpu: options.Cpu = False,
    no_cudnn: options.NoCudnn = False,
    no_opencv: options.NoOpencv = False,
    arch: options.Arch = "",
    cuda: options.Cuda = "",
    python: options.Python = "",
    blas: options.Blas = "",
    prefix: options.Prefix = None,
    deps: options.Deps = "",
    tf32: options.Tf32 = False,
    tree_cudnn_conv: options.TreeCudnnConv = False,
    no_auto_depthwise: options.NoAutoDepthwise = False,
    replace_depthwise: options.ReplaceDepthwise = False,
    jobs: options.Jobs = None,
    no_tests: options.NoTests = False,
    distribute: options.Distribute = False,
    force: options.Force = None,
    yes: options.Yes = False,
) -> Request:
    """Check what can be checked without looking at the machine; raise ``UsageError`` with the way to write it."""
    from caffeup.errors import UsageError
    from caffeup.model.plan import Request, Switch

    if blas and blas not in _BLAS:
        raise UsageError(f"--blas {blas}: choose one of {', '.join(_BLAS)}.")
    _refuse_both("--cpu", cpu, {"--cuda": cuda, "--arch": arch, "--tf32": tf32, "--tree-cudnn-conv": tree_cudnn_conv})
    _refuse_both("--no-cudnn", no_cudnn, {"--tf32": tf32, "--tree-cudnn-conv": tree_cudnn_conv})
    if deps not in {"", "system", "user"}:
        raise UsageError(f"--deps {deps}: choose system (the default) or user.")
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
        deps=deps,
        tf32=tf32,
        cudnn_conv=not tree_cudnn_conv,
        auto_depthwise=not no_auto_depthwise,
        replace_depthwise=replace_depthwise,
        jobs=jobs,
        tests=not no_tests,
        distribute=distribute,
        yes=yes,
        force=tuple(force or ()),
    )


def _refuse_both(name: str, given: bool, others: Mapping[str, object]) -> None:
    """Of two wishes that exclude each other neither is passed over in silence."""
    from caffeup.errors import UsageError

    against = [other for other, wish in others.items() if given and wish]
    if against:
        raise UsageError(f"{name} and {against[0]} exclude each other.", advice=f"Leave out {name} or {against[0]}.")


def takes(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these options of ``make_request``; they reach it as its ``**wishes``."""

    def give(command: Callable[..., None]) -> Callable[..., None]:
        kept = [one for one in signature(command).parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
        given = [one for name, one in signature(make_request).parameters.items() if name in names]
        types = {**_types(make_request), **_types(command)}
        every = [one.replace(kind=Parameter.KEYWORD_ONLY, annotation=types[one.name]) for one in (*given, *kept)]
        command.__signature__ = signature(command).replace(parameters=every)  # type: ignore[attr-defined]
        return command

    return give


def _types(function: Callable[..., object]) -> dict[str, object]:
    """What typer must know of each parameter; what is returned is imported only when a command runs."""
    plain = {name: text for name, text in function.__annotations__.items() if name != "return"}
    holder = type("Parameters", (), {"__annotations__": plain})
    return get_type_hints(holder, globalns=function.__globals__, include_extras=True)


def _arch(text: str) -> tuple[str, ...]:
    from caffeup.errors import UsageError
    from caffeup.model.base import ComputeCapability

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
    from caffeup.disk import as_path
    from caffeup.errors import UsageError

    folder = as_path(text)
    if not folder.is_dir():
        raise UsageError(f"--prefix {text}: there is no such folder.")
    return os.path.abspath(folder)  # noqa: PTH100  # links are kept as the user gave them
