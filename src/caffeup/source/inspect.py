"""What one tree is. Reads files and runs nothing of the tree; an unknown fork is described like any other."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from pathlib import Path
from typing import Optional, Union

import msgspec

from caffeup.disk import read_plain
from caffeup.errors import SourceError
from caffeup.facts.forks import Feature, Fork, identify
from caffeup.facts.tables import Facts
from caffeup.model.tree import ConfigState, Tree
from caffeup.source.catalogue import table_of
from caffeup.source.checkout import read_checkout
from caffeup.source.health import examine
from caffeup.source.look import Look
from caffeup.source.makefile import Makefile, read_makefile
from caffeup.source.origin import OURS, origin_of
from caffeup.source.places import places
from caffeup.source.survey import Survey
from caffeup.source.switches import unheeded

CONFIG = "Makefile.config"
SIGNATURE = b"# Makefile.config written by caffeup"
"""How the first line of a Makefile.config of ours begins."""
HEART = ("src/caffe/proto/caffe.proto", "include/caffe/layer.hpp", "include/caffe/blob.hpp", "src/caffe/layer_factory.cpp")
SEVERAL = 2


def inspect(root: Union[str, Path], facts: Facts) -> Tree:
    """Describe a tree; raise ``SourceError`` where the folder is no Caffe tree at all."""
    top = Path(os.path.abspath(root))  # noqa: PTH100 - resolve() would hide the name that the user knows
    _must_be_a_folder(top)
    survey = Survey(top)
    _must_be_caffe(survey)
    text = survey.text("Makefile")
    makefile = read_makefile(text) if text is not None else None
    checkout = read_checkout(top)
    origin = origin_of(top, checkout)
    known = table_of(facts)
    fork = identify(known.fork, origin.commit, survey.holds)
    state = config_state(top)
    look = Look(survey=survey, makefile=makefile, checkout=checkout, config=state, origin=origin)
    tree = Tree(
        root=str(top),
        fork=fork.id if fork else "unknown",
        origin=origin,
        makefile=makefile is not None,
        cmake=survey.has("CMakeLists.txt"),
        features=_features(known.feature, survey),
        markers=_markers(facts, survey),
        config_state=state,
        applied=_applied(top),
        findings=examine(look),
        blanks_in_path=any(char.isspace() for char in str(top)),
        note=_note(fork),
    )
    return msgspec.structs.replace(tree, **_from_makefile(makefile, survey), **_counts(survey, makefile))


def looks_like_caffe(root: Path, *, shown: str = "") -> None:
    """Raise ``SourceError`` with the reasons where a folder is no Caffe tree."""
    _must_be_a_folder(root)
    _must_be_caffe(Survey(root), shown)


def config_state(root: Path) -> ConfigState:
    """Whose Makefile.config stands there: ours by its first line, edited when its hash is not the ledger's."""
    try:
        content = read_plain(root / CONFIG)
    except FileNotFoundError:
        return ConfigState.NONE
    except OSError:
        return ConfigState.FOREIGN
    if not content.startswith(SIGNATURE):
        return ConfigState.FOREIGN
    known = _config_hash(_ledger(root))
    edited = known is not None and hashlib.sha256(content).hexdigest() != known
    return ConfigState.OURS_EDITED if edited else ConfigState.OURS


def _must_be_a_folder(top: Path) -> None:
    try:
        if top.is_dir():
            os.scandir(top).close()
            return
    except PermissionError as error:
        raise SourceError(f"{top} cannot be read", details=str(error), commands=(f"ls -ld {shlex.quote(str(top))}",)) from error
    what = "is a file, no folder" if top.exists() else "is not there"
    raise SourceError(f"{top} {what}", advice="Name the folder of a Caffe checkout, or a name from the catalogue.")


