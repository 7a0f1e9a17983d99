"""CUDA toolkits side by side: the list, who uses one, and what removing one would mean. Nothing is run for it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Optional

import msgspec
import pytest
from test_up import TESTS

from caffeup.app import cuda_toolkits
from caffeup.app.known_trees import known_trees, remember_tree
from caffeup.app.session import Session
from caffeup.app.state import load_state
from caffeup.app.treework import keep_plan
from caffeup.cli.main import main
from caffeup.errors import CannotBuild, UsageError
from caffeup.host import Output
from caffeup.model.machine import Machine, ToolkitLayout
from caffeup.model.plan import Request
from planvalues import gcc, gpu, machine, toolkit


class Asked:
    """A host that knows one package and the user's folders."""

    def __init__(self, home: Path, owner: Optional[str], files: tuple[str, ...] = ()) -> None:
        self.env = {"HOME": str(home)}
        self._owner = owner
        self._files = files
        self.ran: list[tuple[str, ...]] = []

    def exists(self, path: str) -> bool:
        return path in self._files

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0, stdin: str = "") -> Optional[Output]:
        self.ran.append(argv)
        if argv[0] == "dpkg-query" and self._owner is not None:
            return Output(status=0, stdout=f"{self._owner}: {argv[-1]}\n")
        return Output(status=1) if argv[0] == "dpkg-query" else None


class Two(Session):
    """A machine with two toolkits."""

    layout = ToolkitLayout.CLASSIC

    def machine(self, prefixes: tuple[str, ...] = (), python: str = "", cuda: str = "") -> Machine:
        kits = tuple(
            msgspec.structs.replace(toolkit(version), layout=self.layout, nvcc=f"/usr/local/cuda-{version}/bin/nvcc")
            for version in ("12.4", "11.8")
        )
        return machine(gpu("a card", "8.6"), toolkits=kits, compilers=(gcc("11.4.0"),))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    shutil.copytree(TESTS / "trees" / "tiny", tmp_path / "tiny")
    return tmp_path / "tiny"


def session(tmp_path: Path, owner: Optional[str] = None, files: tuple[str, ...] = ()) -> Two:
    return Two(host=Asked(tmp_path, owner, files))  # type: ignore[arg-type]


def test_a_tree_is_shown_beside_the_toolkit_it_was_built_with(tmp_path: Path, tree: Path) -> None:
    here = session(tmp_path)
    keep_plan(here.plan(here.machine(), here.tree(tree), Request(source=str(tree), cuda="11.8")))
    remember_tree(here.host.env, tree)
    by_version = {one.version: one for one in cuda_toolkits.toolkits(here).toolkits}
    assert by_version["11.8"].trees == (str(tree),)
    assert by_version["12.4"].trees == ()
    shutil.rmtree(tree)
    assert known_trees(here.host.env) == ()


def test_why_names_the_reason_and_the_others(tmp_path: Path, tree: Path) -> None:
    found = cuda_toolkits.why(session(tmp_path), str(tree)).decision
    assert found.value == "CUDA 12.4 in /usr/local/cuda-12.4"
    assert found.because
    assert [one.value for one in found.rejected] == ["CUDA 11.8 in /usr/local/cuda-11.8"]


def test_use_is_remembered_and_builds_nothing(tmp_path: Path, tree: Path) -> None:
    planned = cuda_toolkits.use(session(tmp_path), "11.8", str(tree))
    assert planned.plan.decision("toolkit").value.startswith("CUDA 11.8")
    request = load_state(tree).request
    assert request is not None
    assert request.cuda == "11.8"
    assert not (tree / "Makefile.config").exists()
    with pytest.raises(CannotBuild):
        cuda_toolkits.use(session(tmp_path), "9.0", str(tree))
    assert load_state(tree).request == request


@pytest.mark.parametrize(
    ("owner", "files", "command"),
    [
        ("cuda-nvcc-12-4", (), "sudo apt-get remove --autoremove cuda-toolkit-12-4"),
        ("nvidia-cuda-toolkit", (), "sudo apt-get remove --autoremove nvidia-cuda-toolkit"),
        ("x; rm -rf /", (), "sudo apt-get remove --autoremove 'x; rm -rf /'"),
        (None, ("/usr/local/cuda-12.4/bin/cuda-uninstaller",), "sudo /usr/local/cuda-12.4/bin/cuda-uninstaller"),
        (None, (), ""),
    ],
)
def test_remove_tells_the_distributions_own_way_and_runs_nothing(
    tmp_path: Path, owner: Optional[str], files: tuple[str, ...], command: str
) -> None:
    here = session(tmp_path, owner, files)
    found = cuda_toolkits.remove(here, "12.4")
    assert " ".join(found.commands) == command
    assert found.others == ("CUDA 11.8 in /usr/local/cuda-11.8",)
    assert all(argv[0] in {"dpkg-query", "rpm", "pacman"} for argv in here.host.ran)  # type: ignore[attr-defined]


def test_a_toolkit_that_is_not_here_or_not_the_only_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no CUDA 13\.0"):
        cuda_toolkits.remove(session(tmp_path), "13.0")
    assert cuda_toolkits.remove(session(tmp_path), "/usr/local/cuda-11.8/").toolkit.version == "11.8"
    assert cuda_toolkits.remove(session(tmp_path), "12").toolkit.version == "12.4"


@pytest.mark.parametrize("content", ["", "{", '{"trees": [7]}', '{"trees": ["relative", "/gone"]}'])
def test_a_damaged_list_of_trees_is_an_empty_one(tmp_path: Path, tree: Path, content: str) -> None:
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    place = tmp_path / "state" / "caffeup" / "trees.json"
    place.parent.mkdir(parents=True)
    place.write_text(content)
    assert known_trees(env) == ()
    remember_tree(env, tree)
    remember_tree(env, tree)
    assert known_trees(env) == (tree,)
    assert known_trees({}) == ()
    remember_tree({}, tree)


def test_a_list_that_cannot_be_written_stops_nothing(tmp_path: Path, tree: Path) -> None:
    (tmp_path / "state").write_text("a file")
    remember_tree({"XDG_STATE_HOME": str(tmp_path / "state")}, tree)


def test_the_commands_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cuda", "list", "--json"]) == 0
    assert capsys.readouterr().out.startswith("{")
