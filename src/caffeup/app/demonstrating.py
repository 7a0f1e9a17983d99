"""``caffeup demo``: objects found in images by a built tree's own pycaffe."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

import msgspec

from caffeup.app.bench_run import Device, Site, find_device, find_site
from caffeup.app.gpus import looking
from caffeup.app.nets import read_document, read_net_file
from caffeup.app.session import Session
from caffeup.app.treework import environment as tree_environment
from caffeup.bench.seeing import RUN, VOC
from caffeup.bench.trunk import CLASSES, default_net
from caffeup.diagnose.diagnose import diagnose
from caffeup.diagnose.read import read
from caffeup.disk import as_path, read_plain
from caffeup.errors import NotBuilt, UsageError, VerifyFailed
from caffeup.gpu.room import environment as room_environment
from caffeup.live import Live
from caffeup.model.base import Value
from caffeup.model.bench import Box, DemoReport, Seen
from caffeup.net.model import Net, read_net
from caffeup.net.text import parse, printable
from caffeup.stream import Captured, run_capture

_MARK = "caffeup:"
_SECONDS = 1800.0
_SUFFIX = "_detected.png"
_TEST_PICTURE = "test picture"
_DETECTION = "DetectionOutput"
_MOBILENET = ((127.5, 127.5, 127.5), 0.007843)
_VGG = ((104.0, 117.0, 123.0), 1.0)
"""What is taken off each channel (blue, green, red), and by what the rest is multiplied: as these nets were trained."""
_MOST_LABELS = 4 << 20
WITH_MODEL, BY_CHANCE = 0.3, 0.05
_MOST, _MOST_BY_CHANCE = 200, 5
"""Boxes an image."""


class DemoWish(Value, kw_only=True):
    """What is to be looked at, and with what."""

    images: tuple[str, ...] = ()
    """Empty: a picture that is made for it."""
    net: str = ""
    model: str = ""
    labels: str = ""
    threshold: Optional[float] = None
    """None: ``WITH_MODEL``, or ``BY_CHANCE`` where the weights are random."""
    into: str = ""
    """Folder for the PNGs; empty: the current one."""
    overwrite: bool = False
    repeat: int = 5
    gpu: str = ""
    cpu: bool = False


class _Answer(Value, kw_only=True):
    width: int = 0
    height: int = 0
    milliseconds: tuple[float, ...] = ()
    boxes: tuple[Box, ...] = ()
    failed: str = ""


def demo(session: Session, tree: str, wish: DemoWish, live: Optional[Live] = None) -> DemoReport:
    """Look at all images; one that cannot be read is told, and not the end."""
    net = read_net_file(wish.net) if wish.net else None
    if wish.model and net is None:
        raise UsageError("A model needs the net that it was trained with.", advice="Name it with --net.")
    _require_files(wish)
    site = find_site(session, tree)
    python = _python(site)
    net = net or _own_net(site)
    targets = _targets(wish)
    with looking(session, live) as looker, tempfile.TemporaryDirectory(prefix="caffeup-demo-") as folder:
        device = find_device(looker, site, gpu=wish.gpu, cpu=wish.cpu)
        path = Path(folder) / "net.prototxt"
        path.write_bytes(_down_to(net, threshold_of(wish)))
        got = run_capture(
            (python, "-c", RUN, json.dumps(_job(wish, net, path, targets, device))),
            cwd=str(Path.cwd()),
            env=python_env(session, site, device, folder),
            timeout=_SECONDS,
        )
    answers = _answers(session, got, len(targets))
    return DemoReport(
        tree=str(site.root),
        net=wish.net or printable(net.name),
        model=wish.model,
        device=device.name,
        threshold=threshold_of(wish),
        seen=tuple(_seen(name, target, one) for (name, target), one in zip(targets, answers)),
    )


def threshold_of(wish: DemoWish) -> float:
    """The least score of a box that is drawn."""
    usual = WITH_MODEL if wish.model else BY_CHANCE
    return usual if wish.threshold is None else wish.threshold


def _down_to(net: Net, threshold: float) -> bytes:
    """The net, whose own threshold would keep back boxes of smaller scores."""
    edits = []
    for layer in net.layers:
        own = layer.block.block("detection_output_param").scalar("confidence_threshold")
        number = own.number() if own is not None else None
        if own is not None and number is not None and number > threshold:
            edits.append((own.start, own.end, f"{threshold:g}".encode()))
    return net.document.edited(edits)


def _require_files(wish: DemoWish) -> None:
    for name in (*wish.images, *([wish.model] if wish.model else [])):
        path = as_path(name)
        if not path.is_file() or not os.access(path, os.R_OK):
            raise UsageError(f"{printable(name, 400)} is no file that can be read.")


def _python(site: Site) -> str:
    if site.plan is None or not site.plan.python or not (site.root / "python" / "caffe" / "_caffe.so").exists():
        builds = f"caffeup up {shlex.quote(str(site.root))}"
        raise NotBuilt(f"{site.root} was built without pycaffe, which looks at images.", commands=(builds,))
    return site.plan.python


def _own_net(site: Site) -> Net:
    if _DETECTION not in site.types:
        raise UsageError(
            "This tree has no layer that gives detections.",
            advice="A tree of the SSD kind has, or name a net with --net whose output has rows of seven.",
            commands=("caffeup up ssd",),
        )
    return read_net(parse(default_net(site.types).encode()))


def _targets(wish: DemoWish) -> list[tuple[str, Path]]:
    """Each image, and where what was seen is drawn; nothing that is there is overwritten unasked."""
    folder = as_path(wish.into) if wish.into else Path()
    if not folder.is_dir():
        raise UsageError(f"There is no folder {printable(wish.into, 400)}.")
    found: list[tuple[str, Path]] = []
    for name in wish.images or ("",):
        stem = as_path(name).stem if name else "test_picture"
        beside = sum(1 for _, other in found if other.name in {f"{stem}{_SUFFIX}", f"{stem}_{len(found)}{_SUFFIX}"})
        target = folder / (f"{stem}_{len(found)}{_SUFFIX}" if beside else f"{stem}{_SUFFIX}")
        if (target.exists() or target.is_symlink()) and not wish.overwrite:
            brief = f"{printable(str(target), 400)} is there already, and is not overwritten."
            raise UsageError(brief, advice="Remove it, name another folder with --into, or give --overwrite.")
        found.append((name, target))
    return found


def _job(wish: DemoWish, net: Net, path: Path, targets: Sequence[tuple[str, Path]], device: Device) -> dict[str, object]:
    mean, scale = _VGG if "vgg" in net.name.lower() else _MOBILENET
    return {
        "net": str(path),
        "model": str(as_path(wish.model).absolute()) if wish.model else "",
        "images": [{"path": str(as_path(name).absolute()) if name else "", "to": str(to.absolute())} for name, to in targets],
        "labels": labels_of(wish.labels) if wish.labels else VOC if classes_of(net) == CLASSES else [],
        "threshold": threshold_of(wish),
        "most": _MOST if wish.model else _MOST_BY_CHANCE,
        "mean": mean,
        "scale": scale,
        "repeat": wish.repeat,
        "gpu": device.on_gpu,
    }


def classes_of(net: Net) -> int:
    """How many classes its detections have, with the background; 0 where it gives none."""
    numbers = [
        layer.block.block("detection_output_param").integer("num_classes") for layer in net.layers if layer.type == _DETECTION
    ]
    return numbers[-1] if numbers else 0


def labels_of(name: str) -> list[str]:
    """Names by their number: of a label map, or of a text with a name on each line, the background first."""
    try:
        data = read_plain(as_path(name), _MOST_LABELS)
    except OSError as error:
        raise UsageError(f"{printable(name, 400)} cannot be read: {error.strerror}.") from error
    if b"item" not in data or b"{" not in data:
        return [printable(line.strip()) for line in data.decode("utf-8", "replace").splitlines()]
    labels: dict[int, str] = {}
    for item in read_document(name).root.blocks("item"):
        number = item.integer("label", -1)
        if 0 <= number < _MOST_LABELS >> 8:
            labels[number] = printable(item.string("display_name") or item.string("name"))
    return [labels.get(number, f"class {number}") for number in range(max(labels, default=-1) + 1)]


def python_env(session: Session, site: Site, device: Device, folder: str) -> dict[str, str]:
    """The user's, without what is meant for another Python or another program."""
    kept = {name: value for name, value in session.host.env.items() if not name.startswith(("PYTHON", "GLOG_", "LD_PRELOAD"))}
    path = dict(tree_environment(site.plan))["PYTHONPATH"] if site.plan is not None else ()
    own = {"PYTHONPATH": os.pathsep.join(path), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"}
    quiet = {"GLOG_minloglevel": "2", "GLOG_log_dir": folder, "MPLCONFIGDIR": folder}
    room = room_environment(device.room) if device.room is not None else {}
    return {**kept, **own, **quiet, **room}


def _answers(session: Session, got: Captured, many: int) -> list[_Answer]:
    said = [line.removeprefix(_MARK) for line in got.output.splitlines() if line.startswith(_MARK)]
    if got.status != 0 or len(said) != many:
        lines = [line for line in got.output.splitlines() if line.strip() and not line.startswith(_MARK)]
        first = next((line for line in lines if "Check failed" in line or "Error" in line), lines[-1] if lines else "")
        findings = diagnose(read([got.output.encode("utf-8", "replace")]), session.facts, log="pycaffe")
        details = printable(first, 400) or f"exit code {got.status}"
        raise VerifyFailed("The net does not run in this tree's pycaffe.", details=details, findings=findings)
    return [msgspec.json.decode(line, type=_Answer) for line in said]


def _seen(name: str, target: Path, one: _Answer) -> Seen:
    shown = name.encode("utf-8", "replace").decode() if name else _TEST_PICTURE
    written = str(target).encode("utf-8", "replace").decode()
    return Seen(
        image=shown,
        written="" if one.failed else written,
        width=one.width,
        height=one.height,
        milliseconds=one.milliseconds,
        boxes=one.boxes,
        failed=printable(one.failed, 300),
    )
