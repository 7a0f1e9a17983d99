"""What a net takes, and whether a GPU has room for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Optional

import msgspec

from caffeup.app.gpus import absence, looking
from caffeup.app.net_compare import shapes_by_caffe
from caffeup.app.netdata import data_of
from caffeup.app.nets import read_document
from caffeup.app.session import Session
from caffeup.disk import as_path
from caffeup.errors import UsageError
from caffeup.gpu.room import CONTEXT_BYTES, all_rooms
from caffeup.gpu.size import parse_size
from caffeup.model.gpus import Room
from caffeup.model.net_model import MemoryFit, MemoryReport, PhaseMemory
from caffeup.net.memory import phase_memory, shapes_at
from caffeup.net.model import LOSSES, Net, State, filtered, read_net
from caffeup.net.rules.base import Datum, Shape
from caffeup.net.shapes import LayerShapes
from caffeup.net.text import Document, printable
from caffeup.net.wiring import phases
from caffeup.net.workspace import SOLVERS, largest_that, solver_named

CUDNN_WORKSPACE = 256 << 20
"""The most that the convolution through cuDNN takes, for all layers together."""
MOST_IMAGES = 65_536
"""Batches are looked for up to here."""


class Asked(NamedTuple):
    """What a person wants to know."""

    batch: Optional[int] = None
    shapes: Optional[Mapping[str, Shape]] = None
    solver: str = ""
    tree: str = ""
    gpu: str = ""
    free: str = ""
    cudnn: bool = True
    phase: str = ""


class _Phase(NamedTuple):
    """A net in a phase, with all that its shapes follow from."""

    net: Net
    state: State
    given: Mapping[str, Shape]
    data: Mapping[str, Datum]

    def at(self, batch: Optional[int]) -> tuple[LayerShapes, ...]:
        return shapes_at(self.net, self.state, batch=batch, given=self.given, data=self.data)


def measure(name: str, asked: Asked) -> MemoryReport:
    """What a net, or the nets of a solver, take; ``UsageError`` where Caffe would stop before it takes anything."""
    session = Session()
    document = read_document(name)
    solver, nets = _nets(document, asked.solver)
    chosen = [_phase(net, state, asked, session) for net in nets for state in _states(net, asked.phase)]
    if not chosen:
        raise UsageError(f"{document.name} has no data for {asked.phase or 'any phase'}.")
    for one in chosen:
        _require_whole(one, asked.batch)
    solver = solver or ("SGD" if _learns(chosen) else "")
    report = _report(name, chosen, asked.batch, solver, asked)
    return _fitted(report, chosen, solver, asked, session)


def _nets(document: Document, solver: str) -> tuple[str, list[Net]]:
    """The nets, and the solver's type where one is known."""
    named = solver_named(solver) if solver else ""
    if named is None:
        raise UsageError(f"There is no solver {printable(solver)!r}.", advice=f"Give one of {', '.join(SOLVERS)}.")
    root = document.root
    if root.has("layer") or root.has("layers") or not any(map(root.has, ("net", "train_net", "base_lr"))):
        return named, [read_net(document)]
    own = solver_named(root.string("type") or root.string("solver_type") or "SGD") or "SGD"
    paths = [root.string("net"), root.string("train_net"), *root.strings("test_net")]
    if not any(paths):
        raise UsageError(f"{document.name} is a solver and names no net.")
    return named or own, [read_net(read_document(_found(path, document.name))) for path in paths if path]


def _states(net: Net, phase: str) -> tuple[State, ...]:
    """The phases that a net is for; one with a loss and without rules is one to train."""
    found = phases(net)
    train = filtered(net, net.state("TRAIN"))
    if len(found) == 1 and not phase and any(layer.type in LOSSES for layer in train):
        return (net.state("TRAIN"),)
    if not phase:
        return found
    state = net.state(phase)
    fed = net.inputs or any(layer.tops and not layer.bottoms for layer in filtered(net, state))
    return (state,) if fed else ()


def _found(path: str, solver: str) -> str:
    """A net that a solver names: from the current folder as Caffe looks, else from the solver's folder and those above it."""
    beside = as_path(solver).absolute().parent
    for folder in (Path(), beside, *list(beside.parents)[:6]):
        try:
            if (folder / path).is_file():
                return str(folder / path)
        except (OSError, ValueError):
            continue
    return path


def _phase(net: Net, state: State, asked: Asked, session: Session) -> _Phase:
    layers = filtered(net, state)
    one = _Phase(net, state, asked.shapes or {}, data_of(layers))
    if not asked.tree or all(None not in each.tops for each in one.at(None)):
        return one
    by_caffe = shapes_by_caffe(session, asked.tree, net.document.name, state.phase)
    unknown = {name for each in one.at(None) for name, top in zip(each.layer.tops, each.tops) if top is None}
    return one._replace(given={**{name: by_caffe[name] for name in unknown if name in by_caffe}, **one.given})


