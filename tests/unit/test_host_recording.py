"""The machine as a folder: what is recorded is what is played back, and names are masked."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caffeup.host import Output, RealHost, path_folders
from caffeup.recording import Mask, RecordingHost
from caffeup.transcript import Recorded, TranscriptError, format_recorded, parse_transcript
from fakehost import FakeHost, UnrecordedCommand


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


TEXT = st.text(alphabet=st.characters(codec="utf-8"))
WORDS = st.lists(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\n")), min_size=1)


@given(WORDS, st.integers(-9, 255), TEXT, TEXT)
def test_a_transcript_reads_back_as_it_was(argv: list[str], status: int, out: str, err: str) -> None:
    recorded = Recorded(argv=tuple(argv), output=Output(status=status, stdout=out, stderr=err))
    assert parse_transcript(format_recorded(recorded)) == (recorded,)


def test_an_absent_program_and_remarks() -> None:
    text = "typed in by hand\n\n$ ccache --version\n? absent\n$ g++ -v\n! gcc version 12.2.0\n? 1\n\\$ no command\n"
    absent, broken = parse_transcript(text)
    assert absent == Recorded(argv=("ccache", "--version"), output=None)
    assert broken.output == Output(status=1, stdout="$ no command\n", stderr="gcc version 12.2.0\n")


@pytest.mark.parametrize("text", ["$ 'open\n", "$ \n", "$ true\n? many\n"])
def test_a_malformed_transcript_names_the_line(text: str) -> None:
    with pytest.raises(TranscriptError, match="line 1"):
        parse_transcript(text)


def test_a_star_is_any_argument_and_an_exact_recording_wins(tmp_path: Path) -> None:
    host = fake(tmp_path, "$ python3 -c *\nany\n$ python3 -c exact\nexact\n")
    assert host.run(("python3", "-c", "exact")) == Output(status=0, stdout="exact\n")
    assert host.run(("python3", "-c", "other")) == Output(status=0, stdout="any\n")
    assert host.run(("python3", "-c", "other", "more")) is None


def fake(folder: Path, commands: str = "", toml: str = "") -> FakeHost:
    (folder / "root").mkdir(exist_ok=True)
    (folder / "commands").mkdir(exist_ok=True)
    (folder / "commands" / "all.txt").write_text(commands)
    (folder / "machine.toml").write_text('title = "t"\norigin = "o"\n' + toml)
    return FakeHost(folder)


def test_a_program_without_a_recording_is_an_error_and_one_that_is_nowhere_is_absent(tmp_path: Path) -> None:
    program(tmp_path / "root/usr/bin/git", "")
    host = fake(tmp_path, toml='[env]\nPATH = "/usr/bin"\n')
    assert host.run(("hg", "--version")) is None
    for argv0 in ("git", "/usr/bin/git"):
        with pytest.raises(UnrecordedCommand, match="--version"):
            host.run((argv0, "--version"))


def test_links_that_lead_out_of_the_root_are_absent(tmp_path: Path) -> None:
    host = fake(tmp_path)
    (tmp_path / "root/passwd").symlink_to("/etc/passwd")
    (tmp_path / "root/up").symlink_to("../machine.toml")
    assert host.glob("/*") == ()
    assert [host.read_text(path) for path in ("/passwd", "/up", "/../machine.toml", "passwd")] == [None] * 4


def test_unreadable_is_there_but_gives_nothing(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/cudnn.h").write_text("#define CUDNN_MAJOR 9\n")
    host = fake(tmp_path, toml='unreadable = ["/cudnn.h"]\n')
    assert host.exists("/cudnn.h")
    assert host.read_text("/cudnn.h") is None


def small_machine(tmp_path: Path) -> tuple[Path, RealHost]:
    """A home folder with a toolkit behind links, a program and a secret, all of it real."""
    home = tmp_path / "people/jane.roe"
    toolkit = home / "opt/cuda-12.4"
    program(toolkit / "bin/nvcc", f"#!/bin/sh\necho root {toolkit} of jane.roe; echo at $HOME >&2; exit 3\n")
    (toolkit / "version.txt").write_text("CUDA Version 12.4.1 for jane.roe\n")
    (home / "opt/cuda").symlink_to("cuda-12.4")
    (home / "empty").mkdir()
    env = {"HOME": str(home), "USER": "jane.roe", "PATH": f"{home}/opt/cuda/bin:/usr/bin", "SECRET": "hunter2"}
    return home, RealHost(env)


def ask(host: RealHost | RecordingHost | FakeHost, home: str) -> list[object]:
    return [
        host.env.get("HOME"),
        host.env.get("ABSENT"),
        host.which("nvcc"),
        host.run((f"{home}/opt/cuda/bin/nvcc", "--version")),
        host.read_text(f"{home}/opt/cuda/version.txt"),
        host.read_bytes(f"{home}/opt/cuda/version.txt", 4),
        host.read_text(f"{home}/opt/cuda/absent.txt"),
        host.exists(f"{home}/opt/cuda"),
        host.real_path(f"{home}/opt/cuda"),
        host.is_dir(f"{home}/empty"),
        host.glob(f"{home}/opt/cuda*"),
        host.run((f"{home}/opt/none", "-v")),
    ]


def test_what_was_asked_is_played_back_with_names_masked(tmp_path: Path) -> None:
    home, real = small_machine(tmp_path)
    recording = RecordingHost(real, tmp_path / "machine", title="t")
    seen = ask(recording, str(home))
    assert seen == ask(real, str(home)), "recording changes no answer"
    folder = recording.finish()
    everything = "".join(str(path) for path in folder.rglob("*")) + "".join(
        p.read_text() for p in folder.rglob("*") if p.is_file()
    )
    assert "jane" not in everything
    assert "hunter2" not in everything
    masked = repr(seen).replace(str(home), "/home/user").replace("jane.roe", "user")
    assert repr(ask(FakeHost(folder), "/home/user")) == masked


def test_links_and_empty_folders_survive_a_copy(tmp_path: Path) -> None:
    home, real = small_machine(tmp_path)
    recording = RecordingHost(real, tmp_path / "machine")
    ask(recording, str(home))
    root = recording.finish() / "root"
    links = [path for path in root.rglob("*") if path.is_symlink()]
    assert [str(link.readlink()) for link in links] == ["cuda-12.4"]
    assert (root / "home/user/empty/.keep").is_file()


def test_an_unreadable_file_is_recorded_as_such(tmp_path: Path) -> None:
    class Guarded(RealHost):
        def read_bytes(self, path: str, limit: int = 1 << 20) -> bytes | None:
            return None if path.endswith("cudnn.h") else super().read_bytes(path, limit)

    header = tmp_path / "cudnn.h"
    header.write_text("secret")
    recording = RecordingHost(Guarded({}), tmp_path / "machine")
    assert recording.read_text(str(header)) is None
    host = FakeHost(recording.finish())
    assert host.exists(str(header))
    assert host.read_text(str(header)) is None
    assert "secret" not in "".join(p.read_text() for p in (tmp_path / "machine").rglob("*") if p.is_file())


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("/home/jane/x:/home/joe", "/home/user/x:/home/user"),
        ("https://jane:token@host.example/x", "https://host.example/x"),
        ("GPU-12345678-1234-1234-1234-123456789abc", "GPU-masked"),
        ("janes janet jane", "janes janet user"),
        ("/usr/include/home/x", "/usr/include/home/x"),
    ],
)
def test_masks(text: str, masked: str) -> None:
    assert Mask(RealHost({"HOME": "/home/jane", "USER": "jane"}))(text) == masked


def test_a_user_named_like_the_system_leaves_its_files_alone() -> None:
    class Cloud(RealHost):
        def read_text(self, path: str) -> str | None:
            return 'ID=ubuntu\nNAME="Ubuntu"\n' if path == "/etc/os-release" else None

    assert Mask(Cloud({"HOME": "/home/ubuntu", "USER": "ubuntu"}))("ID=ubuntu /home/ubuntu/x") == "ID=ubuntu /home/user/x"


@pytest.mark.parametrize(
    ("path", "folders"),
    [
        ("/usr/bin/:/usr/bin::.:bin:/opt/a b", ("/usr/bin", "/opt/a b")),
        ("", ()),
        ("/", ("/",)),
        ("/a\0b:/c", ("/c",)),
    ],
)
def test_path_folders(path: str, folders: tuple[str, ...]) -> None:
    assert path_folders({"PATH": path}) == folders


@pytest.mark.parametrize("path", ["//etc//passwd", "/etc/../etc/passwd", "/", "/proc/self/cgroup"])
def test_paths_with_more_slashes_than_needed_are_recorded(tmp_path: Path, path: str) -> None:
    recording = RecordingHost(RealHost({}), tmp_path / "machine")
    assert recording.exists(path)
    assert FakeHost(recording.finish()).exists(path)
