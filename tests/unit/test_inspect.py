"""What a tree is, and what is wrong with it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from caffeup.errors import SourceError
from caffeup.facts.forks import Feature, Fork, ForkFile, identify
from caffeup.facts.load import load_facts
from caffeup.facts.tables import Facts
from caffeup.model.base import from_json, to_json
from caffeup.model.finding import Finding, Severity
from caffeup.model.fix import Condition, Fix, Marker
from caffeup.model.tree import ConfigState, Origin, Tree
from caffeup.source.catalogue import table_of
from caffeup.source.inspect import inspect
from caffeup.source.origin import told, write_origin
from caffeup.source.survey import Survey

TINY = Path(__file__).resolve().parents[1] / "trees" / "tiny"
FACTS = load_facts()


class Table:
    """Facts of one test."""

    def __init__(self, table: ForkFile, *fixes: Fix) -> None:
        self._table = table
        self._fixes = fixes

    def table(self, name: str, kind: type[Any]) -> Any:
        return self._table if name == "forks" else kind()

    def fixes(self) -> tuple[Fix, ...]:
        return self._fixes


def facts_with(table: ForkFile, *fixes: Fix) -> Facts:
    return replace(FACTS, reader=Table(table, *fixes))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    shutil.copytree(TINY, tmp_path / "caffe")
    return tmp_path / "caffe"


def git(tree: Path, *words: str) -> None:
    who = ["-c", "user.name=n", "-c", "user.email=n@example.org"]
    subprocess.run(["git", *who, *words], cwd=tree, check=True, capture_output=True)


@pytest.fixture
def checkout(tree: Path) -> Path:
    git(tree, "init", "-q", "-b", "main")
    git(tree, "remote", "add", "origin", "https://user:secret@example.org/caffe")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "tiny")
    return tree


def finding(tree: Path, name: str) -> Finding:
    found = [one for one in inspect(tree, FACTS).findings if one.id == name]
    assert len(found) == 1, [one.id for one in inspect(tree, FACTS).findings]
    return found[0]


def names(tree: Path) -> list[str]:
    return [one.id for one in inspect(tree, FACTS).findings]


def test_a_whole_tree_has_no_findings(tree: Path) -> None:
    found = inspect(tree, FACTS)
    assert found.findings == ()
    assert found.origin == Origin(kind="folder")
    assert (found.fork, found.makefile, found.cmake, found.cpu_only) == ("unknown", True, False, True)
    assert (found.sources, found.cuda_sources, found.tool_sources, found.test_sources, found.cuda_test_sources) == (8, 1, 2, 2, 0)
    assert found.config_state == ConfigState.NONE
    assert from_json(to_json(found), Tree) == found


def test_counts_are_those_of_make(tree: Path) -> None:
    """make itself says how many objects it would make."""
    (tree / "Makefile.config").write_text("CPU_ONLY := 1\nBUILD_DIR := build\nDISTRIBUTE_DIR := distribute\n")
    probe = "include Makefile\ncount:\n\t@echo $(words $(OBJS)) $(words $(TOOL_OBJS) $(EXAMPLE_OBJS)) $(words $(TEST_OBJS) $(GTEST_OBJ))\n"
    (tree / "probe.mk").write_text(probe)
    done = subprocess.run(["make", "-s", "-f", "probe.mk", "count"], cwd=tree, capture_output=True, text=True, check=True)
    found = inspect(tree, FACTS)
    counted = (found.sources - found.cuda_sources, found.tool_sources, found.test_sources - found.cuda_test_sources)
    assert done.stdout.split() == [str(number) for number in counted]


def test_checkout_tells_its_origin_without_secrets(checkout: Path) -> None:
    origin = inspect(checkout, FACTS).origin
    assert (origin.kind, origin.url, origin.branch, origin.dirty) == ("git", "https://example.org/caffe", "main", False)
    assert len(origin.commit) == 40


def test_recorded_origin_keeps_what_was_asked_for(tree: Path) -> None:
    write_origin(tree, Origin(kind="sdist", url="u", sha256="s", asked_for="ssd"))
    assert inspect(tree, FACTS).origin.asked_for == "ssd"
    (tree / ".caffeup/origin.json").write_text("{damaged")
    assert inspect(tree, FACTS).origin == Origin(kind="folder")


def test_fork_by_commit_beats_fork_by_marks(checkout: Path) -> None:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, capture_output=True, text=True, check=True).stdout.strip()
    mark = Marker(file="src/caffe/layers/twice_layer.cpp")
    table = ForkFile(
        fork=(
            Fork(id="by-mark", title="", fingerprint=(mark,), source=("t",)),
            Fork(id="by-commit", title="", commits=(commit,), notes=("a note",), source=("t",)),
        ),
    )
    found = inspect(checkout, facts_with(table))
    assert (found.fork, found.note) == ("by-commit", "a note")


def test_first_fitting_row_names_the_fork() -> None:
    here = {"a", "b"}
    rows = (
        Fork(id="more", title="", fingerprint=(Marker(file="a"), Marker(file="c")), source=("t",)),
        Fork(id="not", title="", fingerprint=(Marker(file="a"),), without=(Marker(file="b"),), source=("t",)),
        Fork(id="empty", title="", source=("t",)),
        Fork(id="right", title="", fingerprint=(Marker(file="a"), Marker(file="b")), source=("t",)),
    )
    found = identify(rows, "", lambda marker: marker.file in here)
    assert found is not None
    assert found.id == "right"


def test_features_and_markers(tree: Path) -> None:
    table = ForkFile(
        feature=(
            Feature(
                id="twice", any=(Marker(file="src/caffe/layers/nothing.cpp"), Marker(file="src/**/*.cu", contains="TwiceForward"))
            ),
            Feature(id="hidden", any=(Marker(file="Makefile"),), unless=(Marker(file="README.md"),)),
            Feature(id="absent", any=(Marker(file="Makefile", contains="no such text"),)),
        ),
    )
    holds = Marker(file="src/caffe/*.cpp", contains="KnownLayer")
    solved = Marker(file="include/caffe/**/*.hpp", contains="TwiceLayer")
    fix = Fix(
        id="f",
        title="",
        when=Condition(tree=(holds, Marker(file="src/caffe/*.cpp", contains="Forward_cpu"))),
        unless=(solved,),
        source=("t",),
    )
    found = inspect(tree, facts_with(table, fix))
    assert found.features == ("twice",)
    assert found.markers == (str(solved), str(holds))


@pytest.mark.parametrize("pattern", ["../outside", "/etc/passwd", "src/../../outside"])
def test_markers_do_not_lead_out(tree: Path, pattern: str) -> None:
    (tree.parent / "outside").write_text("x")
    assert not Survey(tree).holds(Marker(file=pattern))


def test_each_file_is_read_once(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = Path.read_bytes

    def counting(path: Path) -> bytes:
        read.append(str(path))
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", counting)
    survey = Survey(tree)
    for text in ("one", "two", "KnownLayer"):
        survey.holds(Marker(file="src/**/*.cpp", contains=text))
    assert len(read) == len(set(read)) > 3


def test_depthwise_layers_and_whose() -> None:
    rows = {row.id: row for row in table_of(FACTS).feature}
    assert {"depthwise:caffeup", "depthwise:yonghenglh6", "depthwise:own"} <= set(rows)
    assert rows["depthwise:yonghenglh6"].unless


def test_config_states(tree: Path) -> None:
    config = tree / "Makefile.config"
    config.write_text("CUDA_DIR := /usr/local/cuda-6.5\nBLAS := open\n")
    assert inspect(tree, FACTS).config_state == ConfigState.FOREIGN
    stale = finding(tree, "tree-config-stale")
    assert str(stale.evidence[0]) == "Makefile.config:1: CUDA_DIR := /usr/local/cuda-6.5, which is not there"
    config.write_text("BLAS := open\n")
    assert names(tree) == ["tree-config-foreign"]
    config.write_text("# Makefile.config written by caffeup 1.0; change it and run caffeup again.\n")
    assert inspect(tree, FACTS).config_state == ConfigState.OURS
    after = {"sha256": hashlib.sha256(config.read_bytes()).hexdigest()}
    (tree / ".caffeup").mkdir()
    ledger = {"schema": 1, "files": [{"path": "Makefile.config", "after": after}], "entries": [{"id": "cudnn-shim"}]}
    (tree / ".caffeup/ledger.json").write_text(json.dumps(ledger))
    found = inspect(tree, FACTS)
    assert (found.config_state, found.applied) == (ConfigState.OURS, ("cudnn-shim",))
    with config.open("a") as file:
        file.write("DEBUG := 1\n")
    assert inspect(tree, FACTS).config_state == ConfigState.OURS_EDITED
    assert "tree-config-edited" in names(tree)


@pytest.mark.parametrize(
    "ledger", ["", "[]", '{"files": 1, "entries": [1]}', '{"files": [{"path": "Makefile.config", "after": 1}]}', "\xff"]
)
def test_damaged_ledger_is_no_crash(tree: Path, ledger: str) -> None:
    (tree / ".caffeup").mkdir()
    (tree / ".caffeup/ledger.json").write_text(ledger, encoding="latin-1")
    assert inspect(tree, FACTS).applied == ()


@pytest.mark.parametrize("what", ["nothing", "file", "empty folder", "other project", "only git"])
def test_what_is_no_caffe_tree(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "x"
    if what == "file":
        folder.write_text("x")
    elif what != "nothing":
        folder.mkdir()
    if what == "other project":
        (folder / "Makefile").write_text("all:\n")
    if what == "only git":
        (folder / ".git").mkdir()
    with pytest.raises(SourceError) as caught:
        inspect(folder, FACTS)
    assert caught.value.advice
    assert ("clone was broken off" in caught.value.details) == (what == "only git")


def test_the_tree_inside_is_pointed_out(tree: Path) -> None:
    with pytest.raises(SourceError) as caught:
        inspect(tree.parent, FACTS)
    assert caught.value.commands == (f"caffeup up {tree}",)


def test_half_a_tree(checkout: Path) -> None:
    (checkout / "src/caffe/net.cpp").unlink()
    (checkout / "include/caffe/layer.hpp").write_text("")
    found = finding(checkout, "tree-half")
    assert found.severity == Severity.PROBLEM
    assert [str(one) for one in found.evidence] == [
        "src/caffe/net.cpp: not there",
        "include/caffe/layer.hpp: empty",
    ]
    assert "git -C" in found.remedies[0].commands[0]


def test_a_source_that_is_empty_in_git_too_is_no_sign_of_half_a_tree(checkout: Path) -> None:
    """As ``hip_device.cpp`` in BVLC's opencl branch."""
    (checkout / "src/caffe/backend.cpp").write_text("")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "an empty one")
    assert "tree-half" not in names(checkout)
    (checkout / "src/caffe/layers/twice_layer.cpp").write_text("")
    assert [str(one) for one in finding(checkout, "tree-half").evidence] == ["src/caffe/layers/twice_layer.cpp: empty"]