def _must_be_caffe(survey: Survey, shown: str = "") -> None:
    """A half tree is a Caffe tree with a finding; a folder with nothing of Caffe is refused."""
    present = [name for name in HEART if survey.has(name)]
    if len(present) >= SEVERAL or (present and survey.has("Makefile.config.example")):
        return
    reasons = [f"{name} is not there" for name in HEART if name not in present]
    inside = sorted(
        {name.rpartition("/src/caffe/proto/")[0] for name in survey.files if name.endswith("/src/caffe/proto/caffe.proto")}
    )
    if survey.has("src/caffe2") or survey.has("caffe2/CMakeLists.txt"):
        reasons.append("this looks like Caffe2 (PyTorch), which is another program")
    if survey.has(".git") and not survey.files:
        reasons.append("there is a .git and nothing checked out: the clone was broken off")
    raise SourceError(
        f"{shown or survey.root} is not a Caffe tree",
        details="\n".join(reasons),
        advice=f"There is one inside: {inside[0]}"
        if inside
        else "Take one from the catalogue, or name the folder that holds src/caffe.",
        commands=(f"caffeup up {shlex.quote(str(survey.root / inside[0]))}",) if inside and not shown else ("caffeup up ssd",),
    )


def _from_makefile(makefile: Optional[Makefile], survey: Survey) -> dict[str, object]:
    if makefile is None:
        return {"one_test_binary": False}
    return {
        "config_keys": makefile.config_keys if makefile.reads_config else (),
        "overridable": makefile.overridable if makefile.reads_config else (),
        "unheeded": unheeded(survey, makefile.config_keys, examples=makefile.examples),
        "build_dir": makefile.build_dir,
        "libraries": makefile.libraries,
        "isystem": makefile.isystem,
        "standard": makefile.standard,
        "cpu_only": makefile.cpu_only,
        "one_test_binary": makefile.one_test_binary,
    }


def _markers(facts: Facts, survey: Survey) -> tuple[str, ...]:
    stand = survey.that_hold(marker for fix in facts.fixes for marker in (*fix.when.tree, *fix.unless))
    return (*stand, *places(facts.fixes, survey))


def _features(rows: tuple[Feature, ...], survey: Survey) -> tuple[str, ...]:
    return tuple(
        row.id for row in rows if any(survey.holds(one) for one in row.any) and not any(survey.holds(one) for one in row.unless)
    )


def _counts(survey: Survey, makefile: Optional[Makefile]) -> dict[str, int]:
    """What the Makefile's ``find`` calls give; the generated caffe.pb.cc counts as one source a .proto."""
    library = [name for name in survey.files if name.startswith("src/caffe/")]
    base = {name: name.rpartition("/")[2] for name in library}
    cxx = [n for n in library if base[n].endswith(".cpp")]
    cuda = [n for n in library if base[n].endswith(".cu")]
    protos = [n for n in library if re.fullmatch(r"src/caffe/proto/[^/]+\.proto", n)]
    tests = [n for n in cxx if base[n].startswith("test_") and n != "src/caffe/test/test_caffe_main.cpp"]
    cuda_tests = [n for n in cuda if base[n].startswith("test_")]
    plain_cuda = len(cuda) - len(cuda_tests)
    plain = sum(not base[n].startswith("test_") for n in cxx)
    under = ("tools/", "examples/") if makefile is None or makefile.examples else ("tools/",)
    tools = sum(n.startswith(under) and n.endswith(".cpp") for n in survey.files)
    gtest = 1 if survey.has("src/gtest/gtest-all.cpp") else 0
    return {
        "sources": plain + plain_cuda + len(protos),
        "cuda_sources": plain_cuda,
        "tool_sources": tools,
        "test_sources": len(tests) + len(cuda_tests) + gtest if tests or cuda_tests else 0,
        "cuda_test_sources": len(cuda_tests),
    }


def _note(fork: Optional[Fork]) -> Optional[str]:
    return " ".join(fork.notes) if fork and fork.notes else None


def _ledger(root: Path) -> object:
    try:
        return json.loads(read_plain(root / OURS / "ledger.json"))
    except (OSError, ValueError, RecursionError):
        return None


def _records(ledger: object, what: str) -> list[dict[str, object]]:
    """Rows of the ledger. It is read here without its own module, which refuses a damaged one; a report must not."""
    rows = ledger.get(what) if isinstance(ledger, dict) else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _applied(root: Path) -> tuple[str, ...]:
    return tuple(str(row["id"]) for row in _records(_ledger(root), "entries") if "id" in row)


def _config_hash(ledger: object) -> Optional[str]:
    for row in _records(ledger, "files"):
        after = row.get("after")
        if row.get("path") == CONFIG and isinstance(after, dict):
            return str(after.get("sha256", ""))
    return None
