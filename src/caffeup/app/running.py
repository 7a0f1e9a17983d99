"""``caffeup run``: a command whose output passes through, and what was behind it where it fails."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Optional

from packaging.version import InvalidVersion, Version

from caffeup.app.session import Session, find_tree
from caffeup.diagnose import suspects
from caffeup.diagnose.context import context_of
from caffeup.diagnose.diagnose import diagnose
from caffeup.diagnose.nets import fitting_batch, grouped, need
from caffeup.diagnose.read import read
from caffeup.errors import CaffeupError
from caffeup.gpu.access import code_cache, device_nodes, node_paths, toolkit_folders
from caffeup.gpu.words import holders
from caffeup.live import RealLive
from caffeup.model.base import ComputeCapability, Value
from caffeup.model.finding import Finding
from caffeup.model.gpus import Card, Snapshot
from caffeup.model.machine import Machine
from caffeup.model.suspect import Suspect
from caffeup.model.tree import Tree
from caffeup.passthrough import Ran, Remembered, run_through
from caffeup.verify.fatbin import read_fatbins
from caffeup.verify.libraries import parse_ldd

_INTERNAL = re.compile(r"status == CUDNN_STATUS_SUCCESS \((?:4|1|4000|4001|4002|4005|1001)\s+vs\. 0\)")
_FULL = re.compile(
    rb"cudaSuccess \(2 vs\. 0\)|out of memory|CUDNN_STATUS_SUCCESS \((?:1|2|4|1001|400\d) vs\. 0\)|Cannot create Cublas"
)
_LIBRARIES = ("build/lib/libcaffe.so", ".build_release/lib/libcaffe.so", "*/lib/libcaffe.so", "build/lib/libcaffe-nv.so")
_MOST_TEXT = 1 << 22


class Memory(Value, kw_only=True):
    """Who held a GPU's memory when a run found none, and what it needs."""

    free: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    needs: str = ""
    fits: str = ""