def test_without_git_many_empty_sources_are_a_sign_and_one_is_none(tree: Path) -> None:
    (tree / "src/caffe/one.cpp").write_text("")
    assert "tree-half" not in names(tree)
    for name in "two", "three", "four":
        (tree / f"src/caffe/{name}.cpp").write_text("")
    assert len(finding(tree, "tree-half").evidence) == 4


def test_deleted_file_of_no_account_is_a_note(checkout: Path) -> None:
    (checkout / "README.md").unlink()
    assert finding(checkout, "tree-files-deleted").severity == Severity.NOTE


def test_git_that_was_killed(checkout: Path) -> None:
    (checkout / ".git/index.lock").write_text("")
    assert "rm " in finding(checkout, "tree-git-locked").remedies[0].commands[0]


@pytest.mark.parametrize(
    "name", ["src/caffe/a b", "docs/$(touch x)", "data/`x`", "src/caffe/x;y", "matlab/it's", "examples/new\nline"]
)
def test_folder_names_that_a_shell_would_run(tree: Path, name: str) -> None:
    (tree / name).mkdir(parents=True)
    found = finding(tree, "tree-unsafe-name")
    assert found.severity == Severity.PROBLEM
    assert "\n" not in str(found.evidence[0])


def test_file_names_that_a_shell_would_run(tree: Path) -> None:
    (tree / "src/caffe/layers/x;touch y;.cpp").write_text("//")
    (tree / "-delete").write_text("")
    assert len(finding(tree, "tree-unsafe-name").evidence) == 2


