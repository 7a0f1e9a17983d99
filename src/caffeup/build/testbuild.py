"""Builds a tree's tests: one binary where the tree has a target for all, without the sources that do not compile."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import msgspec

from caffeup.build.first import first_error
from caffeup.build.makefile import Variables
from caffeup.build.order import link_order
from caffeup.build.progress import Progress
from caffeup.build.run import Build, failure, open_log
from caffeup.build.stages import compiler_for, make_goals, prepare
from caffeup.disk import read_plain, write_atomically
from caffeup.errors import BuildFailed
from caffeup.model.base import Value, from_json, to_json
from caffeup.model.outcome import TestCase

STAGE = "build-tests"
_ROUNDS = 4


class TestPrograms(Value):
    """The test binaries that were built, and the sources that were left out."""

    __test__ = False

    binaries: tuple[str, ...]
    """Relative to the tree."""
    not_compiled: tuple[TestCase, ...] = ()
    steps: int = 0
    seconds: float = 0.0


class _LeftOut(Value):
    """Sources that did not compile, with what they looked like then: a changed one is tried again."""

    sources: dict[str, str] = msgspec.field(default_factory=dict)
    texts: dict[str, str] = msgspec.field(default_factory=dict)


def build_tests(build: Build, progress: Progress) -> TestPrograms:
    """Build the tests. A test source that does not compile is left out and reported; the rest must build."""
    seconds, steps = 0.0, 0
    try:
        with open_log(build.path, STAGE) as log:
            variables = prepare(build, log)
            set_to = {**compiler_for(build), **link_order(variables)}
            left_out = _remembered(build.path)
            for _ in range(_ROUNDS):
                goals = _goals(variables)
                chosen = {**set_to, **_without(variables, left_out)}
                made = make_goals(build, log, progress, goals, build_dir=variables.build_dir, set_to=chosen, options=("-k",))
                seconds, steps = seconds + made.seconds, steps + made.steps
                if made.status == 0:
                    break
                new = _failing_sources(made.failed, variables) - left_out.sources.keys()
                if not new or made.disk_full:
                    raise failure(build, STAGE, made, " ".join(goals))
                left_out = _add(build.path, variables, left_out, new, log)
            else:
                raise BuildFailed("Test sources keep failing one after the other.", log=str(getattr(log, "name", "")))
            _remember(build.path, left_out)
    finally:
        progress.close()
    cases = tuple(
        TestCase(name=source, state="not-compiled", text=left_out.texts.get(source, "")) for source in sorted(left_out.sources)
    )
    return TestPrograms(binaries=_binaries(variables, left_out), not_compiled=cases, steps=steps, seconds=seconds)


def _goals(variables: Variables) -> tuple[str, ...]:
    return variables.words("TEST_ALL_BIN")[:1] or ("test",)


def _sources(variables: Variables) -> tuple[str, ...]:
    return variables.words("TEST_SRCS") + variables.words("TEST_CU_SRCS")


def _without(variables: Variables, left_out: _LeftOut) -> dict[str, str]:
    """Make's variables with the lists of test sources, shortened; nothing where nothing is left out."""
    if not left_out.sources:
        return {}
    return {
        key: " ".join(word for word in variables.words(key) if word not in left_out.sources)
        for key in ("TEST_SRCS", "TEST_CU_SRCS")
        if variables.words(key)
    }


def _failing_sources(targets: tuple[str, ...], variables: Variables) -> set[str]:
    """The test sources behind failed targets."""
    by_object = {_object(source, variables.build_dir): source for source in _sources(variables)}
    return {by_object[target] for target in targets if target in by_object}


def _object(source: str, build_dir: str) -> str:
    stem, _, kind = source.rpartition(".")
    return f"{build_dir}/cuda/{stem}.o" if kind == "cu" else f"{build_dir}/{stem}.o"


def _binaries(variables: Variables, left_out: _LeftOut) -> tuple[str, ...]:
    if variables.words("TEST_ALL_BIN"):
        return variables.words("TEST_ALL_BIN")[:1]
    gone = {Path(source).stem for source in left_out.sources}
    return tuple(word for word in variables.words("TEST_BINS") if Path(word).name.partition(".")[0] not in gone)


def _look(root: Path, source: str) -> str:
    try:
        status = (root / source).stat()
    except OSError:
        return ""
    return f"{status.st_size} {status.st_mtime_ns}"


def _settings(root: Path) -> str:
    try:
        return read_plain(root / ".caffeup" / "fingerprint.json").decode("utf-8", "replace")
    except OSError:
        return ""


def _add(root: Path, variables: Variables, before: _LeftOut, new: set[str], log: IO[bytes]) -> _LeftOut:
    texts = dict(before.texts)
    for source in sorted(new):
        kept = root / f"{_object(source, variables.build_dir)}.warnings.txt"
        try:
            found = first_error(kept.read_text(encoding="utf-8", errors="replace").splitlines())
        except OSError:
            found = None
        texts[source] = found.text if found else "it does not compile"
        log.write(f"caffeup: {source} does not compile and is left out\n".encode("utf-8", "surrogateescape"))
    return _LeftOut(sources={**before.sources, **{source: _look(root, source) for source in new}}, texts=texts)


def _where(root: Path) -> Path:
    return root / ".caffeup" / "tests-left-out.json"


def _remember(root: Path, left_out: _LeftOut) -> None:
    if left_out.sources:
        write_atomically(_where(root), to_json(left_out))
        write_atomically(_where(root).with_suffix(".settings"), _settings(root))
    else:
        _where(root).unlink(missing_ok=True)


def _remembered(root: Path) -> _LeftOut:
    """What was left out before, as long as neither the source nor the settings changed since."""
    try:
        if read_plain(_where(root).with_suffix(".settings")).decode("utf-8", "replace") != _settings(root):
            return _LeftOut()
        known = from_json(read_plain(_where(root)), _LeftOut)
    except (OSError, msgspec.MsgspecError, ValueError):
        return _LeftOut()
    sources = {source: look for source, look in known.sources.items() if look and look == _look(root, source)}
    return _LeftOut(sources=sources, texts={source: text for source, text in known.texts.items() if source in sources})
