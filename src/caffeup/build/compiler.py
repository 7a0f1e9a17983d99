"""The compiler as make should call it: through ccache where that works, and tried before the long build."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from caffeup.build.logs import NO_SPACE, full_disk, is_full
from caffeup.disk import read_plain, write_atomically
from caffeup.errors import BuildFailed, CaffeupError
from caffeup.stream import Captured, run_capture

_TRIAL = (
    '#include <string>\n#include <vector>\nint main() { std::vector<std::string> v(1, "x"); return v[0].size() == 1 ? 0 : 1; }\n'
)


def check_compiler(root: Path, compiler: str, env: Mapping[str, str]) -> None:
    """Compile and link ten words of C++; raise ``BuildFailed`` with the compiler's own words where it cannot."""
    got = _try(root, compiler, env)
    if got.status != 0 and (NO_SPACE in got.output or is_full(root)):
        raise full_disk("Trying the compiler", root)
    if got.status != 0:
        raise BuildFailed(
            f"The compiler {compiler} cannot build the smallest C++ program.",
            details="\n".join(got.output.splitlines()[:15]),
            advice="Reinstall it, or name another one in Makefile.config's CUSTOM_CXX.",
            commands=(f"{shlex.quote(compiler)} --version",),
        )


def _try(root: Path, compiler: str, env: Mapping[str, str]) -> Captured:
    folder = root / ".caffeup" / "tmp"
    write_atomically(folder / "trial.cpp", _TRIAL)
    product = folder / "trial.out"
    try:
        return run_capture(
            (compiler, str(folder / "trial.cpp"), "-o", str(product)),
            cwd=str(root),
            env={**env, "TMPDIR": str(folder)},
            timeout=60,
        )
    except CaffeupError as error:
        return Captured(status=127, output=error.brief)
    finally:
        product.unlink(missing_ok=True)
        (folder / "trial.cpp").unlink(missing_ok=True)


def through_ccache(root: Path, compiler: str, ccache: str, env: Mapping[str, str]) -> str:
    """A program in the tree that calls this compiler through ccache, relative to the tree; empty where ccache does not work.

    It is a script and not a link, so that exactly this compiler is meant, and its name ends as the compiler's:
    Caffe's Makefile looks for ``g++`` in it. Makefile.config does not know of it: a plain ``make`` works without ccache.
    """
    if not ccache or not compiler:
        return ""
    name = f".caffeup/ccache/{Path(compiler).name}"
    script = root / name
    text = f'#!/bin/sh\nexec {shlex.quote(ccache)} {shlex.quote(compiler)} "$@"\n'
    try:
        same = read_plain(script) == text.encode("utf-8", "surrogateescape")
    except OSError:
        same = False
    if not same:
        write_atomically(script, text)
    script.chmod(0o755)
    return f"./{name}" if _try(root, str(script), env).status == 0 else ""
