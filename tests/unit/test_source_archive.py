"""Archives that nobody vouches for."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import zipfile
from pathlib import Path
from typing import Any, Callable, Optional

import pytest

from caffeup.errors import DiskError
from caffeup.source.archive import sha256_of, single_top, unpack
from caffeup.source.problems import BadArchive

Entry = tuple[str, dict[str, Any], bytes]


def member(name: str, content: bytes = b"", **fields: Any) -> Entry:
    return name, fields, content


def tar(path: Path, *entries: Entry, mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, fields, content in entries:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.mode = 0o644
            for key, value in fields.items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(content))
    return path


def opened(tmp_path: Path, archive: Path, **options: Any) -> Path:
    into = tmp_path / "into"
    into.mkdir()
    unpack(archive, into, **options)
    return into


def refused(tmp_path: Path, archive: Path, **options: Any) -> str:
    into = tmp_path / "into"
    into.mkdir()
    with pytest.raises(BadArchive) as caught:
        unpack(archive, into, **options)
    assert not (tmp_path / "outside").exists()
    return f"{caught.value.brief}\n{caught.value.details}"


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz", ""])
def test_tar_of_each_compression(tmp_path: Path, suffix: str) -> None:
    archive = tar(
        tmp_path / "a.tar", member("caffe/Makefile", b"all:\n"), member("caffe/run.sh", b"#!", mode=0o755), mode=f"w:{suffix}"
    )
    into = opened(tmp_path, archive)
    top = single_top(into)
    assert top == into / "caffe"
    assert (top / "Makefile").read_bytes() == b"all:\n"
    assert os.access(top / "run.sh", os.X_OK)
    assert not os.access(top / "Makefile", os.X_OK)


def test_zip_with_modes_and_links(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        script = zipfile.ZipInfo("caffe/run.sh")
        script.external_attr = (stat.S_IFREG | 0o755) << 16
        archive.writestr(script, "#!")
        link = zipfile.ZipInfo("caffe/link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "run.sh")
        archive.writestr("caffe/src/", "")
    top = opened(tmp_path, tmp_path / "a.zip") / "caffe"
    assert os.access(top / "run.sh", os.X_OK)
    assert (top / "link").readlink() == Path("run.sh")
    assert (top / "src").is_dir()


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (member("/tmp/outside", b"x"), "absolute path"),
        (member("caffe/../../outside", b"x"), "leads out with .."),
        (member("..", type=tarfile.DIRTYPE), "leads out with .."),
        (member("caffe/l", type=tarfile.SYMTYPE, linkname="/etc"), "is a link that leads out, to /etc"),
        (member("caffe/l", type=tarfile.SYMTYPE, linkname="../../outside"), "is a link that leads out"),
        (member("caffe/l", type=tarfile.LNKTYPE, linkname="/etc/passwd"), "absolute path"),
        (member("caffe/l", type=tarfile.LNKTYPE, linkname="../outside"), "leads out with .."),
        (member("caffe/l", type=tarfile.LNKTYPE, linkname="caffe/nothing"), "no file of this archive before it"),
        (member("caffe/null", type=tarfile.CHRTYPE, devmajor=1, devminor=3), "is a device"),
        (member("caffe/sda", type=tarfile.BLKTYPE, devmajor=8), "is a device"),
        (member("caffe/pipe", type=tarfile.FIFOTYPE), "is a named pipe"),
        (member("C:\\outside", b"x"), "absolute path"),
        (member("caffe/" + "n" * 300, b"x"), "a name that no file can have"),
    ],
)
def test_hostile_members_are_refused_by_name(tmp_path: Path, entry: Entry, why: str) -> None:
    said = refused(tmp_path, tar(tmp_path / "a.tgz", member("caffe/Makefile", b""), entry))
    assert why in said
    assert "a.tgz is refused" in said


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    archive = tar(
        tmp_path / "a.tgz",
        member("caffe/l", type=tarfile.SYMTYPE, linkname="src"),
        member("caffe/l/outside", b"x"),
        member("caffe/src/x", b""),
    )
    assert "would be written through the link caffe/l" in refused(tmp_path, archive)


def test_a_link_over_a_link_does_not_lead_out(tmp_path: Path) -> None:
    """Neither leads out by its text: the first goes to the root, the second to a folder below it."""
    archive = tar(
        tmp_path / "a.tgz",
        member("a/b/c/first", type=tarfile.SYMTYPE, linkname="../../.."),
        member("second", type=tarfile.SYMTYPE, linkname="a/b/c/first/.."),
    )
    assert "leads out" in refused(tmp_path, archive)


def test_link_loop_is_kept_harmless(tmp_path: Path) -> None:
    archive = tar(
        tmp_path / "a.tgz", member("x", type=tarfile.SYMTYPE, linkname="y"), member("y", type=tarfile.SYMTYPE, linkname="x")
    )
    assert (opened(tmp_path, archive) / "x").is_symlink()


def test_hard_link_becomes_a_file_of_its_own(tmp_path: Path) -> None:
    archive = tar(tmp_path / "a.tgz", member("a", b"text"), member("b", type=tarfile.LNKTYPE, linkname="a"))
    into = opened(tmp_path, archive)
    assert (into / "b").read_bytes() == b"text"
    assert (into / "b").stat().st_nlink == 1


@pytest.mark.parametrize("name", [".git/config", ".GIT/config", "src/.git/hooks/x", ".caffeup/ledger.json"])
def test_git_and_our_own_notes_are_dropped_unread(tmp_path: Path, name: str) -> None:
    archive = tar(tmp_path / "a.tgz", member(f"caffe/{name}", b"token"), member("caffe/Makefile", b""))
    into = opened(tmp_path, archive)
    assert [path.name for path in into.rglob("*") if path.is_file()] == ["Makefile"]


def test_dropped_folder_is_reported(tmp_path: Path) -> None:
    archive = tar(tmp_path / "a.tgz", member("caffe/.git", type=tarfile.DIRTYPE), member("caffe/Makefile", b""))
    (tmp_path / "into").mkdir()
    assert unpack(archive, tmp_path / "into").dropped == ["caffe/.git"]


def test_later_member_replaces_a_file(tmp_path: Path) -> None:
    archive = tar(tmp_path / "a.tgz", member("a", b"old"), member("a", b"new"))
    assert (opened(tmp_path, archive) / "a").read_bytes() == b"new"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_file_and_folder_of_one_name_are_refused(tmp_path: Path, order: tuple[int, int]) -> None:
    entries = [member("a", b"x"), member("a/b", b"y")]
    archive = tar(tmp_path / "a.tgz", *(entries[i] for i in order))
    into = tmp_path / "into"
    into.mkdir()
    with pytest.raises((BadArchive, DiskError)):
        unpack(archive, into)


def test_setuid_and_unreadable_modes_become_plain(tmp_path: Path) -> None:
    archive = tar(
        tmp_path / "a.tgz",
        member("s", b"", mode=0o6755, uid=0),
        member("n", b"", mode=0),
        member("d", type=tarfile.DIRTYPE, mode=0),
    )
    into = opened(tmp_path, archive)
    assert stat.S_IMODE((into / "s").stat().st_mode) & 0o7000 == 0
    assert stat.S_IMODE((into / "n").stat().st_mode) & 0o400
    assert stat.S_IMODE((into / "d").stat().st_mode) & 0o700 == 0o700
    assert (into / "s").stat().st_uid == os.getuid()


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    name = os.fsdecode(b"caffe/caf\xe9.cpp")
    archive = tar(tmp_path / "a.tgz", member(name, b"x"))
    assert (opened(tmp_path, archive) / name).read_bytes() == b"x"


def test_names_that_are_not_utf8_are_refused_legibly(tmp_path: Path) -> None:
    said = refused(tmp_path, tar(tmp_path / "a.tgz", member(os.fsdecode(b"../caf\xe9\x1b[31m"), b"x")))
    assert "\\xe9\\x1b[31m" in said


def test_tar_bomb(tmp_path: Path) -> None:
    archive = tar(tmp_path / "a.tgz", member("zeros", bytes(3 << 20)))
    assert "over 1 MiB" in refused(tmp_path, archive, largest=1 << 20)


def test_bomb_in_what_is_dropped(tmp_path: Path) -> None:
    archive = tar(tmp_path / "a.tgz", member(".git/zeros", bytes(3 << 20)))
    assert "over 1 MiB" in refused(tmp_path, archive, largest=1 << 20)


def test_header_that_asks_for_memory(tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.type = tarfile.XHDTYPE
    info.size = 1 << 33
    (tmp_path / "a.tar").write_bytes(
        info.tobuf(tarfile.USTAR_FORMAT if info.size < 1 << 33 else tarfile.GNU_FORMAT) + bytes(1024)
    )
    assert "is damaged" in refused(tmp_path, tmp_path / "a.tar")


def test_zip_that_lies_about_a_size(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(1 << 20))
    raw = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "a.zip").write_bytes(raw.replace((1 << 20).to_bytes(4, "little"), (10).to_bytes(4, "little")))
    assert "a.zip is damaged" in refused(tmp_path, tmp_path / "a.zip")


def test_encrypted_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a", "x")
    raw = bytearray((tmp_path / "a.zip").read_bytes())
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "a.zip").write_bytes(raw)
    assert "encrypted" in refused(tmp_path, tmp_path / "a.zip")


def test_zip_leading_out(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("../outside", "x")
    assert "leads out with .." in refused(tmp_path, tmp_path / "a.zip")


@pytest.mark.parametrize("cut", [20, 200, 4000])
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_cut_download(tmp_path: Path, cut: int, pack: Callable[[bytes], bytes]) -> None:
    plain = tar(tmp_path / "plain.tar", member("a", os.urandom(9000)), mode="w:")
    (tmp_path / "a.tar.gz").write_bytes(pack(plain.read_bytes())[:-cut])
    assert "a.tar.gz is damaged" in refused(tmp_path, tmp_path / "a.tar.gz")


def test_flipped_bytes(tmp_path: Path) -> None:
    archive = tar(tmp_path / "a.tgz", member("a", os.urandom(9000)))
    raw = bytearray(archive.read_bytes())
    raw[4000:4020] = bytes(20)
    archive.write_bytes(raw)
    assert "a.tgz is damaged" in refused(tmp_path, archive)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "the file is empty"),
        (b"<!DOCTYPE html><html>sign in</html>", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of git-lfs"),
        (b"hello", "neither tar"),
    ],
)
def test_what_is_no_archive(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "a.tar.gz").write_bytes(content)
    assert why in refused(tmp_path, tmp_path / "a.tar.gz")


def test_hash_is_checked_before_anything_is_unpacked(tmp_path: Path) -> None:
    archive = tar(tmp_path / "a.tgz", member("a", b"x"))
    said = refused(tmp_path, archive, sha256="0" * 64)
    assert sha256_of(archive) in said
    assert list((tmp_path / "into").iterdir()) == []


def test_unreadable_archive(tmp_path: Path) -> None:
    assert "cannot read" in refused(tmp_path, tmp_path / "nothing.tgz")


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tar(tmp_path / "a.tgz", member("a", b"x"))
    (tmp_path / "into").mkdir()

    def full(*_: object, **__: object) -> Optional[int]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("caffeup.source.archive.os.open", full)
    with pytest.raises(DiskError, match="the disk is full"):
        unpack(archive, tmp_path / "into")
