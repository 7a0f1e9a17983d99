"""The compiler as make should call it: through ccache where that works, and tried before the long build."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from caffeup.build.logs import NO_SPACE, full_disk, is_full
from caffeup.disk import read_plain, write_atomically
from caffeup.errors import BuildFailed, CaffeupError
from caffeup.stream import Captured, run_capture

_SCRIPTS = ".caffeup/ccache"
_TOOLKIT = ".caffeup/cuda"
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
            advice="Reinstall it, or take it off PATH: then the next one that works is chosen.",
            commands=(f"{shlex.quote(compiler)} --version",),
        )


def _try(root: Path, compiler: str, env: Mapping[str, str], *options: str, kind: str = "cpp") -> Captured:
    folder = root / ".caffeup" / "tmp"
    source = folder / f"trial.{kind}"
    write_atomically(source, _TRIAL)
    product = folder / "trial.out"
    try:
        return run_capture(
            (compiler, *options, str(source), "-o", str(product)),
            cwd=str(root),
            env={**env, "TMPDIR": str(folder)},
            timeout=60,
        )
    except CaffeupError as error:
        return Captured(status=127, output=error.brief)
    finally:
        product.unlink(missing_ok=True)
        source.unlink(missing_ok=True)


def through_ccache(root: Path, compiler: str, ccache: str, env: Mapping[str, str]) -> str:
    """A program in the tree that calls this compiler through ccache, relative to the tree; empty where ccache does not work.

    It is a script and not a link, so that exactly this compiler is meant, and its name ends as the compiler's:
    Caffe's Makefile looks for ``g++`` in it. Makefile.config does not know of it: a plain ``make`` works without ccache.
    """
    if not ccache or not compiler:
        return ""
    name = f"{_SCRIPTS}/{Path(compiler).name}"
    _write_script(root / name, f'#!/bin/sh\nexec {shlex.quote(ccache)} {shlex.quote(compiler)} "$@"\n')
    return f"./{name}" if _try(root, str(root / name), env).status == 0 else ""


def nvcc_through_ccache(root: Path, compiler: str, ccache: str, env: Mapping[str, str]) -> dict[str, str]:
    """Make's variables that send nvcc through ccache; empty where that does not work.

    Caffe's Makefile calls ``$(CUDA_DIR)/bin/nvcc``, so CUDA_DIR names a folder with our script for nvcc and links for all else
    that the toolkit has. Headers keep the name that a plain ``make`` has for them: the dependency files hold it.
    ccache does not see the host compiler in ``-ccbin=``, so it is told to look at it.
    """
    toolkit = root / _TOOLKIT
    nvcc = Path(os.path.realpath(toolkit / "bin")) / "nvcc"  # nvcc finds the rest of its toolkit by the name it is called by
    if not ccache or not compiler or not nvcc.is_file():
        return {}
    name = f"{_SCRIPTS}/cuda"
    files = f'CCACHE_EXTRAFILES="${{CCACHE_EXTRAFILES:+$CCACHE_EXTRAFILES:}}"{shlex.quote(compiler)}'
    script = f'#!/bin/sh\n{files} exec {shlex.quote(ccache)} {shlex.quote(str(nvcc))} "$@"\n'
    _write_script(root / name / "bin" / "nvcc", script)
    for part in toolkit.iterdir():
        link = root / name / part.name
        if part.name != "bin" and not link.is_symlink():
            link.symlink_to(f"../../cuda/{part.name}")
    tried = _try(root, str(root / name / "bin" / "nvcc"), env, f"-ccbin={compiler}", "-c", kind="cu")
    return {"CUDA_DIR": name, "CUDA_INCLUDE_DIR": f"{_TOOLKIT}/include"} if tried.status == 0 else {}


def _write_script(script: Path, text: str) -> None:
    try:
        same = read_plain(script) == text.encode("utf-8", "surrogateescape")
    except OSError:
        same = False
    if not same:
        write_atomically(script, text)
    script.chmod(0o755)
