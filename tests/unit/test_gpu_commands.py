"""``caffeup gpu …`` as a person meets it: exit codes of their own, JSON alone on stdout, programs run on a GPU with room."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from caffeup.app import gpus as app
from caffeup.app.gpu_promises import folder, keep, load, locked
from caffeup.app.gpu_run import promised_room, run_on
from caffeup.app.gpus import Looker, find_room
from caffeup.app.session import Session
from caffeup.cli import gpu_watch
from caffeup.cli.main import main
from caffeup.errors import CannotRun, DiskError, NoRoom, NotFound
from caffeup.facts.load import load_facts
from caffeup.gpu.figures import UnknownFigure, explained, find
from caffeup.gpu.promises import Promise
from caffeup.model.base import from_json
from caffeup.model.gpus import Card, Killed, Reading, Room, Snapshot
from fakelive import GIB, MIB, FakeLive, PlainHost, card, listed, process

Captured = pytest.CaptureFixture[str]
BUSY = card(0, used=22 * GIB, listed=[listed(50, 22 * 1024)])


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tmp_path


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give the commands this moment in place of the real one."""

    def give(live: FakeLive, **host: Any) -> FakeLive:
        env = dict(os.environ)
        monkeypatch.setattr(app, "RealLive", lambda _env: live)
        monkeypatch.setattr("caffeup.app.session.RealHost", lambda: PlainHost(**{"env": env, **host}))
        return live

    return give


@pytest.mark.parametrize(
    ("live", "host", "code", "said"),
    [
        (FakeLive(library=False), {}, 13, "There is no NVIDIA GPU here."),
        (
            FakeLive(library=False),
            {"files": {"/sys/bus/pci/devices/0/vendor": "0x10de", "/sys/bus/pci/devices/0/class": "0x030000"}},
            14,
            "no driver for it",
        ),
        (
            FakeLive(reading=Reading(error="Driver/library version mismatch", code=18)),
            {"files": {"/dev/nvidiactl": ""}},
            15,
            "Restart the machine",
        ),
    ],
)
@pytest.mark.parametrize(
    "command", [["gpu"], ["gpu", "free"], ["gpu", "free", "--wait"], ["gpu", "run", "true"], ["gpu", "--watch"]]
)
def test_states_without_a_gpu_have_codes_of_their_own(
    on: Any, capsys: Captured, live: FakeLive, host: dict[str, Any], code: int, said: str, command: list[str]
) -> None:
    on(live, **host)
    assert main(command) == code
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


def test_the_state_is_in_the_json_too(on: Any, capsys: Captured) -> None:
    on(FakeLive(library=False))
    assert main(["gpu", "--json"]) == 13
    assert from_json(capsys.readouterr().out, Snapshot).state == "none"


def test_the_table(on: Any, capsys: Captured) -> None:
    live = on(FakeLive(BUSY, card(1), processes=[process(50)]))
    assert main(["gpu"]) == 0
    said = capsys.readouterr().out
    for part in (
        "GPU 0  NVIDIA GeForce RTX 4090",
        "1 process computes on it",
        "22528 of 24576 MiB used",
        "python train.py",
        "free",
    ):
        assert part in said
    assert live.closed == 1
    assert main(["gpu", "--json"]) == 0
    assert [gpu.card.index for gpu in from_json(capsys.readouterr().out, Snapshot).gpus] == [0, 1]


