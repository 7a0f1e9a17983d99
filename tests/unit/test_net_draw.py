"""Pictures of nets: which layers are one box, where boxes stand, and a file that is XML whatever the net holds."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caffeup.app.net_draw import draw_net
from caffeup.errors import UsageError
from caffeup.net.make.detector import Order
from caffeup.net.make.mobilenet import mobilenet_ssd
from caffeup.net.make.spelling import spelled
from caffeup.net.model import read_net
from caffeup.net.picture import layout
from caffeup.net.picture.boxes import Picture, picture
from caffeup.net.picture.layout import Size, lay_out
from caffeup.net.picture.svg import drawn
from caffeup.net.text import parse


def boxes(text: str) -> Picture:
    return picture(read_net(parse(text.encode())).layers, {})


def layer(name: str, kind: str, bottom: str, top: str) -> str:
    return f'layer {{ name: "{name}" type: "{kind}" bottom: "{bottom}" top: "{top}" }}\n'


def test_a_convolution_and_what_belongs_to_it_are_one_box() -> None:
    text = layer("c", "Convolution", "data", "c") + layer("b", "BatchNorm", "c", "c") + layer("s", "Scale", "c", "d")
    found = boxes(text + layer("r", "ReLU", "d", "d") + layer("p", "Pooling", "d", "p"))
    assert [box.name for box in found.boxes] == ["c", "p"]
    assert found.boxes[0].lines[1] == "BatchNorm · Scale · ReLU"
    assert found.edges == ((0, 1),)


def test_what_two_layers_read_is_not_hidden_in_a_box() -> None:
    text = layer("c", "Convolution", "data", "c") + layer("r", "ReLU", "c", "r") + layer("p", "Pooling", "c", "p")
    found = boxes(text)
    assert [box.name for box in found.boxes] == ["c", "r", "p"]
    assert found.edges == ((0, 1), (0, 2))


def test_a_well_known_net() -> None:
    found = picture(read_net(parse(spelled(mobilenet_ssd(Order(21, 300))).encode())).layers, {})
    kinds = [box.kind for box in found.boxes]
    assert kinds.count("depthwise") == 13
    assert kinds.count("prior") == 6
    assert kinds.count("convolution") == 14 + 8 + 12


nets = st.integers(1, 14).flatmap(
    lambda many: st.tuples(
        st.lists(st.tuples(st.integers(20, 90), st.integers(10, 60)), min_size=many, max_size=many),
        st.lists(
            st.tuples(st.integers(0, many - 1), st.integers(0, many - 1)).filter(lambda edge: edge[0] < edge[1]),
            max_size=30,
            unique=True,
        )
        if many > 1
        else st.just([]),
    )
)


@given(nets)
def test_no_two_boxes_overlap_and_lines_go_down(case: tuple[list[tuple[int, int]], list[tuple[int, int]]]) -> None:
    sizes, edges = [Size(*map(float, size)) for size in case[0]], case[1]
    found = lay_out(sizes, edges)
    for one, (x, y) in enumerate(found.places):
        assert x - sizes[one].width / 2 >= 0
        assert x + sizes[one].width / 2 <= found.width
        assert y - sizes[one].height / 2 >= 0
        assert y + sizes[one].height / 2 <= found.height
        for other in range(one):
            apart_x = abs(x - found.places[other][0]) >= (sizes[one].width + sizes[other].width) / 2
            apart_y = abs(y - found.places[other][1]) >= (sizes[one].height + sizes[other].height) / 2
            assert apart_x or apart_y
    for (start, end), line in zip(edges, found.lines):
        assert line[0][1] == pytest.approx(found.places[start][1] + sizes[start].height / 2)
        assert line[-1][1] == pytest.approx(found.places[end][1] - sizes[end].height / 2)
        assert [y for _, y in line] == sorted(y for _, y in line)


def test_a_chain_is_a_straight_line() -> None:
    found = lay_out([Size(50, 20)] * 5, [(number, number + 1) for number in range(4)])
    assert len({round(x, 6) for x, _ in found.places}) == 1


def test_too_many_bends_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "_MOST_BENDS", 40)
    chain = [(number, number + 1) for number in range(30)]
    found = lay_out([Size(50, 20)] * 31, [*chain, (0, 30)])
    assert [len(line) for line in found.lines] == [2] * 31


def test_nothing_at_all_is_a_picture_too() -> None:
    assert lay_out([], []).places == ()


HOSTILE = '<script>alert(1)</script>&"\\033[31m\\000'


def test_the_file_is_xml_whatever_the_names_are() -> None:
    text = "\n".join(drawn(boxes(layer(HOSTILE.replace('"', ""), "A<b", "data", "x")), "a & b"))
    root = ET.fromstring(text)  # noqa: S314  # our own
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "\033" not in text
    assert "<script" not in text


def test_the_picture_is_written_beside_the_net_and_not_over_another(tmp_path: Path) -> None:
    (tmp_path / "n.prototxt").write_text(spelled(mobilenet_ssd(Order(21, 300))))
    done = draw_net(str(tmp_path / "n.prototxt"))
    text = (tmp_path / "n.svg").read_text()
    assert done.picture == str(tmp_path / "n.svg")
    assert "1x512x19x19" in text
    assert "BatchNorm · Scale · ReLU" in text
    with pytest.raises(UsageError, match="is there already"):
        draw_net(str(tmp_path / "n.prototxt"))
