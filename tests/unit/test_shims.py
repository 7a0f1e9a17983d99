"""Shims against headers with the removed and with the kept interface of each version, and against what is installed here."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from caffeup.bundle import bundled
from caffeup.facts.load import load_facts
from caffeup.model.fix import Edit, NewFile, Shim, ShimLibrary
from caffeup.patch.edits import parse_edit
from caffeup.patch.wanted import entries_of, shim_files, shim_library

SHIMS = bundled("patches") / "shims"
EDITS = bundled("patches") / "edits"
COMPILERS = [found for found in (shutil.which("g++"), shutil.which("clang++")) if found]
needs_compiler = pytest.mark.skipif(not COMPILERS, reason="no C++ compiler")

VERSION_2 = "#define CV_VERSION_EPOCH 2\n#define CV_VERSION_MAJOR 4\n"
C_HIGHGUI = (
    "enum { CV_LOAD_IMAGE_GRAYSCALE = 0, CV_LOAD_IMAGE_COLOR = 1 };\nenum { CV_IMWRITE_JPEG_QUALITY = 1 };\n"
    "enum { CV_CAP_ANY = 0, CV_CAP_PROP_POS_MSEC = 0, CV_CAP_PROP_POS_FRAMES = 1, CV_CAP_PROP_POS_AVI_RATIO = 2, CV_CAP_PROP_FRAME_WIDTH = 3,\n"
    "  CV_CAP_PROP_FRAME_HEIGHT = 4, CV_CAP_PROP_FPS = 5, CV_CAP_PROP_FOURCC = 6, CV_CAP_PROP_FRAME_COUNT = 7 };\n"
    "static inline int CV_FOURCC(char a, char b, char c, char d) { return a + (b << 8) + (c << 16) + (d << 24); }\n"
)
C_IMGPROC = "enum { CV_BGR2GRAY = 6, CV_GRAY2BGR = 8, CV_BGR2HSV = 40 };\nenum { CV_THRESH_BINARY_INV = 1, CV_THRESH_OTSU = 8 };\n#define CV_FILLED -1\n#define CV_AA 16\n"
CORE = "namespace cv { struct Scalar { Scalar(double, double, double, double) {} }; struct VideoCapture {}; }\n"
RGB = "#define CV_RGB(r, g, b) cv::Scalar((b), (g), (r), 0)\n"


def opencv(version: int) -> dict[str, str]:
    """OpenCV's headers as far as they matter here: what each version includes from where, and what it defines."""
    if version == 2:
        return {
            "opencv2/core/version.hpp": VERSION_2,
            "opencv2/core/core.hpp": '#include "opencv2/core/version.hpp"\n' + CORE,
            "opencv2/imgproc/imgproc.hpp": '#include "opencv2/core/core.hpp"\n#include "opencv2/imgproc/types_c.h"\n' + RGB,
            "opencv2/imgproc/types_c.h": C_IMGPROC,
            "opencv2/highgui/highgui_c.h": C_HIGHGUI,
            "opencv2/highgui/highgui.hpp": '#include "opencv2/core/core.hpp"\n#include "opencv2/highgui/highgui_c.h"\n',
            "opencv2/opencv.hpp": '#include "opencv2/highgui/highgui.hpp"\n#include "opencv2/imgproc/imgproc.hpp"\n',
        }
    found = {
        "opencv2/core/core.hpp": '#include "opencv2/core.hpp"\n',
        "opencv2/core.hpp": '#include "opencv2/core/version.hpp"\n' + CORE,
        "opencv2/core/version.hpp": f"#define CV_VERSION_MAJOR {version}\n",
        "opencv2/imgcodecs.hpp": '#include "opencv2/core.hpp"\nnamespace cv { enum ImreadModes { IMREAD_UNCHANGED = -1, IMREAD_GRAYSCALE = 0, IMREAD_COLOR = 1,'
        " IMREAD_ANYDEPTH = 2, IMREAD_ANYCOLOR = 4 };\nenum { IMWRITE_JPEG_QUALITY = 1, IMWRITE_PNG_COMPRESSION = 16, IMWRITE_PXM_BINARY = 32 }; }\n",
        "opencv2/imgcodecs/imgcodecs.hpp": '#include "opencv2/imgcodecs.hpp"\n',
        "opencv2/videoio.hpp": '#include "opencv2/core.hpp"\nnamespace cv { enum { CAP_PROP_POS_FRAMES = 1 }; }\n',
        "opencv2/videoio/videoio.hpp": '#include "opencv2/videoio.hpp"\n',
        "opencv2/imgproc.hpp": '#include "opencv2/core.hpp"\n' + imgproc_constants() + RGB,
        "opencv2/imgproc/imgproc.hpp": '#include "opencv2/imgproc.hpp"\n',
        "opencv2/highgui.hpp": '#include "opencv2/core.hpp"\n#include "opencv2/imgcodecs.hpp"\n#include "opencv2/videoio.hpp"\n',
        "opencv2/highgui/highgui.hpp": '#include "opencv2/highgui.hpp"\n',
        "opencv2/opencv.hpp": '#include "opencv2/imgproc.hpp"\n#include "opencv2/highgui.hpp"\n',
    }
    if version == 3:
        found["opencv2/highgui/highgui_c.h"] = '#include "opencv2/imgproc/imgproc_c.h"\n' + C_HIGHGUI
        found["opencv2/imgproc/types_c.h"] = C_IMGPROC
        found["opencv2/imgproc/imgproc_c.h"] = '#include "opencv2/imgproc/types_c.h"\n'
        found["opencv2/highgui.hpp"] += '#include "opencv2/highgui/highgui_c.h"\n'
        found["opencv2/imgproc.hpp"] += '#include "opencv2/imgproc/imgproc_c.h"\n'
    if version == 4:
        first, _, rest = C_HIGHGUI.partition("enum { CV_CAP_ANY")
        found["opencv2/imgcodecs/legacy/constants_c.h"] = first
        found["opencv2/videoio/legacy/constants_c.h"] = "enum { CV_CAP_ANY" + rest
        found["opencv2/imgproc/types_c.h"] = C_IMGPROC
        found["opencv2/imgproc/imgproc_c.h"] = '#include "opencv2/imgproc/types_c.h"\n'
        found["opencv2/highgui/highgui_c.h"] = '#include "opencv2/imgproc/imgproc_c.h"\n'
        found["opencv2/imgcodecs/imgcodecs_c.h"] = '#error "This header with legacy C API declarations has been removed"\n'
    return found


