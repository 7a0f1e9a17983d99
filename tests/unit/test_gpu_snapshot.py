"""Who is on which GPU, on machines of every kind: a desk, two GPUs, MIG, a container, WSL2, a Jetson, no GPU, a silent driver."""

from __future__ import annotations

from typing import Any

import pytest

from caffeup.app.gpus import absence, look
from caffeup.app.session import Session
from caffeup.errors import DriverSilent, NoDriver, NoGpu
from caffeup.gpu.nodes import holds_gpu, minors
from caffeup.gpu.words import holders, table
from caffeup.model.base import from_json, to_json
from caffeup.model.driver import Device, DriverAnswer
from caffeup.model.gpus import Instance, Kind, Presence, Reading, Snapshot
from caffeup.model.machine import GpuState
from fakelive import GIB, ME, MIB, FakeLive, PlainHost, card, listed, process

NVIDIA_CARD = {"/sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de", "/sys/bus/pci/devices/0000:01:00.0/class": "0x030000"}


def seen(live: FakeLive, **host: Any) -> Snapshot:
    return look(Session(PlainHost(**host)), live)


def shown(snapshot: Snapshot, width: int = 80) -> str:
    return "\n".join(table(snapshot, width))


@pytest.mark.parametrize(
    ("nodes", "numbers", "holds"),
    [
        (("/dev/nvidiactl",), (), False),
        (("/dev/nvidiactl", "/dev/nvidia-modeset"), (), False),
        (("/dev/nvidia0", "/dev/nvidia12", "/dev/nvidiactl"), (0, 12), True),
        (("/dev/nvidia-uvm",), (), True),
        (("/dev/dxg",), (), True),
        (("/dev/nvhost-gpu", "/dev/nvmap"), (), True),
        (("/dev/nvgpu/igpu0/ctrl",), (), True),
        (("/home/me/dev/nvidia0", "/dev/nvidia0.txt", "/dev/nvidia-caps/nvidia-cap1"), (), False),
        ((), (), False),
    ],
)
def test_what_open_device_nodes_tell(nodes: tuple[str, ...], numbers: tuple[int, ...], holds: bool) -> None:
    assert minors(nodes) == numbers
    assert holds_gpu(nodes) is holds


def test_a_desk_with_a_display() -> None:
    live = FakeLive(
        card(used=1500 * MIB, display_active=True, listed=[listed(900, 1200, Kind.GRAPHICS), listed(901, 300)]),
        processes=[process(900, uid=0, user="root", command="/usr/lib/xorg/Xorg :0", nodes=None), process(901)],
    )
    snapshot = seen(live)
    (gpu,) = snapshot.gpus
    assert [(use.pid, use.presence, use.context_only) for use in gpu.uses] == [
        (900, Presence.HERE, False),
        (901, Presence.HERE, True),
    ]
    said = shown(snapshot)
    assert "1 process computes on it" in said
    assert "/usr/lib/xorg/Xorg :0" in said
    assert "(context only) python train.py" in said
    assert snapshot.unseen == 1


def test_a_display_alone_leaves_it_free() -> None:
    live = FakeLive(
        card(used=1500 * MIB, utilisation=14, display_active=True, listed=[listed(900, 700, Kind.GRAPHICS)]),
        processes=[process(900)],
    )
    assert seen(live).gpus[0].free


def test_on_two_gpus_each_process_stands_where_it_computes() -> None:
    """CUDA opens the nodes of all GPUs; one that the driver lists on the second is not on the first too."""
    nodes = ("/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm")
    live = FakeLive(
        card(0),
        card(1, used=9000 * MIB, listed=[listed(50, 9000)]),
        processes=[process(50, nodes=nodes), process(51, nodes=nodes[1:3])],
    )
    first, second = seen(live).gpus
    assert first.uses == ()
    assert [(use.pid, use.kind, use.memory_bytes) for use in second.uses] == [
        (50, Kind.COMPUTE, 9000 * MIB),
        (51, Kind.OPEN, None),
    ]
    assert first.free
    assert not second.free


