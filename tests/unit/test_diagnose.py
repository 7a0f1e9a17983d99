"""Logs to causes: every sample, also changed in the ways that logs differ; clean logs; unknown errors; hostile text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from caffeup.diagnose.catalogue import catalogue
from caffeup.diagnose.context import Context
from caffeup.diagnose.diagnose import diagnose
from caffeup.diagnose.findings import FLOODED, STOPPED, UNKNOWN
from caffeup.diagnose.read import read
from caffeup.diagnose.scan import ALIKE, BLOCK, KIND, SHAPES, candidates
from caffeup.diagnose.scan import FLOOD as FLOOD_FROM
from caffeup.facts.load import load_facts
from caffeup.model.finding import Confidence, Finding, Severity

FACTS = load_facts()
LOGS = Path(__file__).resolve().parents[1] / "logs"
SAMPLES = sorted(path for path in LOGS.glob("*/*.log") if path.parent.name != "clean")
KINDS = catalogue(FACTS.fixes).kinds
NORMAL = {fix.id for fix in FACTS.fixes if fix.normal}
CLEAN = sorted((LOGS / "clean").glob("*.log"))


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def causes(text: str, context: Optional[Context] = None) -> tuple[Finding, ...]:
    return diagnose(text.splitlines(), FACTS, context)


def ids(text: str, context: Optional[Context] = None) -> list[str]:
    return [finding.id for finding in causes(text, context)]


@pytest.mark.parametrize("path", SAMPLES, ids=name_of)
def test_the_cause_of_a_sample_comes_first(path: Path) -> None:
    found = diagnose(read([path.read_bytes()]), FACTS, log=path.name)
    assert found, "nothing found"
    assert found[0].id == path.parent.name
    assert found[0].evidence[0].line is not None
    assert found[0].title
    assert found[0].confidence_because
    assert not any(finding.id in {UNKNOWN, STOPPED} for finding in found), "a consequence is shown as an error of its own"


@pytest.mark.parametrize("path", CLEAN, ids=name_of)
def test_nothing_is_found_in_a_clean_log(path: Path) -> None:
    assert diagnose(read([path.read_bytes()]), FACTS) == ()


def elsewhere(text: str) -> str:
    text = re.sub(r"(?<![\w/.-])(?:\./)?(src|include)/caffe/", r"/data/build-7/fork (1)/\1/caffe/".replace(" (1)", "-1"), text)
    return text.replace(".build_release/", "/data/build-7/fork-1/build/")


def other_lines(text: str) -> str:
    return re.sub(r"(\.\w+)([:(])(\d+)(?=[:)])", lambda m: f"{m[1]}{m[2]}{int(m[3]) + 371}", text)


def straight(text: str) -> str:
    return text.replace("‘", "'").replace("’", "'").replace("“", '"').replace("”", '"')


def coloured(text: str) -> str:
    text = re.sub(r"((?:fatal )?error|错误|致命错误)([:：])", "\x1b[01;31m\x1b[K\\1\\2\x1b[m\x1b[K", text)
    return re.sub("‘([^’]*)’", "‘\x1b[01m\x1b[K\\1\x1b[m\x1b[K’", text)


def interleaved(text: str) -> str:
    other = (
        "CXX src/caffe/layers/a_layer.cpp",
        "src/caffe/b.cpp:10:5: warning: unused variable ‘error’ [-Wunused-variable]",
        "      |  ^~~",
    )
    return "\n".join(part for line in text.splitlines() for part in (*other, line))


def stamped(text: str) -> str:
    return "\n".join(f"2026-01-02T03:04:05.{i:07d}Z {line}" for i, line in enumerate(text.splitlines()))


def buried(text: str) -> str:
    before = "\n".join(f"CXX src/caffe/layers/layer_{i}.cpp" for i in range(2500))
    return f"{before}\n{text}\n{before}"


def windows(text: str) -> str:
    return text.replace("\n", "\r\n")


def after_progress(text: str) -> str:
    return "\n".join(f"[ 10%] working\r[ 11%] working\r{line}" for line in text.splitlines())


CHANGES = (elsewhere, other_lines, straight, coloured, interleaved, stamped, buried, windows, after_progress)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("path", SAMPLES, ids=name_of)
def test_a_changed_sample_has_the_same_cause(path: Path, change: Callable[[str], str]) -> None:
    if change is buried and path.parent.name in NORMAL:
        return  # the log must end with it: see below
    text = change(path.read_text(encoding="utf-8"))
    found = diagnose(read([text.encode()]), FACTS)
    assert found
    assert found[0].id == path.parent.name


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "gb18030"])
@pytest.mark.parametrize("path", [path for path in SAMPLES if path.stem.endswith("_zh")], ids=name_of)
def test_a_chinese_log_in_any_encoding(path: Path, codec: str) -> None:
    found = diagnose(read([path.read_text(encoding="utf-8").encode(codec, errors="replace")]), FACTS)
    assert [finding.id for finding in found][:1] == [path.parent.name]


def test_the_first_error_is_shown_and_what_follows_in_the_same_file_is_folded() -> None:
    text = """CXX src/caffe/foo.cpp