def imgproc_constants() -> str:
    """All of imgproc's names that the shim stands on, with the real values of those that are compared."""
    text = (SHIMS / "opencv/caffeup/opencv_constants.h").read_text()
    names = [name for name in re.findall(r"= cv::(\w+),", text) if not name.startswith(("IMREAD", "IMWRITE"))]
    known = {
        "COLOR_BGR2GRAY": 6,
        "COLOR_GRAY2BGR": 8,
        "COLOR_BGR2HSV": 40,
        "THRESH_BINARY_INV": 1,
        "THRESH_OTSU": 8,
        "FILLED": -1,
        "LINE_AA": 16,
    }
    return "namespace cv { enum Imgproc { " + ", ".join(f"{name} = {known.get(name, 99)}" for name in names) + " }; }\n"


USE = """
template <bool holds> struct Is;
template <> struct Is<true> { enum { yes = 1 }; };
enum {
  a = Is<CV_LOAD_IMAGE_COLOR == 1>::yes, b = Is<CV_LOAD_IMAGE_GRAYSCALE == 0>::yes, c = Is<CV_BGR2GRAY == 6>::yes,
  d = Is<CV_GRAY2BGR == 8>::yes, e = Is<(CV_THRESH_BINARY_INV | CV_THRESH_OTSU) == 9>::yes, f = Is<CV_FILLED == -1>::yes,
  g = Is<CV_CAP_PROP_FRAME_COUNT == 7>::yes, h = Is<CV_IMWRITE_JPEG_QUALITY == 1>::yes, i = Is<CV_BGR2HSV == 40>::yes, j = Is<CV_AA == 16>::yes
};
int code() { cv::Scalar color = CV_RGB(1, 2, 3); (void)color; return CV_FOURCC('D', 'I', 'V', 'X'); }
"""
AS_CAFFE = "#include <opencv2/core/core.hpp>\n#include <opencv2/highgui/highgui.hpp>\n#include <opencv2/highgui/highgui_c.h>\n#include <opencv2/imgproc/imgproc.hpp>\n"
AS_SSD = (
    "#include <opencv2/highgui/highgui.hpp>\n#if CV_VERSION_MAJOR {0} 3\n#include <opencv2/imgcodecs/imgcodecs.hpp>\n"
    "#define CV_BGR2GRAY cv::COLOR_BGR2GRAY\n#define CV_GRAY2BGR cv::COLOR_GRAY2BGR\n#define CV_IMWRITE_JPEG_QUALITY cv::IMWRITE_JPEG_QUALITY\n"
    "#define CV_LOAD_IMAGE_COLOR cv::IMREAD_COLOR\n#define CV_THRESH_OTSU cv::THRESH_OTSU\n#endif\n#include <opencv2/imgproc/imgproc.hpp>\n"
)
SOURCES = {
    "caffe": AS_CAFFE,
    "ssd": AS_SSD.format("=="),
    "ssd-moved-on": AS_SSD.format(">="),
    "one": "#include <opencv2/opencv.hpp>\n",
    "videoio-first": "#include <opencv2/videoio/videoio.hpp>\n" + AS_CAFFE,
    "new-names": "#include <opencv2/highgui.hpp>\n#include <opencv2/imgproc.hpp>\n",
    "c-first": "#include <opencv2/imgproc/types_c.h>\n#include <opencv2/imgcodecs/imgcodecs_c.h>\n" + AS_CAFFE,
    "opencv1": "#include <opencv/cv.h>\n#include <highgui.h>\n",
}


