"""Anchored edits on texts: found by text, in the file's own line ends, and never guessed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caffeup.bundle import bundled
from caffeup.model.outcome import PatchState
from caffeup.patch.edits import Edited, EditSpec, Missing, Spot, Text, parse_edit, work_out
from patchtools import EMPTIED_DECONVOLUTION

HEAD = 'title = "t"\nwhy = "w"\nsince = "s"\nwhom = "m"\nsource = ["a"]\n'


def spec(**fields: object) -> EditSpec:
    return EditSpec(title="t", why="w", since="s", whom="m", source=("a",), spots=(Spot(files=("f",), **fields),))  # type: ignore[arg-type]


def on(data: bytes, **fields: object) -> Edited:
    return work_out(spec(**fields), "the-edit", {"f": data}, {0: ("f",)})


def test_lines_go_after_the_line_of_the_anchor() -> None:
    outcome = on(b"one\ntwo three\nfour\n", anchor="two", after="new\n")
    assert outcome.state is PatchState.NEEDED
    assert outcome.files["f"] == b"one\ntwo three\nnew\nfour\n"


def test_lines_go_before_the_line_of_the_anchor() -> None:
    assert on(b"one\n  two\n", anchor="two", before="new\n").files["f"] == b"one\nnew\n  two\n"


def test_a_line_after_the_last_one_without_an_end() -> None:
    assert on(b"one\ntwo", anchor="two", after="new\n").files["f"] == b"one\ntwo\nnew\n"


@pytest.mark.parametrize("where", [{"before": "// new"}, {"after": "// new"}])
def test_a_line_that_lost_its_end_gets_one(where: dict[str, str]) -> None:
    lines = on(b"one\ntwo\nthree\n", anchor="two", **where).files["f"].splitlines()
    assert sorted(lines) == [b"// new", b"one", b"three", b"two"]


def test_groups_are_put_back() -> None:
    assert on(b"f(a, b);\n", regex=r"f\((\w+), \w+\)", replace=r"f(\1)").files["f"] == b"f(a);\n"


def test_a_literal_anchor_is_no_pattern() -> None:
    assert on(b"a.c\n", anchor="a.c", replace=r"\1").files["f"] == b"\\1\n"
    assert on(b"abc\n", anchor="a.c", replace="x").state is PatchState.CONFLICTING


def test_all_hits_are_changed_where_any_number_may_be() -> None:
    assert on(b"x y x\nx\n", anchor="x", hits=0, replace="z").files["f"] == b"z y z\nz\n"


def test_too_many_hits_are_a_conflict_that_names_the_lines() -> None:
    outcome = on(b"x\ny\nx\n", anchor="x", replace="z")
    assert outcome.state is PatchState.CONFLICTING
    assert not outcome.files
    finding = outcome.findings[0]
    assert finding.id == "patch-anchor-ambiguous"
    assert [(evidence.where, evidence.line) for evidence in finding.evidence] == [("f", 1), ("f", 3)]
    assert "lines 1, 3" in finding.title


def test_a_missing_anchor_is_a_conflict_or_nothing_to_do() -> None:
    assert on(b"y\n", anchor="x", replace="z").findings[0].id == "patch-anchor-missing"
    assert on(b"y\n", anchor="x", replace="z", missing=Missing.SKIP).state is PatchState.NOT_APPLICABLE


def test_done_is_seen_by_the_marker() -> None:
    outcome = on(b"x\nnew\n", anchor="x", after="new\n", done="^new$")
    assert outcome.state is PatchState.DONE
    assert not outcome.files


def test_crlf_stays_crlf_also_within_an_anchor_of_several_lines() -> None:
    assert on(b"a\r\nb\r\nc\r\n", anchor="a\nb\n", after="x\ny\n").files["f"] == b"a\r\nb\r\nx\r\ny\r\nc\r\n"
    assert on(b"a\r\nb\r\nc\r\n", regex="^b$", replace="B").files["f"] == b"a\r\nB\r\nc\r\n"


def test_a_few_foreign_line_ends_stay_as_they_are() -> None:
    assert on(b"a\nb\r\nc\nd\n", anchor="c", after="x\n").files["f"] == b"a\nb\r\nc\nx\nd\n"


def test_bytes_that_are_no_utf8_stay() -> None:
    assert on(b"// caf\xe9\nx\n", anchor="x", after="new\n").files["f"] == b"// caf\xe9\nx\nnew\n"


def test_a_conflict_in_one_file_changes_none() -> None:
    two = work_out(spec(anchor="x", replace="z"), "e", {"a": b"x", "b": b"y"}, {0: ("a", "b")})
    assert two.state is PatchState.CONFLICTING
    assert not two.files


def test_no_file_is_not_applicable() -> None:
    assert work_out(spec(anchor="x", replace="z"), "e", {}, {0: ()}).state is PatchState.NOT_APPLICABLE


@pytest.mark.parametrize(
    "spot",
    [
        'files = ["f"]\nreplace = "x"',
        'files = ["f"]\nanchor = "a"\nregex = "a"\nreplace = "x"',
        'files = ["f"]\nanchor = "a"',
        'files = ["f"]\nanchor = "a"\nreplace = "x"\nafter = "y"',
        'files = ["f"]\nregex = "("\nreplace = "x"',
        'files = ["f"]\nregex = "a"\nreplace = "x"\nwhere = "b"',
        'files = ["f"]\nregex = "(a)"\nreplace = "x"\nunless = "\\\\2"',
        'files = ["f"]\nregex = "(a)"\nreplace = "x"\nunless = "\\\\1("',
        'files = ["f"]\nanchor = "a"\nreplace = "x"\nline = 7',
    ],
)
def test_malformed_edits_are_refused(spot: str) -> None:
    with pytest.raises(ValueError):
        parse_edit(f"{HEAD}[[spots]]\n{spot}\n")


@given(st.binary(max_size=60).map(lambda data: data.replace(b"x", b"\r\n")))
def test_offsets_of_the_text_as_searched_lead_back_to_the_bytes(data: bytes) -> None:
    text = Text(data)
    for plain in range(len(text.plain)):
        assert data[text.offset(plain) :][:1] in (text.plain[plain : plain + 1], b"\r")
    assert text.offset(len(text.plain)) == len(data)


@given(st.lists(st.sampled_from([b"a\n", b"b\r\n", b"anchor\n", b"\xff\r", b"\n"])).map(b"".join))
def test_an_edit_never_touches_anything_else(data: bytes) -> None:
    outcome = on(data, anchor="anchor", hits=0, after="new line\n", missing=Missing.SKIP)
    changed = outcome.files.get("f", data)
    assert changed.replace(b"new line\r\n", b"").replace(b"new line\n", b"") == data


def own(name: str, text: str, *beside: str) -> Edited:
    """An edit of ours, on the text of one file, with others to look at."""
    spec = parse_edit((bundled("patches") / "edits" / f"{name}.toml").read_text())
    spots, others = range(len(spec.spots)), tuple(one.encode() for one in beside)
    return work_out(spec, name, {"f": text.encode()}, dict.fromkeys(spots, ("f",)), dict.fromkeys(spots, others))


CALLS = "\n\ndef resize_image(im, new_dims):\n    return resize(im, new_dims)\n"


def test_a_lost_import_is_put_after_that_of_numpy() -> None:
    outcome = own(
        "pycaffe-resize-import", f"'''Doc.'''\nfrom __future__ import division\nimport numpy as np\nimport skimage.io\n{CALLS}"
    )
    changed = outcome.files["f"].decode()
    assert changed.splitlines()[2:5] == [
        "import numpy as np",
        "from skimage.transform import resize  # it was missing",
        "import skimage.io",
    ]
    compile(changed, "io.py", "exec")
    assert own("pycaffe-resize-import", changed).state is PatchState.DONE


@pytest.mark.parametrize(
    "has",
    [
        "from skimage.transform import resize",
        "from skimage.transform import resize, rescale",
        "from skimage.transform import rescale, resize as resize",
        "from skimage.transform import (rescale,\n    resize)",
        "from skimage.transform import *",
        "try:\n    from skimage.transform import resize\nexcept ImportError:\n    resize = None",
        "def resize(im, size):\n    return im",
        "resize = np.resize",
    ],
)
def test_a_name_that_a_tree_has_is_not_imported_again(has: str) -> None:
    assert own("pycaffe-resize-import", f"import numpy as np\n{has}\n{CALLS}").state is PatchState.DONE


def test_an_import_of_something_else_is_not_taken_for_it() -> None:
    assert own("pycaffe-resize-import", f"import numpy as np\nfrom tools import resized\n{CALLS}").state is PatchState.NEEDED


FORWARD = """template <typename Dtype>
void RoiLayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom,
    const vector<Blob<Dtype>*>& top) {}
