"""The commands ``net convert``, ``net revert`` and ``net check`` as a person calls them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from caffeup.app.nets import given_shapes, write_file
from caffeup.cli.main import main
from caffeup.errors import UsageError

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "mobilenet-ssd"
NET = b"""name: "tiny" # \xe7\xbd\x91\xe7\xbb\x9c\r
input: "data"\r
input_shape { dim: 1 dim: 8 dim: 16 dim: 16 }\r
layer {\r
\tname: "conv1/dw"\r
\ttype: "Convolution"\r
\tbottom: "data"\r
\ttop: "conv1/dw"\r
\tconvolution_param { num_output: 8 kernel_size: 3 group: 8 engine: CAFFE }\r
}\r
"""
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "net.prototxt"
    path.write_bytes(NET)
    return path


def test_there_and_back(net: Path, capsys: Captured) -> None:
    assert main(["net", "convert", "net.prototxt"]) == 0
    said = capsys.readouterr().out
    assert "line 6  conv1/dw  type Convolution → DepthwiseConvolution" in said
    assert "net_depth.prototxt: 2 changes, 1 layer; every other byte as in net.prototxt" in said
    made = net.with_name("net_depth.prototxt").read_bytes()
    assert made != NET
    assert net.read_bytes() == NET
    assert main(["net", "revert", "net_depth.prototxt", "-o", "back.prototxt"]) == 0
    assert net.with_name("back.prototxt").read_bytes() == NET


def test_nothing_is_overwritten_unless_asked(net: Path, capsys: Captured) -> None:
    net.chmod(0o640)
    net.with_name("net_depth.prototxt").write_text("mine")
    assert main(["net", "convert", "net.prototxt"]) == 2
    assert "is there already, and is not overwritten" in capsys.readouterr().err
    assert net.with_name("net_depth.prototxt").read_text() == "mine"
    assert main(["net", "convert", "net.prototxt", "-o", "net.prototxt"]) == 2
    assert main(["net", "convert", "net.prototxt", "-o", "x", "--in-place"]) == 2
    assert net.read_bytes() == NET
    assert main(["net", "convert", "net.prototxt", "--in-place"]) == 0
    assert b"DepthwiseConvolution" in net.read_bytes()
    assert net.stat().st_mode & 0o777 == 0o640
    assert main(["net", "revert", "net.prototxt"]) == 2, "it is not said where to"
    assert main(["net", "revert", "net.prototxt", "--in-place"]) == 0
    assert net.read_bytes() == NET
    assert sorted(path.name for path in net.parent.iterdir()) == ["net.prototxt", "net_depth.prototxt"], "no leftovers"


def test_in_place_goes_through_a_link(net: Path) -> None:
    link = net.with_name("link.prototxt")
    link.symlink_to(net)
    assert main(["net", "convert", "link.prototxt", "--in-place"]) == 0
    assert link.is_symlink()
    assert b"DepthwiseConvolution" in net.read_bytes()


def test_a_link_that_leads_nowhere_is_not_written_through(net: Path) -> None:
    net.with_name("net_depth.prototxt").symlink_to(net.with_name("elsewhere"))
    assert main(["net", "convert", "net.prototxt"]) == 2
    assert not net.with_name("elsewhere").exists()


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    (tmp_path / "old").write_bytes(b"old")
    for name, replace in (("new", False), ("old", True)):
        with pytest.raises(OSError, match=os.strerror(28)):
            write_file(tmp_path / name, b"data", replace=replace)
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_bytes() == b"old"


def test_a_net_with_nothing_to_change_is_not_written(net: Path, capsys: Captured) -> None:
    net.write_bytes(NET.replace(b"group: 8", b"group: 2"))
    assert main(["net", "convert", "net.prototxt"]) == 0
    said = capsys.readouterr().out
    assert "left   conv1/dw: it reads 8 channels in 2 groups" in said
    assert "no file was written" in said
    assert main(["net", "revert", "net.prototxt"]) == 0
    assert [path.name for path in net.parent.iterdir()] == ["net.prototxt"]


def test_engines(net: Path, capsys: Captured) -> None:
    assert main(["net", "convert", "net.prototxt", "--engine", "cudnn", "-o", "c.prototxt"]) == 0
    assert b"engine: CUDNN # caffeup: was CAFFE" in net.with_name("c.prototxt").read_bytes()
    assert main(["net", "convert", "net.prototxt", "--engine", "mkldnn"]) == 2
    assert "Give caffe, cudnn, default" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["convert", "revert", "check"])
@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (b"layer { name: 'x'", 2, "line 1, column 7"),
        (b"\x0a\x04\x00\x00", 2, "binary file"),
        (b"\xff\xfeh\x00", 2, "UTF-16"),
        (b"a{" * 10_000, 2, "deeper than 100 levels"),
        (None, 2, "No such file"),
    ],
)
def test_bad_files_are_refused_in_words(
    net: Path, capsys: Captured, command: str, content: bytes | None, code: int, words: str
) -> None:
    net.unlink()
    if content is not None:
        net.write_bytes(content)
    assert main(["net", command, "net.prototxt"]) == code
    said = capsys.readouterr()
    assert words in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("name", [".", "", "/dev/null", "/dev/zero", "a\x1b[31m"])
def test_what_is_no_file_is_refused(net: Path, capsys: Captured, name: str) -> None:
    assert main(["net", "check", name]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_a_file_larger_than_any_prototxt_is_not_read(net: Path, capsys: Captured) -> None:
    with net.open("r+b") as file:
        file.truncate(500 << 20)
    assert main(["net", "check", "net.prototxt"]) == 2
    assert "larger than any prototxt" in capsys.readouterr().err


def test_json_stands_alone(net: Path, capsys: Captured) -> None:
    assert main(["net", "convert", "net.prototxt", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert [change["line"] for change in made["changes"]] == [6, 9]
    assert main(["net", "check", "net.prototxt", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["phases"][0]["inputs"] == ["data 1x8x16x16"]
    assert [one["id"] for one in report["findings"]] == ["depthwise-engine"]


def test_check_ends_with_1_where_caffe_would_stop(net: Path, capsys: Captured) -> None:
    net.write_bytes(NET.replace(b"group: 8", b"group: 3"))
    assert main(["net", "check", "net.prototxt"]) == 1
    said = capsys.readouterr().out
    assert "  TEST   1 layer: data 1x8x16x16 → conv1/dw ?" in said
    assert "(Convolution) cannot be set up: its 8 input channels are no multiple" in said


def test_check_reads_the_trees_own_schema(net: Path, capsys: Captured) -> None:
    tree = net.parent / "tree"
    (tree / "src/caffe/proto").mkdir(parents=True)
    (tree / "src/caffe/layers").mkdir()
    proto = tree / "src/caffe/proto/caffe.proto"
    proto.write_text(
        "message NetParameter { optional string name = 1; repeated string input = 3; repeated LayerParameter layer = 100;"
        " repeated BlobShape input_shape = 8; }"
        " message BlobShape { repeated int64 dim = 1; }"
        " message LayerParameter { optional string name = 1; optional string type = 2; repeated string bottom = 3;"
        " repeated string top = 4; }"
    )
    (tree / "src/caffe/layers/conv_layer.cpp").write_text("REGISTER_LAYER_CLASS(Convolution);\n")
    (tree / "src/caffe/layers/gone.cpp").symlink_to("nowhere")
    assert main(["net", "check", "net.prototxt", "--tree", "tree"]) == 1
    assert "tree has no convolution_param" in capsys.readouterr().out
    proto.write_text("message {")
    assert main(["net", "check", "net.prototxt", "--tree", "tree"]) == 7
    proto.unlink()
    assert main(["net", "check", "net.prototxt", "--tree", "tree"]) == 7
    assert "is no Caffe tree" in capsys.readouterr().err


def test_paths_that_lead_nowhere_are_warned_of(net: Path, capsys: Captured) -> None:
    text = """layer { name: "d" type: "Data" top: "x" data_param { source: "%s" batch_size: 1 } transform_param { crop_size: 3 mean_file: "mean" } }"""
    (net.parent / "below").mkdir()
    (net.parent / "below/mean").write_text("")
    (net.parent / "broken").symlink_to("nowhere")
    (net.parent / "below/net.prototxt").write_text(text % "broken")
    assert main(["net", "check", "below/net.prototxt"]) == 0
    said = capsys.readouterr().out
    assert "source: nothing lies at broken  [lmdb-path]" in said
    assert "a link stands there that leads nowhere" in said
    assert "mean_file: nothing lies at mean  [file-not-there]" in said
    assert "it lies in below: start the program there" in said
    (net.parent / "below/net.prototxt").write_text(text % "x\\\\0y" + "\n# \x1b")
    assert main(["net", "check", "below/net.prototxt"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_the_label_map_that_a_net_names_is_looked_at(net: Path, capsys: Captured) -> None:
    net.write_text(
        """input: "x" input_shape { dim: [1, 40] } input: "y" input_shape { dim: [1, 30] } input: "z" input_shape { dim: [1, 2, 40] }
        layer { name: "o" type: "DetectionOutput" bottom: "x" bottom: "y" bottom: "z" top: "o"
          detection_output_param { num_classes: 3 save_output_param { label_map_file: "map" } } }"""
    )
    items = [f'item {{ name: "n{label}" label: {label} }}\n' for label in range(4)]
    net.with_name("map").write_text("".join(items[:3]))
    assert main(["net", "check", "net.prototxt"]) == 0
    net.with_name("map").write_text("".join(items))
    assert main(["net", "check", "net.prototxt"]) == 1
    assert "the label map has 4 items, and the net 3 classes" in capsys.readouterr().out
    net.with_name("map").write_text(items[0] + items[1] + items[3])
    assert main(["net", "check", "net.prototxt"]) == 1
    assert "not the numbers 0 to 2" in capsys.readouterr().out
    net.with_name("map").write_text("item {")
    assert main(["net", "check", "net.prototxt"]) == 1
    assert "map:1: column 6" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["data", "data=", "=1,2", "data=1,x", "data=1,0", "data=-1"])
def test_shapes_are_given_as_names_and_numbers(text: str) -> None:
    with pytest.raises(UsageError, match="is no shape"):
        given_shapes([text])
    assert given_shapes(["data=1,3,300,300", "a=b=1x2"][:1]) == {"data": (1, 3, 300, 300)}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the well-known nets are not here")
@pytest.mark.parametrize("path", sorted(SHARED.glob("*.prototxt")), ids=lambda path: path.stem)
def test_the_well_known_nets_are_converted_at_thirteen_layers_and_come_back(path: Path, tmp_path: Path, capsys: Captured) -> None:
    made, back = tmp_path / "made.prototxt", tmp_path / "back.prototxt"
    assert main(["net", "convert", str(path), "-o", str(made)]) == 0
    assert ", 13 layers; every other byte" in capsys.readouterr().out
    assert made.read_bytes().count(b'"DepthwiseConvolution"') == 13
    assert main(["net", "revert", str(made), "-o", str(back)]) == 0
    assert back.read_bytes() == path.read_bytes()
    assert main(["net", "check", str(made)]) == 0
