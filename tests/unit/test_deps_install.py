"""Installing: what package managers say they would do, what is refused, and that nothing runs before it may."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import msgspec
import pytest

from caffeup.deps.install import Installed, install, refusals
from caffeup.deps.system import InstallPlan, install_plan
from caffeup.deps.transaction import Transaction, parse_transaction
from caffeup.errors import DependencyError, DiskError
from caffeup.facts.load import load_facts
from caffeup.host import Output
from caffeup.model.machine import System

FACTS = load_facts()
DISTROS = FACTS.distros

APT_NEW = """Reading package lists...
Building dependency tree...
Reading state information...
The following additional packages will be installed:
  libtext-charwidth-perl
Suggested packages:
  filters cowsay-off
The following NEW packages will be installed:
  cowsay hello libtext-charwidth-perl
0 upgraded, 3 newly installed, 0 to remove and 129 not upgraded.
Need to get 83.9 kB of archives.
After this operation, 420 kB of additional disk space will be used.
'http://x/hello_2.10-3_amd64.deb' hello_2.10-3_amd64.deb 53080 MD5Sum:d04c2e9639dee67aa836d8232b1ca658
"""
APT_REMOVE = """The following additional packages will be installed:
  libmpfr6 libreadline8 libsigsegv2 readline-common
The following packages will be REMOVED:
  mawk
The following NEW packages will be installed:
  gawk libmpfr6 libreadline8 libsigsegv2 readline-common
0 upgraded, 5 newly installed, 1 to remove and 0 not upgraded.
Need to get 1646 kB of archives.
After this operation, 4561 kB of additional disk space will be used.
"""
APT_DOWNGRADE = """Recommended packages:
  patch less ssh-client
The following packages will be DOWNGRADED:
  git git-man
0 upgraded, 0 newly installed, 2 downgraded, 0 to remove and 0 not upgraded.
"""
APT_NOTHING = """git is already the newest version (1:2.39.5-0+deb12u3).
0 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.
"""
APT_DRIVER = APT_NEW.replace("hello", "libnvidia-compute-535:i386 hello")
APT_THREE = """Installing:
  gawk

Installing dependencies:
  libmpfr6  libreadline8t64

REMOVING:
  mawk

Summary:
  Upgrading: 0, Installing: 3, Removing: 1, Not Upgrading: 2
  Download size: 1,646 kB
  Space needed: 4,561 kB / 74.0 GB available
"""
DNF_FOUR = """Last metadata expiration check: 0:01:02 ago on Tue 01 Dec 2026.
Dependencies resolved.
================================================================================
 Package                    Arch    Version              Repository        Size
================================================================================
Installing:
 boost-devel                x86_64  1.83.0-3.fc40        fedora            11 M
     replacing  boost-python3-devel.x86_64 1.69.0-1.fc31
Upgrading:
 glibc                      x86_64  2.39-22.fc40         updates          2.0 M
Installing dependencies:
 a-package-with-a-name-that-is-longer-than-the-column
                            noarch  1.0-1.fc40           fedora            12 k
Removing dependent packages:
 old-thing                  x86_64  1-1                  @System          1.0 k

Transaction Summary
================================================================================
Install  2 Packages
Upgrade  1 Package

Total download size: 13 M
Installed size: 151 M
Operation aborted.
"""
DNF_FIVE = """Package            Arch   Version          Repository      Size
Upgrading:
 glibc             x86_64 2.40-3.fc41      updates      6.7 MiB
   replacing glibc x86_64 2.40-1.fc41      fedora       6.7 MiB
Installing:
 lmdb-devel        x86_64 0.9.33-2.fc41    fedora      75.1 KiB

Transaction Summary:
 Installing:        1 package
 Upgrading:         1 package
 Replacing:         1 package

Total size of inbound packages is 2 MiB. Need to download 2 MiB.
After this operation, 5 MiB extra will be used (install 12 MiB, remove 7 MiB).
Operation aborted by the user.
"""
ZYPPER = """Loading repository data...
Resolving package dependencies...

The following 2 recommended packages were automatically selected:
  lots more

The following 2 NEW packages are going to be installed:
  lmdb-devel liblmdb-0_9_30

The following package is going to be downgraded:
  zlib

The following package is going to be REMOVED:
  otherdb