class TestFree:
    def test_the_index_alone(self, on: Any, capsys: Captured) -> None:
        on(FakeLive(BUSY, card(1)))
        assert main(["gpu", "free"]) == 0
        assert capsys.readouterr().out == "1\n"
        assert main(["gpu", "free", "--uuid"]) == 0
        assert capsys.readouterr().out == "GPU-00000001\n"
        assert main(["gpu", "free", "--need", "1GiB", "--json"]) == 0
        assert from_json(capsys.readouterr().out, Room).label == "1"

    def test_no_room(self, on: Any, capsys: Captured) -> None:
        on(FakeLive(BUSY, processes=[process(50)]))
        assert main(["gpu", "free", "--need", "4GiB"]) == 16
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "GPU 0: 2048 MiB free" in captured.err
        assert "caffeup gpu free --need 4096MiB --wait" in captured.err
        assert main(["gpu", "free"]) == 16

    @pytest.mark.parametrize("need", ["4", "lots", "-1GiB"])
    def test_a_need_that_is_none(self, on: Any, capsys: Captured, need: str) -> None:
        on(FakeLive(card(0)))
        assert main(["gpu", "free", f"--need={need}"]) == 2
        assert "write 4GiB" in capsys.readouterr().err

    def test_waiting(self) -> None:
        live = FakeLive(BUSY, processes=[process(50)])
        told: list[str] = []
        pauses: list[float] = []

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 3:
                live.end(50)

        room = find_room(Looker(Session(PlainHost()), live), GIB * 4, wait=True, tell=told.append, pause=pause)
        assert room.label == "0"
        assert len(pauses) == 3
        assert told == ["waiting for 4096 MiB: GPU 0: 2048 MiB free"]

    def test_the_time_ends(self) -> None:
        now = [0.0]

        def pause(seconds: float) -> None:
            assert seconds > 0
            now[0] += seconds

        with pytest.raises(NoRoom, match="after 5 s"):
            find_room(
                Looker(Session(PlainHost()), FakeLive(BUSY)), GIB * 4, wait=True, timeout=5.0, pause=pause, clock=lambda: now[0]
            )
        assert now[0] == 5.0


