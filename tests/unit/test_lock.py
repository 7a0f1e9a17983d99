"""The lock of a tree: written, held to, compared, verified; edited, hostile and foreign ones are refused in words."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec
import pytest
from test_up import TESTS, AfterAnUpgrade, OnDebian, Quiet, go

from caffeup.app import locking
from caffeup.app.locking import Locked, read_lock, require_same, verify_lock, write_after
from caffeup.app.session import Session
from caffeup.app.state import LOCK
from caffeup.app.up import Up
from caffeup.errors import LockDiffers, LockUnfit, UsageError
from caffeup.lock import compare, text
from caffeup.lock.make import request_of, wishes
from caffeup.model.lock import TABLES, Lock
from caffeup.model.machine import Machine
from caffeup.model.outcome import Report
from caffeup.model.plan import Request


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made") / "tiny"
    shutil.copytree(TESTS / "trees" / "tiny", root)
    go(root, tests=False)
    return root


@pytest.fixture
def tiny(made: Path, tmp_path: Path) -> Path:
    root = tmp_path / "tiny"
    shutil.copytree(made, root, symlinks=True)
    return root


class OnArm(OnDebian):
    """The same machine with other processors."""

    def machine(self, prefixes: tuple[str, ...] = (), python: str = "", cuda: str = "") -> Machine:
        machine = super().machine(prefixes, python, cuda)
        return msgspec.structs.replace(machine, system=msgspec.structs.replace(machine.system, arch="aarch64"))


def held(root: Path, lock: Path, *allow: str, session: type[Session] = OnDebian) -> Report:
    request = Request(source=str(root), python="none", tests=False)
    return Up(session(), Quiet(), request, Locked(lock, allow)).run()


def edited(lock: Lock, **tables: object) -> str:
    """A lock that another machine could have written."""
    return text.write(msgspec.structs.replace(lock, **tables))


def test_up_writes_it_at_its_end_and_not_again(tiny: Path, made: Path) -> None:
    lock = read_lock(made / LOCK)
    assert lock.libraries["glog"] == "0.6.0"
    assert lock.tools["compiler"].startswith("gcc ")
    assert set(lock.built) == {"build/lib/libcaffe.so", "build/tools/caffe"}
    assert str(made) not in (made / LOCK).read_text()
    before = (tiny / LOCK).stat().st_mtime_ns
    _, ui = go(tiny, tests=False)
    assert (tiny / LOCK).stat().st_mtime_ns == before
    assert "lock" not in {outcome.name for outcome in ui.ended}


def test_it_is_sorted_and_a_line_a_key(made: Path) -> None:
    lines = (made / LOCK).read_text().splitlines()
    assert [line.strip("[]") for line in lines if line.startswith("[")] == [
        table for table in TABLES if getattr(read_lock(made / LOCK), table)
    ]
    for table in "".join(f"{line}\n" for line in lines).split("\n[")[1:]:
        keys = [line.partition(" = ")[0].strip('"') for line in table.splitlines()[1:] if line]
        assert keys == sorted(keys)


@pytest.mark.parametrize(
    "value", ["", 'a "word"', "back\\slash", "tab\there", "näme", "$(shell x)", "del\x7f", "# not a comment", "[x]", "a\nb"]
)
def test_any_text_survives(value: str) -> None:
    lock = Lock(tree={"fork": value, value or "x": "y"}, request={"arch": (value, "b"), "cpu": True})
    written = text.write(lock)
    if any(char in value for char in "\x7f\n"):
        with pytest.raises(LockUnfit, match="control"):
            text.read(written.encode(), "x")
    else:
        again = text.read(written.encode(), "x")
        assert (again.tree, again.request) == (lock.tree, lock.request)
        assert text.write(again) == written


def test_the_same_is_built_in_another_folder(tiny: Path, made: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "caffe"
    shutil.copytree(TESTS / "trees" / "tiny", other)
    report = held(other, made / LOCK)
    assert {stage.name: stage.state for stage in report.stages}["lock"] == "done"
    assert not (other / LOCK).exists(), "a run that is held to a lock writes none"


def test_every_difference_is_told_at_once_and_nothing_is_changed(made: Path, tmp_path: Path) -> None:
    other = tmp_path / "caffe"
    shutil.copytree(TESTS / "trees" / "tiny", other)
    source = other / "src" / "caffe" / "net.cpp"
    source.write_text(source.read_text() + "// mine\n")
    with pytest.raises(LockDiffers) as caught:
        held(other, made / LOCK, session=AfterAnUpgrade)
    assert "libraries.glog: 0.6.0 in the lock, 9.9 here" in caught.value.details
    assert "tree.content: sha256:" in caught.value.details
    assert caught.value.exit_code == 19
    assert not (other / "Makefile.config").exists()


def test_a_difference_that_is_accepted_stops_nothing(tiny: Path, made: Path, tmp_path: Path) -> None:
    with pytest.raises(LockDiffers):
        held(tiny, made / LOCK, session=AfterAnUpgrade)
    with pytest.raises(LockDiffers) as caught:
        held(tiny, made / LOCK, "libraries.glog", session=AfterAnUpgrade)
    assert "settings.COMMON_FLAGS" in caught.value.details, "what follows from it is a difference too"
    held(tiny, made / LOCK, "libraries.glog", "settings", "patches", session=AfterAnUpgrade)
    with pytest.raises(UsageError, match="libaries"):
        held(tiny, made / LOCK, "libaries", session=AfterAnUpgrade)


def test_other_bytes_are_told_after_the_build(tiny: Path, made: Path, tmp_path: Path) -> None:
    lock = read_lock(made / LOCK)
    other = tmp_path / "other.lock"
    other.write_text(edited(lock, built={**lock.built, "build/tools/caffe": "sha256:" + "0" * 64}))
    with pytest.raises(LockDiffers, match="other bytes") as caught:
        held(tiny, other)
    assert "built.build/tools/caffe" in caught.value.details
    held(tiny, other, "built")


def test_a_lock_of_other_processors_is_refused(tiny: Path, made: Path) -> None:
    with pytest.raises(LockUnfit, match="it is for x86_64, and this machine is aarch64"):
        held(tiny, made / LOCK, session=OnArm)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('glog = "0.6.0"', 'glog = "0.7.0"', "was changed since"),
        ("format = 1", "format = 2", "of form 2"),
        ("[tree]", "[tree]\nfork = 7", "no lock"),
        ("[tools]", "[tool]", "no lock"),
        ('digest = "sha256:', 'digest = "sha256:0', "was changed since"),
        ("format = 1", "format = 1\n\x00", "no lock"),
        ('caffeup = "', 'caffeup = "\\u001b[31m', "was changed since"),
    ],
)
def test_an_edited_lock_is_refused_in_words(tiny: Path, old: str, new: str, said: str) -> None:
    path = tiny / LOCK
    before = path.read_text()
    assert old in before
    path.write_text(before.replace(old, new, 1))
    with pytest.raises(LockUnfit, match=said) as caught:
        read_lock(path)
    assert caught.value.exit_code == 20
    assert "\x1b" not in caught.value.brief + caught.value.details


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[" * 100_000, b'a = "' + b"x" * (1 << 21)])
def test_what_is_no_lock_is_refused_in_words(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / LOCK
    path.write_bytes(content)
    with pytest.raises((LockUnfit, UsageError)):
        read_lock(path)


def test_a_pipe_or_a_missing_file_is_no_lock(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / LOCK)
    for path in (tmp_path / LOCK, tmp_path / "absent", tmp_path):
        with pytest.raises(UsageError):
            read_lock(path)


def test_wishes_that_a_lock_may_not_have_are_refused(tiny: Path, made: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.lock"
    for request in ({"cuda": "/tmp/mine"}, {"unheard_of": True}, {"cudnn": "perhaps"}, {"yes": True}):
        other.write_text(edited(read_lock(made / LOCK), request=request))
        with pytest.raises(LockUnfit):
            held(tiny, other)


def test_a_request_survives_but_for_places() -> None:
    asked = Request(source="/x", cpu=True, arch=("8.6",), prefixes=("/opt",), blas="open", jobs=3)
    again = request_of(Lock(request=wishes(asked)), Request(source="/y", jobs=5))
    assert again == Request(source="/y", cpu=True, arch=("8.6",), blas="open", jobs=5)
    pinned = request_of(Lock(needs={"gpus": "8.6, 9.0, 9.0+PTX"}), Request())
    assert pinned.arch == ("8.6", "9.0"), "not whatever GPU is here"


def test_a_lock_that_somebody_changed_is_kept_by_up(tiny: Path, made: Path) -> None:
    (tiny / LOCK).write_text("# my own notes\n")
    planned = Up(OnDebian(), Quiet(), Request(source=str(tiny), python="none")).preview()
    said = write_after(OnDebian(), planned)
    assert "kept" in said
    assert (tiny / LOCK).read_text() == "# my own notes\n"


def test_verify_finds_a_product_that_is_another_or_gone(tiny: Path) -> None:
    require_same(verify_lock(str(tiny)))
    (tiny / "build" / "tools" / "caffe.bin").write_bytes(b"other")
    (tiny / "build" / "lib" / "libcaffe.so").unlink()
    found = verify_lock(str(tiny))
    assert {one.key for one in found.differences} == {"built.build/tools/caffe", "built.build/lib/libcaffe.so"}
    with pytest.raises(LockDiffers):
        require_same(found)


def test_update_takes_only_what_is_named(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = read_lock(tiny / LOCK)
    old = msgspec.structs.replace(here, libraries={**here.libraries, "glog": "0.5", "boost": "1.60"}, packages={"x": "1"})
    (tiny / LOCK).write_text(text.write(old))
    _, found = locking.update_lock(OnDebian(), str(tiny), ("libraries.glog",))
    assert [one.key for one in found] == ["libraries.glog"]
    with pytest.raises(UsageError):
        locking.update_lock(OnDebian(), str(tiny), ("libraries.unheard",))
    _, found = locking.update_lock(OnDebian(), str(tiny))
    assert {"libraries.boost", "packages.x"} <= {one.key for one in found}
    assert read_lock(tiny / LOCK).libraries == here.libraries


def test_a_machine_that_changed_is_built_first(tiny: Path) -> None:
    with pytest.raises(LockDiffers, match="changed since"):
        locking.update_lock(AfterAnUpgrade(), str(tiny))


def test_here_is_compared_and_says_what_follows(tiny: Path) -> None:
    found = locking.diff_locks(AfterAnUpgrade(), "", "", str(tiny)).differences
    by_key = {one.key: one for one in found}
    assert by_key["libraries.glog"].here == "9.9"
    assert by_key["libraries.glog"].means


def test_needs_are_constraints_and_not_equality() -> None:
    from planvalues import gpu, machine

    lock = Lock(needs={"arch": "x86_64", "driver": "525.60.13", "gpus": "8.6, 8.6+PTX"}, tools={"cuda": "12.4"})

    def unmet(card: str, driver: str) -> set[str]:
        return {one.key for one in compare.unmet(lock, machine(gpu("card", card), driver=driver))}

    assert unmet("8.6", "580.65.06") == set()
    assert unmet("8.9", "580.65.06") == set(), "runs code of 8.6"
    assert unmet("9.0", "525.60.13") == set(), "runs its PTX"
    assert unmet("8.0", "580.65.06") == {"needs.gpus"}
    assert unmet("8.6", "520.1") == {"needs.driver"}
    assert compare.unmet(lock, machine()) == (), "a machine without a GPU can build for one"