def test_names_that_are_harmless(tree: Path) -> None:
    (tree / "matlab/+caffe").mkdir(parents=True)
    (tree / "docs").mkdir()
    (tree / "docs/User Guide.pdf").write_text("x")
    (tree / ".hidden $(x)").mkdir()
    assert names(tree) == []


def test_name_that_is_not_utf8(tree: Path) -> None:
    (tree / "src/caffe/layers" / os.fsdecode(b"caf\xe9.cpp")).write_text("//")
    assert "caf\\xe9.cpp" in str(finding(tree, "tree-unsafe-name").evidence[0])


def test_blanks_in_the_path(tree: Path) -> None:
    moved = tree.rename(tree.parent / "my caffe $x")
    found = inspect(moved, FACTS)
    assert found.blanks_in_path
    assert [one.id for one in found.findings] == ["tree-path"]


def test_virtual_environment_and_second_tree_inside(tree: Path) -> None:
    (tree / "venv/lib/site-packages/x").mkdir(parents=True)
    (tree / "venv/pyvenv.cfg").write_text("")
    shutil.copytree(TINY, tree / "backup")
    found = finding(tree, "tree-strangers")
    assert found.severity == Severity.WARNING
    assert [one.where for one in found.evidence] == ["backup", "venv"]
    (tree / "tools/env").mkdir()
    (tree / "tools/env/pyvenv.cfg").write_text("")
    assert finding(tree, "tree-strangers").severity == Severity.PROBLEM