class TestRun:
    def test_the_command_is_told_its_gpu(self) -> None:
        became: list[Any] = []

        def become(command: tuple[str, ...], env: dict[str, str]) -> None:
            became.append((command, env))

        run_on(
            Room(index=1, uuid="GPU-00000001", name="x"),
            ("python", "a.py"),
            {"HOME": "/h", "CUDA_VISIBLE_DEVICES": "1,2"},
            become,
        )
        ((command, env),) = became
        assert command == ("python", "a.py")
        assert env == {"HOME": "/h", "CUDA_VISIBLE_DEVICES": "GPU-00000001", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}

    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (FileNotFoundError(2, "No such file"), NotFound),
            (PermissionError(13, "Permission denied"), CannotRun),
            (ValueError("NUL"), CannotRun),
        ],
    )
    def test_a_command_that_cannot_be_started(self, error: Exception, kind: type[Exception]) -> None:
        def become(command: tuple[str, ...], env: dict[str, str]) -> None:
            raise error

        assert type(run_on(Room(index=0, uuid="", name=""), ("x",), {}, become)) is kind

    def test_in_a_process_of_its_own(self, tmp_path: Path) -> None:
        """It becomes the command: same process, its exit code, its signals, its arguments as they are."""
        code = (
            "import sys; sys.path[:0] = sys.argv[1:3]\n"
            "from fakelive import FakeLive, card, process\n"
            "from caffeup.app import gpus\n"
            "import os\n"
            "live = FakeLive(card(0), card(1, total=1 << 40)); live.pid = os.getpid(); live.processes[live.pid] = process(live.pid, nodes=())\n"
            "gpus.RealLive = lambda env: live\n"
            "from caffeup.cli.main import main\n"
            "sys.exit(main(['gpu', 'run', '--need', '4GiB', *sys.argv[3:]]))\n"
        )
        tests = Path(__file__).resolve().parents[1]
        script = "trap 'exit 9' PIPE; echo $$ $CUDA_VISIBLE_DEVICES \"$@\"; exit 7"
        command = ["sh", "-c", script, "sh", "--lr", "1 2", "--", "-x"]
        for given in (command, ["--", *command]):
            child = subprocess.Popen(
                [sys.executable, "-c", code, str(tests), str(tests.parent / "src"), *given],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            out, err = child.communicate(timeout=60)
            assert out == f"{child.pid} GPU-00000001 --lr 1 2 -- -x\n"
            assert child.returncode == 7, err
            assert "on GPU 1" in err


class TestPromises:
    def test_two_at_once_do_not_get_the_same_room(self) -> None:
        """The first has not allocated anything yet when the second chooses."""
        live = FakeLive(card(0), card(1), processes=[process(901, nodes=()), process(902, nodes=()), process(903, nodes=())])
        looker = Looker(Session(PlainHost(env=dict(os.environ))), live)
        got = []
        for pid in (901, 902):
            live.pid = pid
            got.append(promised_room(looker, 16 * GIB).label)
        assert got == ["0", "1"]
        live.pid = 903
        with pytest.raises(NoRoom) as told:
            promised_room(looker, 16 * GIB)
        assert "promised to another caffeup gpu run" in told.value.details
        live.end(901)
        assert promised_room(looker, 16 * GIB).label == "0", "what ended needs no room"

    def test_without_a_need_a_gpu_to_itself(self) -> None:
        live = FakeLive(card(0), card(1), processes=[process(901, nodes=()), process(902, nodes=())])
        looker = Looker(Session(PlainHost(env=dict(os.environ))), live)
        labels = []
        for pid in (901, 902):
            live.pid = pid
            labels.append(promised_room(looker, 0).label)
        assert labels == ["0", "1"]

    def test_notes_of_others_and_damage_are_cleared_away(self, runtime: Path) -> None:
        live = FakeLive(processes=[process(901), process(902, state="Z")])
        home = folder({"XDG_RUNTIME_DIR": str(runtime)})
        kept = Promise(pid=901, started=901 * 7, key="GPU-1", bytes=5)
        keep(home, kept)
        keep(home, Promise(pid=902, started=902 * 7, key="GPU-1", bytes=5))
        keep(home, Promise(pid=903, started=1, key="GPU-1", bytes=5))
        (home / "gpu-7.json").write_bytes(b"\xff{")
        with locked(home):
            assert load(home, live) == (kept,)
        assert [path.name for path in home.glob("gpu-*.json")] == ["gpu-901.json"]

    def test_a_number_that_now_is_anothers(self, runtime: Path) -> None:
        home = folder({"XDG_RUNTIME_DIR": str(runtime)})
        keep(home, Promise(pid=901, started=1, key="GPU-1", bytes=5))
        assert load(home, FakeLive(processes=[process(901)])) == ()

    def test_a_folder_that_somebody_else_could_write_is_refused(self, runtime: Path) -> None:
        (runtime / "caffeup").mkdir()
        (runtime / "caffeup").chmod(0o777)
        with pytest.raises(DiskError, match="own folder"):
            folder({"XDG_RUNTIME_DIR": str(runtime)})
        (runtime / "caffeup").rmdir()
        (runtime / "elsewhere").mkdir()
        (runtime / "caffeup").symlink_to(runtime / "elsewhere")
        with pytest.raises(DiskError):
            folder({"XDG_RUNTIME_DIR": str(runtime)})


class TestKill:
    def test_not_without_consent(self, on: Any, capsys: Captured) -> None:
        live = on(FakeLive(BUSY, processes=[process(50)]))
        assert main(["gpu", "kill", "50"]) == 1
        assert live.sent == []
        assert "python train.py" in capsys.readouterr().err

    def test_with_yes(self, on: Any, capsys: Captured) -> None:
        live = on(FakeLive(BUSY, processes=[process(50)]))
        assert main(["gpu", "kill", "--yes", "50"]) == 0
        assert live.sent == [(50, signal.SIGTERM)]
        captured = capsys.readouterr()
        assert captured.out == "process 50: ended\nGPU 0: 22528 MiB came back (22528 MiB in use before, 0 MiB now)\n"

    def test_refused(self, on: Any, capsys: Captured) -> None:
        on(FakeLive(BUSY, processes=[process(50, uid=0, user="root")]))
        assert main(["gpu", "kill", "--yes", "--json", "50"]) == 17
        assert from_json(capsys.readouterr().out, Killed).processes[0].end == "refused"

    @pytest.mark.parametrize("pid", ["0", "-5", "x", ""])
    def test_what_is_no_pid(self, pid: str) -> None:
        assert main(["gpu", "kill", "--yes", "--", pid]) == 2


class TestWatch:
    @staticmethod
    def looks(count: int, *cards: Card) -> Any:
        live = FakeLive(*cards, processes=[process(50)])
        looker = Looker(Session(PlainHost()), live)
        left = iter(range(count))

        def look() -> Snapshot:
            if next(left, None) is None:
                raise KeyboardInterrupt
            return looker.look()

        return look

    def test_ctrl_c_is_its_usual_end(self, capsys: Captured) -> None:
        gpu_watch.run_watch(self.looks(3, BUSY), 0.05)
        assert capsys.readouterr().out.count("python train.py") == 2

    def test_as_json_a_line_each(self, capsys: Captured) -> None:
        gpu_watch.run_watch(self.looks(3, BUSY), 0.05, json=True)
        lines = capsys.readouterr().out.splitlines()
        assert [json.loads(line)["gpus"][0]["card"]["index"] for line in lines] == [0, 0]

    def test_the_screen_fits(self) -> None:
        screen = gpu_watch._screen(self.looks(1, BUSY)(), 80, 24, 2.0)
        assert max(len(line) for line in screen.plain.splitlines()) < 80
        assert screen.plain.splitlines()[0].rstrip().endswith("every 2 s, Ctrl-C ends")
        assert "persistence N/A" in screen.plain

    @pytest.mark.parametrize("height", [5, 12, 24, 40])
    def test_eight_gpus_on_a_low_screen_are_a_line_each(self, height: int) -> None:
        many = [card(i, used=(9 - i) * GIB, listed=[listed(100 + i, (9 - i) * 1024)]) for i in range(7)]
        screen = gpu_watch._screen(self.looks(1, *many, card(7, error="GPU is lost"))(), 80, height, 2.0)
        rows = screen.plain.splitlines()
        assert len(rows) <= height
        assert max(map(len, rows)) < 80
        if height >= 12:
            assert sum(row.startswith("GPU ") for row in rows) == 8
            assert any("9216/24576 MiB" in row and row.endswith("1 computing") for row in rows)
        if height >= 24:
            assert any("9216 MiB" in row and row.startswith("   0") for row in rows), "who has most memory comes first"
        if height < 12:
            assert any("GPUs more" in row for row in rows)


@pytest.fixture
def figures() -> Any:
    return load_facts().figures


class TestExplain:
    def test_every_figure_says_all_that_it_must(self, figures: Any) -> None:
        assert len(figures) >= 16
        for one in figures:
            assert one.meaning.endswith((".", "ones"))
            assert one.range
            assert one.normal
            assert one.source

    def test_memory_and_utilisation_are_different_things(self, figures: Any, capsys: Captured) -> None:
        assert "how busy" in find(figures, "memory").meaning
        assert "not how full" in find(figures, "utilisation").meaning
        assert main(["gpu", "explain"]) == 0
        assert "different things" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("name", "found"),
        [
            ("GPU-Util", "utilisation"), ("gpu util", "utilisation"), ("Volatile Uncorr. ECC", "ecc"), ("Perf", "pstate"), ("temp", "temperature"),
            ("Pwr:Usage/Cap", "power"), ("Persistence-M", "persistence"), ("Memory-Usage", "memory"), ("MIG M.", "mig"), ("Disp.A", "display"),
            ("memory", "memory"), ("proc", "processes"),
        ],
    )  # fmt: skip
    def test_by_any_name(self, figures: Any, name: str, found: str) -> None:
        assert find(figures, name).id == found

    def test_a_slip(self, figures: Any, capsys: Captured) -> None:
        with pytest.raises(UnknownFigure) as told:
            find(figures, "temprature")
        assert "temperature" in told.value.likely
        assert main(["gpu", "explain", "temprature"]) == 2
        assert "temperature" in capsys.readouterr().err

    def test_lines_fit(self, figures: Any) -> None:
        for one in figures:
            assert max(len(line) for line in explained(one, 80) if "https" not in line) <= 80

    def test_as_json(self, capsys: Captured) -> None:
        assert main(["gpu", "explain", "ecc", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["id"] == "ecc"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["gpu", "explain"], "[FIGURE]"), (["gpu", "kill"], "PID..."), (["gpu", "free"], "--need SIZE"), (["gpu"], "--watch [SECONDS]"),
        (["doctor"], "[TREE]"), (["patch", "revert"], "--only ID"), (["diagnose"], "[LOG]..."),
    ],
)  # fmt: skip
def test_arguments_stay_arguments_on_every_python(capsys: Captured, command: list[str], said: str) -> None:
    assert main([*command, "--help"]) == 0
    help_ = capsys.readouterr().out
    assert said.lower() in help_.lower()
    assert "--no-json" not in help_


def test_help_names_every_part(capsys: Captured) -> None:
    assert main(["gpu", "--help"]) == 0
    said = capsys.readouterr().out
    for command in ("explain", "free", "kill", "run"):
        assert f"\n  {command} " in said


def test_used_memory_alone_is_shown_where_the_card_tells_no_more(on: Any, capsys: Captured) -> None:
    on(FakeLive(Card(index=0, memory_total=24 * MIB)))
    assert main(["gpu"]) == 0
    said = capsys.readouterr().out
    assert "N/A of 24 MiB" in said
    assert "fan N/A" in said