"""
BACKWARD = FORWARD.replace("Forward_gpu", "Backward_gpu")
DECLARED = """
template <typename Dtype> class OtherLayer;

template <typename Dtype>
class RoiLayer : public Layer<Dtype> {
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom,
      const vector<Blob<Dtype>*>& top)@F
  virtual void Backward_gpu(const vector<Blob<Dtype>*>& top,
      const vector<bool>& propagate_down, const vector<Blob<Dtype>*>& bottom)@B
};
"""


def declared(forward: str = ";", backward: str = ";", name: str = "RoiLayer") -> str:
    return DECLARED.replace("@F", forward).replace("@B", backward).replace("RoiLayer", name)


@pytest.mark.parametrize("line", ["INSTANTIATE_LAYER_GPU_FUNCS(RoiLayer);", "INSTANTIATE_LAYER_GPU_BACKWARD( RoiLayer );"])
def test_a_gpu_function_that_is_only_declared_calls_that_of_the_cpu(line: str) -> None:
    text = f"{FORWARD}\n{line}\n"
    changed = own("gpu-function-missing", text, declared(name="OtherLayer"), declared()).files["f"].decode()
    assert changed.count("RoiLayer<Dtype>::Backward_gpu(") == 1
    assert changed.count("::Forward_gpu(") == 1
    assert "  this->Backward_cpu(top, propagate_down, bottom);\n}\n\nINSTANTIATE" in changed
    assert own("gpu-function-missing", changed, declared()).files == {}


def test_both_may_be_missing() -> None:
    changed = own("gpu-function-missing", "INSTANTIATE_LAYER_GPU_FUNCS(RoiLayer);\r\n", declared()).files["f"].decode()
    assert changed.count("<Dtype>::Forward_gpu(") == changed.count("<Dtype>::Backward_gpu(") == 1
    assert changed.count("\n") == changed.count("\r\n")


@pytest.mark.parametrize(
    ("text", "header"),
    [
        (f"{FORWARD}{BACKWARD}INSTANTIATE_LAYER_GPU_FUNCS(RoiLayer);", declared()),  # both are there
        (f"{FORWARD}INSTANTIATE_LAYER_GPU_FUNCS(RoiLayer);\n{BACKWARD}", declared()),  # wherever
        (f"{FORWARD}INSTANTIATE_LAYER_GPU_FUNCS(RoiLayer);", declared(backward=" {}")),  # HDF5DataLayer, in every tree
        (f"{FORWARD}INSTANTIATE_LAYER_GPU_FUNCS(RoiLayer);", declared(backward=" {\n    NOT_IMPLEMENTED;\n  }")),  # SSD's
        (f"{FORWARD}INSTANTIATE_LAYER_GPU_FUNCS(RoiLayer);", declared(name="OtherLayer")),  # inherited: another error
        (f"{FORWARD}INSTANTIATE_LAYER_GPU_FUNCS(RoiLayer);", declared(backward=" {}") + declared(name="OtherLayer")),
        (f"{FORWARD}INSTANTIATE_LAYER_GPU_FORWARD(RoiLayer);", declared()),
        (f"{FORWARD}// INSTANTIATE_LAYER_GPU_FUNCS(RoiLayer);", declared()),
    ],
)
def test_gpu_functions_that_are_there_or_not_asked_for_are_not_added(text: str, header: str) -> None:
    assert own("gpu-function-missing", text, header).state is PatchState.NOT_APPLICABLE


def test_a_layer_without_a_cu_gets_both_from_the_cpu() -> None:
    changed = own(
        "gpu-function-missing", "#ifdef CPU_ONLY\nSTUB_GPU(RoiLayer);\n#endif\n\nINSTANTIATE_CLASS(RoiLayer);\n", declared()
    )
    text = changed.files["f"].decode()
    assert (
        text.count("  this->Backward_cpu(top, propagate_down, bottom);") == text.count("  this->Forward_cpu(bottom, top);") == 1
    )
    assert text.count("#ifndef CPU_ONLY") == text.count("#endif") - 1 == 2
    assert text.endswith("#endif\n\nINSTANTIATE_CLASS(RoiLayer);\n")
    assert own("gpu-function-missing", text, declared()).files == {}


@pytest.mark.parametrize(
    "beside",
    [
        (declared(), FORWARD + BACKWARD),  # a .cu has them
        (declared(), FORWARD),  # one of them: the .cu's own part
        (declared().replace("  virtual", "  // virtual"),),
        (declared(name="OtherLayer"),),
        (declared(forward=" = 0;", backward=" {}"),),
    ],
)
def test_a_layer_that_has_or_declares_none_is_left(beside: tuple[str, ...]) -> None:
    assert own("gpu-function-missing", "INSTANTIATE_CLASS(RoiLayer);\n", *beside).state is PatchState.NOT_APPLICABLE


def test_a_reshape_that_was_commented_out_runs_again() -> None:
    changed = own("cudnn-deconvolution-emptied", EMPTIED_DECONVOLUTION).files["f"].decode()
    body = changed[changed.index("::Reshape(int") : changed.index("::~")]
    for line in (
        "  bottom_offset_ = this->bottom_dim_ / this->group_;",
        "  // Why it is so.",
        "  for (int i = 0; i < given; i++) {\n    set(i);\n\n  }\n}",
    ):
        assert f"\n{line}\n" in body
    assert "  // A comment that stays one.\n" in changed
    assert "  // Neither is this touched.\n" in changed
    assert own("cudnn-deconvolution-emptied", changed).state is PatchState.DONE