2 new packages to install.
Overall download size: 1.5 MiB. Already cached: 0 B. After the operation, additional 3.4 MiB will be used.
"""
PACMAN = "lmdb 0.9.33-1 98304\nsnappy 1.2.1-2 40960\n"


class TestApt:
    def test_new_packages_and_sizes(self) -> None:
        found = parse_transaction("apt", APT_NEW, 0)
        assert found == Transaction(
            understood=True, install=("cowsay", "hello", "libtext-charwidth-perl"), download_bytes=83900, disk_bytes=420000
        )

    def test_removal(self) -> None:
        found = parse_transaction("apt", APT_REMOVE, 0)
        assert found.remove == ("mawk",)
        assert found.understood

    def test_downgrade_is_seen_though_apt_fails(self) -> None:
        found = parse_transaction("apt", APT_DOWNGRADE, 100)
        assert found.downgrade == ("git", "git-man")
        assert not found.understood

    def test_nothing_to_do(self) -> None:
        assert parse_transaction("apt", APT_NOTHING, 0).empty

    def test_a_count_that_disagrees_with_the_list_is_not_understood(self) -> None:
        assert not parse_transaction("apt", APT_NOTHING.replace("0 to remove", "2 to remove"), 0).understood

    def test_apt_3(self) -> None:
        found = parse_transaction("apt", APT_THREE, 0)
        assert found.install == ("gawk", "libmpfr6", "libreadline8t64")
        assert found.remove == ("mawk",)
        assert found.understood
        assert (found.download_bytes, found.disk_bytes) == (1646000, 4561000)

    def test_space_that_is_freed_is_negative(self) -> None:
        text = APT_NEW.replace("420 kB of additional disk space will be used", "1,5 MB disk space will be freed")
        found = parse_transaction("apt", text, 0)
        assert found.disk_bytes is not None
        assert found.disk_bytes < 0

    def test_cached_archives_count_only_what_is_fetched(self) -> None:
        assert parse_transaction("apt", APT_NEW.replace("83.9 kB", "12.0 MB/421 MB"), 0).download_bytes == 12_000_000


class TestOthers:
    def test_dnf_4(self) -> None:
        found = parse_transaction("dnf", DNF_FOUR, 1)
        assert found.understood
        assert found.install == ("boost-devel", "a-package-with-a-name-that-is-longer-than-the-column")
        assert found.upgrade == ("glibc",)
        assert found.remove == ("boost-python3-devel.x86_64", "old-thing")
        assert found.download_bytes == 13 << 20

    def test_dnf_5_replaces_the_old_version_of_a_package_by_itself(self) -> None:
        found = parse_transaction("dnf", DNF_FIVE, 1)
        assert (found.install, found.upgrade, found.remove) == (("lmdb-devel",), ("glibc",), ())
        assert (found.download_bytes, found.disk_bytes) == (2 << 20, 5 << 20)

    def test_zypper(self) -> None:
        found = parse_transaction("zypper", ZYPPER, 0)
        assert found.install == ("lmdb-devel", "liblmdb-0_9_30")
        assert (found.downgrade, found.remove) == (("zlib",), ("otherdb",))
        assert found.download_bytes == int(1.5 * (1 << 20))

    def test_pacman(self) -> None:
        found = parse_transaction("pacman", PACMAN, 0)
        assert found.install == ("lmdb", "snappy")
        assert found.download_bytes == 139264
        assert not parse_transaction("pacman", "error: target not found: x\n", 1).understood
        assert parse_transaction("pacman", "warning: downgrading package lmdb (2 => 1)\n" + PACMAN, 0).downgrade == ("lmdb",)

    @pytest.mark.parametrize("manager", ["apt", "dnf", "zypper", "pacman"])
    @pytest.mark.parametrize("text", ["", "rubbish\n  more\n", "Need to get 1.2.3 kB\nThe following"])
    def test_what_is_not_understood_says_so(self, manager: str, text: str) -> None:
        assert not parse_transaction(manager, text, 1).understood

    def test_every_manager_of_the_table_can_be_read(self) -> None:
        for manager in DISTROS.manager:
            parse_transaction(manager.id, "", 1)


class Machine:
    """A package manager that answers by the words of its command, and what was run."""

    def __init__(self, simulated: str, *, status: int = 0, update: int = 0, installed: Optional[Output] = None) -> None:
        self.ran: list[tuple[str, ...]] = []
        self.asked: list[str] = []
        self.simulated = Output(status=status, stdout=simulated)
        self.update = Output(status=update, stderr="W: something\nE: no Release file" if update else "")
        self.installed = installed or Output(status=0)

    def __call__(self, argv: tuple[str, ...], *, timeout: float, packages: int = 0) -> Optional[Output]:
        assert timeout >= 60
        self.announced = packages
        self.ran.append(argv)
        if {"update", "makecache", "refresh"} & set(argv):
            return self.update
        return self.simulated if {"--print-uris", "--assumeno", "--dry-run", "--print"} & set(argv) else self.installed

    def words(self) -> Sequence[str]:
        return [" ".join(argv) for argv in self.ran]


def plan_for(distro: str = "debian", *, root: bool = False, sudo: bool = True) -> InstallPlan:
    return install_plan(System(distro=distro, distro_version="12", root=root, sudo=sudo), ("lmdb", "snappy"), FACTS)


def go(machine: Machine, plan: InstallPlan, *, consent: bool = True, free: Optional[int] = 1 << 40) -> Installed:
    def ask(question: str) -> bool:
        assert not any("--no-install-recommends install" in word and "--print-uris" not in word for word in machine.words())
        machine.asked.append(question)
        return consent

    return install(plan, DISTROS, run=machine, ask=ask, free_bytes=lambda _: free)


class TestInstall:
    def test_the_order_and_sudo(self) -> None:
        machine = Machine(APT_NEW)
        done = go(machine, plan_for())
        look, update, simulate, installed = machine.words()
        assert look == simulate
        assert update.startswith("sudo -n env DEBIAN_FRONTEND=noninteractive ")
        assert update.endswith(" update")
        assert "sudo" not in simulate
        assert installed.startswith("sudo -n env DEBIAN_FRONTEND=noninteractive ")
        assert installed.endswith(" --no-install-recommends install liblmdb-dev libsnappy-dev")
        assert done.transaction.install
        assert machine.announced == 3, "the display counts what the simulation listed"
        assert machine.asked == ["Install 3 packages, with all that they need: 0.1 MB to download, 0.4 MB on the disk?"]

    def test_where_the_lists_are_not_here_the_sizes_are_told_before_the_second_question(self) -> None:
        class WithoutLists(Machine):
            def __call__(self, argv: tuple[str, ...], *, timeout: float, packages: int = 0) -> Optional[Output]:
                output = super().__call__(argv, timeout=timeout, packages=packages)
                fetched = any("update" in one for one in self.ran)
                return output if fetched else Output(status=100, stderr="E: Unable to locate package liblmdb-dev")

        machine = WithoutLists(APT_NEW)
        go(machine, plan_for())
        assert [question.split(",")[0] for question in machine.asked] == ["Fetch the package lists", "Install 3 packages"]

    def test_where_much_more_comes_than_was_told_it_is_asked_again(self) -> None:
        class Grown(Machine):
            def __call__(self, argv: tuple[str, ...], *, timeout: float, packages: int = 0) -> Optional[Output]:
                if "update" in argv:
                    self.simulated = Output(status=0, stdout=APT_NEW)
                return super().__call__(argv, timeout=timeout, packages=packages)

        machine = Grown(APT_NEW.replace("cowsay hello libtext", "libtext").replace("3 newly", "1 newly"))
        go(machine, plan_for())
        assert len(machine.asked) == 2

    def test_root_needs_no_sudo(self) -> None:
        machine = Machine(APT_NEW)
        go(machine, plan_for(root=True, sudo=False))
        assert not any("sudo" in word for word in machine.words())

    def test_without_rights_nothing_runs_and_the_command_is_told(self) -> None:
        machine = Machine(APT_NEW)
        with pytest.raises(DependencyError) as caught:
            go(machine, plan_for(sudo=False))
        assert machine.ran == []
        assert caught.value.commands[0].startswith("sudo apt-get update && sudo apt-get install")

    def test_without_consent_nothing_runs(self) -> None:
        machine = Machine(APT_NEW)
        with pytest.raises(DependencyError, match="no consent"):
            go(machine, plan_for(), consent=False)
        assert all("--print-uris" in word for word in machine.words())

    @pytest.mark.parametrize(
        ("text", "status", "finding"),
        [
            (APT_REMOVE, 0, "packages-remove"),
            (APT_DOWNGRADE, 100, "packages-downgrade"),
            (APT_DRIVER, 0, "packages-driver"),
            (APT_NEW.replace("NEW packages will be installed", "held packages will be changed"), 0, "packages-held"),
        ],
    )
    def test_what_is_refused(self, text: str, status: int, finding: str) -> None:
        machine = Machine(text, status=status)
        with pytest.raises(DependencyError) as caught:
            go(machine, plan_for())
        assert [one.id for one in caught.value.findings] == [finding]
        assert not any(
            word.endswith("install liblmdb-dev libsnappy-dev") and "--print-uris" not in word for word in machine.words()
        )

    def test_a_driver_update_is_refused_too(self) -> None:
        found = refusals(Transaction(understood=True, upgrade=("libcuda1", "glibc")), DISTROS)
        assert [one.id for one in found] == ["packages-driver"]
        assert "GPU" in found[0].why or "driver" in found[0].why

    def test_nothing_to_do_installs_nothing(self) -> None:
        machine = Machine(APT_NOTHING)
        assert go(machine, plan_for()).transaction.empty
        assert len(machine.ran) == 3

    def test_a_broken_repository_is_a_note_where_the_packages_are_to_be_had(self) -> None:
        done = go(Machine(APT_NEW, update=100), plan_for())
        assert "no Release file" in done.notes[0]

    @pytest.mark.parametrize("free", [0, 100 << 20])
    def test_a_full_disk(self, free: int) -> None:
        machine = Machine(APT_NEW)
        with pytest.raises(DiskError):
            go(machine, plan_for(), free=free)
        assert len(machine.ran) == 3

    def test_free_space_that_cannot_be_told_stops_nothing(self) -> None:
        go(Machine(APT_NEW), plan_for(), free=None)

    @pytest.mark.parametrize(
        ("line", "advice"),
        [
            ("E: Unable to locate package liblmdb-dev", "package lists"),
            ("E: dpkg was interrupted, you must manually run 'dpkg --configure -a'", "cut short"),
            ("E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1 (apt)", "nother package manager"),
            ("E: Unable to correct problems, you have held broken packages.", "held"),
            ("E: Failed to fetch http://x/y.deb  Could not resolve 'x'", "network"),
            ("E: You don't have enough free space in /var/cache/apt/archives/.", "disk is full"),
        ],
    )
    def test_known_troubles(self, line: str, advice: str) -> None:
        for machine in (Machine(line, status=100), Machine(APT_NEW, installed=Output(status=100, stderr=line))):
            with pytest.raises(DependencyError) as caught:
                go(machine, plan_for())
            assert advice in caught.value.advice
            assert line in caught.value.brief

    def test_an_unknown_failure_shows_what_the_tool_said(self) -> None:
        with pytest.raises(DependencyError) as caught:
            go(Machine("gibberish", status=3), plan_for())
        assert "gibberish" in caught.value.details
        assert "exit 3" in caught.value.brief

    def test_a_manager_that_is_not_there(self) -> None:
        def absent(argv: tuple[str, ...], *, timeout: float, packages: int = 0) -> Optional[Output]:
            return None

        with pytest.raises(DependencyError, match="apt-get is not here"):
            install(plan_for(), DISTROS, run=absent, ask=lambda _: True, free_bytes=lambda _: None)

    def test_an_unknown_distribution(self) -> None:
        with pytest.raises(DependencyError) as caught:
            go(Machine(""), plan_for("plan9"))
        assert "LMDB" in caught.value.details

    @pytest.mark.parametrize(
        ("distro", "text", "simulated", "mark"),
        [
            ("debian", "E: Unable to locate package {}", APT_NEW, "--print-uris"),
            ("debian", "E: Package '{}' has no installation candidate", APT_NEW, "--print-uris"),
            ("fedora", "No match for argument: {}\nError: Unable to find a match: {}", DNF_FIVE, "--assumeno"),
            ("arch", "error: target not found: {}", PACMAN, "--print"),
            (
                "opensuse-leap",
                "'{}' not found in package names. Trying capabilities.\nNo provider of '{}' found.",
                ZYPPER,
                "--dry-run",
            ),
        ],
    )
    def test_what_vanished_is_left_out_and_what_is_needed_is_not(self, distro: str, text: str, simulated: str, mark: str) -> None:
        optional, needed = plan_for(distro).packages
        plan = msgspec.structs.replace(plan_for(distro), optional=(optional,))

        class Lists(Machine):
            lacking = optional

            def __call__(self, argv: tuple[str, ...], *, timeout: float, packages: int = 0) -> Optional[Output]:
                output = super().__call__(argv, timeout=timeout)
                if mark in argv and self.lacking in argv:
                    return Output(status=1, stderr=text.replace("{}", self.lacking))
                return output

        machine = Lists(simulated.split("\nThe following package is going to be downgraded", maxsplit=1)[0])
        done = go(machine, plan)
        assert optional in done.notes[-1]
        assert machine.ran[-1][-1] == needed
        assert optional not in machine.ran[-1]
        Lists.lacking = needed
        with pytest.raises(DependencyError, match="cannot be installed") as caught:
            go(Lists(simulated), plan)
        assert "package lists" in caught.value.advice

    def test_dnf_needs_root_to_look(self) -> None:
        machine = Machine(DNF_FIVE, status=1)
        go(machine, plan_for("fedora"))
        assert all(word.startswith("sudo -n env LC_ALL=C dnf ") for word in machine.words())

    def test_pacmans_lists_are_not_updated_alone(self) -> None:
        machine = Machine(PACMAN)
        go(machine, plan_for("arch"))
        assert not any("-Sy" in word for word in machine.words())