class Outcome(Value, kw_only=True):
    """A run that failed, explained."""

    findings: tuple[Finding, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    memory: Optional[Memory] = None


class Run:
    """One command, and what was seen while it ran."""

    def __init__(self, session: Session, argv: Sequence[str]) -> None:
        self._session = session
        self._argv = tuple(argv)
        self._said = Remembered()
        self._snapshot: Optional[Snapshot] = None
        self._edge = b""

    def go(self) -> Ran:
        """Run it to its end."""
        return run_through(self._argv, env=self._session.host.env, remembered=self._said, watch=self._watch)

    def explain(self, tell: Callable[[str], None]) -> Outcome:
        """What its output says, and what a look at this machine adds to that."""
        tell("looking for the cause …")
        machine = self._session.machine()
        root, tree = self._tree()
        lines = list(read(self._said.chunks()))
        found = diagnose(lines, self._session.facts, context_of(machine, tree), log="output")
        inside = any(_INTERNAL.search(one.text) for finding in found for one in finding.evidence)
        looked = suspects.ranked(self._suspects(machine, root, lines)) if inside else ()
        full = any(finding.id in {"gpu-out-of-memory", "gpu-full-at-start"} for finding in found)
        return Outcome(
            findings=suspects.decided(found, looked),
            suspects=looked,
            memory=self._memory(lines) if full else None,
        )

    def _watch(self, data: bytes) -> None:
        """At the first sign that memory ran out, see who holds it: a moment later the command is gone."""
        if self._snapshot is None and _FULL.search(self._edge + data):
            self._snapshot = self._look()
        self._edge = data[-100:]

    def _look(self) -> Optional[Snapshot]:
        from caffeup.app.gpus import look  # noqa: PLC0415  # only when it failed

        with suppress(CaffeupError, OSError):
            return look(self._session)
        return None

    def _tree(self) -> tuple[Optional[Path], Optional[Tree]]:
        """The tree that the command belongs to: one of its files lies in it, or the current folder does."""
        for word in (*self._argv, "."):
            for folder in Path(word).absolute().parents if word != "." else (Path.cwd() / "x").parents:
                if (folder / "src" / "caffe").is_dir():
                    with suppress(CaffeupError, OSError):
                        return folder, self._session.tree(folder)
        with suppress(CaffeupError, OSError):
            root = find_tree("")
            return root, self._session.tree(root)
        return None, None

    def _memory(self, lines: Sequence[str]) -> Memory:
        snapshot = self._snapshot or self._look()
        cards = [gpu.card for gpu in snapshot.gpus] if snapshot is not None else []
        free = [card.memory_free for card in cards if card.memory_free is not None]
        wanted = need(lines)
        training = any("train" in word for word in self._argv) or any("] Solving " in line for line in lines)
        fits = fitting_batch(wanted, max(free), training=training) if wanted is not None and free else None
        return Memory(
            free=tuple(
                f"GPU {card.index}: {_gib(card.memory_free)} of {_gib(card.memory_total)} free"
                for card in cards
                if card.memory_free is not None
            ),
            held=holders(snapshot) if snapshot is not None else (),
            needs=_needs(wanted.blobs, wanted.batch, training=training) if wanted is not None else "",
            fits=f"by that, a batch of {fits} fits into what was free" if fits and wanted and fits != wanted.batch else "",
        )

    def _suspects(self, machine: Machine, root: Optional[Path], lines: Sequence[str]) -> Iterator[Suspect]:
        """Each possible cause, looked at here."""
        host, facts = self._session.host, self._session.facts
        yield from _access(host.env, machine)
        library = _library(root)
        cards = [(gpu.name, gpu.compute_capability) for gpu in machine.graphics.gpus if gpu.compute_capability is not None]
        yield suspects.code_for_card(cards, *_code(library, cards))
        loaded = self._loaded(library)
        runtime = _version_of(loaded, "libcudart.so")
        release = machine.graphics.driver.release if machine.graphics.driver is not None else None
        yield suspects.driver(release, runtime, facts.minimum_driver(runtime) if runtime is not None else "")
        header = machine.cudnn_headers[0].version if machine.cudnn_headers else None
        cudnn = _version_of(loaded, "libcudnn.so")
        yield suspects.cudnn_pair(header, cudnn, next((path for name, path in loaded.items() if "libcudnn.so" in name), ""))
        yield suspects.memory(self._snapshot or self._look(), holders(self._snapshot) if self._snapshot else ())
        found, where = self._groups(lines)
        yield suspects.groups(found, where)

    def _loaded(self, library: Optional[Path]) -> dict[str, str]:
        """What the loader gives the library in this environment."""
        output = self._session.host.run(("ldd", str(library))) if library is not None else None
        return parse_ldd(output.stdout.splitlines()).found if output is not None else {}

    def _groups(self, lines: Sequence[str]) -> tuple[Optional[tuple[suspects.Grouped, ...]], str]:
        """From the net that Caffe printed, else from a prototxt among the arguments."""
        found = grouped(lines)
        if found is not None:
            return found, "the net in the output"
        for word in self._argv:
            path = word.rpartition("=")[2]
            if path.endswith(".prototxt"):
                text = self._session.host.read_text(str(Path(path).absolute()))
                found = grouped(text[:_MOST_TEXT].splitlines()) if text else None
                if found is not None:
                    return found, path
        return None, ""


def _access(env: Mapping[str, str], machine: Machine) -> Iterator[Suspect]:
    """Whether this user may use what CUDA needs, as the doctor sees it."""
    live = RealLive(env)
    try:
        numbers = [gpu.index for gpu in machine.graphics.gpus]
        paths = node_paths([Card(index=number, minor=number) for number in numbers], machine.system) if numbers else ()
        nodes = list(device_nodes([live.node(path) for path in paths], machine.system)) if paths else []
        folders = [live.node(one.root) for one in machine.toolkits]
        title = "the rights on the GPU's device nodes and on CUDA's folder"
        yield suspects.of_findings("gpu-device-nodes", title, [*nodes, *toolkit_folders(folders)] if nodes else [])
        cache = env.get("CUDA_CACHE_PATH") or f"{env.get('HOME', '')}/.nv/ComputeCache"
        title = "a cache of compiled kernels that belongs to another user"
        yield suspects.of_findings(
            "cuda-cache-closed", title, list(code_cache(live.node(cache))), clear=f"{cache} is open to this user"
        )
    finally:
        live.close()


def _library(root: Optional[Path]) -> Optional[Path]:
    found = (path for pattern in _LIBRARIES for path in sorted(root.glob(pattern))) if root is not None else iter(())
    return next((path for path in found if path.is_file()), None)


def _code(library: Optional[Path], cards: Sequence[tuple[str, ComputeCapability]]) -> tuple[Optional[list[str]], str]:
    """The cards for which a part of the library has no code, and what it holds."""
    if library is None:
        return None, ""
    try:
        files = [file for file in read_fatbins(library) if file]
    except (OSError, ValueError):
        return None, ""
    held = ", ".join(sorted({str(code) for file in files for code in file})) or "no GPU code"
    lacking = [
        f"{name} ({cc})" for name, cc in cards if not files or any(not any(code.runs_on(cc) for code in file) for file in files)
    ]
    return lacking, held


def _version_of(loaded: dict[str, str], name: str) -> Optional[Version]:
    """From the real name of the file that the loader took: ``libcudnn.so.9.14.0``."""
    for library, path in loaded.items():
        if library.startswith(name):
            number = os.path.realpath(path).rpartition(".so.")[2] or library.rpartition(".so.")[2]
            with suppress(InvalidVersion):
                return Version(number)
    return None


def _needs(blobs: int, batch: Optional[int], *, training: bool) -> str:
    at = f" at batch {batch}" if batch else ""
    twice = f"; with the gradients {_gib(2 * blobs)}" if training else ""
    return f"the nets' blobs take {_gib(blobs)}{at}{twice}; weights, workspaces and the context come on top"


def _gib(size: Optional[int]) -> str:
    return "?" if size is None else f"{size / (1 << 30):.1f} GiB"