src/caffe/foo.cpp:10:3: error: expected ‘;’ before ‘}’ token
src/caffe/foo.cpp:11:3: error: ‘bar’ does not name a type
make: *** [Makefile:591: .build_release/src/caffe/foo.o] Error 1
"""
    (found,) = causes(text)
    assert found.id == UNKNOWN
    assert found.severity is Severity.PROBLEM
    assert found.confidence is Confidence.UNSURE
    assert "expected ';'" in found.title
    assert found.evidence[0].line == 2
    assert {evidence.line for evidence in found.evidence} == {1, 2, 3, 4}
    assert found.remedies, "says what to collect"


def test_several_causes_are_found_in_the_order_of_the_log() -> None:
    text = """./include/caffe/util/hdf5.hpp:6:10: fatal error: hdf5.h: No such file or directory
src/caffe/util/io.cpp:76:34: error: ‘CV_LOAD_IMAGE_COLOR’ was not declared in this scope
/usr/bin/ld: cannot find -lopenblas
"""
    assert ids(text) == ["hdf5-header", "opencv4-c-constants", "openblas-library"]


def test_an_unknown_error_in_another_file_is_not_hidden_by_a_known_one() -> None:
    text = """src/caffe/util/io.cpp:76:34: error: ‘CV_LOAD_IMAGE_COLOR’ was not declared in this scope
src/caffe/util/io.cpp:99:1: error: expected ‘}’ at end of input
src/caffe/net.cpp:5:1: error: ‘Nett’ does not name a type
"""
    found = causes(text)
    assert [finding.id for finding in found] == ["opencv4-c-constants", UNKNOWN]
    assert "Nett" in found[1].title
    assert found[1].severity is Severity.WARNING


def test_a_log_without_its_error_says_so() -> None:
    (found,) = causes("CXX src/caffe/net.cpp\nmake: *** [Makefile:591: .build_release/src/caffe/net.o] Error 1\n")
    assert found.id == STOPPED


def test_a_crash_is_shown_only_where_nothing_tells_why() -> None:
    assert [finding.id for finding in causes("Segmentation fault (core dumped)")] == ["crash"]
    assert [finding.id for finding in causes("Illegal instruction (core dumped)")] == [UNKNOWN]
    assert ids("ValueError: something new\nSegmentation fault (core dumped)") == [UNKNOWN]
    why = "F0930 23:28:34.930538  3746 syncedmem.cpp:56] Check failed: error == cudaSuccess (2 vs. 0)  out of memory\n"
    assert ids(why + "Segmentation fault (core dumped)") == ["gpu-out-of-memory"]


def test_warnings_and_notes_are_never_the_error() -> None:
    text = """src/caffe/util/io.cpp:76:34: warning: ‘CV_LOAD_IMAGE_COLOR’ was not declared in this scope
src/caffe/util/io.cpp:57:34: note: no matching function for call to ‘SetTotalBytesLimit’
src/caffe/x.cu(12): warning #177-D: variable "error" was declared but never referenced
nvcc warning : The 'compute_35' architecture is deprecated: error in future releases
"""
    assert causes(text) == ()


def test_harmless_noise_comes_last_and_is_no_problem() -> None:
    text = """./include/caffe/util/cudnn.hpp:21:10: warning: enumeration value ‘CUDNN_STATUS_DEPRECATED’ not handled in switch [-Wswitch]
