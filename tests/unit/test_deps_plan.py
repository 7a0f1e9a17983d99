"""Which packages a build needs, by each distribution's own names; and the laws of the two tables."""

from __future__ import annotations

import re
from typing import Any

import pytest
from packaging.version import Version

from caffeup.deps.system import install_plan
from caffeup.facts.distros import Guard
from caffeup.facts.libraries import Kind, LibraryRow, Need, Packages
from caffeup.facts.load import load_facts
from caffeup.facts.ranges import Range
from caffeup.model.machine import Python, PythonKind, System

FACTS = load_facts()
ROWS = FACTS.libraries
DISTROS = FACTS.distros
FAMILIES = {row.id for row in DISTROS.distro}
NEEDED = (*(row.id for row in ROWS if row.need in (Need.ALWAYS, Need.SWITCH, Need.PYTHON)), "openblas")
MACHINES = {
    "debian-11": System(distro="debian", distro_version="11", root=True),
    "debian-12": System(distro="debian", distro_version="12", sudo=True),
    "debian-13": System(distro="debian", distro_version="13"),
    "debian-sid": System(distro="debian"),
    "ubuntu-18.04": System(distro="ubuntu", distro_like=("debian",), distro_version="18.04"),
    "ubuntu-24.04": System(distro="ubuntu", distro_like=("debian",), distro_version="24.04"),
    "mint": System(distro="linuxmint", distro_like=("ubuntu", "debian"), distro_version="21.3"),
    "derivative": System(distro="someone", distro_like=("ubuntu", "debian"), distro_version="1"),
    "fedora-41": System(distro="fedora", distro_version="41"),
    "rocky-9": System(distro="rocky", distro_like=("rhel", "centos", "fedora"), distro_version="9.4"),
    "arch": System(distro="arch", distro_version=""),
    "tumbleweed": System(distro="opensuse-tumbleweed", distro_like=("opensuse", "suse"), distro_version="20260101"),
}


def python(kind: PythonKind, version: str = "3.11.2", executable: str = "/x/python", include: str = "") -> Python:
    return Python(via="", executable=executable, version=Version(version), kind=kind, include=include)


def ranges(*texts: str) -> list[Range]:
    """Raises for what is no half-open range."""
    return [Range.parse(text) for text in texts if text]


