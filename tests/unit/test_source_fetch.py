"""From what the user typed to a whole tree in its folder, or to nothing at all."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from caffeup.errors import CaffeupError, DiskError, SourceError, UsageError
from caffeup.facts.forks import Fork, ForkFile, KnownFailure, Sdist
from caffeup.facts.load import load_facts
from caffeup.facts.tables import Facts
from caffeup.host import RealHost
from caffeup.model.tree import Origin
from caffeup.source import catalogue
from caffeup.source.archive import sha256_of
from caffeup.source.fetch import default_folder, fetch, resolve
from caffeup.source.inspect import inspect
from caffeup.source.origin import recorded_origin, write_origin
from caffeup.source.problems import MARK, BadArchive, NoAccess, Occupied, Unreachable
from caffeup.source.staging import staging

TINY = Path(__file__).resolve().parents[1] / "trees" / "tiny"
FACTS = load_facts()


class Table:
    """Facts with other forks."""

    def __init__(self, *forks: Fork) -> None:
        self._forks = forks

    def table(self, name: str, kind: type[Any]) -> Any:
        return ForkFile(fork=self._forks) if name == "forks" else kind()

    def fixes(self) -> tuple[Any, ...]:
        return ()


def facts_with(*forks: Fork) -> Facts:
    return replace(FACTS, reader=Table(*forks))


def get(source: str, into: Path, facts: Facts = FACTS, **options: Any) -> Origin:
    return fetch(source, into, facts, RealHost(), **options)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "tiny-caffe-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(TINY, "tiny-caffe-1.0")
    return path


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    shutil.copytree(TINY, folder)
    who = ["-c", "user.name=n", "-c", "user.email=n@example.org"]
    for words in (["init", "-q", "-b", "ssd"], ["add", "-A"], [*who, "commit", "-q", "-m", "tiny"]):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    return folder


def beside(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if MARK in path.name)


def test_archive_becomes_a_tree(archive: Path, tmp_path: Path) -> None:
    origin = get(str(archive), tmp_path / "caffe")
    assert origin == Origin(kind="archive", url=archive.name, sha256=sha256_of(archive))
    assert recorded_origin(tmp_path / "caffe") == origin
    assert (tmp_path / "caffe/Makefile").is_file()
    assert beside(tmp_path) == []


def test_a_second_time_the_tree_is_used(archive: Path, tmp_path: Path) -> None:
    first = get(str(archive), tmp_path / "caffe")
    (tmp_path / "caffe/mine").write_text("x")
    assert get(str(archive), tmp_path / "caffe") == first
    assert (tmp_path / "caffe/mine").exists()


def test_git_tree_hides_our_files_from_its_status(repository: Path, tmp_path: Path) -> None:
    origin = get(f"{repository.as_uri()}#ssd", tmp_path / "caffe")
    assert (origin.kind, origin.branch, len(origin.commit)) == ("git", "ssd", 40)
    (tmp_path / "caffe/Makefile.config").write_text("x")
    status = subprocess.run(["git", "status", "--porcelain"], cwd=tmp_path / "caffe", capture_output=True, text=True, check=True)
    assert status.stdout == ""
    before = (tmp_path / "caffe/.git/info/exclude").read_text()
    assert get(f"{repository.as_uri()}#ssd", tmp_path / "caffe") == origin
    assert (tmp_path / "caffe/.git/info/exclude").read_text() == before


def test_folder_is_used_in_place(repository: Path, tmp_path: Path) -> None:
    (repository / "src/caffe/net.cpp").write_text("changed")
    origin = get(str(repository), tmp_path / "not used")
    assert (origin.kind, origin.branch, origin.dirty) == ("git", "ssd", True)
    assert not (tmp_path / "not used").exists()
    assert default_folder(str(repository), FACTS) == str(repository)


def test_bare_repository_is_cloned(repository: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "clone", "-q", "--bare", str(repository), str(tmp_path / "bare.git")], check=True, capture_output=True)
    assert get(str(tmp_path / "bare.git"), tmp_path / "caffe").kind == "git"
    assert (tmp_path / "caffe/Makefile").is_file()


def test_what_is_no_caffe_leaves_nothing(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tgz", "w:gz") as tar:
        tar.add(__file__, "other/program.py")
    with pytest.raises(SourceError, match="is not a Caffe tree") as caught:
        get(str(tmp_path / "x.tgz"), tmp_path / "caffe")
    assert "src/caffe/proto/caffe.proto is not there" in caught.value.details
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.tgz"]


def test_corrupt_archive_leaves_nothing(archive: Path, tmp_path: Path) -> None:
    archive.write_bytes(archive.read_bytes()[:-300])
    with pytest.raises(BadArchive):
        get(str(archive), tmp_path / "caffe")
    assert not (tmp_path / "caffe").exists()
    assert beside(tmp_path) == []


@pytest.mark.parametrize("what", ["folder", "file", "dangling link", "other tree"])
def test_what_stands_at_the_target_is_never_touched(archive: Path, tmp_path: Path, what: str) -> None:
    target = tmp_path / "caffe"
    if what == "folder":
        target.mkdir()
        (target / "mine").write_text("x")
    elif what == "file":
        target.write_text("x")
    elif what == "dangling link":
        target.symlink_to(tmp_path / "nowhere")
    else:
        shutil.copytree(TINY, target)
    with pytest.raises(Occupied) as caught:
        get(str(archive), target)
    assert any("--into" in command for command in caught.value.commands)
    assert target.is_symlink() or target.exists()


def test_empty_folder_is_filled(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "caffe").mkdir()
    get(str(archive), tmp_path / "caffe")
    assert (tmp_path / "caffe/Makefile").is_file()


def test_tree_of_another_commit_is_not_moved(repository: Path, tmp_path: Path) -> None:
    get(f"{repository.as_uri()}", tmp_path / "caffe")
    with pytest.raises(Occupied, match="is at commit"):
        get(f"{repository.as_uri()}#{'a' * 40}", tmp_path / "caffe")


def test_unreachable_host_and_its_substitute(archive: Path, tmp_path: Path) -> None:
    ssd = Fork(id="ssd", title="SSD", url="https://127.0.0.1:9/caffe", branch="ssd", substitute="brocolli", source=("test",))
    sdist = Sdist(name="no-such-thing-of-ours", version="1", file="x.tar.gz", sha256="0" * 64)
    brocolli = Fork(id="brocolli", title="a relative", sdist=sdist, lacks=("its examples",), source=("test",))
    facts = facts_with(ssd, brocolli)
    with pytest.raises(Unreachable):
        get("ssd", tmp_path / "caffe-ssd", facts)
    other = catalogue.substitute_for("ssd", facts)
    assert other is not None
    assert (other.id, other.lacks) == ("brocolli", ("its examples",))
    assert catalogue.substitute_for("brocolli", facts) is None
    assert not (tmp_path / "caffe-ssd").exists()


def test_catalogue_tree_without_access_counts_as_unreachable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise NoAccess("https://h/x gives no access", details="error: 403")

    monkeypatch.setattr("caffeup.source.fetch.git.clone", forbidden)
    with pytest.raises(Unreachable):
        get("ssd", tmp_path / "caffe")
    with pytest.raises(NoAccess):
        get("https://h/x", tmp_path / "caffe")


def test_what_was_asked_for_is_recorded_and_found_again(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caffeup.source.fetch.index.download", lambda *_, **__: archive)
    row = Sdist(name="tiny", version="1", file=archive.name, sha256=sha256_of(archive))
    facts = facts_with(
        Fork(id="ssd", title="SSD", url="https://127.0.0.1:9/caffe", branch="ssd", source=("t",)),
        Fork(id="tiny", title="Tiny", sdist=row, source=("t",)),
    )
    origin = get("tiny", tmp_path / "caffe", facts, asked_for="ssd")
    assert (origin.kind, origin.asked_for, origin.branch) == ("sdist", "ssd", "tiny 1")
    assert get("ssd", tmp_path / "caffe", facts).asked_for == "ssd"
    assert get("tiny", tmp_path / "caffe", facts) == origin
    assert inspect(tmp_path / "caffe", facts).origin.asked_for == "ssd"


@pytest.mark.parametrize(
    ("source", "folder"),
    [
        ("ssd", "caffe-ssd"),
        ("bvlc-1.0", "caffe-bvlc-1.0"),
        ("ssd@4817bf8b4200b35ada8ed0dc378dceaf38c539e4", "caffe-ssd"),
        ("https://host/owner/caffe.git", "caffe-owner"),
        ("https://host/owner/caffe.git#my-branch", "caffe-owner-my-branch"),
        ("https://host/owner/caffe-segnet", "caffe-segnet"),
        ("git@host:owner/my caffe".replace(" ", "_"), "caffe-my_caffe"),
        ("https://host/owner/$(x)", "caffe-x"),
    ],
)
def test_default_folder(source: str, folder: str) -> None:
    assert default_folder(source, FACTS) == folder


def test_revisions_of_the_catalogue() -> None:
    assert resolve("ssd@fcn", FACTS).branch == "fcn"
    assert resolve("ssd@4817bf8", FACTS).commit == "4817bf8"
    with pytest.raises(UsageError):
        resolve("brocolli@main", FACTS)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("", UsageError),
        ("--upload-pack=x", UsageError),
        ("ext::sh -c x", UsageError),
        ("ftp://host/caffe", UsageError),
        ("https://host/caffe.tar.gz", UsageError),
        ("a\0b", UsageError),
        ("nothing-of-that-name", SourceError),
        ("./nothing.tar.gz", SourceError),
        ("x" * 5000, SourceError),
    ],
)
def test_sources_that_are_none(source: str, kind: type[CaffeupError]) -> None:
    with pytest.raises(kind) as caught:
        resolve(source, FACTS)
    assert caught.value.advice or caught.value.commands


def test_every_row_of_the_catalogue_resolves() -> None:
    for name in (row.id for row in catalogue.trees(FACTS)):
        place = resolve(name, FACTS)
        assert place.kind in {"git", "sdist"}
        assert default_folder(name, FACTS) == f"caffe-{name}"
    for row in catalogue.table_of(FACTS).fork:
        assert row.source
        assert not row.substitute or catalogue.named(row.substitute, FACTS)
        assert all(len(commit) == 40 for commit in row.commits)


def test_known_failures_are_matched_by_name_and_mode() -> None:
    row = KnownFailure(test="BoxTest/*.TestAborts", because="a check aborts", gpu=False)
    facts = facts_with(Fork(id="f", title="F", failures=(row,), source=("t",)))
    assert catalogue.known_failure("f", "BoxTest/1.TestAborts", facts, gpu=False) == "a check aborts"
    assert catalogue.known_failure("f", "BoxTest/1.TestAborts", facts, gpu=True) == ""
    assert catalogue.known_failure("f", "OtherTest.TestAborts", facts, gpu=False) == ""
    assert catalogue.known_failure("unknown", "BoxTest/1.TestAborts", facts, gpu=False) == ""


def test_full_disk_is_said(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("caffeup.source.fetch.write_origin", full)
    with pytest.raises(DiskError, match="the disk is full"):
        get(str(archive), tmp_path / "caffe")
    assert not (tmp_path / "caffe").exists()
    assert beside(tmp_path) == []


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_folder_that_may_not_be_written(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(DiskError, match="cannot write"):
        get(str(archive), tmp_path / "closed/caffe")


def test_a_file_where_a_folder_must_be(archive: Path, tmp_path: Path) -> None:
    with pytest.raises(DiskError):
        get(str(archive), archive / "caffe")


KILLED = """
import sys, time
from pathlib import Path
from caffeup.source.staging import staging
with staging(Path(sys.argv[1])) as part:
    (part / "half").mkdir()
    (part / "half" / "file").write_text("x")
    print("ready", flush=True)
    time.sleep(60)
