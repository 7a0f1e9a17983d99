"""What was measured, as text for people."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from caffeup.bench.medians import by_name, slowest
from caffeup.bench.words import gpu_words, ms, runs_words
from caffeup.cli import show
from caffeup.errors import UsageError
from caffeup.gpu.words import mib
from caffeup.model.bench import BenchReport, DemoReport, Row, Tuned, TuneReport
from caffeup.net.text import printable

_LAYERS = 12
_NAME = 24
_BOXES = 10
_MOST = 1 << 20


def batches(text: str) -> tuple[int, ...]:
    """``1,32`` as numbers."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if any(not (word.isascii() and word.isdigit()) or not 0 < int(word[:9]) <= _MOST for word in words):
        raise UsageError(f"{printable(text)!r} is no list of batch sizes.", advice="Write it as 1,32.")
    return tuple(dict.fromkeys(int(word) for word in words))


def phase(text: str) -> str:
    """``TRAIN``, ``TEST``, or nothing."""
    if text.upper() not in {"", "TRAIN", "TEST"}:
        raise UsageError(f"There is no phase {printable(text)!r}.", advice="Give train or test.")
    return text.upper()


def report(value: BenchReport, *, every: bool = False, page: str = "") -> Iterator[str]:
    """The tables of a bench: whole nets, then layers, for each batch size."""
    runs = runs_words(value)
    name = f" ({value.name})" if value.name else ""
    yield f"{value.net or 'a net made for this'}{name} on {value.device}; milliseconds a pass, {runs}"
    for batch in dict.fromkeys(row.batch for row in value.rows):
        rows = [row for row in value.rows if row.batch == batch]
        yield ""
        yield f"batch {batch}"
        yield from _whole(rows)
        yield from _layers([row for row in rows if row.layers], every=every, depthwise=value.depthwise)
    yield from _notes(value)
    if page:
        yield f"page: {page}"


def _whole(rows: Sequence[Row]) -> Iterator[str]:
    room = max(len(row.variant) for row in rows)
    yield f"  {'':<{room}} {'forward':>10} {'backward':>10} {'to first':>9} {'memory':>10}  depthwise layers"
    for row in rows:
        if row.forward is None or row.backward is None:
            yield f"  {row.variant:<{room}} failed: {row.failed}"
            continue
        ratio = "" if row.ratio is None else f"{row.ratio:.3f}" if row.ratio < 0.1 else f"{row.ratio:.2f}"
        memory = "?" if row.memory_bytes is None else mib(row.memory_bytes)
        inside = f"{ms(row.depthwise_forward)} + {ms(row.depthwise_backward)}" if row.depthwise_forward else ""
        yield f"  {row.variant:<{room}} {ms(row.forward):>10} {ms(row.backward):>10} {ratio:>9} {memory:>10}  {inside}".rstrip()
    for row in rows:
        if row.gpu is not None and row.forward is not None:
            yield f"  {row.variant}: {gpu_words(row)}"
            break
    yield from show.findings({finding.id: finding for row in rows for finding in row.findings}.values())


def _layers(rows: Sequence[Row], *, every: bool, depthwise: Sequence[str]) -> Iterator[str]:
    if not rows:
        return
    found = [by_name(row.layers) for row in rows]
    names = [layer.name for layer in rows[0].layers] if every else list(slowest(rows, _LAYERS))
    heads = [f"{row.variant:>16}" for row in rows]
    title = "all layers" if every else "the slowest layers"
    yield ""
    yield f"  {title + ', forward + backward':<{_NAME + 2}}{''.join(heads)}"
    for name in dict.fromkeys(names):
        cells = []
        for layers in found:
            layer = layers.get(name)
            cells.append(f"{'-' if layer is None else f'{ms(layer.forward)} + {ms(layer.backward)}':>16}")
        mark = "*" if name in depthwise else " "
        yield f"  {mark}{printable(name, _NAME):<{_NAME}} {''.join(cells)}"
    if set(names) & set(depthwise):
        yield "  * depthwise"