def lay(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"#pragma once\n{text}")
    return folder


def compiles(compiler: str, standard: str, source: str, *folders: Path) -> str:
    """Empty, or what the compiler said."""
    flags = [flag for folder in folders for flag in ("-I", str(folder))]
    argv = [compiler, "-x", "c++", f"-std={standard}", "-fsyntax-only", "-Wall", "-Werror=undef", "-Wno-unused", *flags, "-"]
    done = subprocess.run(argv, input=source, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


@needs_compiler
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("version", [2, 3, 4, 5])
@pytest.mark.parametrize("source", SOURCES)
def test_opencv_constants_are_there_with_every_version(tmp_path: Path, compiler: str, version: int, source: str) -> None:
    if version == 2 and source in ("ssd-moved-on", "c-first"):
        pytest.skip("CV_VERSION_MAJOR is 4 in OpenCV 2.4; there are no such headers")
    if version < 4 and source in ("opencv1", "c-first"):
        pytest.skip("these versions have headers of their own for this")
    real = lay(tmp_path, opencv(version))
    standards = ("c++98", "c++17") if version == 2 else ("c++11", "c++20")
    for standard in standards:
        assert compiles(compiler, standard, SOURCES[source] + USE, SHIMS / "opencv", real) == ""


@needs_compiler
@pytest.mark.parametrize("version", [4, 5])
def test_without_the_shim_they_are_not(tmp_path: Path, version: int) -> None:
    said = compiles(COMPILERS[0], "c++17", SOURCES["one"] + USE, lay(tmp_path, opencv(version)))
    assert "CV_LOAD_IMAGE_COLOR" in said


@needs_compiler
def test_opencv_2_under_the_names_of_opencv_3(tmp_path: Path) -> None:
    real = lay(tmp_path, opencv(2))
    source = (
        "#include <opencv2/core.hpp>\n#include <opencv2/videoio/videoio.hpp>\n#include <opencv2/imgcodecs/imgcodecs.hpp>\n#include <opencv2/imgproc.hpp>\n"
        "struct Layer { cv::VideoCapture cap_; };\nint frames = cv::CAP_PROP_FRAME_COUNT + CV_CAP_PROP_POS_FRAMES;\n"
    )
    for standard in ("c++98", "c++17"):
        assert compiles(COMPILERS[0], standard, source, SHIMS / "opencv", real) == ""


def protobuf(version: int, *forms: str) -> dict[str, str]:
    members = " ".join(f"void SetTotalBytesLimit({form});" for form in forms)
    return {
        "google/protobuf/stubs/common.h": f"#define GOOGLE_PROTOBUF_VERSION {version}\n",
        "google/protobuf/io/coded_stream.h": f"namespace google {{ namespace protobuf {{ namespace io {{ class CodedInputStream {{ public: {members} }}; }} }} }}\n",
    }


@needs_compiler
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    ("version", "forms", "calls"),
    [
        (2006001, ("int, int",), ("1, 2",)),
        (3005001, ("int, int",), ("1, 2",)),
        (3011004, ("int, int", "int"), ("1, 2", "1")),
        (3012004, ("int, int", "int"), ("1, 2", "1")),
        (3013000, ("int",), ("1, 2", "1")),
        (3021012, ("int",), ("1, 2", "1")),
        (4022000, ("int",), ("1, 2", "f(1, 2), 2", "1")),
        (7036000, ("int",), ("1, 2", "1")),
    ],
)
def test_bytes_limit_with_every_protobuf(
    tmp_path: Path, compiler: str, version: int, forms: tuple[str, ...], calls: tuple[str, ...]
) -> None:
    real = lay(tmp_path, protobuf(version, *forms))
    body = " ".join(f"stream->SetTotalBytesLimit({call});" for call in calls)
    source = (
        "#include <google/protobuf/stubs/common.h>\n#include <google/protobuf/io/coded_stream.h>\n#include <google/protobuf/io/coded_stream.h>\n"
        f"int f(int a, int b);\nvoid read(google::protobuf::io::CodedInputStream* stream) {{ {body} }}\n"
    )
    for standard in ("c++11", "c++20"):
        assert compiles(compiler, standard, source, SHIMS / "protobuf", real) == ""