class TestLaws:
    @pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
    def test_row(self, row: LibraryRow) -> None:
        assert row.source
        assert all(text.strip() for text in row.source)
        assert row.title
        if row.kind is Kind.LIBRARY:
            assert row.headers
            assert row.link
            assert row.places
        if row.kind is Kind.PROGRAM:
            assert row.program
        assert bool(row.switch) == (row.need in (Need.SWITCH, Need.OPTIONAL) and row.kind is Kind.LIBRARY)
        assert bool(row.pkg_config) == bool(row.pkg_config_from)
        for rule in row.versions:
            assert sum(map(bool, (rule.defines, rule.pattern, rule.so, rule.means))) == 1
            assert bool(rule.header) != bool(rule.file) or rule.so
            re.compile(rule.pattern)
            assert not rule.radix or len(rule.defines) == 1
        for part in row.parts:
            ranges(part.needed)

    @pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
    def test_packages(self, row: LibraryRow) -> None:
        seen: set[str] = set()
        for entry in row.packages:
            assert entry.family in FAMILIES
            assert entry.names
            assert set(entry.vanishing) < set(entry.names)
            assert all(re.fullmatch(r"[a-z0-9][a-zA-Z0-9+._-]*", name) for name in entry.names)
            ranges(entry.releases, entry.python)
            assert entry.family not in seen, "an entry behind one that always fits is never reached"
            if not (entry.distro or entry.releases or entry.python):
                seen.add(entry.family)
        if row.id in NEEDED and row.id != "skimage":
            assert seen == FAMILIES or row.id == "boost-python"

    def test_ids_are_unique(self) -> None:
        tables: tuple[Any, ...] = (ROWS, DISTROS.distro, DISTROS.manager, DISTROS.guard, DISTROS.trouble, DISTROS.repository)
        for table in tables:
            ids = [row.id for row in table]
            assert len(ids) == len(set(ids))

    def test_distributions(self) -> None:
        managers = {row.id for row in DISTROS.manager}
        names = [name for row in DISTROS.distro for name in row.distros]
        assert len(names) == len(set(names))
        assert {row.manager for row in DISTROS.distro} == managers
        rows: tuple[Any, ...] = (*DISTROS.distro, *DISTROS.manager, *DISTROS.guard, *DISTROS.trouble, *DISTROS.repository)
        for one in rows:
            assert one.source, one.id
        for repository in DISTROS.repository:
            assert set(repository.distros) <= set(names)
            ranges(repository.releases)
        for manager in DISTROS.manager:
            assert re.compile(manager.unknown).groups == 1
        for trouble in DISTROS.trouble:
            assert re.search(trouble.pattern, "") is None

    @pytest.mark.parametrize(
        "name",
        [
            "nvidia-driver-535",
            "nvidia-dkms-535-open",
            "nvidia-kernel-source-550",
            "libnvidia-compute-470",
            "nvidia-driver",
            "nvidia-340",
            "nvidia",
            "nvidia-utils",
            "nvidia-open-dkms",
            "xserver-xorg-video-nvidia-535",
            "linux-modules-nvidia-535-generic",
            "cuda-drivers",
            "cuda-drivers-560",
            "libcuda1",
            "libcuda1-384",
            "cuda-compat-12-4",
            "akmod-nvidia",
            "kmod-nvidia-open-dkms",
            "xorg-x11-drv-nvidia-cuda",
            "nvidia-l4t-cuda",
            "nvidia-open",
            "nvidia-persistenced",
            "nvidia-driver-g06-kmp-default",
        ],
    )
    def test_a_driver_is_guarded(self, name: str) -> None:
        assert any(guard.holds(name) for guard in DISTROS.guard)

    @pytest.mark.parametrize(
        "name",
        [
            "nvidia-cuda-toolkit",
            "nvidia-cuda-dev",
            "nvidia-profiler",
            "libcudart12",
            "libcudnn8",
            "cuda-nvcc-12-4",
            "libnccl2",
            "ocl-icd-libopencl1",
            "libopencv-dev",
            "libglvnd0",
            "cuda-toolkit-12-4",
            "nvidia-container-toolkit",
        ],
    )
    def test_what_is_no_driver_is_not(self, name: str) -> None:
        assert not any(guard.holds(name) for guard in DISTROS.guard)

    def test_no_row_of_ours_asks_for_a_driver(self) -> None:
        names = {name for row in ROWS for entry in row.packages for name in entry.names}
        assert [name for name in names if any(guard.holds(name) for guard in DISTROS.guard)] == []


