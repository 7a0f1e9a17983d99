"""``--deps user``: apt with a state of its own, and sets of unpacked packages that are whole or not there."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Optional

import msgspec
import pytest

from caffeup.deps.alone import begun, is_empty, remove_all
from caffeup.deps.system import InstallPlan
from caffeup.deps.user import Size, Work, is_made, make_set
from caffeup.deps.user_apt import parse_uris
from caffeup.detect.unpacked import MARK, is_unpacked, unpacked_root
from caffeup.errors import DependencyError, DiskError
from caffeup.facts.load import load_facts
from caffeup.host import Output, RealHost
from caffeup.model.machine import System
from caffeup.source.progress import silent
from planvalues import gcc, ids, machine, plan

DISTROS = load_facts().distros
TRIPLET = "x86_64-linux-gnu"
PLAN = InstallPlan(manager="apt", packages=("liba-dev", "libb-dev"), optional=("libb-dev",))


def content(file: str) -> bytes:
    return f"the package {file}".encode()


def uri_line(file: str, at: str = "http://mirror/pool") -> str:
    return f"'{at}/{file}' {file} {len(content(file))} SHA256:{sha256(content(file)).hexdigest()}"


class Apt:
    """An apt that answers from a few words; a dpkg-deb that unpacks one file a package."""

    def __init__(
        self, home: Path, files: Sequence[str] = ("liba_1_amd64.deb", "liba-dev_1_amd64.deb", "patchelf_1_amd64.deb")
    ) -> None:
        self.home = home
        self.files = list(files)
        self.calls: list[tuple[str, ...]] = []
        self.unpacked: list[str] = []
        self.die_at = ""
        self.unknown: tuple[str, ...] = ()
        self.update = Output(status=0)
        self.downloaded = Output(status=0)
        self.write_downloads = True
        self.at = "http://mirror/pool"

    # apt
    def __call__(self, argv: tuple[str, ...], *, timeout: float, packages: int = 0) -> Optional[Output]:
        del timeout, packages
        self.calls.append(argv)
        if argv[-1] == "update":
            return self.update
        if "--print-uris" in argv:
            unknown = [name for name in self.unknown if name in argv]
            if unknown:
                return Output(status=100, stderr="\n".join(f"E: Unable to locate package {name}" for name in unknown))
            names = " ".join(file.partition("_")[0] for file in self.files)
            lines = [
                "The following NEW packages will be installed:",
                f"  {names}",
                f"0 upgraded, {len(self.files)} newly installed, 0 to remove and 0 not upgraded.",
                "After this operation, 1000 kB of additional disk space will be used.",
                *(uri_line(file, self.at) for file in self.files),
            ]
            return Output(status=0, stdout="\n".join(lines))
        if self.write_downloads:
            for file in self.files:
                (self.home / "apt" / "archives" / file).write_bytes(content(file))
        return self.downloaded

    # dpkg-deb
    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0, stdin: str = "") -> Output:
        del timeout, stdin
        if argv[:2] != ("dpkg-deb", "-x"):
            return Output(status=2)
        name = Path(argv[2]).name.partition("_")[0]
        if name == self.die_at:
            raise KeyboardInterrupt
        self.unpacked.append(name)
        file = Path(argv[3], "usr/lib", TRIPLET, f"{name}.txt")
        file.parent.mkdir(parents=True)
        file.write_text(name)
        return Output(status=0)


def make(apt: Apt, root: Path, *, yes: bool = True, free: int = 1 << 40, plan: InstallPlan = PLAN) -> tuple[str, ...]:
    asked: list[Size] = []

    def ask(size: Size) -> bool:
        asked.append(size)
        return yes

    work = Work(host=apt, run=apt, ask=ask, free_bytes=lambda _: free, progress=silent)  # type: ignore[arg-type]
    return make_set(root, plan, TRIPLET, DISTROS, work)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "a folder" / "deps"


def test_a_set_is_made_with_all_that_it_needs_and_says_what_it_is(home: Path) -> None:
    apt, root = Apt(home), home / "debian-12"
    assert make(apt, root) == ()
    assert sorted(path.name for path in (root / "usr/lib" / TRIPLET).iterdir()) == ["liba-dev.txt", "liba.txt", "patchelf.txt"]
    said = json.loads((root / "caffeup.json").read_text())
    assert said["packages"] == {"liba": "1", "liba-dev": "1", "patchelf": "1"}
    assert begun(home) == ()
    assert not (home / "apt" / "archives").exists()
    assert is_unpacked(RealHost({}), str(root))


def test_apt_works_in_the_users_folder_and_takes_nothing_unsigned(home: Path) -> None:
    apt = Apt(home)
    make(apt, home / "set")
    assert len(apt.calls) == 3
    for call in apt.calls:
        assert f"Dir::State={home}/apt" in call
        assert "APT::Get::AllowUnauthenticated=false" in call
        assert "Acquire::AllowInsecureRepositories=false" in call
        assert "sudo" not in call
    assert "--download-only" in apt.calls[2]
    assert apt.calls[2][-3:] == ("liba-dev", "libb-dev", "patchelf")
    hooks = home / "apt" / "no-hooks.conf"
    assert str(hooks) in apt.calls[0]


def test_what_is_there_is_not_made_again_and_asks_no_network(home: Path) -> None:
    make(Apt(home), home / "set")
    again = Apt(home)
    make(again, home / "set", yes=False)
    assert again.calls == []


def test_a_run_that_was_ended_is_gone_on_with(home: Path) -> None:
    apt, root = Apt(home), home / "set"
    apt.die_at = "liba-dev"
    with pytest.raises(KeyboardInterrupt):
        make(apt, root)
    assert not is_made(root)
    assert len(begun(home)) == 1
    apt.die_at, apt.unpacked, apt.calls = "", [], []
    make(apt, root)
    assert apt.unpacked == ["liba-dev", "patchelf"]
    assert not any("--download-only" in call for call in apt.calls)
    assert is_made(root)


def test_what_was_begun_with_other_versions_is_thrown_away(home: Path) -> None:
    apt, root = Apt(home), home / "set"
    apt.die_at = "liba-dev"
    with pytest.raises(KeyboardInterrupt):
        make(apt, root)
    newer = Apt(home, files=("liba_2_amd64.deb", "liba-dev_2_amd64.deb"))
    make(newer, root)
    assert newer.unpacked == ["liba", "liba-dev"]
    assert not (root / "usr/lib" / TRIPLET / "patchelf.txt").exists()


def test_a_download_of_the_right_size_and_other_bytes_is_fetched_anew(home: Path) -> None:
    file = home / "apt" / "archives" / "liba_1_amd64.deb"
    file.parent.mkdir(parents=True)
    file.write_bytes(content(file.name)[::-1])
    apt = Apt(home)
    make(apt, home / "set")
    assert any("--download-only" in call for call in apt.calls)


def test_a_download_that_is_not_what_the_signed_lists_say_is_not_unpacked(home: Path) -> None:
    apt = Apt(home)
    apt.write_downloads = False
    with pytest.raises(DependencyError, match="not what the package lists say"):
        make(apt, home / "set")
    assert apt.unpacked == []


def test_a_repository_in_a_folder_is_used_where_it_lies(home: Path, tmp_path: Path) -> None:
    pool = tmp_path / "my pool"
    pool.mkdir()
    apt = Apt(home)
    apt.at, apt.write_downloads = f"file:{str(pool).replace(' ', '%20')}", False
    for file in apt.files:
        (pool / file).write_bytes(content(file))
    make(apt, home / "set")
    assert apt.unpacked == ["liba", "liba-dev", "patchelf"]
    assert sorted(path.name for path in pool.iterdir()) == sorted(apt.files)


def test_without_consent_nothing_is_downloaded(home: Path) -> None:
    apt = Apt(home)
    with pytest.raises(DependencyError, match="no consent"):
        make(apt, home / "set", yes=False)
    assert not any("--download-only" in call for call in apt.calls)


def test_a_full_disk_is_known_before_anything_is_downloaded(home: Path) -> None:
    apt = Apt(home)
    with pytest.raises(DiskError, match="MiB are free"):
        make(apt, home / "set", free=1 << 20)
    assert not any("--download-only" in call for call in apt.calls)


def test_a_folder_that_cannot_be_written_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "deps").write_text("a file")
    with pytest.raises(DiskError):
        make(Apt(tmp_path / "deps"), tmp_path / "deps" / "set")


def test_a_package_that_may_be_left_out_is(home: Path) -> None:
    apt = Apt(home)
    apt.unknown = ("libb-dev",)
    assert make(apt, home / "set") == ("not among the packages here, and left out: libb-dev",)


@pytest.mark.parametrize("name", ["liba-dev", "patchelf"])
def test_a_package_that_has_vanished_is_named(home: Path, name: str) -> None:
    apt = Apt(home)
    apt.unknown = (name,)
    apt.update = Output(status=100, stderr="W: GPG error: x\nE: The repository 'x' is not signed.")
    with pytest.raises(DependencyError, match=f"Unable to locate package {name}") as caught:
        make(apt, home / "set")
    assert "is not signed" in caught.value.details
    assert not any(command.startswith("sudo") for command in caught.value.commands)


def test_no_network_is_told_and_what_is_there_is_kept(home: Path) -> None:
    apt = Apt(home)
    apt.downloaded, apt.write_downloads = Output(status=100, stdout="E: Failed to fetch http://x  Could not resolve 'x'"), False
    with pytest.raises(DependencyError, match="could not be downloaded") as caught:
        make(apt, home / "set")
    assert "network" in caught.value.advice
    assert (home / "apt" / "archives").is_dir()


def test_packages_unknown_for_want_of_a_network_are_not_called_vanished(home: Path) -> None:
    apt = Apt(home)
    apt.unknown = PLAN.packages
    apt.update = Output(status=0, stderr="Err:1 http://x\nW: Failed to fetch http://x  Temporary failure resolving 'x'")
    with pytest.raises(DependencyError, match="Temporary failure resolving") as caught:
        make(apt, home / "set")
    assert "network" in caught.value.advice


def test_the_c_library_and_the_driver_stay_the_systems(home: Path) -> None:
    apt = Apt(home, files=("libc6_2.36_amd64.deb", "libcuda1_550_amd64.deb", "liba_1_amd64.deb"))
    assert make(apt, home / "set") == ("left to the system: libc6 libcuda1",)
    assert apt.unpacked == ["liba"]


def test_a_transaction_that_is_not_understood_is_refused(home: Path) -> None:
    apt = Apt(home)
    apt.files.append("libmd5_1_amd64.deb")
    whole = Apt.__call__

    def weak(self: Apt, argv: tuple[str, ...], *, timeout: float, packages: int = 0) -> Optional[Output]:
        got = whole(self, argv, timeout=timeout, packages=packages)
        return Output(status=0, stdout=got.stdout.replace("SHA256", "MD5Sum", 1)) if got is not None else None

    work = Work(
        host=apt,  # type: ignore[arg-type]
        run=lambda argv, *, timeout, packages=0: weak(apt, argv, timeout=timeout, packages=packages),
        ask=lambda _: True,
        free_bytes=lambda _: 1 << 40,
        progress=silent,
    )
    with pytest.raises(DependencyError, match="hashes"):
        make_set(home / "set", PLAN, TRIPLET, DISTROS, work)


def test_two_at_once_make_it_once(home: Path) -> None:
    apts = [Apt(home), Apt(home)]
    threads = [threading.Thread(target=make, args=(apt, home / "set")) for apt in apts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(len(apt.unpacked) for apt in apts) == [0, 3]


def test_all_of_it_can_be_removed(home: Path) -> None:
    make(Apt(home), home / "set")
    assert not is_empty(home)
    remove_all(home, MARK, silent)
    assert is_empty(home)


def test_a_removal_that_was_ended_leaves_nothing_that_is_taken_for_whole(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(Apt(home), home / "set")

    def die(_path: Path, **_options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", die)
        with pytest.raises(KeyboardInterrupt):
            remove_all(home, MARK, silent)
    assert not is_made(home / "set")
    make(Apt(home), home / "set")
    assert is_made(home / "set")


@pytest.mark.parametrize(
    "line",
    [
        "'http://x/../../e.deb' ../../e_1_all.deb 5 SHA256:00",
        "'http://x/e.deb' e_1_all.deb 5 MD5Sum:00",
        "'http://x/e.deb' e.deb 5 SHA256:00",
        "Get:1 http://x e",
    ],
)
def test_lines_that_name_no_package_with_a_hash_are_left_out(line: str) -> None:
    assert parse_uris(line) == ()


# --- where sets lie, and what the plan says ----------------------------------------------------------------------


def test_a_set_is_named_by_what_is_asked_for_and_by_the_system() -> None:
    host = RealHost({"HOME": "/home/user"})
    debian = System(distro="debian", distro_version="12")
    one = unpacked_root(host, debian, ("b", "a"))
    assert one.startswith("/home/user/.local/share/caffeup/deps/debian-12-x86_64-")
    assert one == unpacked_root(host, debian, ("a", "b", "a"))
    assert one != unpacked_root(host, debian, ("a",))
    assert one != unpacked_root(host, System(distro="debian", distro_version="13"), ("a", "b"))
    assert unpacked_root(host, System(distro="debian", distro_codename="trixie/sid"), ("a",)).count("/") == 7
    assert unpacked_root(RealHost({}), debian, ("a",)) == ""


BARE = machine(system=System(distro="debian", distro_version="12", triplet=TRIPLET), libraries=(), pythons=())
FEDORA = System(distro="fedora", distro_version="41")


def test_a_set_with_more_in_it_is_as_good(tmp_path: Path) -> None:
    host, debian = RealHost({"XDG_DATA_HOME": str(tmp_path)}), System(distro="debian", distro_version="12")
    large = Path(unpacked_root(host, debian, PLAN.packages))
    make(Apt(large.parent), large)
    assert unpacked_root(host, debian, ("liba-dev",)) == str(large)
    assert unpacked_root(host, debian, ("liba-dev", "libc-dev")) != str(large)
    assert unpacked_root(host, System(distro="debian", distro_version="13"), ("liba-dev",)) != str(large)
    for damaged in ("", "{}", "[1", '{"asked": [1]}'):
        (large / "caffeup.json").write_text(damaged)
        assert unpacked_root(host, debian, ("liba-dev",)) != str(large)


def test_without_root_the_plan_asks_for_what_only_adds_something_too() -> None:
    assert "opencv" not in plan(BARE).packages
    assert "opencv" in plan(BARE, deps="user").packages


def test_another_family_is_told_what_is_possible() -> None:
    conflicts = plan(machine(system=FEDORA, libraries=()), deps="user").conflicts
    assert [one.id for one in conflicts if one.id.startswith("deps-")] == ["deps-user-unknown"]
    assert any("conda" in one.text for one in conflicts[0].remedies)


def test_where_nothing_is_missing_it_is_no_matter() -> None:
    assert plan(machine(system=FEDORA), deps="user").conflicts == ()


def test_a_compiler_is_not_brought() -> None:
    bare = msgspec.structs.replace(BARE, compilers=(gcc("12.2.0", works=False),))
    assert "deps-user-tools" in ids(plan(bare, deps="user"))