def test_hidden_environment_is_fine(tree: Path) -> None:
    (tree / ".venv").mkdir()
    (tree / ".venv/pyvenv.cfg").write_text("")
    assert names(tree) == []


def test_build_folder_that_make_would_remove(tree: Path) -> None:
    (tree / ".build_release").mkdir()
    (tree / "build").symlink_to(".build_release")
    assert names(tree) == []
    (tree / "build").unlink()
    (tree / "build").mkdir()
    (tree / "build/CMakeCache.txt").write_text("")
    assert "CMake build" in finding(tree, "tree-build-folder").title


def test_only_cmake(tree: Path) -> None:
    (tree / "Makefile").unlink()
    (tree / "CMakeLists.txt").write_text("")
    found = inspect(tree, FACTS)
    assert (found.makefile, found.cmake, found.config_keys) == (False, True, ())
    assert "only CMake" in finding(tree, "tree-no-makefile").title


def test_makefile_that_does_not_read_the_config(tree: Path) -> None:
    (tree / "Makefile").write_text("all:\n\techo $(CPU_ONLY)\n")
    assert inspect(tree, FACTS).config_keys == ()
    assert names(tree) == ["tree-makefile-without-config"]


def test_windows_line_ends(tree: Path) -> None:
    (tree / "Makefile").write_bytes((tree / "Makefile").read_bytes().replace(b"\n", b"\r\n"))
    assert finding(tree, "tree-crlf").severity == Severity.PROBLEM


