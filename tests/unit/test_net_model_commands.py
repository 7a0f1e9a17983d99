"""The commands on nets with weights, as they are typed: output, JSON on stdout alone, exit codes."""

from __future__ import annotations

import contextlib
import io
import json
import os
from pathlib import Path

import pytest

from caffeup.app import net_compare
from caffeup.cli.main import main
from caffeup.errors import NoRoom, VerifyFailed
from caffeup.model.net_model import Difference


def run(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["net", *arguments])
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    files = ("-o", str(folder / "net.prototxt"), "--model", str(folder / "m.caffemodel"))
    assert run("new", "mobilenet-ssd", "--size", "64", "--classes", "3", *files)[0] == 0
    return folder


@pytest.fixture
def detector(made: Path, tmp_path: Path) -> tuple[str, str]:
    for name in ("net.prototxt", "m.caffemodel"):
        os.link(made / name, tmp_path / name)
    return str(tmp_path / "net.prototxt"), str(tmp_path / "m.caffemodel")


def test_folding_is_told_layer_by_layer(detector: tuple[str, str]) -> None:
    code, out, _ = run("merge-bn", *detector)
    assert code == 0
    assert "conv1/dw   takes in conv1/dw/bn, conv1/dw/scale" in out
    assert "70 layers folded into 35" in out
    assert run("merge-bn", *detector)[0] == 2, "what was written is there now"


@pytest.mark.parametrize(
    "arguments",
    [
        ("merge-bn", "NET", "MODEL"),
        ("classes", "NET", "MODEL", "--keep", "2"),
        ("memory", "NET", "--free", "8GiB"),
        ("draw", "NET"),
        ("new", "vgg-ssd", "-o", "OTHER"),
    ],
)
def test_json_alone_is_on_stdout(detector: tuple[str, str], tmp_path: Path, arguments: tuple[str, ...]) -> None:
    names = {"NET": detector[0], "MODEL": detector[1], "OTHER": str(tmp_path / "other.prototxt")}
    code, out, _ = run(*(names.get(word, word) for word in arguments), "--json")
    assert code == 0
    assert isinstance(json.loads(out), dict)


def test_what_does_not_fit_has_an_exit_code(detector: tuple[str, str]) -> None:
    code, out, _ = run("memory", detector[0], "--free", "100MiB")
    assert code == NoRoom.exit_code
    assert "does NOT fit" in out
    code, out, _ = run("memory", detector[0], "--free", "2GiB", "--layers")
    assert code == 0
    assert "conv5/dw/scale" in out
    assert "largest batch that fits" in out


def test_a_layer_that_is_not_known_is_not_taken_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "n").write_text('input: "d" input_shape { dim: 1 } layer { name: "o" type: "Odd" bottom: "d" top: "o" }')
    code, out, _ = run("memory", str(tmp_path / "n"), "--free", "8GiB")
    assert code == 0
    assert "NOT counted: o (Odd)" in out
    assert "fits as far as it is counted" in out
    assert "--tree DIR" in out


@pytest.mark.parametrize(("worst", "code"), [(1e-6, 0), (0.5, VerifyFailed.exit_code)])
def test_nets_that_differ_have_an_exit_code(
    detector: tuple[str, str], monkeypatch: pytest.MonkeyPatch, worst: float, code: int
) -> None:
    monkeypatch.setattr(net_compare, "require_pycaffe", lambda _: None)
    found = Difference(blobs=9, worst=worst, where="conv3", same=worst < net_compare.ALLOWED)
    monkeypatch.setattr("caffeup.app.net_models.compare", lambda *_: found)
    got, out, err = run("merge-bn", *detector, "--tree", "tree")
    assert got == code, err
    assert ("NOT the same" in out) == bool(code)


def test_a_tree_that_cannot_compare_is_told_before_anything_is_written(detector: tuple[str, str], tmp_path: Path) -> None:
    for command in (("merge-bn",), ("classes", "--keep", "2")):
        code, _, err = run(command[0], *detector, *command[1:], "--tree", str(tmp_path))
        assert code != 0
        assert err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.caffemodel", "net.prototxt"]


@pytest.mark.parametrize(
    "arguments", [("memory", "NET", "--phase", "RUN"), ("draw", "NET", "--phase", "RUN"), ("memory", "NET", "--gpu", "99")]
)
def test_what_makes_no_sense_is_no_traceback(detector: tuple[str, str], arguments: tuple[str, ...]) -> None:
    code, _, err = run(*(detector[0] if word == "NET" else word for word in arguments))
    assert code not in {0, 1, 70}
    assert "Traceback" not in err
