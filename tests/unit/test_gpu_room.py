"""Which GPU a program is given: free ones first, what others were promised left alone, CUDA_VISIBLE_DEVICES kept."""

from __future__ import annotations

from typing import Optional

import pytest

from caffeup.app.gpus import look
from caffeup.app.session import Session
from caffeup.gpu.promises import Promise, outstanding
from caffeup.gpu.room import all_rooms, choose, environment
from caffeup.gpu.size import parse_size
from caffeup.model.gpus import Card, Instance, Room, Snapshot
from fakelive import GIB, MIB, FakeLive, PlainHost, card, listed, process


def seen(*cards: Card, visible: Optional[str] = None, own_pids: bool = True, pids: tuple[int, ...] = ()) -> Snapshot:
    env = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    live = FakeLive(*cards, own_pids=own_pids, processes=[process(pid) for pid in pids])
    return look(Session(PlainHost(env=env)), live)


def chosen(snapshot: Snapshot, need: int = 0, promised: Optional[dict[str, int]] = None) -> Optional[str]:
    room = choose(all_rooms(snapshot), need, promised).room
    return room.label if room is not None else None


BUSY = card(0, used=20 * GIB, listed=[listed(50, 20 * 1024)])


def test_one_that_nobody_computes_on_comes_first() -> None:
    assert chosen(seen(BUSY, card(1))) == "1"
    assert chosen(seen(card(0), card(1, used=2 * GIB, total=80 * GIB, listed=[listed(50, 2048)])), 4 * GIB) == "0"
    assert chosen(seen(BUSY)) is None


def test_with_a_need_others_may_be_on_it() -> None:
    assert chosen(seen(BUSY), 3 * GIB) == "0"
    choice = choose(all_rooms(seen(BUSY)), 10 * GIB)
    assert choice.room is None
    assert choice.against == (("0", "4096 MiB free"),)


def test_the_one_with_most_memory_then_the_lowest() -> None:
    assert chosen(seen(card(0), card(1, total=80 * GIB)), GIB) == "1"
    assert chosen(seen(card(0), card(1)), GIB) == "0"


@pytest.mark.parametrize("mode", ["prohibited", "exclusive-process"])
def test_the_compute_mode_is_kept(mode: str) -> None:
    assert chosen(seen(card(0, compute_mode=mode, used=GIB, listed=[listed(50, 1024)])), GIB) is None
    assert chosen(seen(card(0, compute_mode=mode)), GIB) == (None if mode == "prohibited" else "0")


def test_memory_that_the_card_does_not_tell_is_not_taken_for_free() -> None:
    unknown = Card(index=0, memory_total=24 * GIB)
    assert chosen(seen(unknown), GIB) is None
    assert chosen(seen(unknown)) == "0"


@pytest.mark.parametrize(
    ("setting", "label"),
    [
        ("1", "1"), ("1,0", "0"), ("0", "0"), ("", None), ("-1", None), ("7", None), ("1,7,0", "1"), ("GPU-00000001", "1"),
        (" 1 ", "1"), ("nonsense", None), ("NoDevFiles", None), (None, "0"),
    ],
)  # fmt: skip
def test_what_cuda_visible_devices_hides_is_not_given_out(setting: Optional[str], label: Optional[str]) -> None:
    assert chosen(seen(card(0), card(1), visible=setting)) == label


def test_parts_of_a_divided_gpu() -> None:
    def part(index: int, free: int) -> Instance:
        return Instance(
            index=index, uuid=f"MIG-{index}", gpu_instance=index + 1, compute_instance=0, memory_total=20 * GIB, memory_used=20 * GIB - free, memory_free=free
        )  # fmt: skip

    divided = card(0, mig=True, instances=(part(0, 20 * GIB), part(1, 20 * GIB)))
    assert chosen(seen(divided), 30 * GIB) is None, "a program never gets two parts"
    assert chosen(seen(divided), 10 * GIB) == "0:0"
    assert chosen(seen(divided, visible="MIG-1"), 10 * GIB) == "0:1"
    room = choose(all_rooms(seen(divided, visible="MIG-1")), GIB).room
    assert room is not None
    assert environment(room) == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "MIG-1"}


def test_the_environment_names_the_gpu_for_good() -> None:
    by_uuid = Room(index=1, uuid="GPU-00000001", name="x")
    assert environment(by_uuid)["CUDA_VISIBLE_DEVICES"] == "GPU-00000001"
    assert environment(Room(index=1, uuid="", name="x")) == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1"}


class TestPromises:
    @staticmethod
    def promise(size: int, pid: int = 500, used_then: int = 0) -> Promise:
        return Promise(pid=pid, started=1, key="GPU-00000000", bytes=size, used_then=used_then)

    def test_what_was_promised_and_not_taken_is_left_alone(self) -> None:
        snapshot = seen(card(0, total=24 * GIB))
        left = outstanding([self.promise(16 * GIB)], snapshot.gpus, {})
        assert left == {"GPU-00000000": 16 * GIB}
        assert chosen(snapshot, 10 * GIB, left) is None
        assert chosen(snapshot, 8 * GIB, left) == "0"
        assert chosen(snapshot, 0, left) is None

    def test_what_its_program_has_taken_counts_once(self) -> None:
        """The program may be a child of the promise's process: a shell that starts python."""
        snapshot = seen(card(0, total=24 * GIB, used=15 * GIB, listed=[listed(502, 15 * 1024)]), pids=(502,))
        left = outstanding([self.promise(16 * GIB)], snapshot.gpus, {502: frozenset({501, 500})})
        assert left == {"GPU-00000000": 1 * GIB}
        other = outstanding([self.promise(16 * GIB)], snapshot.gpus, {502: frozenset({3})})
        assert other == {"GPU-00000000": 16 * GIB}, "another's memory is not its own"

    def test_in_a_container_growth_since_then_counts(self) -> None:
        snapshot = seen(card(0, total=24 * GIB, used=15 * GIB, listed=[listed(99999, 14 * 1024)]), own_pids=False)
        left = outstanding([self.promise(16 * GIB, used_then=1 * GIB)], snapshot.gpus, {})
        assert left == {"GPU-00000000": 2 * GIB}

    def test_a_gpu_that_is_no_longer_there(self) -> None:
        assert outstanding([Promise(pid=1, started=1, key="GPU-gone", bytes=1)], seen(card(0)).gpus, {}) == {}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4GiB", 4 * GIB),
        ("4G", 4 * GIB),
        ("1500MiB", 1500 * MIB),
        ("1.5 GiB", 3 * GIB // 2),
        ("4GB", 4 * 10**9),
        ("512m", 512 * MIB),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "4", "GiB", "-4GiB", "0GiB", "4 apples", "1e3GiB", "99999999TiB", "4GiB\n4", "٤GiB"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size(text)
