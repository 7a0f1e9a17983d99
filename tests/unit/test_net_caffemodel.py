"""Caffemodels as bytes: both ages of layers, both ways of telling a shape, what is torn, what is none, and what is written."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caffeup.app.net_files import open_model, require_free, write_pieces
from caffeup.errors import DiskError, UsageError
from caffeup.net import caffemodel, wire
from caffeup.net.caffemodel import Model, layer_with, new_model, read_model, rewritten
from caffeup.net.wire import Torn, as_varint, head, message, records, tag, varint


def joined(pieces: object) -> bytes:
    return b"".join(bytes(piece) for piece in pieces)  # type: ignore[attr-defined]


def floats(*values: float) -> array[float]:
    return array("f", values)


SMALL = joined(
    new_model("net", [("conv", "Convolution", [((2, 1, 1, 1), floats(1, 2)), ((2,), floats(3, 4))]), ("relu", "ReLU", [])])
)


def test_what_was_written_is_read() -> None:
    model = read_model(SMALL, "m.caffemodel")
    assert [layer.name for layer in model.layers] == ["conv", "relu"]
    weights = model.weights("conv")
    assert weights is not None
    assert [blob.shape for blob in weights.blobs] == [(2, 1, 1, 1), (2,)]
    assert [list(model.values(blob)) for blob in weights.blobs] == [[1, 2], [3, 4]]
    assert model.weights("relu") is None, "a layer without blobs has no weights"


def old_model() -> bytes:
    """V1's layers, with a blob's shape as num, channels, height and width."""
    sizes = b"".join(tag(number, 0) + as_varint(size) for number, size in ((1, 1), (2, 1), (3, 2), (4, 3)))
    blob = sizes + joined(message(5, [floats(1, 2, 3, 4, 5, 6).tobytes()]))
    layer = joined(message(4, [b"fc"])) + tag(5, 0) + as_varint(14) + joined(message(6, [blob]))
    return joined(message(1, [b"old"])) + joined(message(2, [layer]))


def test_old_layers_and_old_shapes_are_read_and_stay_old() -> None:
    model = read_model(old_model(), "m")
    weights = model.weights("fc")
    assert weights is not None
    assert weights.blobs[0].shape == (1, 1, 2, 3)
    assert list(model.values(weights.blobs[0])) == [1, 2, 3, 4, 5, 6]
    blob = caffemodel.as_blob((1, 1, 2, 3), floats(6, 5, 4, 3, 2, 1), number=weights.numbers.blobs)
    again = read_model(joined(rewritten(model, {weights.start: layer_with(model, weights, [blob])})), "m")
    new = again.weights("fc")
    assert new is not None
    assert list(again.values(new.blobs[0])) == [6, 5, 4, 3, 2, 1]
    assert new.numbers == weights.numbers


def test_a_model_in_which_nothing_changes_is_the_same_bytes() -> None:
    assert joined(rewritten(read_model(SMALL, "m"), {})) == SMALL


def test_a_layer_that_goes_leaves_the_others_as_they_were() -> None:
    model = read_model(SMALL, "m")
    left = read_model(joined(rewritten(model, {model.layers[1].start: None})), "m")
    assert [layer.name for layer in left.layers] == ["conv"]
    assert joined(rewritten(left, {})) in SMALL


def test_numbers_in_pieces_and_unpacked_and_of_eight_bytes() -> None:
    shape = joined(message(7, joined_list(message(1, [b"\x03"]))))
    pieces = (
        joined(message(5, [floats(1).tobytes()])) + tag(5, 5) + floats(2).tobytes() + joined(message(5, [floats(3).tobytes()]))
    )
    assert values_of(shape + pieces) == [1, 2, 3]
    assert values_of(shape + joined(message(8, [array("d", [1, 2, 3]).tobytes()]))) == [1, 2, 3]


def joined_list(pieces: object) -> list[bytes]:
    return [joined(pieces)]


def model_of(blob: bytes) -> Model:
    layer = joined(message(1, [b"a"])) + joined(message(7, [blob]))
    return read_model(joined(message(100, [layer])), "m")


def values_of(blob: bytes) -> list[float]:
    model = model_of(blob)
    return list(model.values(model.layers[0].blobs[0]))


def test_numbers_in_the_raw_form_of_one_fork_are_no_zeros() -> None:
    model = model_of(joined(message(7, [b"\x08\x02"])) + joined(message(12, [b"\0\0\0\0"])))
    assert model.layers[0].blobs[0].code == ""


def test_the_last_of_several_layers_of_a_name_counts() -> None:
    twice = joined(new_model("", [("a", "X", [((1,), floats(1))]), ("a", "X", [((1,), floats(2))])]))
    model = read_model(twice, "m")
    weights = model.weights("a")
    assert weights is not None
    assert list(model.values(weights.blobs[0])) == [2]


@pytest.mark.parametrize("length", range(len(SMALL)))
def test_a_model_that_ends_early_is_never_taken_for_whole_within_a_layer(length: int) -> None:
    with suppress(UsageError):
        assert read_model(SMALL[:length], "m").layers[-1].end == length


def test_where_a_model_ends_is_said() -> None:
    first = read_model(SMALL, "m").layers[0]
    with pytest.raises(UsageError, match=rf"ends at byte 55 in the middle of what begins at byte {first.whole}\."):
        read_model(SMALL[:55], "m")
    with pytest.raises(UsageError, match=rf"in the middle of what begins at byte {first.end}, behind layer conv\."):
        read_model(SMALL[:-1], "m")


def test_a_layer_with_nonsense_in_it_is_told_by_its_place() -> None:
    layer = joined(message(1, [b"a"])) + b"\xff\xff"
    with pytest.raises(UsageError, match=r"what stands at byte 1[0-9] belongs to no caffemodel"):
        read_model(joined(message(1, [b"net"])) + joined(message(100, [layer])), "m")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_model_or_are_refused(data: bytes) -> None:
    with suppress(UsageError):
        assert read_model(data, "m").layers


@pytest.mark.parametrize(
    ("begin", "words"),
    [
        (b"", "it is empty"),
        (b"\x89HDF\r\n", "HDF5"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git-lfs"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"PK\x03\x04rest", "archive"),
        (b'name: "net"\nlayer { }\n', "prototxt"),
        (b"\x08\x64\x12\x03abc", "solverstate"),
        (b"\0" * 100, "no caffemodel"),
        (joined(message(1, [b"name only"])), "no layer"),
        (joined(message(100, [b"\xff\xff"])), "no caffemodel"),
    ],
)
def test_what_is_no_model_is_called_what_it_is(begin: bytes, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_model(begin, "m")


@pytest.mark.parametrize("limit", ["MOST_LAYERS", "MOST_BLOBS", "MOST_PIECES"])
def test_a_file_of_nothing_but_small_things_does_not_fill_the_memory(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caffemodel, limit, 3)
    piece = {"MOST_LAYERS": message(100, []), "MOST_BLOBS": message(7, []), "MOST_PIECES": [tag(5, 5), b"\0" * 4]}[limit]
    many = joined(piece) * 5
    data = (
        many if limit == "MOST_LAYERS" else joined(message(100, [many if limit == "MOST_BLOBS" else joined(message(7, [many]))]))
    )
    with pytest.raises(UsageError):
        read_model(data, "m")


def test_a_file_of_nothing_but_small_fields_does_not_take_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_FIELDS", 3)
    with pytest.raises(UsageError, match="belongs to no caffemodel"):
        read_model((tag(10, 0) + b"\0") * 5, "m")


@given(st.integers(0, 2**64 - 1))
def test_varints_come_back(value: int) -> None:
    data = as_varint(value)
    assert varint(data, 0, len(data)) == (value, len(data))


def test_a_length_that_leads_out_of_the_file_is_seen() -> None:
    with pytest.raises(Torn, match="ends"):
        list(records(head(1, 100) + b"short", 0, 7))


# --- files -------------------------------------------------------------------------------------------------


def test_a_model_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "m.caffemodel"
    path.write_bytes(SMALL)
    with open_model(str(path)) as model:
        assert model.layers[0].name == "conv"


@pytest.mark.parametrize(
    "make", [lambda _: None, lambda p: p.mkdir(), lambda p: p.write_bytes(b"")], ids=["absent", "folder", "empty"]
)
def test_what_cannot_be_opened_is_no_traceback(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / "m")
    with pytest.raises(UsageError, match="cannot be read"), open_model(str(tmp_path / "m")):
        pass


def test_a_path_with_a_nul_is_no_path() -> None:
    with pytest.raises(UsageError), open_model("a\0b"):
        pass


def test_nothing_is_overwritten_and_nothing_half_written_stays(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"mine")
    with pytest.raises(UsageError, match="is there already"):
        write_pieces(path, [b"x"])
    with pytest.raises(UsageError, match="is there already"):
        require_free(tmp_path / "new", path)
    assert path.read_bytes() == b"mine"

    def stops() -> object:
        yield b"half"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_pieces(tmp_path / "new", stops())  # type: ignore[arg-type]
    assert not (tmp_path / "new").exists()
    with pytest.raises(DiskError):
        write_pieces(tmp_path / "no folder" / "new", [b""])


def test_a_link_that_leads_nowhere_is_there(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "away")
    with pytest.raises(UsageError, match="is there already"):
        require_free(tmp_path / "link")


def test_two_outputs_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="named twice"):
        require_free(tmp_path / "a", tmp_path / "a")
