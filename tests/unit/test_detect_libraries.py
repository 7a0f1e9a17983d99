"""Libraries: headers and link-time libraries that belong together, whatever the distribution."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from packaging.version import Version

from caffeup.deps.transaction import parse_transaction
from caffeup.detect.libraries import Libraries, probe_libraries
from caffeup.detect.parse.boost_python import made_for
from caffeup.detect.parse.library_version import agrees, from_defines, from_file_name, from_pattern
from caffeup.detect.parse.pkg_config import parse_package_file
from caffeup.detect.parse.protobuf import parse_protoc
from caffeup.detect.parse.python_answer import parse_answer
from caffeup.detect.python_query import MARK
from caffeup.facts.load import load_facts
from caffeup.model.machine import Library, System
from smallmachine import small_machine

ROWS = load_facts().libraries
DEBIAN = System(distro="debian", triplet="x86_64-linux-gnu")
FEDORA = System(distro="fedora")
LIB = "/usr/lib/x86_64-linux-gnu"


def probe(
    folder: Path, files: dict[str, str], *prefixes: str, system: System = DEBIAN, env: Optional[dict[str, str]] = None
) -> Libraries:
    return probe_libraries(small_machine(folder, files, env=env), system, ROWS, prefixes)


def only(found: Libraries, name: str) -> Library:
    (library,) = [one for one in found.libraries if one.name == name]
    return library


def outcome(found: Libraries, name: str) -> str:
    (missing,) = [one for one in found.missing if one.what == name]
    return " | ".join(f"{attempt.where}: {attempt.outcome}" for attempt in missing.tried)


def boost(root: str, number: str, libs: str, *names: str) -> dict[str, str]:
    major, minor, patch = (int(part) for part in number.split("."))
    files = {
        f"{root}/include/boost/version.hpp": f"#define BOOST_VERSION {major * 100000 + minor * 100 + patch}\n",
        f"{root}/include/boost/shared_ptr.hpp": "",
    }
    for name in names:
        files[f"{libs}/libboost_{name}.so.{number}"] = ""
        files[f"{libs}/libboost_{name}.so"] = f"-> libboost_{name}.so.{number}"
    return files


def opencv(root: str, include: str, libs: str, version: str, *modules: str) -> dict[str, str]:
    return {
        f"{root}/{include}/opencv2/core/core.hpp": "",
        f"{root}/{include}/opencv2/highgui/highgui.hpp": "",
        f"{root}/{include}/opencv2/imgproc/imgproc.hpp": "",
        f"{root}/{include}/opencv2/core/version.hpp": version,
        **{f"{libs}/libopencv_{module}.so": "" for module in modules},
    }


class TestDebian:
    def test_hdf5_lies_in_the_serial_folders(self, tmp_path: Path) -> None:
        serial = {
            "/usr/include/hdf5/serial/hdf5.h": "",
            "/usr/include/hdf5/serial/hdf5_hl.h": "",
            "/usr/include/hdf5/serial/H5public.h": "#define H5_VERS_MAJOR\t1\n#define H5_VERS_MINOR 10 /* x */\n#define H5_VERS_RELEASE 8\n",
            f"{LIB}/hdf5/serial/libhdf5.so": "",
            f"{LIB}/hdf5/serial/libhdf5_hl.so": "",
            f"{LIB}/libhdf5_serial.so": "",
            f"{LIB}/libhdf5_serial_hl.so": "",
        }
        library = only(probe(tmp_path, serial), "hdf5")
        assert library.version == Version("1.10.8")
        assert library.include_dirs == ("/usr/include/hdf5/serial",)
        assert library.library_dirs == (f"{LIB}/hdf5/serial",)
        assert library.libraries == ("hdf5_hl", "hdf5")

    def test_the_hdf5_header_of_opencv_is_a_decoy(self, tmp_path: Path) -> None:
        found = probe(tmp_path, {"/usr/include/opencv2/flann/hdf5.h": "", f"{LIB}/hdf5/serial/libhdf5.so": ""})
        assert "no hdf5.h" in outcome(found, "hdf5")

    def test_openblas_by_debians_alternatives_needs_no_folder(self, tmp_path: Path) -> None:
        real = "/usr/include/x86_64-linux-gnu/openblas-pthread"
        files = {
            f"{real}/cblas.h": "",
            f"{real}/openblas_config.h": '#define OPENBLAS_VERSION " OpenBLAS 0.3.21 "\n',
            "/usr/include/x86_64-linux-gnu/cblas.h": f"-> {real}/cblas.h",
            "/usr/include/x86_64-linux-gnu/openblas_config.h": f"-> {real}/openblas_config.h",
            f"{LIB}/openblas-pthread/libopenblasp-r0.3.21.so": "",
            f"{LIB}/openblas-pthread/libopenblas.so": "-> libopenblasp-r0.3.21.so",
            f"{LIB}/openblas-pthread/libblas.so.3": "",
            f"{LIB}/libopenblas.so": f"-> {LIB}/openblas-pthread/libopenblas.so",
            f"{LIB}/libblas.so": f"-> {LIB}/openblas-pthread/libblas.so.3",
        }
        found = probe(tmp_path, files)
        library = only(found, "openblas")
        assert (library.include_dirs, library.library_dirs, library.libraries) == ((), (), ("openblas",))
        assert library.version == Version("0.3.21")
        assert "another one behind a common name" in outcome(found, "refblas")

    def test_an_unpacked_openblas_has_no_alternatives(self, tmp_path: Path) -> None:
        files = {
            "/p/usr/include/x86_64-linux-gnu/openblas-openmp/cblas.h": "",
            "/p/usr/lib/x86_64-linux-gnu/openblas-openmp/libopenblas.so": "",
        }
        library = only(probe(tmp_path, files, "/p/"), "openblas")
        assert library.include_dirs == ("/p/usr/include/x86_64-linux-gnu/openblas-openmp",)
        assert library.library_dirs == ("/p/usr/lib/x86_64-linux-gnu/openblas-openmp",)
        assert library.via == "--prefix /p/"

    def test_opencv4_folder_and_modules(self, tmp_path: Path) -> None:
        four = "#define CV_VERSION_MAJOR    4\n#define CV_VERSION_MINOR    6\n#define CV_VERSION_REVISION 0\n"
        modules = ("core", "highgui", "imgproc", "imgcodecs", "videoio")
        library = only(probe(tmp_path, opencv("/usr", "include/opencv4", LIB, four, *modules)), "opencv")
        assert library.version == Version("4.6.0")
        assert library.include_dirs == ("/usr/include/opencv4",)
        assert library.libraries == ("opencv_core", "opencv_highgui", "opencv_imgproc", "opencv_imgcodecs", "opencv_videoio")

    def test_opencv_24_has_an_epoch_and_no_imgcodecs(self, tmp_path: Path) -> None:
        two = (
            "#define CV_VERSION_EPOCH 2\n#define CV_VERSION_MAJOR 4\n#define CV_VERSION_MINOR 9\n#define CV_VERSION_REVISION 1\n"
        )
        library = only(probe(tmp_path, opencv("/usr", "include", LIB, two, "core", "highgui", "imgproc")), "opencv")
        assert library.version == Version("2.4.9")
        assert library.include_dirs == ()
        assert "opencv_imgcodecs" not in library.libraries

    def test_opencv_3_without_imgcodecs_is_not_whole(self, tmp_path: Path) -> None:
        three = "#define CV_VERSION_MAJOR 3\n#define CV_VERSION_MINOR 2\n#define CV_VERSION_REVISION 0\n"
        found = probe(tmp_path, opencv("/usr", "include", LIB, three, "core", "highgui", "imgproc"))
        assert "no libopencv_imgcodecs" in outcome(found, "opencv")


class TestFedora:
    def test_lib64_and_the_openblas_folder(self, tmp_path: Path) -> None:
        files = {"/usr/include/openblas/cblas.h": "", "/usr/lib64/libopenblas.so": "", "/usr/lib/": ""}
        library = only(probe(tmp_path, files, system=FEDORA), "openblas")
        assert library.include_dirs == ("/usr/include/openblas",)
        assert library.library_dirs == ()

    def test_atlas_of_rhel_is_one_library(self, tmp_path: Path) -> None:
        files = {"/usr/include/atlas/cblas.h": "", "/usr/lib64/atlas/libsatlas.so": "", "/usr/lib64/atlas/libtatlas.so": ""}
        library = only(probe(tmp_path, files, system=FEDORA), "atlas")
        assert library.libraries == ("satlas",)
        assert library.library_dirs == ("/usr/lib64/atlas",)


class TestBoost:
    def test_headers_and_libraries_of_one_version(self, tmp_path: Path) -> None:
        library = only(probe(tmp_path, boost("/usr", "1.74.0", LIB, "system", "filesystem", "thread", "regex")), "boost")
        assert library.version == Version("1.74.0")
        assert library.libraries == ("boost_filesystem", "boost_thread", "boost_system", "boost_regex")

    def test_headers_beside_a_library_of_another_version(self, tmp_path: Path) -> None:
        files = boost("/usr", "1.74.0", LIB, "system", "filesystem", "thread", "regex")
        files["/usr/include/boost/version.hpp"] = "#define BOOST_VERSION 106501\n"
        found = probe(tmp_path, files)
        assert "headers of 1.65.1, but" in outcome(found, "boost")
        assert [finding.id for finding in found.findings] == ["library-mixed"]

    def test_system_is_header_only_from_169(self, tmp_path: Path) -> None:
        assert only(probe(tmp_path / "new", boost("/usr", "1.90.0", LIB, "filesystem", "thread")), "boost").version == Version(
            "1.90"
        )
        found = probe(tmp_path / "old", boost("/usr", "1.58.0", LIB, "filesystem", "thread"))
        assert "no libboost_system" in outcome(found, "boost")

    def test_two_copies_are_kept_and_reported(self, tmp_path: Path) -> None:
        files = boost("/usr", "1.74.0", LIB, "filesystem", "thread", "system", "regex")
        files.update(boost("/home/u/boost", "1.90.0", "/home/u/boost/lib", "filesystem", "thread"))
        found = probe(tmp_path, files, "/home/u/boost")
        assert [str(one.version) for one in found.libraries] == ["1.90.0", "1.74.0"]
        assert [finding.id for finding in found.findings] == ["library-copies"]


class TestProtobuf:
    @pytest.mark.parametrize(
        ("header", "text", "version"),
        [
            ("stubs/common.h", "#define GOOGLE_PROTOBUF_VERSION 2006001\n", "2.6.1"),
            ("stubs/common.h", "#define GOOGLE_PROTOBUF_VERSION 3021012\n", "3.21.12"),
            ("runtime_version.h", "#define PROTOBUF_VERSION 6033002\n", "6.33.2"),
        ],
    )
    def test_version(self, tmp_path: Path, header: str, text: str, version: str) -> None:
        files = {
            "/usr/include/google/protobuf/message.h": "",
            f"/usr/include/google/protobuf/{header}": text,
            f"{LIB}/libprotobuf.so": "",
        }
        assert only(probe(tmp_path, files), "protobuf").version == Version(version)

    def test_abseil_is_linked_from_22_on(self, tmp_path: Path) -> None:
        files = {
            "/usr/include/google/protobuf/message.h": "",
            "/usr/include/google/protobuf/stubs/common.h": "#define GOOGLE_PROTOBUF_VERSION 4025001\n",
            f"{LIB}/libprotobuf.so": "",
            f"{LIB}/libabsl_log_internal_message.so": "",
            f"{LIB}/libabsl_base.so": "",
            f"{LIB}/pkgconfig/protobuf.pc": "prefix=/usr\nRequires: absl_log >= 20230802, absl_base\nLibs: -L${prefix}/lib -lprotobuf\n",
            f"{LIB}/pkgconfig/absl_log.pc": "Requires: absl_base = 20230802, absl_log\nLibs: -labsl_log_internal_message\n",
            f"{LIB}/pkgconfig/absl_base.pc": "Libs: -labsl_base -lrt\n",
        }
        assert only(probe(tmp_path, files), "protobuf").libraries == ("protobuf", "absl_log_internal_message", "absl_base")


class TestHalves:
    def test_left_over_headers_that_hide_the_right_ones(self, tmp_path: Path) -> None:
        files = {
            "/usr/local/include/google/protobuf/message.h": "",
            "/usr/local/include/google/protobuf/stubs/common.h": "#define GOOGLE_PROTOBUF_VERSION 3002000\n",
            "/usr/include/google/protobuf/message.h": "",
            "/usr/include/google/protobuf/stubs/common.h": "#define GOOGLE_PROTOBUF_VERSION 2006001\n",
            f"{LIB}/libprotobuf.so": "",
        }
        found = probe(tmp_path, files)
        assert only(found, "protobuf").version == Version("2.6.1")
        (finding,) = found.findings
        assert finding.id == "library-shadowed"
        assert "/usr/local/include" in finding.title

    def test_library_without_header_and_run_time_alone(self, tmp_path: Path) -> None:
        found = probe(tmp_path, {f"{LIB}/liblmdb.so": "", f"{LIB}/libglog.so.1": ""})
        assert "liblmdb.so without lmdb.h" in outcome(found, "lmdb")
        assert "development package is not installed" in outcome(found, "glog")

    def test_a_dangling_link_is_no_library(self, tmp_path: Path) -> None:
        found = probe(tmp_path, {"/usr/include/lmdb.h": "", f"{LIB}/liblmdb.so": "-> liblmdb.so.0"})
        assert "lmdb.h without liblmdb" in outcome(found, "lmdb")

    def test_an_empty_machine(self, tmp_path: Path) -> None:
        found = probe(tmp_path, {})
        assert found.libraries == ()
        assert {one.what for one in found.missing} == {row.id for row in ROWS if row.kind == "library"}


class TestPlaces:
    def test_conda_is_recorded_last(self, tmp_path: Path) -> None:
        header = "#define MDB_VERSION_MAJOR 0\n#define MDB_VERSION_MINOR 9\n#define MDB_VERSION_PATCH 24\n"
        files = {
            "/opt/conda/include/lmdb.h": header,
            "/opt/conda/lib/liblmdb.so": "",
            "/usr/include/lmdb.h": header,
            f"{LIB}/liblmdb.so": "",
        }
        found = probe(tmp_path, files, env={"CONDA_PREFIX": "/opt/conda"})
        assert [one.prefix for one in found.libraries] == ["/usr", "/opt/conda"]

    def test_a_conda_in_opt_that_is_not_active_does_not_count(self, tmp_path: Path) -> None:
        files = {
            "/opt/conda/include/lmdb.h": "",
            "/opt/conda/lib/liblmdb.so": "",
            "/opt/conda/conda-meta/": "",
            "/opt/x/include/": "",
        }
        assert probe(tmp_path / "off", files).libraries == ()
        (active,) = probe(tmp_path / "on", files, env={"CONDA_PREFIX": "/opt/conda"}).libraries
        assert active.via == "env CONDA_PREFIX"

    def test_by_hand_below_usr_local(self, tmp_path: Path) -> None:
        library = only(
            probe(
                tmp_path,
                boost(
                    "/usr/local/boost_1_66_0", "1.66.0", "/usr/local/boost_1_66_0/lib", "filesystem", "thread", "system", "regex"
                ),
            ),
            "boost",
        )
        assert (library.via, library.prefix) == ("glob /usr/local/boost*", "/usr/local/boost_1_66_0")

    def test_a_prefix_that_is_not_there_and_a_relative_one(self, tmp_path: Path) -> None:
        found = probe(tmp_path, {"/empty/": ""}, "/nowhere", "relative", "/empty")
        assert [finding.id for finding in found.findings] == ["prefix-empty"] * 3
        assert "does not exist" in found.findings[0].title
        assert "absolute" in found.findings[1].title

    def test_a_prefix_with_glob_characters(self, tmp_path: Path) -> None:
        files = {
            "/a [1]*/usr/include/x86_64-linux-gnu/openblas-serial/cblas.h": "",
            "/a [1]*/usr/lib/openblas-serial/libopenblas.a": "",
        }
        assert only(probe(tmp_path, files, "/a [1]*"), "openblas").libraries == ("openblas",)

    def test_mkl_in_oneapis_root(self, tmp_path: Path) -> None:
        root = "/opt/intel/oneapi/mkl/latest"
        files = {
            f"{root}/include/mkl.h": "",
            f"{root}/include/mkl_cblas.h": "",
            f"{root}/include/mkl_version.h": "#define __INTEL_MKL__ 2024\n#define __INTEL_MKL_MINOR__ 0\n#define __INTEL_MKL_UPDATE__ 1\n",
            f"{root}/lib/libmkl_rt.so": "",
        }
        library = only(probe(tmp_path, files), "mkl")
        assert (library.version, library.library_dirs) == (Version("2024.0.1"), (f"{root}/lib",))

    def test_the_same_root_given_twice(self, tmp_path: Path) -> None:
        files = {"/usr/include/lmdb.h": "", f"{LIB}/liblmdb.so": ""}
        assert len(probe(tmp_path, files, "/usr", "/usr/").libraries) == 1


class TestGlog:
    @pytest.mark.parametrize(
        ("files", "version"),
        [
            ({f"{LIB}/pkgconfig/libglog.pc": "Name: libglog\nVersion: 0.4.0\n"}, "0.4.0"),
            ({f"{LIB}/cmake/glog/glog-config-version.cmake": 'set (PACKAGE_VERSION "0.7.1")\n'}, "0.7.1"),
            ({"/usr/include/glog/export.h": "", "/usr/include/glog/flags.h": ""}, "0.7"),
            ({"/usr/include/glog/export.h": ""}, "0.6"),
        ],
    )
    def test_version(self, tmp_path: Path, files: dict[str, str], version: str) -> None:
        found = probe(tmp_path, {"/usr/include/glog/logging.h": "", f"{LIB}/libglog.so": "", **files})
        assert only(found, "glog").version == Version(version)

    def test_no_version_at_all_is_still_found(self, tmp_path: Path) -> None:
        assert only(probe(tmp_path, {"/usr/include/glog/logging.h": "", f"{LIB}/libglog.a": ""}), "glog").version is None


def test_an_unreadable_version_header(tmp_path: Path) -> None:
    host = small_machine(tmp_path, {"/usr/include/lmdb.h": "x", f"{LIB}/liblmdb.so": ""}, unreadable=("/usr/include/lmdb.h",))
    assert only(probe_libraries(host, DEBIAN, ROWS), "lmdb").version is None


class TestParsing:
    def test_radix(self) -> None:
        assert from_defines("#define BOOST_VERSION 109200\n", ("BOOST_VERSION",), (100000, 100, 1)) == Version("1.92.0")
        assert from_defines("#define A 1\n", ("A", "B")) is None

    def test_pattern_leaves_out_absent_groups(self) -> None:
        assert from_pattern("Version: 0.7", r"(\d+)\.(\d+)(?:\.(\d+))?") == Version("0.7")
        assert from_pattern("nothing", r"(\d+)") is None

    def test_file_names(self) -> None:
        assert from_file_name("/x/libboost_system.so.1.74.0") == Version("1.74.0")
        assert from_file_name("/x/libopenblasp-r0.3.21.so") == Version("0.3.21")
        assert from_file_name("/x/libopencv_core.a") is None

    def test_a_so_number_of_one_part_says_nothing(self) -> None:
        assert agrees(Version("4.6.0"), Version("406"), 2)
        assert not agrees(Version("4.6.0"), Version("4.5.4"), 2)

    def test_package_file(self) -> None:
        parsed = parse_package_file(
            "a=x\nb=${a}y\nVersion: ${b} 1\nRequires: p >= 1.0, q,r\nLibs: -L/x -lone \\\n -ltwo -l\nrubbish\n: =\n"
        )
        assert parsed.version == "xy 1"
        assert parsed.requires == ("p", "q", "r")
        assert parsed.libraries == ("one", "two")


FRAGMENTS = (
    "#define BOOST_VERSION ", "#define H5_VERS_MAJOR ", "Version: ", "Requires: ", "Libs: -l", "${", "}", "=", "libprotoc ", MARK, '{"version": "',
    "9" * 5000, "٣", "²", "\ud800", "1.", ".", "\n", "\0", " ", "\\\n", ".so.", "upgraded, ", " newly installed, ", " to remove", "Need to get ", " MB",
    "After this operation, ", "Transaction Summary\n", "Installing:\n ", "The following packages will be REMOVED:\n  ", "replacing ",
)  # fmt: skip
TEXT = st.one_of(st.text(), st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=5)), max_size=20).map("".join))


@given(text=TEXT)
@example(text="#define BOOST_VERSION " + "9" * 5000)
@example(text="Need to get " + "9" * 5000 + " MB " + "9" * 5000 + " upgraded, 1 newly installed, 0 to remove")
@example(text=MARK + '{"version": "\ud800')
@example(text=MARK + '{"version": "' + "9" * 5000 + '", "prefix": "", "base_prefix": "", "number": ""}')
def test_no_parser_raises_on_any_text(text: str) -> None:
    from_file_name(text)
    parse_package_file(text)
    parse_protoc(text)
    made_for(text)
    if (answer := parse_answer(text, MARK)) is not None:
        assert isinstance(answer.release, Version)
    for manager in ("apt", "dnf", "zypper", "pacman"):
        parse_transaction(manager, text, 0)
    for row in ROWS:
        row.packages_on("debian", "debian", text)
        for rule in row.versions:
            if rule.pattern:
                from_pattern(text, rule.pattern)
            elif rule.defines:
                from_defines(text, rule.defines, rule.radix)
