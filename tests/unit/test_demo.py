"""Objects found in images, by the Python of a tree."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import zlib
from pathlib import Path
from typing import Any, Optional

import pytest

from caffeup.app.demonstrating import BY_CHANCE, WITH_MODEL, DemoWish, classes_of, demo, labels_of
from caffeup.app.session import Session
from caffeup.bench.seeing import RUN, VOC
from caffeup.bench.trunk import CLASSES, default_net
from caffeup.cli import main, show_bench
from caffeup.errors import NotBuilt, UsageError, VerifyFailed
from caffeup.model.base import from_json, to_json
from caffeup.model.bench import DemoReport
from caffeup.net.model import read_net
from caffeup.net.text import parse
from fakecaffe import NET, built_tree
from fakelive import FakeLive, PlainHost, card


class _Everything:
    def __contains__(self, item: object) -> bool:
        return True


LAYERS = tuple(sorted({layer.type for layer in read_net(parse(default_net(_Everything()).encode())).layers}))


def ssd_tree(root: Path, **more: Any) -> Path:
    return built_tree(root, layers=LAYERS, **more)


def look(root: Path, live: Optional[FakeLive] = None, **wish: Any) -> DemoReport:
    return demo(Session(PlainHost(env={"PATH": "/usr/bin:/bin"})), str(root), DemoWish(**wish), live or FakeLive())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


class TestDemo:
    def test_a_picture_of_its_own_and_random_weights(self, tmp_path: Path, here: Path) -> None:
        report = look(ssd_tree(tmp_path / "tree"))
        (seen,) = report.seen
        assert (seen.image, seen.written) == ("test picture", "test_picture_detected.png")
        assert (here / seen.written).read_bytes() == b"PNG"
        assert report.threshold == BY_CHANCE
        assert seen.boxes[0].label == VOC[1]
        words = "\n".join(show_bench.seen(report))
        assert "the weights are random" in words
        assert "3.00 ms (2.00 to 4.00), the first 9.00" in words
        assert from_json(to_json(report), DemoReport) == report

    def test_images_of_one_name(self, tmp_path: Path, here: Path) -> None:
        for folder in ("a", "b"):
            (here / folder).mkdir()
            (here / folder / "x.jpg").write_bytes(b"")
        report = look(ssd_tree(tmp_path / "tree"), images=("a/x.jpg", "b/x.jpg"), into=str(tmp_path))
        names = [Path(seen.written).name for seen in report.seen]
        assert names == ["x_detected.png", "x_1_detected.png"]

    def test_nothing_is_overwritten_unasked(self, tmp_path: Path, here: Path) -> None:
        (here / "test_picture_detected.png").write_text("mine")
        root = ssd_tree(tmp_path / "tree")
        with pytest.raises(UsageError, match="is not overwritten"):
            look(root)
        look(root, overwrite=True)
        assert (here / "test_picture_detected.png").read_bytes() == b"PNG"

    def test_an_image_that_is_not_there(self, tmp_path: Path, here: Path) -> None:
        with pytest.raises(UsageError, match=r"x\.jpg is no file"):
            look(ssd_tree(tmp_path / "tree"), images=("x.jpg",))

    def test_a_model_without_its_net(self, tmp_path: Path, here: Path) -> None:
        with pytest.raises(UsageError, match="needs the net"):
            look(ssd_tree(tmp_path / "tree"), model="x.caffemodel")

    def test_a_tree_without_detections(self, tmp_path: Path, here: Path) -> None:
        with pytest.raises(UsageError, match="no layer that gives detections") as caught:
            look(built_tree(tmp_path / "tree"))
        assert caught.value.commands == ("caffeup up ssd",)

    def test_a_tree_without_pycaffe(self, tmp_path: Path, here: Path) -> None:
        root = ssd_tree(tmp_path / "tree")
        (root / "python" / "caffe" / "_caffe.so").unlink()
        with pytest.raises(NotBuilt, match="without pycaffe"):
            look(root)

    def test_a_python_that_fails(self, tmp_path: Path, here: Path) -> None:
        root = ssd_tree(tmp_path / "tree")
        (root / "build" / "python").write_text("#!/bin/sh\necho 'ImportError: No module named caffe' >&2\nexit 1\n")
        with pytest.raises(VerifyFailed) as caught:
            look(root)
        assert "ImportError" in caught.value.details

    def test_the_job(self, tmp_path: Path, here: Path) -> None:
        """What the script is told."""
        root = ssd_tree(tmp_path / "tree", gpu=True)
        asked = here / "asked"
        (root / "build" / "python").write_text(f'#!/bin/sh\nprintf "%s" "$3" >{asked}; env >{asked}.env; exit 1\n')
        (here / "net.prototxt").write_text(default_net(_Everything()).replace("num_classes: 21", "num_classes: 3"))
        (here / "m").write_bytes(b"")
        with pytest.raises(VerifyFailed):
            look(root, FakeLive(card()), net="net.prototxt", model="m", labels="")
        job = json.loads(asked.read_text())
        assert (job["gpu"], job["threshold"], job["labels"]) == (True, WITH_MODEL, [])
        assert job["model"] == str(here / "m")
        env = (here / "asked.env").read_text()
        assert "CUDA_VISIBLE_DEVICES=GPU-00000000" in env
        assert f"PYTHONPATH={root}/python" in env


class TestLabels:
    def test_a_label_map(self, tmp_path: Path) -> None:
        path = tmp_path / "labelmap.prototxt"
        path.write_text('item { name: "none" label: 0 display_name: "background" }\nitem { name: "c" label: 2 }\n')
        assert labels_of(str(path)) == ["background", "class 1", "c"]

    def test_a_text(self, tmp_path: Path) -> None:
        path = tmp_path / "labels.txt"
        path.write_bytes("background\n猫\x1b\n".encode() + b"\xff\n")
        assert labels_of(str(path)) == ["background", "猫?", "�"]

    def test_a_number_that_is_none(self, tmp_path: Path) -> None:
        path = tmp_path / "labelmap.prototxt"
        path.write_text('item { name: "far" label: 2000000000 }\nitem { name: "below" label: -3 }\n')
        assert labels_of(str(path)) == []

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="cannot be read"):
            labels_of(str(tmp_path / "no"))


def test_the_classes_of_a_net() -> None:
    assert classes_of(read_net(parse(default_net(_Everything()).encode()))) == CLASSES == len(VOC)
    assert classes_of(read_net(parse(NET.encode()))) == 0


def test_the_command(tmp_path: Path, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("caffeup.app.session.RealHost", lambda: PlainHost(env={"PATH": "/usr/bin:/bin"}))
    monkeypatch.setattr("caffeup.app.gpus.RealLive", lambda _env: FakeLive())
    root = ssd_tree(tmp_path / "tree")
    assert main.main(["demo", "--tree", str(root), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["seen"][0]["width"] == 64
    assert main.main(["demo", "--tree", str(root)]) == 2
    assert "is not overwritten" in capsys.readouterr().err


def python_with_numpy() -> Optional[str]:
    """A Python that can run the script, with a caffe of the test's own."""
    for name in ("/usr/bin/python3", shutil.which("python3")):
        if name and os.access(name, os.X_OK) and not subprocess.call([name, "-c", "import numpy"], stderr=subprocess.DEVNULL):
            return name
    return None


