"""``caffeup gpu run``: choose a GPU with room, promise it to the program, and become that program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Callable, Optional

from caffeup.app.gpu_promises import folder, keep, load, locked
from caffeup.app.gpus import Looker, find_room
from caffeup.errors import CaffeupError, CannotRun, NotFound
from caffeup.gpu.promises import Ancestors, Promise, key_of, outstanding
from caffeup.gpu.room import Choice, all_rooms, choose, environment
from caffeup.live import Live
from caffeup.model.gpus import Room, Snapshot

WHOLE = 1 << 50
"""Where no need is named, the program gets a free GPU to itself."""
_DEPTH = 64


def choose_with_promises(looker: Looker, snapshot: Snapshot, need: int) -> Choice:
    """Leaves alone what other runs were given and have not taken yet."""
    promises = load(folder(looker.env), looker.live)
    return choose(all_rooms(snapshot), need, outstanding(promises, snapshot.gpus, ancestors(looker.live, snapshot)))


def promised_room(
    looker: Looker,
    need: int,
    *,
    wait: bool = False,
    timeout: Optional[float] = None,
    tell: Callable[[str], None] = lambda _text: None,
) -> Room:
    """A room that is promised to this process, whatever program it becomes; raise ``NoRoom`` and what ``absence`` says."""
    home = folder(looker.env)

    def choosing(snapshot: Snapshot) -> Choice:
        with locked(home):
            again = looker.look()  # while another chose, the memory of a third may have been taken
            choice = choose_with_promises(looker, again if again.gpus else snapshot, need)
            own = looker.live.process(looker.live.pid)
            if choice.room is not None and own is not None:
                keep(home, _promise(choice.room, need, own.pid, own.started))
            return choice

    return find_room(looker, need, wait=wait, timeout=timeout, choosing=choosing, tell=tell)


def _promise(room: Room, need: int, pid: int, started: int) -> Promise:
    used = (room.memory_total or 0) - (room.memory_free or 0)
    return Promise(pid=pid, started=started, key=key_of(room), bytes=need or room.memory_total or WHOLE, used_then=used)


def ancestors(live: Live, snapshot: Snapshot) -> Ancestors:
    """Of each process on a GPU that can be seen here."""
    found: dict[int, frozenset[int]] = {}
    for process in (use.process for gpu in snapshot.gpus for use in gpu.uses if use.process is not None):
        line: list[int] = []
        parent = process.parent
        while parent > 1 and parent not in line and len(line) < _DEPTH:
            line.append(parent)
            above = live.process(parent)
            parent = above.parent if above is not None else 0
        found[process.pid] = frozenset(line)
    return found


def run_on(room: Room, command: tuple[str, ...], env: Mapping[str, str], become: Callable[..., None]) -> CaffeupError:
    """Become the command, which then has its GPU; comes back only where it cannot be started, with the reason."""
    try:
        become(command, {**env, **environment(room)})
    except FileNotFoundError:
        return NotFound(f"There is no command {command[0]}.")
    except (OSError, ValueError) as error:
        return CannotRun(f"{command[0]} cannot be run: {getattr(error, 'strerror', None) or error}.")
    return CannotRun(f"{command[0]} cannot be run.")