class TestInAContainer:
    def test_numbers_of_the_machine_are_never_taken_for_processes_here(self) -> None:
        live = FakeLive(
            card(used=9000 * MIB, listed=[listed(28290, 1012), listed(37, 7000)]),
            processes=[process(37, nodes=(), command="bash"), process(41)],
            own_pids=False,
        )
        snapshot = seen(live)
        uses = {use.pid: use for use in snapshot.gpus[0].uses}
        assert uses[28290].presence is Presence.ELSEWHERE
        assert uses[37].presence is Presence.ELSEWHERE, "a bash that happens to have the number"
        assert uses[37].process is None
        assert (uses[41].kind, uses[41].presence) == (Kind.OPEN, Presence.HERE)
        said = shown(snapshot)
        assert "28290" in said
        assert "(of the machine, outside this container)" in said
        assert "bash" not in said
        assert "--pid=host" in said

    def test_newer_drivers_give_the_numbers_of_the_container(self) -> None:
        live = FakeLive(card(used=9000 * MIB, listed=[listed(41, 9000)]), processes=[process(41)], own_pids=False)
        (use,) = seen(live).gpus[0].uses
        assert (use.presence, use.memory_bytes) == (Presence.HERE, 9000 * MIB)

    def test_memory_of_processes_that_nobody_lists_makes_it_busy(self) -> None:
        snapshot = seen(FakeLive(card(used=9000 * MIB), own_pids=False))
        assert not snapshot.gpus[0].free
        assert "9000 MiB of it are in use, by processes that cannot be seen here" in " ".join(shown(snapshot).split())


def test_mig_gives_parts() -> None:
    parts = (
        Instance(index=0, name="NVIDIA A100 MIG 3g.20gb", uuid="MIG-a", gpu_instance=1, compute_instance=0, memory_total=20 * GIB, memory_used=9 * GIB, memory_free=11 * GIB),
        Instance(index=1, name="NVIDIA A100 MIG 3g.20gb", uuid="MIG-b", gpu_instance=2, compute_instance=0, memory_total=20 * GIB, memory_used=0, memory_free=20 * GIB),
    )  # fmt: skip
    live = FakeLive(
        card(
            mig=True,
            instances=parts,
            used=9 * GIB,
            utilisation=None,
            listed=[listed(50, None, gpu_instance=1, compute_instance=0)],
        ),
        processes=[process(50)],
    )
    snapshot = seen(live)
    rooms = snapshot.gpus[0].rooms
    assert [(room.label, room.computing, bool(room.busy)) for room in rooms] == [("0:0", 1, True), ("0:1", 0, False)]
    said = shown(snapshot)
    assert "1 of 2 parts free" in said
    assert "part 0:0  3g.20gb: 9216 MiB of 20480 MiB used; 1 process computes on it" in said
    assert "N/A  C     (part 0:0) python train.py" in said
    assert not seen(FakeLive(card(mig=True))).gpus[0].free, "MIG is on and nothing was made"


def test_wsl2_lists_no_processes_and_says_so() -> None:
    live = FakeLive(
        card(used=3000 * MIB, lists_processes=False, display_active=None, minor=None),
        processes=[process(50, nodes=("/dev/dxg",))],
    )
    snapshot = seen(live, kernel="5.15.90.1-microsoft-standard-WSL2")
    assert snapshot.wsl == 2
    assert [(use.pid, use.kind) for use in snapshot.gpus[0].uses] == [(50, Kind.OPEN)]
    assert "Windows" in shown(snapshot)


def test_a_jetson_has_the_systems_memory() -> None:
    files = {
        "/proc/device-tree/compatible": "nvidia,p3768-0000+p3767-0000\0nvidia,tegra234\0",
        "/proc/device-tree/model": "NVIDIA Jetson Orin Nano",
        "/proc/meminfo": "MemTotal:  8000000 kB\nMemAvailable:  3000000 kB\n",
        "/sys/devices/gpu.0/load": "437\n",
    }
    nodes = ("/dev/nvhost-gpu", "/dev/nvmap")
    snapshot = seen(FakeLive(library=False, processes=[process(60, nodes=nodes)]), files=files)
    (gpu,) = snapshot.gpus
    assert (gpu.card.shared_memory, gpu.card.memory_free, gpu.card.utilisation) == (True, 3000000 << 10, 43)
    assert str(gpu.card.compute_capability) == "8.7"
    assert [use.pid for use in gpu.uses] == [60]
    assert "the system's" in shown(snapshot)


def test_a_zombie_and_one_that_has_gone() -> None:
    live = FakeLive(
        card(used=4000 * MIB, listed=[listed(70, 1000), listed(71, 1000), listed(72, 1000)]),
        processes=[
            process(70, state="Z", parent=69, nodes=(), command="[python]"),
            process(72, user="", command="", uid=-1, nodes=None),
        ],
    )
    uses = {use.pid: use for use in seen(live).gpus[0].uses}
    assert uses[70].presence is Presence.ZOMBIE
    assert uses[71].presence is Presence.GONE
    said = shown(seen(live))
    assert "zombie: ended; waits for its parent 69" in said
    assert "has ended; the driver still lists it" in said
    assert "another user's: /proc does not show it" in said


