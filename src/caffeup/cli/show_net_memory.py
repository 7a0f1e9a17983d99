"""What a net takes, as text for people."""

from __future__ import annotations

from collections.abc import Iterator

from caffeup.app.net_memory import MOST_IMAGES
from caffeup.cli import show
from caffeup.model.net_model import LayerMemory, MemoryReport, PhaseMemory

_LARGEST = 5
_NAMED = 5


def memory(value: MemoryReport, *, every: bool) -> Iterator[str]:
    """A net in each phase, and whether it fits."""
    for phase in value.phases:
        yield from _phase(phase, every=every)
    if value.history:
        yield f"solver {value.solver}: {show.size(value.history)} of history"
    yield f"on a GPU: {show.size(value.total)}, of which {show.size(value.reserved)} for CUDA and cuDNN"
    yield from _fit(value)


def _phase(phase: PhaseMemory, *, every: bool) -> Iterator[str]:
    at = f", batch {phase.batch}" if phase.batch else ""
    yield f"{phase.phase}{at}: Memory required for data: {phase.caffe_says}"
    parts = (
        ("blobs", phase.data),
        ("their gradients", phase.diffs),
        ("weights", phase.params),
        ("their gradients", phase.param_diffs),
        ("workspaces", phase.workspace),
    )
    yield f"  {show.size(phase.total)}: " + ", ".join(f"{name} {show.size(many)}" for name, many in parts if many)
    for line in phase.assumed:
        yield f"  assumed for {line}"
    for line in phase.uncounted[:_NAMED]:
        yield f"  NOT counted: {line}"
    if len(phase.uncounted) > _NAMED:
        yield f"  NOT counted: {len(phase.uncounted) - _NAMED} more"
    if phase.uncounted:
        yield "  A shape that is missing can be given, --shape BLOB=64,3,28,28, or asked of a built tree, --tree DIR."
    largest = sorted(phase.layers, key=lambda layer: -layer.total)[:_LARGEST]
    yield from show.table([_row(layer) for layer in (phase.layers if every else largest)], indent=4)


def _row(layer: LayerMemory) -> tuple[str, ...]:
    parts = (("gradients", layer.diffs), ("weights", layer.params), ("workspace", layer.workspace))
    more = "".join(f", {name} {show.size(many)}" for name, many in parts if many)
    return (layer.name, layer.type, f"{show.size(layer.total)}: {' '.join(layer.tops) or 'no top'}{more}")


def _fit(value: MemoryReport) -> Iterator[str]:
    fit = value.fit
    if fit is None:
        yield f"{value.no_gpu} Whether it fits is said with --free 8GiB."
        return
    whole = not any(phase.uncounted for phase in value.phases)
    verdict = "does NOT fit" if not fit.fits else "fits" if whole else "fits as far as it is counted"
    yield f"{fit.where}: {show.size(fit.free)} free, it {verdict}"
    if fit.largest_batch:
        yield f"largest batch that fits: {fit.largest_batch}{' or more' if fit.largest_batch == MOST_IMAGES else ''}"
    elif fit.largest_batch == 0:
        yield "not even one image at a time fits"
    else:
        yield f"another batch is not possible: {fit.because}"
