"""CUDA laid out from NVIDIA's wheels: whole or not at all, gone on with, checked, removed."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import threading
import zipfile
from pathlib import Path
from typing import Optional

import pytest
from packaging.version import Version
from test_up import Quiet

from caffeup.app.laying_out import lay_out_toolkit
from caffeup.app.planning import Planned
from caffeup.app.session import Session
from caffeup.app.stages import Stages
from caffeup.app.treework import put_in_place
from caffeup.deps.alone import begun, is_empty, remove_all
from caffeup.deps.cuda_wheels import is_whole, lay_out
from caffeup.detect.laid_out import MARK, laid_out_roots, wheels_root
from caffeup.detect.places import data_folder
from caffeup.detect.system import probe_system
from caffeup.detect.toolkits import probe_toolkits
from caffeup.errors import DependencyError, DiskError
from caffeup.facts.cuda_wheels import CudaFromWheels, CudaWheel
from caffeup.model.machine import ToolkitLayout
from caffeup.source.progress import Progress, silent
from fakehost import FakeHost, write_machine
from planvalues import FACTS, gpu, machine, plan, tree

GLIBC = Version("2.39")
ARCHES = ("x86_64", "aarch64")
ALL = 1 << 40


# --- the table --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHES)
def test_the_wheels_are_one_release(arch: str) -> None:
    release = FACTS.cuda_from_wheels(arch, GLIBC)
    assert release is not None
    versions = {wheel.name: wheel.version for wheel in release.wheels}
    assert {"nvidia-cuda-nvcc", "nvidia-cuda-runtime", "nvidia-cublas", "nvidia-curand", "nvidia-cudnn-cu13"} <= set(versions)
    assert "nvidia-cuda-nvrtc" in versions  # cuBLAS and cuDNN load it while they run
    assert len({versions[name] for name in ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt")}) == 1
    assert all(version.startswith("13.0.") for name, version in versions.items() if name.startswith("nvidia-cuda-"))
    assert versions["nvidia-cudnn-cu13"].startswith(f"{release.cudnn}.")
    assert release.cuda == Version("13.0")


def test_both_architectures_have_the_same_wheels() -> None:
    told = [FACTS.cuda_from_wheels(arch, GLIBC) for arch in ARCHES]
    one, other = ({(wheel.name, wheel.version) for wheel in release.wheels} for release in told if release is not None)
    assert one == other


@pytest.mark.parametrize("arch", ARCHES)
def test_every_wheel_is_pinned(arch: str) -> None:
    release = FACTS.cuda_from_wheels(arch, GLIBC)
    assert release is not None
    for wheel in release.wheels:
        assert re.fullmatch(r"[0-9a-f]{64}", wheel.sha256)
        assert wheel.id.endswith(f"_{arch}.whl")
        assert 0 < wheel.bytes < release.download_bytes
        assert 0 < wheel.unpacked < release.disk_bytes
    assert len({wheel.sha256 for wheel in release.wheels}) == len(release.wheels)


@pytest.mark.parametrize(("arch", "glibc"), [("ppc64le", GLIBC), ("x86_64", None), ("x86_64", Version("2.17"))])
def test_there_are_none_for_other_machines(arch: str, glibc: Optional[Version]) -> None:
    assert FACTS.cuda_from_wheels(arch, glibc) is None


# --- laying out -------------------------------------------------------------------------------------------


def wheel(folder: Path, name: str, members: dict[str, str]) -> CudaWheel:
    file = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for path, text in members.items():
            info = zipfile.ZipInfo(path)
            info.external_attr = (0o100744 if "/bin/" in path else 0o100644) << 16
            archive.writestr(info, text)
    data = file.read_bytes()
    return CudaWheel(id=file.name, arch="x86_64", sha256=hashlib.sha256(data).hexdigest(), bytes=len(data), unpacked=100)


@pytest.fixture
def release(tmp_path: Path) -> CudaFromWheels:
    store = tmp_path / "store"
    store.mkdir()
    wheels = (
        wheel(
            store,
            "nvidia_cuda_nvcc",
            {"nvidia/cu13/bin/nvcc": "nvcc", "nvidia_cuda_nvcc-1.0.dist-info/licenses/License.txt": "L"},
        ),
        wheel(store, "nvidia_cublas", {"nvidia/cu13/lib/libcublas.so.13": "b", "nvidia/cu13/.metadata/x": "", "../evil": ""}),
        wheel(
            store,
            "nvidia_cudnn",
            {"nvidia/cudnn/lib/libcudnn.so.9": "d", "nvidia/cudnn/include/cudnn.h": "h", "nvidia/cu13/../lib/e": ""},
        ),
    )
    return CudaFromWheels(id="13.0.3", cuda=Version("13.0"), cudnn=Version("9.14.0"), wheels=wheels)


class Index:
    """Gives wheels from a folder, and remembers which; one may be made to fail."""

    def __init__(self, tmp_path: Path, fails: str = "", error: Optional[BaseException] = None) -> None:
        self.store = tmp_path / "store"
        self.fetched: list[str] = []
        self.fails = fails
        self.error = error or KeyboardInterrupt()

    def __call__(self, wanted: CudaWheel, into: Path, progress: Progress) -> Path:
        if wanted.name == self.fails:
            raise self.error
        self.fetched.append(wanted.name)
        progress("downloading", wanted.bytes, wanted.bytes)
        return Path(shutil.copy(self.store / wanted.id, into / wanted.id))


def free(_folder: Path) -> int:
    return ALL


def test_the_root_is_whole_and_has_what_the_wheels_lack(release: CudaFromWheels, tmp_path: Path) -> None:
    root = tmp_path / "data" / "13.0.3-x86_64"
    seen: list[tuple[str, int, int]] = []
    lay_out(release, root, fetch=Index(tmp_path), free_bytes=free, progress=lambda *what: seen.append(what))
    assert is_whole(root)
    assert sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir() or path.is_symlink()) == [
        "bin/nvcc",
        MARK,
        "include/cudnn.h",
        "lib/libcublas.so",
        "lib/libcublas.so.13",
        "lib/libcudnn.so",
        "lib/libcudnn.so.9",
        "lib64",
        "licenses/nvidia_cuda_nvcc-1.0/License.txt",
    ]
    assert (root / "lib64" / "libcudnn.so").read_text() == "d"
    assert os.access(root / "bin" / "nvcc", os.X_OK)
    assert not os.access(root / "include" / "cudnn.h", os.X_OK)
    assert not (tmp_path / "evil").exists()
    assert [path.name for path in root.parent.iterdir() if path.name != ".lock"] == [root.name]
    assert seen[-1][1] == seen[-1][2] == release.download_bytes
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def test_a_run_that_was_ended_is_gone_on_with(release: CudaFromWheels, tmp_path: Path) -> None:
    root = tmp_path / "data" / "r"
    with pytest.raises(KeyboardInterrupt):
        lay_out(release, root, fetch=Index(tmp_path, fails="nvidia-cudnn"), free_bytes=free)
    assert not root.exists()
    assert begun(root.parent)
    again = Index(tmp_path)
    lay_out(release, root, fetch=again, free_bytes=free)
    assert again.fetched == ["nvidia-cudnn"]
    assert is_whole(root)
    assert not begun(root.parent)


def test_a_killed_process_leaves_nothing_that_is_taken_for_whole(release: CudaFromWheels, tmp_path: Path) -> None:
    root = tmp_path / "data" / "r"
    child = os.fork()
    if child == 0:

        def fetch(wanted: CudaWheel, into: Path, progress: Progress) -> Path:
            if wanted.name == "nvidia-cublas":
                os.kill(os.getpid(), signal.SIGKILL)
            return Index(tmp_path)(wanted, into, progress)

        lay_out(release, root, fetch=fetch, free_bytes=free)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert not root.exists()
    again = Index(tmp_path)
    lay_out(release, root, fetch=again, free_bytes=free)
    assert again.fetched == ["nvidia-cublas", "nvidia-cudnn"]
    assert is_whole(root)


@pytest.mark.parametrize("whole", [True, False])
def test_a_wheel_that_was_downloaded_and_not_unpacked(release: CudaFromWheels, tmp_path: Path, whole: bool) -> None:
    root = tmp_path / "data" / "r"
    first = release.wheels[0]
    part = root.parent / ".part-r"
    part.mkdir(parents=True)
    data = (tmp_path / "store" / first.id).read_bytes()
    (part / first.id).write_bytes(data if whole else data[:50])
    index = Index(tmp_path)
    lay_out(release, root, fetch=index, free_bytes=free)
    assert (first.name in index.fetched) is not whole
    assert (root / "bin" / "nvcc").read_text() == "nvcc"


def test_half_a_file_is_written_anew(release: CudaFromWheels, tmp_path: Path) -> None:
    root = tmp_path / "data" / "r"
    half = root.parent / ".part-r" / "root" / "lib"
    half.mkdir(parents=True)
    (half / "libcublas.so.13").write_text("longer than it should be")
    lay_out(release, root, fetch=Index(tmp_path), free_bytes=free)
    assert (root / "lib" / "libcublas.so.13").read_text() == "b"


def test_nothing_is_done_twice(release: CudaFromWheels, tmp_path: Path) -> None:
    root = tmp_path / "data" / "r"
    lay_out(release, root, fetch=Index(tmp_path), free_bytes=free)
    again = Index(tmp_path)
    lay_out(release, root, fetch=again, free_bytes=free)
    assert again.fetched == []


def test_two_at_once_lay_out_once(release: CudaFromWheels, tmp_path: Path) -> None:
    root = tmp_path / "data" / "r"
    inside, go_on = threading.Event(), threading.Event()
    waiting = threading.Event()

    class Slow(Index):
        def __call__(self, wanted: CudaWheel, into: Path, progress: Progress) -> Path:
            inside.set()
            assert go_on.wait(20)
            return super().__call__(wanted, into, progress)

    first, second = Slow(tmp_path), Index(tmp_path)
    told: list[str] = []

    def hear(what: str, _done: int, _total: int) -> None:
        told.append(what)
        waiting.set()

    one = threading.Thread(target=lay_out, args=(release, root), kwargs={"fetch": first, "free_bytes": free})
    one.start()
    assert inside.wait(20)
    other = threading.Thread(target=lay_out, args=(release, root), kwargs={"fetch": second, "free_bytes": free, "progress": hear})
    other.start()
    assert waiting.wait(20)
    go_on.set()
    one.join(20)
    other.join(20)
    assert "waiting" in told[0]
    assert len(first.fetched) == 3
    assert second.fetched == []


def test_too_little_space_is_said_before_anything_is_downloaded(release: CudaFromWheels, tmp_path: Path) -> None:
    index = Index(tmp_path)
    with pytest.raises(DiskError, match="MiB are free") as caught:
        lay_out(release, tmp_path / "data" / "r", fetch=index, free_bytes=lambda _: 100 << 20)
    assert index.fetched == []
    assert "df -h" in caught.value.commands[0]


def test_a_full_disk_is_said_and_gone_on_with(release: CudaFromWheels, tmp_path: Path) -> None:
    root = tmp_path / "data" / "r"
    with pytest.raises(DiskError, match="full"):
        lay_out(release, root, fetch=Index(tmp_path, "nvidia-cudnn", OSError(28, "No space left on device")), free_bytes=free)
    again = Index(tmp_path)
    lay_out(release, root, fetch=again, free_bytes=free)
    assert again.fetched == ["nvidia-cudnn"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_said(release: CudaFromWheels, tmp_path: Path) -> None:
    home = tmp_path / "data"
    home.mkdir(mode=0o500)
    with pytest.raises(DiskError, match="cannot write"):
        lay_out(release, home / "r", fetch=Index(tmp_path), free_bytes=free)


def test_a_file_where_the_folder_should_be_is_said(release: CudaFromWheels, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(DiskError, match="cannot write"):
        lay_out(release, tmp_path / "data" / "r", fetch=Index(tmp_path), free_bytes=free)


# --- removing ---------------------------------------------------------------------------------------------


def test_all_of_it_is_removed(release: CudaFromWheels, tmp_path: Path) -> None:
    home = tmp_path / "data"
    lay_out(release, home / "1", fetch=Index(tmp_path), free_bytes=free)
    with pytest.raises(KeyboardInterrupt):
        lay_out(release, home / "2", fetch=Index(tmp_path, fails="nvidia-cudnn"), free_bytes=free)
    assert not is_empty(home)
    remove_all(home, MARK, silent)
    assert is_empty(home)
    assert [path.name for path in home.iterdir()] == [".lock"]


def test_a_removal_that_was_ended_leaves_nothing_whole(
    release: CudaFromWheels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "data"
    lay_out(release, home / "1", fetch=Index(tmp_path), free_bytes=free)

    def ended(_path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("caffeup.deps.cuda_wheels.shutil.rmtree", ended)
    with pytest.raises(KeyboardInterrupt):
        remove_all(home, MARK, silent)
    monkeypatch.undo()
    assert (home / "1").is_dir()
    assert not is_whole(home / "1")
    lay_out(release, home / "1", fetch=Index(tmp_path), free_bytes=free)
    assert is_whole(home / "1")


# --- finding it -------------------------------------------------------------------------------------------


def laid_out_machine(tmp_path: Path, env: dict[str, str], data: str, name: str = "13.0.3-x86_64") -> FakeHost:
    root = f"{data}/caffeup/cuda/{name}"
    libraries = {f"{root}/lib64/lib{part}.so": "" for part in ("cudart", "cublas", "curand")}
    headers = {f"{root}/include/{part}.h": "" for part in ("cuda_runtime", "cublas_v2", "curand")}
    files = {**libraries, **headers, f"{root}/include/cuda.h": "#define CUDA_VERSION 13000\n", f"{root}/{MARK}": "{}"}
    lists = f"$ {root}/bin/nvcc --list-gpu-code\nsm_75\n$ {root}/bin/nvcc --list-gpu-arch\ncompute_75\n"
    return write_machine(tmp_path, files=files, programs=[f"{root}/bin/nvcc"], commands=lists, env=env)


@pytest.mark.parametrize(
    ("env", "data"), [({"HOME": "/home/me"}, "/home/me/.local/share"), ({"HOME": "/x", "XDG_DATA_HOME": "/data/"}, "/data")]
)
def test_it_is_found_in_the_data_folder(tmp_path: Path, env: dict[str, str], data: str) -> None:
    host = laid_out_machine(tmp_path, env, data)
    (toolkit,) = probe_toolkits(host, FACTS, probe_system(host)).toolkits
    assert (toolkit.layout, toolkit.root) == (ToolkitLayout.LAID_OUT, f"{data}/caffeup/cuda/13.0.3-x86_64")
    assert toolkit.missing == ()


def test_named_by_its_root_or_on_path_it_is_still_the_one_laid_out(tmp_path: Path) -> None:
    root = "/home/me/.local/share/caffeup/cuda/13.0.3-x86_64"
    host = laid_out_machine(tmp_path, {"HOME": "/home/me", "PATH": f"{root}/bin:/usr/bin"}, "/home/me/.local/share")
    (toolkit,) = probe_toolkits(host, FACTS, probe_system(host), asked_for=root).toolkits
    assert toolkit.layout is ToolkitLayout.LAID_OUT


@pytest.mark.parametrize("name", [".part-13.0.3-x86_64", "13.0.3-aarch64"])
def test_half_of_one_or_one_for_another_machine_is_none(tmp_path: Path, name: str) -> None:
    host = laid_out_machine(tmp_path, {"HOME": "/home/me"}, "/home/me/.local/share", name)
    assert laid_out_roots(host, probe_system(host)) == ()


def test_without_a_home_folder_there_is_no_place_for_it(tmp_path: Path) -> None:
    host = write_machine(tmp_path, env={})
    assert wheels_root(host, FACTS, probe_system(host)) == ""


@pytest.mark.parametrize("data", ["", "/elsewhere", "relative"])
def test_the_data_folder_is_the_one_of_platformdirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str) -> None:
    from platformdirs import user_data_dir

    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_DATA_HOME", data)
    ours = data_folder(write_machine(tmp_path, env={"HOME": "/home/me", "XDG_DATA_HOME": data}))
    assert ours == (user_data_dir("caffeup") if data != "relative" else "/home/me/.local/share/caffeup")


# --- the stage --------------------------------------------------------------------------------------------


def test_a_tree_is_not_configured_for_what_is_not_there(tmp_path: Path) -> None:
    here = machine(gpu("card", "12.0"), driver="580.65.06")
    the_tree = tree(root=str(tmp_path))
    session = Session(host=write_machine(tmp_path, env={}), facts=FACTS)
    with pytest.raises(DependencyError, match="not laid out yet") as caught:
        put_in_place(session, Planned(tmp_path, here, the_tree, plan(here, the_tree)), Quiet())
    assert "--cuda wheels" in caught.value.commands[0]
    assert not (tmp_path / ".caffeup").exists()


class Refuses:
    """A person who says no."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def begin(self, *_: object) -> None: ...
    def end(self, *_: object) -> None: ...
    def say(self, text: str) -> None:
        self.said.append(text)

    def ask(self, _question: str) -> bool:
        return False


def test_sizes_are_told_before_and_nothing_is_done_without_consent(tmp_path: Path) -> None:
    root = tmp_path / "caffeup" / "cuda" / "13.0.3-x86_64"
    here = machine(gpu("card", "12.0"), driver="580.65.06", wheels_root=str(root))
    person = Refuses()
    session = Session(host=write_machine(tmp_path, env={}), facts=FACTS)
    with pytest.raises(DependencyError, match="consent"):
        lay_out_toolkit(session, person, Stages(person), here, plan(here))  # type: ignore[arg-type]
    told = "\n".join(person.said)
    assert "to download" in told
    assert "on the disk" in told
    assert str(root) in told
    assert not root.parent.exists()
