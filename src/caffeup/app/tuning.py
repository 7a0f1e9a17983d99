"""``caffeup net tune``: every convolution with the engine that is best for it, and what that gains."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

from caffeup.app.bench_run import Runner, find_device, find_site, work_folder
from caffeup.app.benching import LIMIT, Rounds, disturbances, switch
from caffeup.app.gpus import looking
from caffeup.app.layer_memory import layer_memory
from caffeup.app.nets import read_net_file, write_file
from caffeup.app.session import Session
from caffeup.bench.caffe_time import shown
from caffeup.bench.edits import batch_of, chosen, convolutions, with_batch
from caffeup.bench.medians import with_ratios
from caffeup.bench.tuning import WAYS, choices, is_training, notes, tuned
from caffeup.bench.variants import Ability, fitting, named, text_of
from caffeup.build.progress import Progress
from caffeup.disk import as_path
from caffeup.errors import CaffeupError, UsageError
from caffeup.live import Live
from caffeup.model.base import Value
from caffeup.model.bench import Row, Told, Tuned, TuneReport
from caffeup.net.marks import TUNED
from caffeup.net.model import Net, read_net
from caffeup.net.text import parse, printable

SUFFIX = "_tuned"
_GAIN = 0.99
"""A net that takes more than this part of its time from before is not faster."""


class TuneWish(Value, kw_only=True):
    """What is to be tuned, and for what."""

    net: str
    output: str = ""
    batch: Optional[int] = None
    """None: the net's own."""
    training: Optional[bool] = None
    """Whether backward counts too; None: where the net has a loss."""
    iterations: Optional[int] = None
    repeat: int = 3
    gpu: str = ""
    cpu: bool = False
    limit: float = LIMIT


class Done(Value, kw_only=True):
    """The net as it would be written, and what it gains."""

    data: bytes
    before: Optional[Row] = None
    after: Optional[Row] = None
    disturbed: tuple[str, ...] = ()
    ours: frozenset[int] = frozenset()
    """Processes that ran for it."""


def tune(session: Session, tree: str, wish: TuneWish, progress: Progress, live: Optional[Live] = None) -> TuneReport:
    """Measure, choose, measure what was chosen, and write it where that is faster."""
    began = time.monotonic()
    net, target = _read(wish), _target(wish)
    found = convolutions(net)
    if not found.depthwise and not found.others:
        raise UsageError(f"{printable(wish.net, 400)} has no convolution that can be computed in more than one way.")
    site = find_site(session, tree)
    batch = wish.batch or batch_of(net)
    training = is_training(net) if wish.training is None else wish.training
    with looking(session, live) as looker, work_folder() as folder:
        device = find_device(looker, site, gpu=wish.gpu, cpu=wish.cpu)
        can = site.ability(on_gpu=device.on_gpu)
        kept, left_out = fitting(named(WAYS), can, found)
        runner = Runner(session, site, device, looker.live, limit=wish.limit)
        before = disturbances(session, looker, device)
        rounds = Rounds(runner, folder, progress, repeat=wish.repeat, iterations=wish.iterations)
        for one in kept:
            row = Row(variant=one.id, title=one.title, batch=batch)
            rounds.add(row, text_of(net, found, one, can, batch), auto=switch(one))
        rows = rounds.go()
        if rounds.stopped:
            raise KeyboardInterrupt
        _require_one(rows)
        memory = layer_memory(session, site, device, folder, net, found, batch=batch, training=training)
        layers = tuned(net, found, rows, training=training, memory=memory)
        done = Done(data=net.document.data)
        if any(one.changed for one in layers):
            done = _gained(net, layers, can, runner, folder, progress, wish=wish, batch=batch, training=training)
        after = disturbances(session, looker, device, ours=rounds.ours | done.ours)
    written = _is_faster(done, training=training)
    if written:
        write_file(target, done.data, replace=False)
    return TuneReport(
        tree=str(site.root),
        net=wish.net,
        written=str(target) if written else "",
        device=device.name,
        batch=batch,
        training=training,
        layers=layers,
        left=tuple(Told(title=shown(layer.name), value="left as it is", because=why) for layer, why in found.left),
        ways=with_ratios(rows),
        before=done.before,
        after=done.after,
        left_out=left_out,
        disturbed=tuple(dict.fromkeys([*before, *after, *rounds.disturbed(rows), *done.disturbed])),
        seconds=time.monotonic() - began,
    )


def _read(wish: TuneWish) -> Net:
    net = read_net_file(wish.net)
    if TUNED in net.document.text:
        raise UsageError(
            f"{printable(wish.net, 400)} was tuned already.",
            advice="Take that back, and tune the net from before:",
            commands=("caffeup net revert NET.prototxt -o BEFORE.prototxt",),
        )
    return net


def _target(wish: TuneWish) -> Path:
    """Where to write; one that is there is found out before anything is measured."""
    path = as_path(wish.net)
    target = as_path(wish.output) if wish.output else path.with_name(f"{path.stem}{SUFFIX}{path.suffix}")
    if target.exists() or target.is_symlink():
        brief = f"{printable(str(target), 400)} is there already, and is not overwritten."
        raise UsageError(brief, advice="Give another file with -o, or remove it.")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"There is no folder {printable(str(target.parent), 400)}.")
    return target


def _require_one(rows: Sequence[Row]) -> None:
    if all(row.failed for row in rows):
        findings = next((row.findings for row in rows if row.findings), ())
        raise CaffeupError(
            "The net does not run in this tree in any way.",
            details="\n".join(f"{row.variant}: {row.failed}" for row in rows),
            findings=findings,
        )


def _gained(
    net: Net,
    layers: Sequence[Tuned],
    can: Ability,
    runner: Runner,
    folder: Path,
    progress: Progress,
    *,
    wish: TuneWish,
    batch: int,
    training: bool,
) -> Done:
    """The net with the chosen ways, measured against itself as it was."""
    edits = chosen(net, choices(net, layers, can.depthwise))
    edits += notes(net, layers, batch=batch, device=runner.device.name, training=training)
    data = net.document.edited(edits)
    rounds = Rounds(runner, folder, progress, repeat=wish.repeat, iterations=wish.iterations)
    for name, title, text in (("before", "as it was", net.document.data), ("tuned", "as it is tuned", data)):
        one = read_net(parse(text, wish.net))
        rounds.add(Row(variant=name, title=title, batch=batch), one.document.edited(with_batch(one, batch)))
    before, after = with_ratios(rounds.go())
    if rounds.stopped:
        raise KeyboardInterrupt
    disturbed = tuple(rounds.disturbed((before, after)))
    return Done(data=data, before=before, after=after, disturbed=disturbed, ours=rounds.ours)


def _is_faster(done: Done, *, training: bool) -> bool:
    """Whether the tuned net runs, and is faster; one that did not run at all before is slower than any."""
    if done.after is None or done.after.forward is None or done.after.total is None:
        return False
    if done.before is None or done.before.forward is None or done.before.total is None:
        return True
    before, after = (one.total if training else one.forward for one in (done.before, done.after))
    return after is not None and before is not None and after < _GAIN * before