# Stands for pycaffe: a net that sees one box, and one that is nowhere.
CAFFE = """\
import numpy as np
TEST = 1
def set_mode_cpu(): pass
class Blob:
    def __init__(self, *shape): self.data = np.zeros(shape, np.float32)
class Layer:
    def __init__(self, type, *blobs): self.type, self.blobs = type, blobs
class Net:
    inputs, outputs = ['data'], ['out']
    def __init__(self, *args):
        self.blobs = {'data': Blob(1, 3, 30, 40), 'out': Blob(1, 1, 4, 7)}
        self.layers = [Layer('Convolution', Blob(2, 3, 3, 3)), Layer('BatchNorm', Blob(2), Blob(2), Blob(1)), Layer('Scale', Blob(2))]
    def forward(self):
        assert np.any(self.layers[0].blobs[0].data) and self.layers[1].blobs[2].data[0] == 1 and self.layers[2].blobs[0].data[0] == 1
        self.blobs['out'].data[0, 0] = [
            [0, 1, 0.9, 0.25, 0.25, 0.5, 0.75], [0, 1, 0.1, 0, 0, 1, 1], [-1, -1, -1, 0, 0, 0, 0], [0, 9, 0.8, -5, -5, np.nan, 5]]
"""


def test_the_script_itself(tmp_path: Path) -> None:
    python = python_with_numpy()
    if python is None:
        pytest.skip("no Python with numpy here")
    (tmp_path / "caffe.py").write_text(CAFFE)
    to = tmp_path / "seen.png"
    job = {
        "net": "n",
        "model": "",
        "images": [{"path": "", "to": str(to)}, {"path": str(tmp_path / "no.png"), "to": str(to)}],
        "labels": ["background", "cat"],
        "threshold": 0.3,
        "most": 5,
        "mean": [1, 2, 3],
        "scale": 1.0,
        "repeat": 2,
        "gpu": False,
    }
    env = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"}
    got = subprocess.run([python, "-c", RUN, json.dumps(job)], env=env, stdout=subprocess.PIPE, timeout=60, check=False)
    lines = got.stdout.decode().splitlines()
    first, second = (json.loads(line[len("caffeup:") :]) for line in lines)
    assert first["boxes"] == [
        {"label": "cat", "score": pytest.approx(0.9), "left": 120.0, "top": 90.0, "right": 240.0, "bottom": 270.0}
    ]
    assert len(first["milliseconds"]) == 2
    assert second["failed"]
    image = pixels(to.read_bytes(), first["width"], first["height"])
    assert image(121, 150) == image(121, 250)  # the frame's left side, of one colour over sky and grass


def pixels(png: bytes, wide: int, high: int) -> Any:
    """A reader of what was written: signature, checksums, and one pixel."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at, data = 8, b""
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        kind, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        assert struct.unpack(">I", png[at + 8 + size : at + 12 + size]) == (zlib.crc32(kind + body),)
        data += body if kind == b"IDAT" else b""
        if kind == b"IHDR":
            assert struct.unpack(">II", body[:8]) == (wide, high)
        at += 12 + size
    rows = zlib.decompress(data)
    step = 1 + 3 * wide
    assert len(rows) == step * high
    return lambda x, y: rows[y * step + 1 + 3 * x : y * step + 4 + 3 * x]