"""


def test_killed_run_leaves_nothing_at_the_target_and_is_swept(archive: Path, tmp_path: Path) -> None:
    target = tmp_path / "caffe [1]"
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(target)], stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        assert len(beside(tmp_path)) == 1
        with staging(target):
            assert len(beside(tmp_path)) == 2, "a living run's folder is not swept"
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert len(beside(tmp_path)) == 1
    get(str(archive), target)
    assert beside(tmp_path) == []
    assert (target / "Makefile").is_file()


def test_what_only_looks_like_a_leftover_is_kept(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/mine").write_text("x")
    (tmp_path / f".caffe{MARK}link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / f".caffe{MARK}file").write_text("x")
    with staging(tmp_path / "caffe"):
        pass
    assert (tmp_path / "elsewhere/mine").exists()
    assert (tmp_path / f".caffe{MARK}file").exists()


def test_target_that_appears_meanwhile_is_kept(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "caffe"
    real = write_origin

    def meanwhile(root: Path, origin: Origin) -> None:
        real(root, origin)
        target.mkdir()
        (target / "mine").write_text("x")

    monkeypatch.setattr("caffeup.source.fetch.write_origin", meanwhile)
    with pytest.raises(Occupied, match="appeared"):
        get(str(archive), target)
    assert [path.name for path in target.iterdir()] == ["mine"]


def test_interrupt_removes_what_is_half(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("caffeup.source.fetch.archives.unpack", interrupted)
    with pytest.raises(KeyboardInterrupt):
        get(str(archive), tmp_path / "caffe")
    assert not (tmp_path / "caffe").exists()
    assert beside(tmp_path) == []


def test_clone_is_ended_with_the_run(repository: Path, tmp_path: Path) -> None:
    """A git that is killed half-way is an error, and leaves nothing."""
    wrapper = tmp_path / "bin/git"
    wrapper.parent.mkdir()
    wrapper.write_text(
        f'#!/bin/sh\ncase "$*" in *clone*) mkdir -p "$(eval echo \\${{$#}})"; kill -9 $$;; esac\nexec {shutil.which("git")} "$@"\n'
    )
    wrapper.chmod(0o755)
    code = (
        "import sys\nfrom pathlib import Path\nfrom caffeup.facts.load import load_facts\nfrom caffeup.host import RealHost\n"
        "from caffeup.source.fetch import fetch\nfrom caffeup.errors import CaffeupError\n"
        "try:\n    fetch(sys.argv[1], Path(sys.argv[2]), load_facts(), RealHost())\nexcept CaffeupError as error:\n    print(error.brief)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, repository.as_uri(), str(tmp_path / "caffe")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": f"{wrapper.parent}:{os.environ['PATH']}"},
    )
    assert "could not fetch" in done.stdout, done.stderr
    assert not (tmp_path / "caffe").exists()
    assert beside(tmp_path) == []


@pytest.mark.parametrize(
    ("test", "known"),
    [
        ("src/caffe/test/test_bbox_util.cpp", True),
        ("IOTest.TestReadImageToDatum", True),
        ("ImageDataLayerTest/1.TestResize", True),
        ("LayerFactoryTest/0.TestCreateLayer", True),
        ("DBTest/0.TestNext", False),
        ("ConvolutionLayerTest/0.TestSetup", False),
    ],
)
def test_known_failures_of_brocolli(test: str, known: bool) -> None:
    assert bool(catalogue.known_failure("brocolli", test, FACTS, gpu=False)) is known
    assert catalogue.known_failure("ssd", test, FACTS, gpu=False) == ""


@pytest.mark.parametrize("as_link", [True, False])
def test_a_repository_cannot_bring_our_folder(repository: Path, tmp_path: Path, as_link: bool) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if as_link:
        (repository / ".caffeup").symlink_to(elsewhere)
    else:
        (repository / ".caffeup").mkdir()
        (repository / ".caffeup/ledger.json").write_text("{}")
    who = ["-c", "user.name=n", "-c", "user.email=n@example.org"]
    for words in (["add", "-A"], [*who, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", *words], cwd=repository, check=True, capture_output=True)
    with pytest.raises(BadArchive, match=r"brings a \.caffeup of its own"):
        get(repository.as_uri(), tmp_path / "caffe")
    assert list(elsewhere.iterdir()) == []
    assert not (tmp_path / "caffe").exists()
