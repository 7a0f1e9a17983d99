"""The real moment: processes of this machine, held by a descriptor, and a driver that hangs, dies or talks nonsense."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from caffeup import driver_child as module
from caffeup.live import NoGrip, RealLive, plain

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
HOLDS = "import sys, time; held = open('/dev/zero'); print('ready', flush=True); time.sleep(60)"


@pytest.fixture
def here() -> Iterator[RealLive]:
    """Takes /dev/zero for a GPU's node."""
    live = RealLive({}, nodes=("/dev/zero",))
    yield live
    live.close()


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen([sys.executable, "-c", HOLDS, "a b\x1b[31m", "\udcff"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    yield child
    child.kill()
    child.wait()
    child.stdout.close()


def test_a_process_and_what_it_has_open(here: RealLive, holder: subprocess.Popen[bytes]) -> None:
    found = here.process(holder.pid)
    assert found is not None
    assert found.nodes == ("/dev/zero",)
    assert (found.uid, found.parent) == (os.getuid(), os.getpid())
    assert found.age_seconds is not None
    assert 0 <= found.age_seconds < 60
    assert "a b\\x1b[31m" in found.command
    assert found.command.isprintable()
    holders, _ = here.holders()
    assert holder.pid in {one.pid for one in holders}


def test_caffeup_itself_is_no_holder(here: RealLive) -> None:
    with Path("/dev/zero").open("rb"):
        holders, _ = here.holders()
    assert os.getpid() not in {one.pid for one in holders}


def test_a_zombie_has_a_state_and_no_files(here: RealLive) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    found = here.process(child.pid)
    child.wait()
    assert found is not None
    assert found.ended
    assert not found.nodes
    assert found.command.startswith("[")
    assert here.process(child.pid) is None


@pytest.mark.parametrize("pid", [0, -1, 4194305, 10**12])
def test_numbers_of_nobody(here: RealLive, pid: int) -> None:
    assert here.process(pid) is None
    with pytest.raises(NoGrip):
        here.grip(pid)


class TestGrip:
    def test_it_means_one_process_for_ever(self, here: RealLive, holder: subprocess.Popen[bytes]) -> None:
        grip = here.grip(holder.pid)
        assert grip.alive()
        assert not grip.wait(0)
        grip.send(signal.SIGTERM)
        assert grip.wait(20)
        assert not grip.alive()
        holder.wait()
        with pytest.raises(ProcessLookupError):
            grip.send(signal.SIGTERM)
        grip.close()

    def test_a_python_without_it(self, here: RealLive, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delattr(os, "pidfd_open")
        with pytest.raises(NoGrip) as told:
            here.grip(os.getpid())
        assert told.value.unsupported

    @pytest.mark.parametrize("number", [1, 38])
    def test_a_kernel_or_sandbox_without_it(self, here: RealLive, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
        def refused(_pid: int) -> int:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "pidfd_open", refused)
        with pytest.raises(NoGrip) as told:
            here.grip(os.getpid())
        assert told.value.unsupported


class TestNode:
    def test_what_this_user_may_do(self, here: RealLive, tmp_path: Path) -> None:
        assert not here.node(str(tmp_path / "nowhere")).there
        zero = here.node("/dev/zero")
        assert (zero.there, zero.readable, zero.writable, zero.folder) == (True, True, True, False)
        assert zero.mode.startswith("crw")
        folder = here.node(str(tmp_path))
        assert (folder.folder, folder.readable) == (True, True)


class TestTheDriversProcess:
    @staticmethod
    def asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, seconds: float = 10.0) -> RealLive:
        (tmp_path / "gpu_query.py").write_text(script)
        (tmp_path / "cuda_query.py").write_text(script)
        monkeypatch.setattr(module, "__file__", str(tmp_path / "driver_child.py"))
        monkeypatch.setattr(module, "ANSWER_SECONDS", seconds)
        return RealLive({})

    def test_it_stays_between_questions(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        script = 'import sys\nfor n, _ in enumerate(sys.stdin):\n    print(\'{"release": "%d"}\' % n, flush=True)\n'
        live = self.asking(tmp_path, monkeypatch, script)
        releases = [reading.release for reading in (live.reading(), live.reading()) if reading is not None]
        live.close()
        live.close()
        assert releases == ["0", "1"]

    def test_one_that_hangs_is_not_waited_for(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        live = self.asking(tmp_path, monkeypatch, "import time; time.sleep(60)", 0.3)
        began = time.monotonic()
        said, cuda = live.reading(), live.cuda()
        assert time.monotonic() - began < 30
        assert said is not None
        assert said.error.startswith("no answer")
        assert cuda is not None
        assert cuda.error.startswith("no answer")

    @pytest.mark.parametrize(
        ("script", "words"),
        [
            ("import os; os.abort()", "ended with -6"),
            ("import sys; sys.stdin.readline(); print('nonsense', flush=True)", "cannot be read"),
            ("", "ended with 0"),
        ],
    )
    def test_one_that_dies_or_talks_nonsense(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str
    ) -> None:
        live = self.asking(tmp_path, monkeypatch, script)
        said = live.reading()
        assert said is not None
        assert words in said.error
        again = live.reading()
        assert again is not None
        assert words in again.error, "it is started anew"

    def test_it_is_told_where_the_binding_lies(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """It may have been found through PYTHONPATH or in the user's own packages, of which -I knows nothing."""
        script = 'import sys\nfor _ in sys.stdin: print(\'{"release": "%s"}\' % sys.argv[1], flush=True)\n'
        (tmp_path / "packages").mkdir()
        (tmp_path / "packages" / "pynvml.py").touch()
        monkeypatch.syspath_prepend(str(tmp_path / "packages"))
        monkeypatch.delitem(sys.modules, "pynvml", raising=False)
        live = self.asking(tmp_path, monkeypatch, script)
        said = live.reading()
        live.close()
        assert said is not None
        assert said.release == str(tmp_path / "packages")

    def test_no_library(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        live = self.asking(
            tmp_path, monkeypatch, "import sys; sys.stdin.readline() if 'gpu' in __file__ else 0; print('null', flush=True)"
        )
        assert live.reading() is None
        assert live.cuda() is None
        live.close()


@pytest.mark.parametrize(
    ("text", "safe"),
    [("python a.py", "python a.py"), ("\x1b[2Jx", "\\x1b[2Jx"), ("a\nb", "a\\nb"), ("\u202eexe", "\\u202eexe"), ("模型", "模型")],
)
def test_command_lines_are_plain(text: str, safe: str) -> None:
    assert plain(text) == safe
