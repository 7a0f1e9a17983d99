"""Ending what holds a GPU: whom no signal reaches, and what one that does brings back."""

from __future__ import annotations

import signal
from typing import Any, Optional

import pytest

from caffeup.app.gpu_kill import end_processes
from caffeup.app.gpus import Looker
from caffeup.app.session import Session
from caffeup.gpu.end import told
from caffeup.gpu.words import came_back
from caffeup.model.gpus import Card, End, Killed, Kind, Reading
from fakelive import MIB, OWN_PID, FakeLive, PlainHost, card, listed, process

TERM, KILL = signal.SIGTERM, signal.SIGKILL


class Person:
    """Who is asked."""

    def __init__(self, *, agrees: bool = True) -> None:
        self.agrees = agrees
        self.said: list[str] = []
        self.asked: list[str] = []

    def say(self, text: str, commands: tuple[str, ...] = ()) -> None:
        self.said.append(text)

    def ask(self, question: str) -> bool:
        self.asked.append(question)
        return self.agrees


def ended(live: FakeLive, *pids: int, person: Optional[Person] = None, force: bool = False) -> Killed:
    ui: Any = person or Person()
    return end_processes(Looker(Session(PlainHost()), live), pids, ui, force=force, grace=10.0, pause=lambda _seconds: None)


def desk(**options: Any) -> FakeLive:
    return FakeLive(
        card(used=9000 * MIB, listed=[listed(50, 8000), listed(51, 500)]),
        processes=options.pop("processes", [process(50), process(51, uid=0, user="root", nodes=None)]),
        **options,
    )


def test_asked_shown_ended_and_what_came_back() -> None:
    live, person = desk(), Person()
    result = ended(live, 50, person=person)
    assert [(one.pid, one.end) for one in result.processes] == [(50, End.ENDED)]
    assert live.sent == [(50, TERM)]
    assert "process 50 of me, started 2 min ago: python train.py" in person.said[0]
    assert "GPU 0: 8000 MiB" in person.said[0]
    assert person.asked == ["End this process? What is not saved is lost."]
    assert list(came_back(result.memory)) == ["GPU 0: 8000 MiB came back (9000 MiB in use before, 1000 MiB now)"]
    assert all(grip.closed for grip in live.grips)


def test_one_that_does_not_heed_is_killed_after_its_time() -> None:
    live = desk(heeds={50: (KILL,)})
    result = ended(live, 50)
    assert live.sent == [(50, TERM), (50, KILL)]
    assert [one.end for one in result.processes] == [End.KILLED]
    assert any(seconds > 9 for _, seconds in live.waited)


def test_one_that_hangs_in_the_driver_stays_and_is_told() -> None:
    result = ended(desk(heeds={50: ()}), 50)
    assert [one.end for one in result.processes] == [End.STAYED]
    assert "inside the driver" in next(iter(told(result.processes)))
    assert result.memory == ()


def test_without_consent_nothing_is_sent() -> None:
    live = desk()
    result = ended(live, 50, person=Person(agrees=False))
    assert live.sent == []
    assert [one.end for one in result.processes] == [End.KEPT]


def refusal(live: FakeLive, pid: int, *, force: bool = False) -> str:
    person = Person()
    (one,) = ended(live, pid, person=person, force=force).processes
    assert one.end is End.REFUSED
    assert live.sent == []
    assert person.asked == []
    return one.because


class TestNeverTouched:
    def test_a_process_without_a_gpu(self) -> None:
        assert refusal(desk(processes=[process(60, nodes=())]), 60) == "it holds no GPU"
        assert refusal(desk(processes=[process(60, nodes=("/dev/nvidiactl",))]), 60, force=True) == "it holds no GPU"

    def test_another_users(self) -> None:
        assert "--force" in refusal(desk(), 51)

    def test_another_users_whose_files_nobody_may_see(self) -> None:
        assert "cannot be told" in refusal(desk(), 51, force=True)

    def test_a_number_of_the_machine_in_a_container(self) -> None:
        inside = FakeLive(card(used=9000 * MIB, listed=[listed(28290, 8000)]), own_pids=False)
        assert "outside this container" in refusal(inside, 28290)

    def test_a_process_here_that_has_the_number_of_one_outside(self) -> None:
        bash = process(28290, nodes=(), command="bash")
        inside = FakeLive(card(used=9000 * MIB, listed=[listed(28290, 8000)]), own_pids=False, processes=[bash])
        assert "the one here holds no GPU" in refusal(inside, 28290, force=True)

    def test_a_zombie(self) -> None:
        assert "its parent, process 49" in refusal(desk(processes=[process(50, state="Z", parent=49, nodes=())]), 50)

    def test_nobody(self) -> None:
        assert refusal(desk(), 999) == "there is no such process here"

    def test_caffeup_itself(self) -> None:
        assert refusal(desk(), OWN_PID) == "that is caffeup itself"

    def test_where_there_is_no_pidfd(self) -> None:
        assert "kill -TERM 50" in refusal(desk(pidfd=False), 50)

    def test_one_that_has_ended_while_it_was_looked_at(self) -> None:
        class Late(FakeLive):
            def process(self, pid: int) -> Any:
                found = super().process(pid)
                if self.grips and pid == 50 and pid in self.processes:
                    self.end(pid)  # its number may now be another's, and what /proc says of that one must not count
                return found

        live = Late(card(used=9000 * MIB, listed=[listed(50, 8000)]), processes=[process(50)])
        assert refusal(live, 50) == "it has ended by itself"


def test_force_ends_another_users_where_it_may() -> None:
    live = desk(processes=[process(51, uid=0, user="root")])
    assert [one.end for one in ended(live, 51, force=True).processes] == [End.ENDED]


def test_the_system_may_still_refuse() -> None:
    live = desk(processes=[process(51, uid=0, user="root")])
    live.forbidden.add(51)
    (one,) = ended(live, 51, force=True).processes
    assert (one.end, one.because) == (End.STAYED, "the system refused the signal: Operation not permitted")


def test_some_of_several() -> None:
    live = desk()
    result = ended(live, 50, 51, 50, 999)
    assert [(one.pid, one.end) for one in result.processes] == [(51, End.REFUSED), (999, End.REFUSED), (50, End.ENDED)]
    assert live.sent == [(50, TERM)]


def test_a_desktop_is_named_before_it_is_ended() -> None:
    person = Person(agrees=False)
    live = FakeLive(card(display_active=True, listed=[listed(50, 400, Kind.GRAPHICS)]), processes=[process(50)])
    ended(live, 50, person=person)
    assert "desktop" in person.said[0]


def test_a_driver_that_does_not_answer_bars_nothing() -> None:
    """The process that hangs it may have to go; which GPU it is on is not known then."""
    live = FakeLive(reading=Reading(error="Unknown Error", code=999), processes=[process(50)])
    result = ended(live, 50)
    assert [one.end for one in result.processes] == [End.ENDED]
    assert result.memory == ()


class Keeps(FakeLive):
    """A driver that gives no memory back."""

    def end(self, pid: int) -> None:
        del self.processes[pid]


@pytest.mark.parametrize(
    ("gpu", "words"),
    [
        (
            card(used=9000 * MIB, listed=[listed(50, 8000)]),
            "GPU 0: nothing came back (9000 MiB in use before, 9000 MiB now)",
        ),
        (Card(index=0, minor=0, listed=(listed(50, None),)), "GPU 0: the driver does not tell its memory"),
    ],
)
def test_memory_that_does_not_come_back_is_told(gpu: Card, words: str) -> None:
    assert list(came_back(ended(Keeps(gpu, processes=[process(50)]), 50).memory)) == [words]