@needs_compiler
@pytest.mark.parametrize("standard", ["c++98", "c++11", "c++20"])
def test_standard_headers_come_with_what_common_hpp_includes_first(tmp_path: Path, standard: str) -> None:
    real = lay(tmp_path, {"boost/shared_ptr.hpp": "namespace boost { template <typename T> struct shared_ptr {}; }\n"})
    source = (
        "#include <boost/shared_ptr.hpp>\nboost::shared_ptr<int> p;\nuint8_t byte = 1;\nint most = std::numeric_limits<int>::max();\n"
        "void f(int* a) { std::sort(a, a + 1); std::memcpy(a, a, 0); }\n"
    )
    assert compiles(COMPILERS[0], standard, source, SHIMS / "standard", real) == ""
    assert compiles(COMPILERS[0], standard, source, real) != ""


@needs_compiler
@pytest.mark.skipif(not Path("/usr/include/opencv4").is_dir(), reason="no OpenCV 4 here")
@pytest.mark.parametrize("source", sorted(set(SOURCES) - {"videoio-first"}))
def test_opencv_as_it_is_installed_here(source: str) -> None:
    assert compiles(COMPILERS[0], "c++17", SOURCES[source] + USE, SHIMS / "opencv", Path("/usr/include/opencv4")) == ""


@needs_compiler
@pytest.mark.parametrize("shared", [False, True])
def test_shim_libraries_link(tmp_path: Path, shared: bool) -> None:
    for library in (ShimLibrary(name="vanished"), ShimLibrary(name="renamed", links="m pthread")):
        path, image = shim_library(library)
        (tmp_path / Path(path).name).write_bytes(image.data or b"")
    source = tmp_path / "a.cpp"
    source.write_text('extern "C" double cos(double);\nint main(int count, char**) { return cos(count) > 2; }\n')
    flags = ("-shared", "-fPIC", "-Wl,-z,defs") if shared else ()
    argv = [
        COMPILERS[0],
        "-nodefaultlibs",
        *flags,
        str(source),
        "-o",
        str(tmp_path / "out"),
        "-L",
        str(tmp_path),
        "-lvanished",
        "-lrenamed",
        "-lc",
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.parametrize("shim", sorted(SHIMS.rglob("*.h*")), ids=lambda path: str(path.relative_to(SHIMS)))
def test_every_shim_says_why_since_when_and_for_whom(shim: Path) -> None:
    text = shim.read_text()
    head = text[: text.index("*/")]
    assert all(f" * {word}:" in head for word in ("Why", "Since", "Whom"))
    guard = re.search(r"^#ifndef (CAFFEUP_\w+)\n#define \1\n", text, re.MULTILINE)
    assert guard is not None


def test_every_shim_belongs_to_a_fix_and_every_remedy_has_its_file() -> None:
    fixes = load_facts().fixes
    used = {source for fix in fixes for remedy in fix.remedy if isinstance(remedy, Shim) for source, _ in shim_files(remedy)}
    assert {str(path.relative_to(SHIMS)) for path in SHIMS.rglob("*.h*")} <= used
    edits = {remedy.edit for fix in fixes for remedy in fix.remedy if isinstance(remedy, Edit)}
    assert {path.stem for path in EDITS.glob("*.toml")} == edits
    for fix in fixes:
        if not any(isinstance(remedy, NewFile) for remedy in fix.remedy):
            entries_of(fix, "")


def test_no_two_fixes_put_different_headers_under_one_name() -> None:
    taken: dict[str, set[str]] = {}
    for fix in load_facts().fixes:
        for remedy in fix.remedy:
            for source, name in shim_files(remedy) if isinstance(remedy, Shim) else ():
                taken.setdefault(name, set()).add(source)
    assert [name for name, sources in taken.items() if len(sources) > 1] == []


@pytest.mark.parametrize("edit", sorted(EDITS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_edit_is_well_formed_and_sourced(edit: Path) -> None:
    spec = parse_edit(edit.read_bytes())
    assert spec.source
    assert all(not path.startswith("/") and ".." not in path for spot in spec.spots for path in spot.files)
