"""Unpacked packages: files and links in their root, what maintainer scripts would have linked, run paths. No package is run."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from caffeup.deps.user_apt import Archive
from caffeup.deps.user_elf import Linked, run_path
from caffeup.deps.user_links import Choice, choices, gather, in_usr, make_choices, mend_links, place_link
from caffeup.deps.user_unpack import is_whole, unpack
from caffeup.errors import DependencyError, DiskError
from caffeup.host import Output

LIB = "usr/lib/x86_64-linux-gnu"
OPENBLAS = """#!/bin/sh
set -e
# update-alternatives --install /a b /c 1
update-alternatives --install /usr/lib/x86_64-linux-gnu/libopenblas.so \\
                    libopenblas.so-x86_64-linux-gnu \\
                    /usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so \\
                    100 \\
                    --slave /usr/include/x86_64-linux-gnu/cblas.h \\
                    cblas.h-x86_64-linux-gnu \\
                    /usr/include/x86_64-linux-gnu/openblas-pthread/cblas.h

if [ "serial" != "serial" ]; then
  update-alternatives --install $link mpi /usr/bin/mpicc.serial "$priority" $slaves
  update-alternatives --remove mpi /usr/bin/mpicc
fi
exit 0
"""


def touch(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def linked(root: Path, name: str, target: str) -> Path:
    (root / in_usr(name)).parent.mkdir(parents=True, exist_ok=True)
    place_link(root, name, target)
    return root / in_usr(name)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/lib/x86_64-linux-gnu/libz.so.1", "usr/lib/x86_64-linux-gnu/libz.so.1"),
        ("./bin/sh", "usr/bin/sh"),
        ("usr/lib/a", "usr/lib/a"),
        ("/etc/fonts", "etc/fonts"),
        ("/../../etc/passwd", "etc/passwd"),
        ("/library/a", "library/a"),
    ],
)
def test_where_a_packages_file_goes(path: str, place: str) -> None:
    assert in_usr(path) == place


def test_a_script_is_read_for_its_alternatives_and_not_run() -> None:
    assert list(choices(OPENBLAS)) == [
        Choice(link=f"/{LIB}/libopenblas.so", path=f"/{LIB}/openblas-pthread/libopenblas.so", priority=100),
        Choice(
            link="/usr/include/x86_64-linux-gnu/cblas.h",
            path="/usr/include/x86_64-linux-gnu/openblas-pthread/cblas.h",
            priority=100,
        ),
    ]


@pytest.mark.parametrize("script", ["", "update-alternatives --install", "update-alternatives --install /a 'b /c 1", "\0\x1b[2J"])
def test_a_script_that_says_nothing_clear_gives_nothing(script: str) -> None:
    assert list(choices(script)) == []


def test_the_alternative_with_the_highest_priority_is_linked(tmp_path: Path) -> None:
    for name in ("blas", "openblas-pthread"):
        touch(tmp_path / LIB / name / "libblas.so.3", name)
    touch(tmp_path / LIB / "libown.so", "own")
    made = [
        Choice(link=f"/{LIB}/libblas.so.3", path=f"/{LIB}/blas/libblas.so.3", priority=10),
        Choice(link=f"/{LIB}/libblas.so.3", path=f"/{LIB}/openblas-pthread/libblas.so.3", priority=100),
        Choice(link=f"/{LIB}/libblas.so.3", path=f"/{LIB}/atlas/libblas.so.3", priority=300),
        Choice(link=f"/{LIB}/libown.so", path=f"/{LIB}/blas/libblas.so.3", priority=1),
    ]
    for _ in range(2):
        make_choices(tmp_path, made)
    assert str((tmp_path / LIB / "libblas.so.3").readlink()) == "openblas-pthread/libblas.so.3"
    assert (tmp_path / LIB / "libown.so").read_text() == "own"


def test_an_absolute_link_leads_into_the_root(tmp_path: Path) -> None:
    touch(tmp_path / LIB / "libz.so.1.2.13")
    link = linked(tmp_path, f"{LIB}/libz.so", "/lib/x86_64-linux-gnu/libz.so.1.2.13")
    assert str(link.readlink()) == "libz.so.1.2.13"


def test_a_link_that_is_moved_to_usr_still_leads_to_its_file(tmp_path: Path) -> None:
    touch(tmp_path / LIB / "libz.so.1")
    link = linked(tmp_path, "lib/x86_64-linux-gnu/libz.so", "../../usr/lib/x86_64-linux-gnu/libz.so.1")
    assert link.read_text() == "x"


def test_a_link_cannot_lead_out_of_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    link = linked(root, "usr/lib/evil", "../../../../../../../../etc/passwd")
    assert os.path.realpath(link) == str(root / "etc/passwd")


def test_a_folder_of_another_package_stays(tmp_path: Path) -> None:
    touch(tmp_path / "usr/share/x/file")
    linked(tmp_path, "usr/share/x", "/nowhere")
    assert (tmp_path / "usr/share/x/file").is_file()


def test_a_link_to_what_only_the_system_has_leads_there(tmp_path: Path) -> None:
    system = touch(tmp_path / "system" / "libz.so.1")
    root = tmp_path / "root"
    inside = str(system).lstrip("/")
    link = linked(root, "usr/lib/libz.so", f"/{inside}")
    absent = linked(root, "usr/lib/libgone.so", "/usr/lib/libgone.so.5.of.nobody")
    assert not link.exists()
    assert mend_links(root) == 1
    assert str(link.readlink()) == f"/{inside}"
    assert str(absent.readlink()) == "libgone.so.5.of.nobody"
    assert mend_links(root) == 0


def test_a_library_outside_the_multiarch_folder_is_found_in_it_too(tmp_path: Path) -> None:
    touch(tmp_path / "usr/lib/libarmadillo.so.14", "one")
    touch(tmp_path / "usr/lib/libboth.so", "other")
    touch(tmp_path / LIB / "libboth.so", "first")
    for _ in range(2):
        gather((tmp_path / LIB, tmp_path / "usr/lib"))
    assert (tmp_path / LIB / "libarmadillo.so.14").read_text() == "one"
    assert (tmp_path / LIB / "libboth.so").read_text() == "first"
    gather(())


# --- run paths ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "about", "wanted"),
    [
        # a library in a folder that all search needs none
        (f"{LIB}/libopencv.so.4", Linked(needed=("libblas.so.3",)), ()),
        # one of its own would hide that of what loads it: it gets both
        (
            f"{LIB}/libmpi.so.40",
            Linked(needed=("libucx.so",), run_path=("/usr/lib/x86_64-linux-gnu/openmpi",)),
            ("$ORIGIN/openmpi", "$ORIGIN"),
        ),
        (
            f"{LIB}/openblas-pthread/libblas.so.3",
            Linked(needed=("libgfortran.so.5",), run_path=("$ORIGIN",)),
            ("$ORIGIN", "$ORIGIN/.."),
        ),
        # a folder of the machine that built the package means nothing
        (f"{LIB}/libx.so", Linked(needed=("liby.so",), run_path=("/build/x/.libs",)), ("$ORIGIN",)),
        # Python and the shell load these, who know nothing of the root
        (
            "usr/lib/python3/dist-packages/numpy/linalg/lapack_lite.so",
            Linked(needed=("libblas.so.3", "libc.so.6")),
            ("$ORIGIN/../../../../x86_64-linux-gnu",),
        ),
        ("usr/bin/protoc", Linked(needed=("libblas.so.3",)), ("$ORIGIN/../lib/x86_64-linux-gnu",)),
        ("usr/lib/python3/dist-packages/x.so", Linked(needed=("libc.so.6",)), ()),
    ],
)
def test_which_run_path_a_file_needs(tmp_path: Path, file: str, about: Linked, wanted: tuple[str, ...]) -> None:
    (tmp_path / LIB / "openmpi").mkdir(parents=True)
    assert run_path(tmp_path, tmp_path / file, about, (tmp_path / LIB,), {"libblas.so.3", "libgfortran.so.5"}) == wanted


# --- one package ----------------------------------------------------------------------------------------------


class Dpkg:
    """A host whose dpkg-deb puts files where it is told."""

    def __init__(self, files: dict[str, str], *, status: int = 0, stderr: str = "", script: str = "") -> None:
        self.files, self.status, self.stderr, self.script = files, status, stderr, script

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0, stdin: str = "") -> Output:
        del timeout, stdin
        if argv[1] == "-I":
            return Output(status=0 if self.script else 2, stdout=self.script)
        for name, text in self.files.items():
            path = Path(argv[3], name)
            path.parent.mkdir(parents=True, exist_ok=True)
            if text.startswith("-> "):
                path.symlink_to(text[3:])
            else:
                path.write_text(text)
                path.chmod(0o4511)
        return Output(status=self.status, stderr=self.stderr)


def test_a_package_is_unpacked_beside_and_moved_into_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    files = {"lib/x86_64-linux-gnu/libz.so.1.2": "z", "lib/x86_64-linux-gnu/libz.so.1": "-> libz.so.1.2", "usr/bin/tool": "t"}
    found = unpack(Dpkg(files, script=OPENBLAS), tmp_path / "z.deb", tmp_path / "stage", root)  # type: ignore[arg-type]
    assert (root / LIB / "libz.so.1").read_text() == "z"
    assert stat.S_IMODE((root / "usr/bin/tool").stat().st_mode) == 0o755
    assert not (root / "lib").exists()
    assert not (tmp_path / "stage").exists()
    assert len(found) == 2


def test_a_second_package_goes_where_the_links_of_the_first_lead(tmp_path: Path) -> None:
    root = tmp_path / "root"
    unpack(Dpkg({"usr/share/a": "-> b"}), tmp_path / "1.deb", tmp_path / "stage", root)  # type: ignore[arg-type]
    unpack(Dpkg({"usr/share/a/file": "f"}), tmp_path / "2.deb", tmp_path / "stage", root)  # type: ignore[arg-type]
    assert (root / "usr/share/b/file").read_text() == "f"


@pytest.mark.parametrize(("said", "kind"), [("No space left on device", DiskError), ("unexpected end of file", DependencyError)])
def test_a_package_that_cannot_be_unpacked_leaves_the_root_alone(tmp_path: Path, said: str, kind: type[Exception]) -> None:
    host = Dpkg({"usr/lib/half": "h"}, status=2, stderr=said)
    with pytest.raises(kind):
        unpack(host, tmp_path / "z.deb", tmp_path / "stage", tmp_path / "root")  # type: ignore[arg-type]
    assert not (tmp_path / "root").exists()


def test_a_file_is_whole_by_its_hash_and_not_by_its_size(tmp_path: Path) -> None:
    digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    archive = Archive(file="x_1_all.deb", uri="", bytes=1, algorithm="SHA256", digest=digest)
    assert is_whole(touch(tmp_path / "a"), archive)
    assert not is_whole(touch(tmp_path / "b", "y"), archive)
    assert not is_whole(tmp_path / "c", archive)
