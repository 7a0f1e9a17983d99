"""The script that tries caffe.io, run on modules of our own: right ones pass, and each way to be wrong is seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from caffeup.stream import Captured
from caffeup.verify.images import RUN, images


def _with_numpy() -> str:
    for python in (sys.executable, "/usr/bin/python3"):
        if (
            Path(python).exists()
            and subprocess.run([python, "-c", "import numpy"], capture_output=True, check=False).returncode == 0
        ):
            return python
    return ""


PYTHON = _with_numpy()
needs_numpy = pytest.mark.skipif(not PYTHON, reason="needs a Python with numpy")

IO = """
import struct, zlib
import numpy as np

def resize_image(image, size):
    def places(count, there, whole):
        return (np.arange(count) + .5) * there / count - .5 if whole else np.arange(count) * (there - 1.) / (count - 1)
    for axis in (0, 1):
        at = places(size[axis], image.shape[axis], image.shape[2] in (1, 3))
        image = np.apply_along_axis(lambda line: np.interp(at, np.arange(len(line)), line), axis, image)
    return image.astype(np.float32)

def oversample(pictures, size):
    crops = []
    for one in pictures:
        down, right = one.shape[0] - size[0], one.shape[1] - size[1]
        for top, left in ((0, 0), (0, right), (down, 0), (down, right), (down // 2, right // 2)):
            crops.append(one[top:top + size[0], left:left + size[1]])
    return np.array(crops + [crop[:, ::-1] for crop in crops])

def load_image(path, color=True):
    data = open(path, 'rb').read()
    width, height = struct.unpack('>II', data[16:24])
    size = struct.unpack('>I', data[33:37])[0]
    rows = np.frombuffer(zlib.decompress(data[41:41 + size]), np.uint8).reshape(height, width + 1)[:, 1:, np.newaxis]
    return np.tile(rows / 255., (1, 1, 3 if color else 1))

class Transformer(object):
    def __init__(self, inputs):
        self.shape, self.swap, self.scale, self.mean = inputs['data'], (0, 1, 2), 1., np.zeros(3)
    def set_transpose(self, name, order): self.order = order
    def set_channel_swap(self, name, swap): self.swap = swap
    def set_raw_scale(self, name, scale): self.scale = scale
    def set_mean(self, name, mean): self.mean = mean
    def preprocess(self, name, image):
        if image.shape[:2] != self.shape[2:]:
            image = resize_image(image, self.shape[2:])
        return image.transpose(self.order)[list(self.swap)] * self.scale - self.mean.reshape(3, 1, 1)
"""


def run(tmp_path: Path, io: str) -> dict[str, dict[str, str]]:
    package = tmp_path / "caffe"
    package.mkdir()
    (package / "__init__.py").write_text("from caffe import io\n")
    (package / "io.py").write_text(io)
    picture = tmp_path / "gray.png"
    done = subprocess.run(
        [PYTHON, "-c", RUN, str(picture)],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not picture.exists()
    assert done.returncode == 0, done.stderr
    answer: dict[str, dict[str, str]] = json.loads(done.stdout.rpartition("caffeup:")[2])
    return answer


@needs_numpy
def test_a_right_module_passes(tmp_path: Path) -> None:
    got = run(tmp_path, IO)
    assert got["said"] == {}
    assert set(got["error"]) == {"Transformer", "resize_image", "oversample", "load_image"}
    assert max(float(away) for away in got["error"].values()) < 1e-6


@needs_numpy
@pytest.mark.parametrize(
    ("right", "wrong", "where"),
    [
        ("[list(self.swap)]", "", "Transformer"),
        (" * self.scale", "", "Transformer"),
        (" - self.mean.reshape(3, 1, 1)", "", "Transformer"),
        ("transpose(self.order)", "transpose(2, 1, 0)", "Transformer"),
        ("+ .5) * there / count - .5", ") * there / count", "resize_image"),
        ("(there - 1.) / (count - 1)", "(there - 1.) / count", "resize_image"),
        ("+ [crop[:, ::-1] for crop in crops]", "* 2", "oversample"),
        ("down // 2", "0", "oversample"),
        ("/ 255.", "* 1.", "load_image"),
        ("3 if color else 1", "1", "load_image"),
    ],
)
def test_what_is_computed_wrong_is_seen(tmp_path: Path, right: str, wrong: str, where: str) -> None:
    assert IO.count(right) == 1
    got = run(tmp_path, IO.replace(right, wrong))
    assert not float(got["error"][where]) <= 1e-4


@needs_numpy
def test_a_name_that_was_never_imported_is_seen_and_the_rest_is_tried(tmp_path: Path) -> None:
    got = run(tmp_path, IO.replace("    def places", "    image = resize(image, size)\n    def places"))
    assert "NameError" in got["said"]["resize_image"]
    assert "'resize' is not defined" in got["said"]["resize_image"]
    assert float(got["error"]["oversample"]) == 0


@needs_numpy
def test_what_a_tree_never_had_is_not_asked_for(tmp_path: Path) -> None:
    got = run(tmp_path, IO.split("class Transformer", maxsplit=1)[0])
    assert got["said"] == {}
    assert set(got["error"]) == {"resize_image", "oversample", "load_image"}


def site(tmp_path: Path, output: str, status: int = 0) -> Any:
    plan = SimpleNamespace(python="python3")
    return SimpleNamespace(
        root=tmp_path, build=SimpleNamespace(plan=plan), run=lambda *_, **__: Captured(status=status, output=output)
    )


def test_right_values_are_told(tmp_path: Path) -> None:
    check = images(site(tmp_path, 'caffeup:{"error": {"Transformer": "1e-08", "oversample": "0"}, "said": {}}'))
    assert (check.name, check.ok, check.result) == ("caffe.io", True, "Transformer, oversample are right")


@pytest.mark.parametrize("away", ["3.0e-01", "inf", "nan"])
def test_wrong_values_fail(tmp_path: Path, away: str) -> None:
    check = images(site(tmp_path, f'caffeup:{{"error": {{"Transformer": "{away}"}}, "said": {{}}}}'))
    assert (check.ok, check.result) == (False, f"Transformer: wrong by {away}")


def test_what_was_raised_fails_and_is_told(tmp_path: Path) -> None:
    said = "NameError: name 'resize' is not defined"
    check = images(site(tmp_path, f'caffeup:{{"error": {{"oversample": "0"}}, "said": {{"resize_image": "{said}"}}}}'))
    assert (check.ok, check.result) == (False, f"resize_image: {said}")
    assert check.finding is not None
    assert check.finding.id == "verify-caffe.io"


def test_a_python_that_dies_is_no_success(tmp_path: Path) -> None:
    assert not images(site(tmp_path, "Segmentation fault", status=139)).ok