def test_hostile_command_lines_reach_nobodys_terminal() -> None:
    from caffeup.live import plain

    evil = plain("python \x1b]0;owned\x07 \u202egnp.exe \n x")
    live = FakeLive(card(listed=[listed(50)]), processes=[process(50, command=evil)])
    said = shown(seen(live), 200)
    assert "\\x1b]0;owned\\x07" in said
    assert all(char.isprintable() for line in said.splitlines() for char in line)


@pytest.mark.parametrize("width", [40, 60, 80, 132])
def test_lines_fit_the_terminal(width: int) -> None:
    long = "python " + "very-long-argument " * 30
    live = FakeLive(
        card(0, used=23000 * MIB, name="NVIDIA RTX 6000 Ada Generation Founders Edition", slowed_by=("power cap", "thermal slowdown (hardware)"), listed=[listed(4194303, 23000)]),
        card(1, error="GPU is lost"),
        processes=[process(4194303, command=long, user="someone-with-a-long-name")],
        own_pids=False,
    )  # fmt: skip
    lines = list(table(seen(live), width))
    assert max(map(len, lines)) <= width
    whole = list(table(seen(live), width, whole=True))
    assert any(long.strip() in line for line in whole)


def test_a_sentence_for_each_who_holds_memory() -> None:
    live = FakeLive(
        card(used=9000 * MIB, listed=[listed(50, 8000), listed(51, 300)]),
        processes=[process(50), process(51, uid=0, user="root")],
    )
    assert holders(seen(live)) == (
        "GPU 0: process 50 of me (python train.py), 2 min old: 8000 MiB",
        "GPU 0: process 51 of root (python train.py), 2 min old: 300 MiB, hardly more than a context",
    )


class TestWithoutAGpu:
    def test_none_on_the_bus(self) -> None:
        snapshot = seen(FakeLive(library=False))
        assert snapshot.state is GpuState.NONE
        error = absence(snapshot)
        assert isinstance(error, NoGpu)
        assert "NVML (libnvidia-ml.so.1): not there" in error.details

    def test_no_driver(self) -> None:
        error = absence(seen(FakeLive(library=False), files=NVIDIA_CARD))
        assert isinstance(error, NoDriver)

    @pytest.mark.parametrize(
        ("code", "words", "name", "kind"),
        [
            (18, "Driver/library version mismatch", "gpu-driver-mismatch", DriverSilent),
            (9, "Driver Not Loaded", "gpu-driver-not-loaded", NoDriver),
            (4, "Insufficient Permissions", "gpu-no-permission", DriverSilent),
            (15, "GPU is lost", "gpu-lost", DriverSilent),
            (0, "no answer within 20 s", "gpu-driver-hangs", DriverSilent),
            (999, "Unknown Error", "gpu-driver-silent", DriverSilent),
        ],
    )
    def test_a_driver_that_does_not_answer(self, code: int, words: str, name: str, kind: type[Exception]) -> None:
        proc = {
            "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  575.57.08  Mon",
            "/dev/nvidiactl": "",
        }
        live = FakeLive(reading=Reading(library="libnvidia-ml.so.1", error=words, code=code))
        snapshot = seen(live, files={**NVIDIA_CARD, **proc})
        error = absence(snapshot)
        assert type(error) is kind
        assert [one.id for one in snapshot.findings] == [name]
        assert snapshot.findings[0].remedies

    def test_gpus_that_another_source_names(self) -> None:
        known = DriverAnswer(
            library="libcuda.so.1", devices=(Device(name="NVIDIA RTX A2000", memory_bytes=6 * GIB, uuid="GPU-1"),)
        )
        snapshot = seen(FakeLive(reading=Reading(error="Unknown Error", code=999)), nvml=known)
        assert absence(snapshot) is None
        assert [one.id for one in snapshot.findings] == ["gpu-figures-missing"]
        assert "NVIDIA RTX A2000" in shown(snapshot)
        assert "N/A of 6144 MiB" in shown(snapshot)

    def test_a_lost_gpu_among_others_is_told_and_not_given_out(self) -> None:
        snapshot = seen(FakeLive(card(0, error="GPU is lost"), card(1)))
        assert absence(snapshot) is None
        assert [one.id for one in snapshot.findings] == ["gpu-lost"]
        assert [gpu.free for gpu in snapshot.gpus] == [False, True]


def test_the_snapshot_goes_through_json() -> None:
    live = FakeLive(card(used=300 * MIB, listed=[listed(50, 300)]), processes=[process(50, uid=ME)])
    snapshot = seen(live)
    assert from_json(to_json(snapshot), Snapshot) == snapshot