/usr/bin/ld: cannot find -lopenblas
"""
    found = causes(text)
    assert [finding.id for finding in found] == ["openblas-library", "cudnn-status-switch"]
    assert found[1].severity is Severity.NOTE
    assert not found[1].remedies


ARCH = "nvcc fatal   : Unsupported gpu architecture 'compute_61'"


def test_causes_that_read_alike_are_told_apart_by_the_machine() -> None:
    old, new = Context(versions={"cuda": Version("7.5")}), Context(versions={"cuda": Version("13.0")})
    assert ids(ARCH, old) == ["arch-too-new"]
    assert ids(ARCH, new) == ["arch-too-old"]
    assert causes(ARCH, old)[0].confidence is Confidence.CERTAIN


def test_causes_that_read_alike_are_listed_with_what_decides_where_nothing_is_known() -> None:
    found = causes(ARCH)
    assert {finding.id for finding in found} == {"arch-too-new", "arch-too-old"}
    assert all(finding.confidence is Confidence.UNSURE for finding in found)
    assert "nvcc --version" in found[0].confidence_because


def test_the_log_itself_tells_the_version() -> None:
    assert ids(f"nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 7.5, V7.5.17\n{ARCH}") == ["arch-too-new"]
    assert ids(f"g++ -I/usr/local/cuda-13.0/include -c x.cpp\n{ARCH}") == ["arch-too-old"]


def test_what_the_log_tells_wins_over_the_machine_at_hand() -> None:
    here = Context(versions={"cuda": Version("13.0")})
    assert ids(f"g++ -I/usr/local/cuda-7.5/include -c x.cpp\n{ARCH}", here) == ["arch-too-new"]


def test_a_cause_that_does_not_fit_the_machine_is_unsure() -> None:
    text = "src/caffe/common.cpp:194:58: error: ‘struct cudaDeviceProp’ has no member named ‘clockRate’"
    (found,) = causes(text, Context(versions={"cuda": Version("11.8")}))
    assert found.confidence is Confidence.UNSURE
    assert "CUDA 11.8" in found.confidence_because


def test_lines_nearby_decide_between_alike_causes() -> None:
    check = "F1217 08:19:28.327307  6021 cudnn_conv_layer.cpp:53] Check failed: status == CUDNN_STATUS_SUCCESS (4 vs. 0)  CUDNN_STATUS_INTERNAL_ERROR"
    mobile = "I1217 08:19:26.459537  6021 net.cpp:84] Creating Layer conv5/dw"
    full = "E1217 08:19:26.459537  6021 common.cpp:114] Cannot create Cublas handle. Cublas won't be available."
    assert ids(f"{mobile}\n{check}")[0] == "cudnn-handles"
    assert ids(f"{full}\n{check}")[0] == "gpu-memory-at-start"
    assert len([name for name in ids(check) if name in {"cudnn-handles", "gpu-memory-at-start"}]) == 2


def test_packages_are_named_for_the_distribution() -> None:
    text = "./include/caffe/util/hdf5.hpp:6:10: fatal error: hdf5.h: No such file or directory"
    commands = [
        command
        for remedy in causes(text, Context(distro="ubuntu", distro_version="22.04"))[0].remedies
        for command in remedy.commands
    ]
    assert "sudo apt-get --no-install-recommends install libhdf5-dev" in commands
    fedora = [command for remedy in causes(text, Context(distro="fedora"))[0].remedies for command in remedy.commands]
    assert any("dnf" in command and "hdf5-devel" in command for command in fedora)
    unknown = causes(text)[0].remedies
    assert any("libhdf5-dev" in remedy.text and "hdf5-devel" in remedy.text for remedy in unknown)


def test_the_distribution_that_a_log_shows_wins_over_the_one_here() -> None:
    text = "./include/caffe/util/hdf5.hpp:6:10: fatal error: hdf5.h: No such file or directory"
    here = Context(distro="debian", distro_version="12")
    assert any("apt-get" in one for one in commands_of(causes(text, here)[0]))
    theirs = f"Using built-in specs. COLLECT_LTO_WRAPPER=/usr/libexec/gcc/x86_64-redhat-linux/11/lto-wrapper\n/usr/lib/gcc/x86_64-redhat-linux/11/cc1plus\n{text}"
    commands = commands_of(causes(theirs, here)[0])
    assert any("dnf" in one for one in commands)
    assert not any("apt-get" in one for one in commands)
    mint = Context(distro="linuxmint", distro_like=("ubuntu", "debian"), distro_version="21")
    assert any("apt-get" in one for one in commands_of(causes(f"gcc version 9.4.0 (Ubuntu 9.4.0-1ubuntu1)\n{text}", mint)[0]))


def test_commands_name_the_tree() -> None:
    found = causes("/usr/bin/ld: cannot find -lopenblas", Context(tree="/srv/my tree"))
    assert ("caffeup up '/srv/my tree'",) in [remedy.commands for remedy in found[0].remedies]


def test_what_a_symptom_picks_out_stands_in_the_words_and_nothing_else_can() -> None:
    error = "host_config.h:139:2: error: #error -- unsupported GNU version! gcc versions later than 11 are not supported!"
    assert any("g++-11" in remedy.text for remedy in causes(error)[0].remedies)
    evil = "ModuleNotFoundError: No module named 'numpy.$(reboot)'"
    assert all("reboot" not in command for finding in causes(evil) for remedy in finding.remedies for command in remedy.commands)
    evil = "/bin/sh: 1: $(reboot): not found"
    assert all("reboot" not in command for finding in causes(evil) for remedy in finding.remedies for command in remedy.commands)


def commands_of(finding: Finding) -> list[str]:
    return [command for remedy in finding.remedies for command in remedy.commands]


def test_a_command_for_a_name_that_cannot_be_pasted_is_left_out() -> None:
    plain, spaced = (
        "RuntimeError: Could not open file models/a.prototxt",
        "RuntimeError: Could not open file my models/a.prototxt",
    )
    assert "ls -l models/a.prototxt" in commands_of(causes(plain)[0])
    assert ids(spaced) == ["file-not-there"]
    assert commands_of(causes(spaced)[0]) == []


def test_the_shell_for_a_tree_is_set_up_in_that_tree_or_the_one_below() -> None:
    text = "ModuleNotFoundError: No module named 'caffe'"
    assert commands_of(causes(text)[0]) == ['eval "$(caffeup env)"']
    assert commands_of(causes(text, Context(tree="/srv/my tree"))[0]) == ["eval \"$(caffeup env '/srv/my tree')\""]


UNKNOWN_FIELD = '[libprotobuf ERROR text_format.cc:1] Error parsing text-format caffe.NetParameter: 1:2: Message type "caffe.{}" has no field named "{}".'


@pytest.mark.parametrize(
    ("message", "field", "row"),
    [
        ("LayerParameter", "multibox_loss_param", "ssd-parameter-unknown"),
        ("TransformationParameter", "distort_param", "ssd-parameter-unknown"),
        ("LayerParameter", "roi_pooling_param", "fast-rcnn-parameter-unknown"),
        ("LayerParameter", "dense_image_data_param", "segnet-parameter-unknown"),
        ("LayerParameter", "clip_param", "newer-parameter-unknown"),
        ("LayerParameter", "permute_parm", "prototxt-field-unknown"),
    ],
)
def test_a_field_leads_to_the_fork_that_has_it_and_to_nothing_else(message: str, field: str, row: str) -> None:
    (found,) = causes(UNKNOWN_FIELD.format(message, field))
    assert found.id == row
    assert found.confidence is Confidence.CERTAIN
    assert field in found.title


def test_the_package_to_install_is_called_by_its_own_name() -> None:
    names = {"skimage": "scikit-image", "cv2": "opencv-python-headless", "yaml": "pyyaml", "PIL": "pillow", "scipy": "scipy"}
    for module, package in names.items():
        assert f"python3 -m pip install {package}" in commands_of(causes(f"ImportError: No module named {module}")[0])


FACTORY = "F0102 03:04:05.000001 4321 layer_factory.hpp:81] Check failed: registry.count(type) == 1 (0 vs. 1) Unknown layer type: {} (known types: AbsVal, Accuracy, Convolution, DepthwiseConvolution, ReLU, SoftmaxWithLoss)"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("DeptwiseConvolution", "DepthwiseConvolution"),
        ("depthwiseconvolution", "DepthwiseConvolution"),
        ("Softmaxwithloss", "SoftmaxWithLoss"),
        ("Convolutoin", "Convolution"),
        ("RELU", "ReLU"),
        ("Mish", ""),
        ("ReLU6x", ""),
        ("Focus", ""),
    ],
)
def test_only_a_close_name_is_proposed_for_an_unknown_layer(written: str, meant: str) -> None:
    (found,) = causes(FACTORY.format(written))
    proposed = [remedy.text for remedy in found.remedies if "list of known types" in remedy.text]
    assert [meant in text for text in proposed] == [True] * bool(meant)
    assert found.id == ("depthwise-type-unknown" if "epth" in written or "ept" in written else "unknown-layer-type")


def test_what_a_healthy_run_says_too_is_told_only_where_the_log_ends_with_it() -> None:
    line = "I0420 21:39:48.002400 18740 blocking_queue.cpp:50] Data layer prefetch queue empty"
    on = "I0420 21:39:49.002400 18740 solver.cpp:239] Iteration 20, loss = 2.1"
    assert ids("\n".join([line] * 200)) == ["data-layer-starves"]
    assert ids("\n".join([line] * 200 + ["", " "])) == ["data-layer-starves"]
    assert ids(f"{line}\n{on}") == []


def test_a_line_of_information_may_tell_a_cause_and_is_a_warning() -> None:
    line = "I0731 11:35:23.808466 23599 solver.cpp:239] Iteration 60 (2.1 iter/s, 9.5s/20 iters), loss = {}"
    (found,) = causes(line.format("nan"))
    assert (found.id, found.severity) == ("loss-not-a-number", Severity.WARNING)
    assert ids(line.format("0.04")) == ids(line.format("0")) == []
    assert ids(line.format("nan") + "\nValueError: something new") == ["loss-not-a-number", UNKNOWN]


def test_each_of_several_missing_libraries_is_shown() -> None:
    (found,) = causes("/usr/bin/ld: cannot find -lboost_filesystem\n/usr/bin/ld: cannot find -lboost_thread\n")
    assert [one.line for one in found.evidence] == [1, 2]


def shown(findings: tuple[Finding, ...]) -> str:
    return "".join(f"{f.title}{f.why}{f.affects}{''.join(e.text for e in f.evidence)}" for f in findings)


def test_nothing_hostile_reaches_the_terminal() -> None:
    text = "src/a.cpp:1:1: error: \x1b]0;owned\x07\x1b[2J\x9b31m‘x\u202e\u200b\x00’ was not\x08 declared \x1b]8;;http://x\x1b\\in this scope\udc80"
    found = diagnose([text], FACTS)
    assert found
    assert shown(found).isprintable()
    assert "owned" not in shown(found)


@given(st.lists(st.text(st.characters(), max_size=200), max_size=30))
@settings(max_examples=150, deadline=None)
def test_any_text_is_accepted(lines: list[str]) -> None:
    assert shown(diagnose(lines, FACTS)).isprintable()


WORDS = (
    "error:",
    "错误：",
    "undefined reference to `",
    "Check failed:",
    "src/caffe/a.cpp:1:2:",
    "‘",
    "’",
    "make: ***",
    "]",
    "(2 vs. 0)",
    "[  FAILED  ]",
    "\r",
)


@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_mixture_of_the_words_of_errors_is_accepted(lines: list[str]) -> None:
    found = diagnose(lines, FACTS)
    assert len(found) <= 64 + 3


def test_a_flood_of_errors_stays_bounded() -> None:
    flood = (f"src/caffe/f{i}.cpp:{i}:1: error: ‘thing{i}’ was not declared in this scope" for i in range(20000))
    found = diagnose(flood, FACTS)
    assert [finding.id for finding in found] == [UNKNOWN] * 3
    assert found[0].evidence[0].line == 1


def test_after_a_flood_of_lines_alike_others_are_still_seen() -> None:
    flood = [f"src/caffe/f{i}.cpp:{i}:1: error: ‘thing{i}’ was not declared in this scope" for i in range(9000)]
    quiet = [f"CXX src/caffe/layers/layer_{i}.cpp" for i in range(9000)]
    last = ["/usr/bin/ld: cannot find -lopenblas"]
    assert diagnose([*flood, *quiet, *last], FACTS)[0].id == "openblas-library"


def test_a_keyword_holds_no_digit() -> None:
    """Lines that differ only in their digits are taken for alike, so none of them may matter by a digit alone."""
    assert not [word for word in catalogue(FACTS.fixes).keywords if re.search(r"\d", word)]


def test_only_the_first_of_many_lines_alike_are_looked_at() -> None:
    lines = [f"a{i}.cpp:{i}:1: error: x" for i in range(100 * BLOCK)]
    looked = sum(1 for _ in candidates(lines, ("rror",), KINDS, lambda _: None))
    assert ALIKE <= looked <= BLOCK + ALIKE


def names(many: int) -> list[str]:
    """Names that differ in more than digits, and hold no word that anybody looks for."""
    return ["".join(letters) for letters in itertools.islice(itertools.product("bcdfghjkqz", repeat=6), many)]


def test_many_lines_of_one_kind_are_looked_at_for_a_while_only() -> None:
    lines = [f"{name}.cpp: error: {name}" for name in names(5 * SHAPES)]
    looked = [one.number for one in candidates(lines, ("rror",), KINDS, lambda _: None)]
    assert looked == [*range(1, KIND + 1), 5 * SHAPES], "and the last line of the log"


FLOOD = (
    "src/caffe/{0}.cpp:7:5: error: '{0}' was not declared in this scope",
    "src/caffe/{0}.cpp:7:5: warning: '{0}' is an error that failed",
    "{0}.cpp:(.text+0x286a): undefined reference to `caffe::{0}::New()'",
    "/usr/bin/ld: cannot find -l{0}",
    "src/caffe/{0}.cpp:7:5: fatal error: {0}.h: No such file or directory",
    "ModuleNotFoundError: No module named '{0}'",
    "F0930 23:28:34.930538  3746 {0}.cpp:56] Check failed: {0} == {0} (2 vs. 0)",
)


def kind_of(line: str) -> bytes:
    return KINDS.of(re.sub("[‘’]", "'", line).encode())


@pytest.mark.parametrize("path", SAMPLES, ids=name_of)
def test_no_line_that_a_symptom_asks_for_is_of_the_kind_of_unknown_ones(path: Path) -> None:
    """Or a flood of errors that nobody knows would hide it."""
    lines = path.read_text(encoding="utf-8").splitlines()
    (first, *_) = diagnose(lines, FACTS)
    assert kind_of(lines[(first.evidence[0].line or 0) - 1]) not in {kind_of(text.format("bcdfgh")) for text in FLOOD}


def test_after_a_flood_of_its_like_a_known_error_is_still_seen() -> None:
    flood = [text.format(name) for name in names(KIND + 100) for text in FLOOD]
    last = "src/caffe/util/io.cpp:76:34: error: ‘CV_LOAD_IMAGE_COLOR’ was not declared in this scope"
    assert ids("\n".join([*flood, last]))[0] == "opencv4-c-constants"


def test_a_huge_line_is_cut() -> None:
    found = diagnose(["src/a.cpp:1:1: error: " + "x" * 10_000_000], FACTS)
    assert len(shown(found)) < 5000


def test_a_log_that_stops_in_the_middle_of_a_line() -> None:
    assert ids("CXX a.cpp\n/usr/bin/ld: cannot find -lopenb") == [UNKNOWN]
    assert ids("/usr/bin/ld: cannot find -lopenblas") == ["openblas-library"]


def test_versions_at_the_top_of_a_long_log_are_remembered() -> None:
    banner = "Cuda compilation tools, release 7.5, V7.5.17\n"
    assert ids(banner + "CXX a.cpp\n" * 30000 + ARCH) == ["arch-too-new"]


def test_an_empty_log_has_no_cause() -> None:
    assert diagnose([], FACTS) == ()


def test_line_numbers_are_right_across_blocks() -> None:
    lines = ["CXX a.cpp"] * 9999
    for place in (0, 2035, 2036, 2047, 2048, 2049, 4096, 9998):
        text = [*lines]
        text[place] = "/usr/bin/ld: cannot find -lopenblas"
        found = diagnose(text, FACTS)
        assert [(f.id, f.evidence[0].line) for f in found] == [("openblas-library", place + 1)]


@pytest.mark.parametrize(
    "line",
    [
        "src/a.cpp:3:4: error: something new",
        "src/a.cpp:3:4: internal compiler error: in expand_expr, at expr.c:1",
        "src/a.cu(3): error: something new",
        "src/a.cu(3): catastrophic error: something new",
        "src/a.cpp:3:4: 错误：新的东西",
        "src/a.cpp:3:4: 编译器内部错误：在 x 中",
        "[ 50%] src/a.cpp:3:4: fatal error: something new",
        "cc1plus: error: something new",
        "clang: error: something new",
        "a.o: undefined reference to `newthing()'",
        "a.o：对‘newthing()’未定义的引用",
        "ld.lld: error: undefined symbol: newthing()",
        "/usr/bin/ld: cannot find -lnewthing",
        "/usr/bin/ld: 找不到 -lnewthing",
        "/usr/bin/ld: cannot find crti.o: No such file or directory",
        "b.o: multiple definition of `main'",
        "nvcc fatal   : Unknown option 'new'",
        "ptxas fatal   : Unresolved extern function 'new'",
        "nvlink error   : Undefined reference to 'new'",
        "/bin/sh: 1: ./new tool: Permission denied",
        "Makefile:12: *** missing separator.  Stop.",
        "Makefile:6: *** CUDA_DIR is not set.  Stop.",
        "CMake Error at CMakeLists.txt:1 (new):",
        "F0102 03:04:05.123456  4321 new.cpp:12] something new",
        "F20260102 03:04:05.123456  4321 new.cpp:12] something new",
        "new.cpp:12] Check failed: new == old (1 vs. 2) ",
        "[libprotobuf FATAL google/protobuf/new.cc:1] CHECK failed: new: ",
        "[  FAILED  ] NewTest/0.TestNew, where TypeParam = caffe::CPUDevice<float>",
        "./tool: error while loading shared libraries: libnew.so: wrong ELF class",
        "ValueError: something new",
        "caffe.new.NewError: something new",
        "ModuleNotFoundError: No module named 'newthing'",
        "Fatal Python error: something new",
        "Bus error (core dumped)",
        "terminate called after throwing an instance of 'std::runtime_error'",
        "Illegal instruction",
    ],
)
def test_an_error_of_every_kind_is_seen_without_being_known(line: str) -> None:
    (found,) = causes(f"before\n{line}\nafter")
    assert found.id == UNKNOWN
    assert found.evidence[0].line == 2


def test_what_a_flood_passes_over_is_told_and_other_errors_are_still_seen() -> None:
    flood = [
        f"src/caffe/{name}.cpp:7:5: error: '{name}' was not declared in this scope" for name in names(KIND + FLOOD_FROM + 9000)
    ]
    last = ["src/caffe/util/io.cpp:76:34: error: ‘CV_LOAD_IMAGE_COLOR’ was not declared in this scope", "CXX done"]
    found = diagnose([*flood, *last], FACTS)
    assert found[0].id == "opencv4-c-constants"
    told = found[-1]
    assert (told.id, told.severity) == (FLOODED, Severity.NOTE)
    assert int(told.title.split()[0]) > 1000
    assert (told.evidence[0].line or 0) > KIND + FLOOD_FROM


def test_where_nothing_is_passed_over_nothing_is_told() -> None:
    flood = [f"src/caffe/{name}.cpp:7:5: error: '{name}' was not declared in this scope" for name in names(5000)]
    assert FLOODED not in [one.id for one in diagnose(flood, FACTS)]