def _require_whole(one: _Phase, batch: Optional[int]) -> None:
    """``UsageError`` where Caffe stops; a net can be right and not take another batch."""
    wrong = next((each for each in one.at(batch) if each.trouble and each.trouble.wrong), None)
    if wrong is None or wrong.trouble is None:
        return
    where = f"layer {printable(wrong.layer.name)} ({wrong.layer.type}): {wrong.trouble.what}"
    if batch is not None and not any(each.trouble and each.trouble.wrong for each in one.at(None)):
        raise UsageError(f"{one.net.document.name} does not take a batch of {batch}.", details=where)
    raise UsageError(
        f"Caffe does not set up {one.net.document.name} in phase {one.state.phase}.",
        details=f"{where}\n{one.net.document.evidence(wrong.layer.start)}",
        commands=(f"caffeup net check {one.net.document.name}",),
    )


def _learns(chosen: Sequence[_Phase]) -> bool:
    return any(one.state.phase == "TRAIN" for one in chosen)


def _report(name: str, chosen: Sequence[_Phase], batch: Optional[int], solver: str, asked: Asked) -> MemoryReport:
    found = tuple(
        phase_memory(
            one.at(batch),
            one.state,
            force_backward=one.net.document.root.flag("force_backward"),
            cudnn=asked.cudnn,
        )
        for one in chosen
    )
    history = _history(found, solver)
    reserved = CONTEXT_BYTES + (CUDNN_WORKSPACE if asked.cudnn else 0)
    return MemoryReport(
        source=name, phases=found, solver=solver, history=history, reserved=reserved, total=_total(found) + history + reserved
    )


def _history(found: Sequence[PhaseMemory], solver: str) -> int:
    trained = next((one for one in found if one.phase == "TRAIN"), None)
    return trained.params * SOLVERS[solver] if trained is not None and solver else 0


def _total(found: Sequence[PhaseMemory]) -> int:
    """A solver holds the nets of both phases, which share their weights."""
    return sum(one.total for one in found) - sum(one.params for one in found) + max(one.params for one in found)


def _fitted(report: MemoryReport, chosen: Sequence[_Phase], solver: str, asked: Asked, session: Session) -> MemoryReport:
    """The report with whether it fits in what is free."""
    where, free, why = _free(asked, session)
    if free is None:
        return msgspec.structs.replace(report, no_gpu=why)
    largest, because = None, ""
    if any(one.uncounted for one in report.phases):
        because = "not all of its layers are known"
    else:
        largest, because = _largest(chosen, report, solver, asked, free)
    fit = MemoryFit(where=where, free=free, fits=report.total <= free, largest_batch=largest, because=because)
    return msgspec.structs.replace(report, fit=fit)


def _largest(chosen: Sequence[_Phase], report: MemoryReport, solver: str, asked: Asked, free: int) -> tuple[Optional[int], str]:
    """The largest batch that fits, or why the net takes no other."""
    batch = max(one.batch for one in report.phases)
    if not batch:
        return None, "no input tells how many images it takes"
    for one in chosen:
        tried = next((each for each in one.at(batch + 1) if each.trouble), None)
        if tried is not None and tried.trouble is not None:
            return None, f"{tried.layer.name}: {tried.trouble.what}"

    def fits(many: int) -> bool:
        if any(each.trouble for one in chosen for each in one.at(many)):
            return False  # more elements than Caffe can count
        return _report(report.source, chosen, many, solver, asked).total <= free

    return largest_that(fits, MOST_IMAGES), ""


def _free(asked: Asked, session: Session) -> tuple[str, Optional[int], str]:
    """Where the net is to go, how much is free there, or why that is not known."""
    if asked.free:
        try:
            return "as given", parse_size(asked.free), ""
        except ValueError as error:
            raise UsageError(f"{error}.") from error
    with looking(session) as looker:
        snapshot = looker.look()
    absent = absence(snapshot)
    if absent is not None:
        if asked.gpu:
            raise absent
        return "", None, absent.brief
    rooms = all_rooms(snapshot)
    room = room_of(rooms, asked.gpu)
    return f"GPU {room.label} ({room.name})", room.memory_free, f"GPU {room.label} does not tell how much memory is free."


def room_of(rooms: Sequence[Room], wanted: str) -> Room:
    """The GPU, or the part of one, that is meant: the one named, else the one with most room."""
    if not wanted:
        return max(rooms, key=lambda room: (not room.hidden and not room.barred, room.memory_free or 0))
    found = next((room for room in rooms if room.label == wanted), None)
    if found is None:
        raise UsageError(f"There is no GPU {printable(wanted)}.", advice=f"There is {', '.join(room.label for room in rooms)}.")
    return found