def tuned(value: TuneReport) -> Iterator[str]:
    """What was measured of each convolution, what was chosen, and what it gains."""
    what = "forward + backward" if value.training else "forward"
    if any(seen.memory_bytes is not None for one in value.layers for seen in one.candidates):
        what += ", / MiB of the layer alone"
    yield f"{value.net} on {value.device}, batch {value.batch}; milliseconds {what}"
    ways = list(dict.fromkeys(candidate.way for one in value.layers for candidate in one.candidates))
    if value.layers:
        yield f"  {'':<{_NAME}} {'':>9}{''.join(f'{way:>12}' for way in ways)}  choice"
    for one in value.layers:
        yield _tuned_line(one, ways, training=value.training)
    yield ""
    yield from _whole(value.ways)
    yield from (f"  {one.title}: {one.because}" for one in value.left)
    yield from _notes(value)
    yield ""
    yield from _gain(value)


def _tuned_line(one: Tuned, ways: Sequence[str], *, training: bool) -> str:
    times = {seen.way: seen.forward + seen.backward if training else seen.forward for seen in one.candidates}
    sizes = {seen.way: f"/{seen.memory_bytes >> 20}" for seen in one.candidates if seen.memory_bytes is not None}
    cells = "".join(f"{ms(times[way]) + sizes.get(way, '') if way in times else '-':>12}" for way in ways)
    choice = f"{one.before} → {one.winner}" if one.changed else one.winner
    return f"  {printable(one.layer, _NAME):<{_NAME}} {one.kind:>9}{cells}  {choice}"


def _gain(value: TuneReport) -> Iterator[str]:
    changed = sum(one.changed for one in value.layers)
    if not changed:
        best, one = "every convolution is computed in its best way", "no convolution can be computed in more than one way here"
        yield f"Nothing to change: {best if value.layers else one}. No file was written."
        return
    rows = [row for row in (value.before, value.after) if row is not None]
    yield "the whole net"
    yield from _whole(rows)
    if value.written:
        layers = f"{changed} convolution{'s' if changed != 1 else ''}"
        yield f"{value.written}: {layers} computed in another way; every other byte as in {value.net}"
    else:
        yield "The whole net is not faster with it: no file was written."


def _notes(value: BenchReport | TuneReport) -> Iterator[str]:
    if value.left_out:
        yield ""
        yield "not measured"
        yield from show.table([(one.title, one.because) for one in value.left_out])
    if value.disturbed:
        yield ""
        yield "disturbed"
        yield from (f"  {line}" for line in value.disturbed)


def seen(value: DemoReport) -> Iterator[str]:
    """What was seen in each image, and how long it took."""
    yield f"{value.net} on {value.device}"
    if not value.model:
        yield "no model: the weights are random, so the times are right and the boxes mean nothing"
    for one in value.seen:
        yield ""
        if one.failed:
            yield f"{printable(one.image, 400)}: {one.failed}"
            continue
        yield f"{printable(one.image, 400)}, {one.width} x {one.height}: {_passes(one.milliseconds)}"
        yield from (
            f"  {box.score:4.0%}  {printable(box.label)}  at {box.left:.0f}, {box.top:.0f} to {box.right:.0f}, {box.bottom:.0f}"
            for box in one.boxes[:_BOXES]
        )
        if len(one.boxes) > _BOXES:
            yield f"        and {len(one.boxes) - _BOXES} more"
        if not one.boxes:
            yield f"  nothing with a score of {value.threshold:.0%} or more"
        yield f"  {printable(one.written, 400)}"


def _passes(times: Sequence[float]) -> str:
    first, *others = times
    if not others:
        return f"a forward pass takes {ms(first)} ms"
    return (
        f"a forward pass takes {ms(statistics.median(others))} ms ({ms(min(others))} to {ms(max(others))}), the first {ms(first)}"
    )
