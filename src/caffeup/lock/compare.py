"""Two locks, or a lock and this machine: every difference at once, and what follows from it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional

from packaging.version import InvalidVersion, Version

from caffeup.lock.text import flat
from caffeup.model.base import ComputeCapability
from caffeup.model.lock import BUILT, NEEDS, Difference, Lock
from caffeup.model.machine import Machine

_MEANS = {
    "tree.content": "the sources are others",
    "tree.commit": "another commit of the tree",
    "tools.compiler": "everything is compiled and linked anew",
    "tools.cuda": "GPU code is compiled anew, and all that was compiled with its headers; a newer one may drop older GPUs",
    "tools.cudnn": "what includes cudnn.h is compiled anew; another first number needs other shims",
    "tools.protoc": "caffe.pb is made anew, and nearly everything includes it",
    "tools.python": "pycaffe is built anew",
    "tools.numpy": "pycaffe is built anew; a module made with numpy 1 does not load in numpy 2",
    "tools.glibc": "what is built may not start where the C library is older",
    "tree.fork": "another Caffe",
}
_OF_TABLE = {
    "packages": "the distribution has another edition of it: other bytes, mostly the same behaviour",
    "libraries": "what includes its headers is compiled anew",
    "patches": "caffeup puts something else into the tree",
    "settings": "Makefile.config is another",
    BUILT: "other bytes",
}


def differences(first: Lock, second: Lock, *, needs: bool = True) -> tuple[Difference, ...]:
    """Every key that they do not share. ``built`` counts only where both were built."""
    one, other = flat(first), flat(second)
    found = []
    for key in dict.fromkeys((*one, *other)):
        table = key.partition(".")[0]
        if one.get(key) == other.get(key) or (table == NEEDS and not needs):
            continue
        if table == BUILT and not (first.built and second.built):
            continue
        found.append(
            Difference(
                key=key, locked=one.get(key, ""), here=other.get(key, ""), means=_MEANS.get(key) or _OF_TABLE.get(table, "")
            )
        )
    return tuple(found)


def unmet(lock: Lock, machine: Machine) -> tuple[Difference, ...]:
    """What the lock needs of a machine and this one does not give: at least that driver, a GPU that its code runs on."""
    found = []
    wanted = lock.needs.get("driver", "")
    driver = machine.graphics.driver
    if wanted and driver is not None and driver.release is not None and driver.release < (_version(wanted) or driver.release):
        means = f"CUDA {lock.tools.get('cuda', '')} needs a newer driver: what is built would not start"
        found.append(Difference(key="needs.driver", locked=f"{wanted} or newer", here=str(driver.release), means=means))
    codes = lock.needs.get("gpus", "")
    cards = [one.compute_capability for one in machine.graphics.gpus if one.compute_capability is not None]
    if codes and cards and not any(_runs(codes, card) for card in cards):
        here = ", ".join(dict.fromkeys(map(str, cards)))
        found.append(Difference(key="needs.gpus", locked=codes, here=here, means="no GPU here runs the code that the lock has"))
    return tuple(found)


def other_machine(lock: Lock, machine: Machine) -> str:
    """Why this lock can never be built on this kind of machine; empty: it can."""
    arch = lock.needs.get("arch", "")
    return f"it is for {arch}, and this machine is {machine.system.arch}" if arch != machine.system.arch else ""


def allowed(key: str, allow: Iterable[str]) -> bool:
    """Whether a difference was accepted: its key, or its whole table."""
    return any(key == one or key.startswith(f"{one}.") for one in allow)


def unused(allow: Iterable[str], *locks: Lock) -> tuple[str, ...]:
    """Accepted keys that are in no lock: misspelt."""
    keys = {key for lock in locks for key in flat(lock)}
    keys |= {"needs.driver", "needs.gpus"}
    known = keys | {key.partition(".")[0] for key in keys} | {BUILT}
    return tuple(one for one in allow if one not in known and not one.startswith(f"{BUILT}."))


def lines(found: Iterable[Difference], first: str = "in the lock", second: str = "here") -> tuple[str, ...]:
    """In words, one a line; what a difference means is said once."""
    said: set[str] = set()
    told = []
    for one in found:
        means = f" ({one.means})" if one.means and one.means not in said else ""
        said.add(one.means)
        told.append(f"{one.key}: {_short(one.locked)} {first}, {_short(one.here)} {second}{means}")
    return tuple(told)


def _short(value: str) -> str:
    if not value:
        return "nothing"
    return f"{value[:19]}…" if value.startswith("sha256:") else value


def _runs(codes: str, card: ComputeCapability) -> bool:
    for code in codes.split(", "):
        try:
            made = ComputeCapability.parse(code.removesuffix("+PTX"))
        except ValueError:
            continue
        if code.endswith("+PTX") and made <= card:
            return True
        if made.major == card.major and made.minor <= card.minor:
            return True
    return False


def _version(text: str) -> Optional[Version]:
    try:
        return Version(text)
    except InvalidVersion:
        return None