class TestPlan:
    @pytest.mark.parametrize("name", MACHINES)
    def test_everything_that_caffe_needs_has_a_name(self, name: str) -> None:
        plan = install_plan(MACHINES[name], NEEDED, FACTS)
        lacking = [one.row for one in plan.unavailable]
        assert lacking == (["skimage"] if name == "rocky-9" else [])
        assert len(plan.packages) == len(set(plan.packages))
        assert plan.command.endswith(" ".join(plan.packages))

    def test_debian_12(self) -> None:
        plan = install_plan(MACHINES["debian-12"], ("lmdb", "python-dev", "lmdb"), FACTS)
        assert plan.packages == ("liblmdb-dev", "python3-dev")
        assert plan.command == ("sudo apt-get update && sudo apt-get install -y --no-install-recommends liblmdb-dev python3-dev")
        assert plan.allowed

    def test_root_needs_no_sudo_and_others_may_not(self) -> None:
        assert install_plan(MACHINES["debian-11"], ("lmdb",), FACTS).command.startswith("apt-get update && apt-get install")
        assert not install_plan(MACHINES["debian-13"], ("lmdb",), FACTS).allowed

    def test_releases_where_names_differ(self) -> None:
        def packages(machine: str, row: str) -> tuple[str, ...]:
            return install_plan(MACHINES[machine], (row,), FACTS).packages

        assert packages("fedora-41", "boost-python") == ("boost-devel",)
        assert packages("rocky-9", "boost-python") == ("boost-python3-devel",)
        assert packages("debian-12", "atlas") == ("libatlas-base-dev",)
        assert packages("debian-13", "atlas") == ()
        assert packages("debian-sid", "atlas") == ()

    def test_python_2(self) -> None:
        old = python(PythonKind.SYSTEM, "2.7.17", "/usr/bin/python2")
        plan = install_plan(MACHINES["ubuntu-18.04"], ("numpy", "python-dev"), FACTS, old)
        assert plan.packages == ("python-numpy", "python-dev")

    def test_repositories_that_are_off_by_default(self) -> None:
        assert "crb" in " ".join(install_plan(MACHINES["rocky-9"], ("glog",), FACTS).first)
        assert install_plan(MACHINES["fedora-41"], ("glog",), FACTS).first == ()

    def test_an_unknown_distribution(self) -> None:
        plan = install_plan(System(distro="plan9"), ("lmdb", "glog"), FACTS)
        assert plan.command == ""
        assert not plan.allowed
        assert "plan9" in plan.why_not
        assert "LMDB" in plan.why_not

    def test_a_row_that_does_not_exist(self) -> None:
        with pytest.raises(KeyError):
            install_plan(MACHINES["arch"], ("nonsense",), FACTS)

    def test_what_may_be_left_out(self) -> None:
        plan = install_plan(MACHINES["debian-12"], ("boost", "ccache", "lmdb"), FACTS)
        assert plan.optional == ("libboost-system-dev", "libboost-regex-dev", "ccache")

    def test_a_python_package_that_the_distribution_lacks_comes_by_pip(self) -> None:
        plan = install_plan(MACHINES["rocky-9"], ("skimage",), FACTS, python(PythonKind.SYSTEM, executable="/usr/bin/python3"))
        assert plan.unavailable[0].commands == ("/usr/bin/python3 -m pip install --user scikit-image",)

    def test_nothing_wanted(self) -> None:
        plan = install_plan(MACHINES["arch"], (), FACTS)
        assert (plan.packages, plan.command, plan.allowed) == ((), "", False)

    def test_another_python_gets_its_packages_by_pip(self) -> None:
        conda = python(PythonKind.CONDA, executable="/home/a b/bin/python")
        plan = install_plan(MACHINES["debian-12"], ("numpy", "boost-python", "lmdb"), FACTS, conda)
        assert plan.packages == ("liblmdb-dev",)
        assert [one.row for one in plan.unavailable] == ["numpy", "boost-python"]
        assert plan.unavailable[0].commands == ("'/home/a b/bin/python' -m pip install numpy",)
        assert plan.unavailable[1].commands == ()

    def test_a_venv_of_the_systems_python_uses_its_headers(self) -> None:
        venv = python(PythonKind.VENV, include="/usr/include/python3.11")
        plan = install_plan(MACHINES["debian-12"], ("numpy", "boost-python", "python-dev"), FACTS, venv)
        assert plan.packages == ("libboost-python-dev", "python3-dev")
        assert [one.row for one in plan.unavailable] == ["numpy"]

    def test_an_odd_release_number_fits_no_range(self) -> None:
        row = LibraryRow(id="x", title="x", source=("x",), packages=(Packages(family="debian", names=("a",), releases="<13"),))
        assert row.packages_on("debian", "debian", "12") == ("a",)
        for release in ("13", "", "n/a", "trixie/sid", "²", "1..2", "."):
            assert row.packages_on("debian", "debian", release) is None


def test_guards_match_whole_names() -> None:
    guard = Guard(id="x", pattern="libcuda1", why="x", source=("x",))
    assert guard.holds("libcuda1")
    assert not guard.holds("libcuda1-dev")
