"""The real machine: absence, refusal and hanging are values, never exceptions."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from caffeup import driver_query
from caffeup import host as host_module
from caffeup.host import DEFAULT_PATH, OUTPUT_LIMIT, Output, RealHost
from caffeup.model.driver import DriverAnswer


@pytest.fixture
def host() -> RealHost:
    return RealHost()


def script(path: Path, text: str, mode: int = 0o755) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_program_gets_the_c_locale_and_no_terminal_and_the_root_folder() -> None:
    host = RealHost({"PATH": "/usr/bin:/bin", "LANG": "de_DE.UTF-8", "LC_ALL": "de_DE.UTF-8"})
    output = host.run(("sh", "-c", "echo $LC_ALL; pwd; cat; echo end >&2"))
    assert output == Output(status=0, stdout="C\n/\n", stderr="end\n")


def test_standard_input_larger_than_a_pipe(host: RealHost) -> None:
    output = host.run(("wc", "-c"), stdin="x" * 300_000)
    assert output is not None
    assert output.stdout.strip() == "300000"


def test_a_program_that_does_not_read_its_input(host: RealHost) -> None:
    assert host.run(("true",), stdin="x" * 300_000) == Output(status=0)


def test_absent_programs_are_none(host: RealHost, tmp_path: Path) -> None:
    assert host.run(("no-such-program",)) is None
    assert host.run((str(tmp_path / "none"),)) is None
    assert host.run(("/etc/passwd/x",)) is None
    assert host.run(("tr\0ue",)) is None


def test_what_cannot_be_executed_is_126(host: RealHost, tmp_path: Path) -> None:
    for path in (
        script(tmp_path / "plain", "echo\n", 0o644),
        script(tmp_path / "interpreter", "#!/no/such/interpreter\n"),
        script(tmp_path / "format", "\x7fELF junk\n"),
        str(tmp_path),
    ):
        output = host.run((path,))
        assert output is not None, path
        assert output.status == 126, path
        assert path in output.stderr


def test_a_program_that_hangs_is_ended_with_its_children(host: RealHost, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    output = host.run(("sh", "-c", f"sleep 60 & echo $! > {note}; echo started; wait"), timeout=0.5)
    assert output == Output(status=124, stdout="started\n")
    pid = int(note.read_text())
    assert _ends(Path(f"/proc/{pid}/stat"))


def _ends(stat: Path) -> bool:
    """What was killed may still run for a moment where all cores are busy."""
    for _ in range(200):
        try:
            if stat.read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_a_daemon_that_keeps_the_pipe_open_is_not_waited_for(host: RealHost) -> None:
    assert host.run(("sh", "-c", "sleep 60 & echo done"), timeout=30) == Output(status=0, stdout="done\n")


def test_output_is_bounded_and_bytes_are_replaced(host: RealHost) -> None:
    output = host.run(("sh", "-c", f"printf '\\377'; head -c {OUTPUT_LIMIT + 100_000} /dev/zero"))
    assert output is not None
    assert output.status == 0
    assert output.stdout.startswith("\ufffd")
    assert len(output.stdout) == OUTPUT_LIMIT


def test_a_program_ended_by_a_signal(host: RealHost) -> None:
    assert host.run(("sh", "-c", "kill -9 $$")) == Output(status=-9)


def test_files_that_are_no_text(host: RealHost, tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    assert host.read_text(f"{tmp_path}/latin") == "caf\ufffd"
    for name in ("pipe", "loop", "dangling", "", "a\0b", "x" * 5000):
        assert host.read_text(f"{tmp_path}/{name}") is None
    for name in ("loop", "dangling", "a\0b", "x" * 5000):
        assert not host.exists(f"{tmp_path}/{name}")
        assert host.real_path(f"{tmp_path}/{name}") is None


def test_read_bytes_is_limited(host: RealHost, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abcdef")
    assert host.read_bytes(f"{tmp_path}/x", 3) == b"abc"


def test_which_gives_all_in_order(tmp_path: Path) -> None:
    for name, mode in (("a", 0o755), ("b", 0o644), ("c", 0o755)):
        (tmp_path / name).mkdir()
        script(tmp_path / name / "nvcc", "", mode)
    (tmp_path / "d/nvcc").mkdir(parents=True)
    host = RealHost({"PATH": ":".join(f"{tmp_path}/{name}" for name in "dcbac")})
    assert host.which("nvcc") == (f"{tmp_path}/c/nvcc", f"{tmp_path}/a/nvcc")
    assert host.which(f"{tmp_path}/a/nvcc") == (f"{tmp_path}/a/nvcc",)
    assert host.which(f"{tmp_path}/b/nvcc") == ()


def test_without_an_environment_the_usual_folders_are_searched() -> None:
    host = RealHost({})
    assert [path.rpartition("/")[0] in DEFAULT_PATH.split(":") for path in host.which("sh")]
    assert host.run(("sh", "-c", "exit 5")) == Output(status=5)


def test_glob_is_sorted_and_takes_junk(host: RealHost, tmp_path: Path) -> None:
    for name in "cab":
        (tmp_path / name).touch()
    assert host.glob(f"{tmp_path}/*") == tuple(f"{tmp_path}/{name}" for name in "abc")
    assert host.glob(f"{tmp_path}/a\0*") == ()


def test_own(host: RealHost) -> None:
    own = host.own
    assert own.uid == os.geteuid()
    assert own.executable == sys.executable
    assert own.cores >= 1


def test_a_missing_nvidia_library_is_none_and_a_broken_answer_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    host = RealHost()
    monkeypatch.setattr(host_module, "_loadable", lambda *_: True)
    monkeypatch.setattr(host_module, "_run", lambda *_, **__: Output(status=0, stdout="null\n"))
    assert host.nvml() is None
    monkeypatch.setattr(host_module, "_run", lambda *_, **__: Output(status=-11, stderr="boom\n"))
    assert host.libcuda() == DriverAnswer(error="exit -11: boom")
    monkeypatch.setattr(host_module, "_run", lambda *_, **__: Output(status=124))
    assert host.nvml() == DriverAnswer(error="no answer within 15 s")


def test_a_library_that_the_loader_does_not_know_costs_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "FILES", {"nvml": "libno-such.so.1", "libcuda": "libno-such.so.1"})
    monkeypatch.delattr(host_module, "_run")
    assert RealHost().nvml() is None
    assert RealHost().libcuda() is None


def test_a_library_is_known_by_a_folder_or_by_the_loaders_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "libx.so.1").touch()
    assert host_module._loadable("libx.so.1", {"LD_LIBRARY_PATH": f"/none:{tmp_path}"})
    monkeypatch.setattr(host_module, "LOADER_CACHE", str(tmp_path / "cache"))
    assert not host_module._loadable("libx.so.1", {})
    (tmp_path / "cache").write_bytes(b"\0libx.so.1\0/somewhere/libx.so.1\0")
    assert host_module._loadable("libx.so.1", {})


def test_the_query_is_run_as_a_process_and_answers_json(host: RealHost) -> None:
    for answer in (host.nvml(), host.libcuda()):
        assert answer is None or isinstance(answer, DriverAnswer)
        assert answer is None or "Traceback" not in answer.error


def test_a_library_that_does_not_load_says_why(tmp_path: Path) -> None:
    assert driver_query._load("libno-such-library.so.1") == (None, "")
    junk = tmp_path / "libcuda.so.1"
    junk.write_text("junk")
    assert "file too short" in driver_query._load(str(junk))[1]