def test_read_only_tree(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caffeup.source.health.os.access", lambda *_: False)
    assert finding(tree, "tree-read-only").severity == Severity.PROBLEM


def test_what_cannot_be_read_is_said(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.scandir

    def closed(path: Any) -> Any:
        if str(path).endswith("src/caffe/util"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr("caffeup.source.survey.os.scandir", closed)
    assert "src/caffe/util" in [one.where for one in finding(tree, "tree-unreadable").evidence]


def test_link_loops_end(tree: Path) -> None:
    (tree / "docs").symlink_to(".")
    (tree / "loop").symlink_to("loop")
    assert names(tree) == []


def test_nothing_of_the_tree_is_run(checkout: Path) -> None:
    """A stranger's .git/config may name programs for git to run."""
    with (checkout / ".git/config").open("a") as file:
        file.write(f'[core]\n\tfsmonitor = touch {checkout}/ran\n[filter "x"]\n\tclean = touch {checkout}/ran\n')
    (checkout / ".gitattributes").write_text("* filter=x\n")
    (checkout / "README.md").write_text("changed")
    assert inspect(checkout, FACTS).origin.dirty
    assert not (checkout / "ran").exists()


def test_sources_that_are_links_out_of_the_tree(tree: Path) -> None:
    (tree.parent / "secret").write_text("x")
    (tree / "src/caffe/net2.cpp").symlink_to("../../../secret")
    (tree / "src/caffe/net3.cpp").symlink_to("net.cpp")
    (tree / "models").symlink_to("/usr")
    found = finding(tree, "tree-links-out")
    assert [one.where for one in found.evidence] == ["src/caffe/net2.cpp"]


def test_our_folder_as_a_link(tree: Path) -> None:
    (tree / ".caffeup").symlink_to(tree.parent)
    assert finding(tree, "tree-own-folder").severity == Severity.PROBLEM


def test_a_config_that_names_what_cannot_be_looked_at_is_no_fault_of_ours(tmp_path: Path) -> None:
    root = Path(shutil.copytree(TINY, tmp_path / "tiny"))
    (root / "Makefile.config").write_text(f"ANACONDA_HOME := /{'a' * 5000}\n")  # as /root is to others: stat fails
    assert "tree-config-stale" in {finding.id for finding in inspect(root, load_facts()).findings}


def test_commands_that_a_makefile_runs_when_it_is_read(tree: Path) -> None:
    with (tree / "Makefile").open("a") as file:
        file.write("include Makefile.more\ninclude Makefile.config\ninclude ../outside.mk $(DEPS) Makefile\n")
    (tree.parent / "outside.mk").write_text("A := $(shell ./outside)\n")
    (tree / "Makefile.config").write_text("A := $(shell ./ours-takes-its-place)\n")
    (tree / "Makefile.more").write_text("# more\nifeq ($(BLAS), mkl)\n  ROOT := $(shell ./external/prepare.sh)\nendif\n")
    found = finding(tree, "tree-makefile-runs-commands")
    assert found.severity == Severity.WARNING
    assert [str(one) for one in found.evidence] == ["Makefile.more:3: ./external/prepare.sh  (ifeq ($(BLAS), mkl))"]
    assert found.remedies[0].commands == (f"sed -n 3p {tree}/Makefile.more",)


def test_many_commands_are_counted(tree: Path) -> None:
    with (tree / "Makefile").open("a") as file:
        file.writelines(f"A{number} := $(shell ./{number})\n" for number in range(7))
    assert [one.where for one in finding(tree, "tree-makefile-runs-commands").evidence[-2:]] == ["Makefile", "and 2 more"]


LAYER = """
template <typename Dtype>
class OwnLayer : public Layer<Dtype> {
  virtual void Backward_gpu(const vector<Blob<Dtype>*>& top,
      const vector<bool>& propagate_down, const vector<Blob<Dtype>*>& bottom);
};
"""


def test_edits_are_tried_where_no_marker_can_say_whether_they_are_needed(tree: Path) -> None:
    (tree / "include/caffe/layers").mkdir(parents=True, exist_ok=True)
    (tree / "include/caffe/layers/own_layer.hpp").write_text(LAYER)
    kernels = tree / "src/caffe/layers/own_layer.cu"
    kernels.parent.mkdir(parents=True, exist_ok=True)
    for text, wanted in (
        ("INSTANTIATE_LAYER_GPU_BACKWARD(OwnLayer);\n", True),
        ("void OwnLayer<Dtype>::Backward_gpu() {}\nINSTANTIATE_LAYER_GPU_BACKWARD(OwnLayer);\n", False),
        ("", False),
    ):
        kernels.write_text(text)
        assert ("edit::gpu-function-missing" in inspect(tree, FACTS).markers) is wanted


GUARDED = "#ifdef USE_OPENCV\n#include <opencv2/core/core.hpp>\n#endif  // USE_OPENCV\n"
BARE = "#include <opencv2/core/core.hpp>\n"


@pytest.mark.parametrize(
    ("files", "heedless"),
    [
        ({"src/caffe/data.cpp": BARE}, "src/caffe/data.cpp"),
        ({"src/caffe/data.cpp": GUARDED}, ""),
        ({"src/caffe/data.cpp": f"{GUARDED}{BARE}"}, "src/caffe/data.cpp"),
        ({"src/caffe/data.cpp": f"#ifdef CPU_ONLY\n#endif\n#ifdef CPU_ONLY\n{BARE}#else\n#endif\n"}, "src/caffe/data.cpp"),
        ({"src/caffe/data.cpp": "#if defined(USE_OPENCV) && 1\n# ifdef X\n#  include <opencv2/core.hpp>\n# endif\n#endif\n"}, ""),
        ({"tools/data.cpp": "#include <opencv/cv.h>\n"}, "tools/data.cpp"),
        ({"src/caffe/test/test_data.cpp": BARE, "include/caffe/not_included.hpp": BARE, "python/data.cpp": BARE}, ""),
        ({"src/caffe/data.cpp": '#include "caffe/data.hpp"\n', "include/caffe/data.hpp": BARE}, "include/caffe/data.hpp"),
        (
            {
                "src/caffe/data.cpp": '#ifdef USE_OPENCV\n#include "caffe/data.hpp"\n#endif\n',
                "include/caffe/data.hpp": BARE,
            },
            "",
        ),
        (
            {
                "src/caffe/data.cpp": '#include "caffe/a.hpp"\n',
                "include/caffe/a.hpp": '#include "caffe/b.hpp"\n',
                "include/caffe/b.hpp": f'#include "caffe/a.hpp"\n#endif\n{BARE}',
            },
            "include/caffe/b.hpp",
        ),
    ],
)
def test_a_switch_that_the_sources_do_not_ask_for(tree: Path, files: dict[str, str], heedless: str) -> None:
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    with (tree / "Makefile").open("a") as makefile:
        makefile.write("ifeq ($(USE_OPENCV), 1)\nendif\n")
    assert inspect(tree, FACTS).unheeded == ((f"USE_OPENCV::{heedless}",) if heedless else ())


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (
            Origin(kind="sdist", url="https://h/inisis/caffe", branch="brocolli-caffe 9.0.2", sha256="c6410cc60bddaa00"),
            "brocolli-caffe 9.0.2 (package index, sha256 c6410cc60bdd…)",
        ),
        (Origin(kind="archive", url="caffe.tar.gz", sha256="c6410cc60bddaa00"), "caffe.tar.gz (sha256 c6410cc60bdd…)"),
        (Origin(kind="git", url="https://h/x", branch="ssd", commit="89380f1d4e63"), "https://h/x 89380f1d4e"),
        (Origin(kind="folder"), "folder"),
    ],
)
def test_an_origin_in_words_takes_no_hash_of_an_archive_for_a_commit(origin: Origin, words: str) -> None:
    assert told(origin) == words
