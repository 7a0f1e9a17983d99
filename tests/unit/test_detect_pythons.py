"""Pythons: one question each, and the Boost.Python, headers and packages that belong to each."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Optional

import pytest
from packaging.version import Version

from caffeup.detect.mixtures import conda_findings, environment_findings, protoc_findings, runtime_findings
from caffeup.detect.parse.boost_python import choose, made_for
from caffeup.detect.parse.protobuf import parse_protoc, protoc_fits, release, runtime_fits
from caffeup.detect.parse.python_answer import parse_answer
from caffeup.detect.protocs import probe_protocs
from caffeup.detect.python_query import MARK, query
from caffeup.detect.pythons import MOST, Pythons, probe_pythons
from caffeup.host import RealHost
from caffeup.model.machine import Library, Program, Python, PythonKind, System
from smallmachine import small_machine

DEBIAN = System(distro="debian", triplet="x86_64-linux-gnu")
LIB = "/usr/lib/x86_64-linux-gnu"
OTHERS = sorted(Path.home().glob(".pyenv/versions/*/bin/python"))


def answer(version: str, prefix: str = "/usr", **changes: Any) -> str:
    number = ".".join(version.split(".")[:2])
    values = {"version": version, "prefix": prefix, "base_prefix": prefix, "number": number, **changes}
    return MARK + json.dumps(values)


def asked(path: str, text: str) -> str:
    return f"$ {path} -E -\n{text}\n"


def probe(
    folder: Path,
    files: dict[str, str],
    commands: str,
    *,
    env: Optional[dict[str, str]] = None,
    boost: str = "",
    prefixes: tuple[str, ...] = (),
    own_prefix: str = "",
    python: str = "",
) -> Pythons:
    libraries = (Library(via="", name="boost", version=Version(boost)),) if boost else ()
    host = small_machine(folder, files, env={"PATH": "/usr/bin", **(env or {})}, commands=commands, own_prefix=own_prefix)
    return probe_pythons(host, DEBIAN, libraries, prefixes, python)


class TestCandidates:
    def test_one_real_file_is_asked_once_under_its_first_name(self, tmp_path: Path) -> None:
        files = {
            "/usr/bin/python3.11*": "",
            "/usr/bin/python3": "-> python3.11",
            "/usr/bin/python3-config*": "",
            "/usr/bin/python3-qr*": "",
        }
        (python,) = probe(tmp_path, files, asked("/usr/bin/python3", answer("3.11.2"))).pythons
        assert (python.executable, python.kind, python.via) == ("/usr/bin/python3", PythonKind.SYSTEM, "PATH")
        assert not python.own

    def test_the_environment_is_own_and_its_base_is_not(self, tmp_path: Path) -> None:
        files = {"/usr/bin/python3*": "", "/v/bin/python": "-> /usr/bin/python3", "/v/pyvenv.cfg": ""}
        commands = asked("/usr/bin/python3", answer("3.11.2")) + asked(
            "/v/bin/python", answer("3.11.2", "/v", base_prefix="/usr")
        )
        found = probe(tmp_path, files, commands, env={"VIRTUAL_ENV": "/v"}, own_prefix="/v").pythons
        assert [(one.executable, one.kind, one.own) for one in found] == [
            ("/usr/bin/python3", PythonKind.SYSTEM, False),
            ("/v/bin/python", PythonKind.VENV, True),
        ]

    def test_shims_are_passed_over_and_versions_asked_newest_first(self, tmp_path: Path) -> None:
        files = {"/home/u/.pyenv/shims/python3*": ""}
        commands = ""
        for version in ("3.9.18", "3.10.13"):
            files[f"/home/u/.pyenv/versions/{version}/bin/python*"] = ""
            root = f"/home/u/.pyenv/versions/{version}"
            commands += asked(f"{root}/bin/python", answer(version, root))
        env = {"PATH": "/home/u/.pyenv/shims:/usr/bin", "HOME": "/home/u"}
        found = probe(tmp_path, files, commands, env=env)
        assert [str(one.version) for one in found.pythons] == ["3.10.13", "3.9.18"]
        assert {one.kind for one in found.pythons} == {PythonKind.PYENV}
        assert [attempt.where for attempt in found.tried] == ["/home/u/.pyenv/shims/python3"]

    def test_conda_has_its_own_boost_python(self, tmp_path: Path) -> None:
        files = {
            "/c/bin/python3*": "",
            "/c/lib/libboost_python39.so": "",
            f"{LIB}/libboost_python39.so": "",
        }
        found = probe(
            tmp_path, files, asked("/c/bin/python3", answer("3.9.7", "/c", conda=True)), env={"PATH": "/c/bin:/usr/bin"}
        )
        assert found.pythons[0].kind is PythonKind.CONDA
        assert found.pythons[0].boost_python_dir == "/c/lib"

    def test_no_more_than_the_bound_is_asked(self, tmp_path: Path) -> None:
        files, commands = {}, ""
        for number in range(MOST + 3):
            files[f"/home/u/.pyenv/versions/3.{number}.0/bin/python*"] = ""
            root = f"/home/u/.pyenv/versions/3.{number}.0"
            commands += asked(f"{root}/bin/python", answer(f"3.{number}.0", root))
        found = probe(tmp_path, files, commands, env={"HOME": "/home/u"})
        assert len(found.pythons) == MOST
        assert str(found.pythons[0].version) == f"3.{MOST + 2}.0"
        assert sum("not asked" in attempt.outcome for attempt in found.tried) == 3

    def test_one_named_by_the_user_comes_first(self, tmp_path: Path) -> None:
        files = {"/usr/bin/python3*": "", "/opt/x/python3.8*": ""}
        commands = asked("/usr/bin/python3", answer("3.11.2")) + asked("/opt/x/python3.8", answer("3.8.1", "/opt/x"))
        found = probe(tmp_path, files, commands, python="/opt/x/python3.8").pythons
        assert (found[0].via, found[0].kind) == ("--python", PythonKind.LOCAL)

    @pytest.mark.parametrize(
        ("output", "outcome"),
        [
            ("? 1\n! Fatal Python error: init_fs_encoding", "exit 1: Fatal Python error: init_fs_encoding"),
            ("? 124", "no answer within"),
            ("? 126", "cannot be executed"),
            ("hello", "no answer in its output"),
            (MARK + "{", "no answer in its output"),
            (answer("3.10.0", implementation="pypy"), "is pypy"),
        ],
    )
    def test_what_does_not_answer_is_recorded(self, tmp_path: Path, output: str, outcome: str) -> None:
        found = probe(tmp_path, {"/usr/bin/python3*": ""}, asked("/usr/bin/python3", output))
        assert found.pythons == ()
        assert outcome in found.tried[0].outcome
        assert found.missing[0].what == "python"

    def test_a_chatty_sitecustomize(self, tmp_path: Path) -> None:
        found = probe(tmp_path, {"/usr/bin/python3*": ""}, asked("/usr/bin/python3", "hello\n" + answer("3.11.2") + "\nbye"))
        assert str(found.pythons[0].version) == "3.11.2"

    def test_no_python_at_all(self, tmp_path: Path) -> None:
        assert probe(tmp_path, {}, "").missing[0].what == "python"


class TestUnpacked:
    def test_headers_library_and_packages_in_a_prefix(self, tmp_path: Path) -> None:
        files = {
            "/usr/bin/python3*": "",
            "/p/usr/include/python3.11/Python.h": "",
            f"/p{LIB}/libpython3.11.so": "",
            f"/p{LIB}/libboost_python311.so": "",
            "/p/usr/lib/python3/dist-packages/": "",
        }
        numpy = {
            "folder": "/p/usr/lib/python3/dist-packages/numpy",
            "version": "1.24.2",
            "path": "/p/usr/lib/python3/dist-packages",
        }
        (python,) = probe(tmp_path, files, asked("/usr/bin/python3", answer("3.11.2", numpy=numpy)), prefixes=("/p",)).pythons
        assert python.include == "/p/usr/include/python3.11"
        assert (python.library, python.library_dir) == ("python3.11", f"/p{LIB}")
        assert python.boost_python_dir == f"/p{LIB}"
        assert python.paths == ("/p/usr/lib/python3/dist-packages",)

    def test_boost_python_of_another_boost_is_not_taken(self, tmp_path: Path) -> None:
        files = {
            "/usr/bin/python3*": "",
            f"{LIB}/libboost_python311.so": "-> libboost_python311.so.1.74.0",
            f"{LIB}/libboost_python311.so.1.74.0": "",
            f"{LIB}/libboost_python311.a": "",
        }
        commands = asked("/usr/bin/python3", answer("3.11.2"))
        assert probe(tmp_path / "a", files, commands, boost="1.74.0").pythons[0].boost_python == "boost_python311"
        assert probe(tmp_path / "b", files, commands, boost="1.83.0").pythons[0].boost_python == ""

    def test_a_module_without_a_version_is_there_all_the_same(self, tmp_path: Path) -> None:
        text = answer("3.11.2", skimage={"folder": "/x/skimage"})
        assert probe(tmp_path, {"/usr/bin/python3*": ""}, asked("/usr/bin/python3", text)).pythons[0].skimage == Version("0")


class TestBoostPythonNames:
    @pytest.mark.parametrize(
        ("files", "python", "name"),
        [
            # Ubuntu 14.04 and 16.04
            (["boost_python-py27", "boost_python-py35", "boost_python"], "3.5", "boost_python-py35"),
            # Ubuntu 18.04
            (["boost_python-py27", "boost_python3-py36", "boost_python3"], "3.6", "boost_python3-py36"),
            (["boost_python27", "boost_python38"], "3.8", "boost_python38"),
            (["boost_python310", "boost_python31"], "3.10", "boost_python310"),
            (["boost_python312"], "3.11", None),
            # by hand, tagged
            (["boost_python311-gcc12-mt-x64-1_83"], "3.11", "boost_python311-gcc12-mt-x64-1_83"),
            # made for one Python, unnamed
            (["boost_python3", "boost_python"], "3.4", "boost_python3"),
            (["boost_python3", "boost_python"], "2.7", "boost_python"),
            (["boost_python"], "3.4", None),
            (["boost_numpy311"], "3.11", None),
        ],
    )
    def test_choice(self, files: list[str], python: str, name: Optional[str]) -> None:
        assert choose({file: f"/l/lib{file}.so.1.65.1" for file in files}, Version(python), guess=True) == name

    def test_an_unnamed_one_leads_to_a_named_file(self) -> None:
        files = {"boost_python3": "/l/libboost_python3-py36.so.1.65.1"}
        assert choose(files, Version("3.6"), guess=False) == "boost_python3"
        assert choose(files, Version("3.7"), guess=True) is None

    def test_an_unnamed_one_is_not_guessed_for_a_foreign_python(self) -> None:
        assert choose({"boost_python3": "/l/libboost_python3.so.1.58.0"}, Version("3.9"), guess=False) is None

    def test_made_for(self) -> None:
        assert [
            made_for(name) for name in ("libboost_python310.so.1.74.0", "boost_python", "boost_python3", "boost_pythonx", "m")
        ] == [
            "310",
            "",
            "3",
            "",
            "",
        ]


class TestQuery:
    """The script itself, on the Pythons that are really here."""

    def ask(self, executable: str, *extra: str, env: Optional[dict[str, str]] = None) -> Any:
        output = RealHost({"PATH": "/usr/bin:/bin", **(env or {})}).run((executable, "-E", "-"), stdin=query(extra), timeout=30)
        assert output is not None
        assert output.status == 0, output.stderr
        return parse_answer(output.stdout, MARK)

    def test_this_python(self) -> None:
        found = self.ask(sys.executable)
        assert found.release == Version(".".join(map(str, sys.version_info[:3])))
        assert found.prefix == sys.prefix
        assert found.base_prefix == sys.base_prefix

    @pytest.mark.parametrize("python", OTHERS or [Path(sys.executable)], ids=lambda path: path.parent.parent.name)
    def test_any_python_that_is_here(self, python: Path) -> None:
        found = self.ask(str(python))
        assert found.release.major in (2, 3)
        assert found.number.startswith(f"{found.release.major}.{found.release.minor}")
        assert found.number.endswith("m") == (Version("3") < found.release < Version("3.8"))
        assert not found.include or (Path(found.include) / "Python.h").exists()

    @pytest.mark.parametrize("python", OTHERS or [Path(sys.executable)], ids=lambda path: path.parent.parent.name)
    def test_packages_are_read_and_not_imported(self, python: Path, tmp_path: Path) -> None:
        place = tmp_path / 'pä"c\\k'
        for name, file, text in (
            ("numpy", "version.py", '"""doc"""\nshort_version: str = "9.8"\nversion = "9.8.7"\n'),
            ("google/protobuf", "__init__.py", "import nothing\n__version__ = '4.21.12'\n"),
            ("skimage", "__init__.py", "raise SystemExit(3)\n"),
            ("numpy/_core/include/numpy", "arrayobject.h", ""),
        ):
            (place / name).mkdir(parents=True, exist_ok=True)
            (place / name / "__init__.py").touch()
            (place / name / file).write_text(text)
        (place / "scikit_image-0.19.3.egg-info").mkdir()
        (place / "six.py").write_text('"""a module, no package"""\n__version__ = "1.17.0"\nraise SystemExit(3)\n')
        found = self.ask(str(python), str(place))
        if found.numpy.path:  # a Python of the developer's may have its own numpy, which comes first
            assert found.numpy.version == "9.8.7"
            assert found.numpy.include == f"{place}/numpy/_core/include"
        if found.protobuf.path:
            assert found.protobuf.version == "4.21.12"
        assert found.skimage.version == "0.19.3" or not found.skimage.path
        assert found.six.version == "1.17.0" or not found.six.path

    def test_code_for_another_python_is_not_ours(self, tmp_path: Path) -> None:
        core = tmp_path / "numpy" / "core"
        core.mkdir(parents=True)
        (tmp_path / "numpy" / "__init__.py").touch()
        (core / "_multiarray_umath.cpython-27-x86_64-linux-gnu.so").touch()
        assert self.ask(sys.executable, str(tmp_path)).numpy.path == ""

    def test_the_environment_of_caffeup_does_not_answer(self, tmp_path: Path) -> None:
        (tmp_path / "numpy").mkdir()
        (tmp_path / "numpy" / "__init__.py").write_text("__version__ = '0.1'\n")
        (tmp_path / "numpy" / "version.py").write_text("version = '0.1'\n")
        found = self.ask(sys.executable, env={"PYTHONPATH": str(tmp_path), "PYTHONHOME": str(tmp_path)})
        assert not found.numpy.folder.startswith(str(tmp_path))

    def test_the_whole_probe_on_this_machine(self) -> None:
        found = probe_pythons(RealHost({"PATH": str(Path(sys.executable).parent)}), System(distro="unknown"))
        assert any(one.own and one.version.release == sys.version_info[:3] for one in found.pythons)


class TestProtobuf:
    @pytest.mark.parametrize(
        ("protoc", "headers", "fits"),
        [
            ("2.6.1", "2.6.1", True),
            ("3.5.1", "3.12.4", False),
            ("3.2.0", "2.6.1", False),
            ("3.0.0", "3.0.2", True),
            ("3.21.12", "3.21.9", True),
            ("21.12", "3.21.12", True),
            ("25.1", "4.25.3", True),
            ("3.20.3", "3.21.12", False),
            ("29.3", "5.29.3", True),
            ("29.3", "5.29.2", False),
            ("33.2", "6.33.2", True),
        ],
    )
    def test_protoc_and_headers(self, protoc: str, headers: str, fits: bool) -> None:
        assert protoc_fits(Version(protoc), Version(headers)) is fits

    @pytest.mark.parametrize(
        ("protoc", "runtime", "fits"),
        [
            ("3.21.12", "3.20.3", True),
            ("3.21.12", "4.25.8", True),
            ("3.21.12", "5.29.5", True),
            ("3.21.12", "7.36.2", True),
            ("3.21.12", "3.12.4", False),
            ("3.12.4", "3.20.3", True),
            ("3.12.4", "4.21.12", False),
            ("3.19.4", "4.24.3", True),
            ("2.6.1", "3.20.0", False),
            ("2.6.1", "2.6.1", True),
            ("29.3", "4.25.0", False),
            ("29.3", "5.29.3", True),
        ],
    )
    def test_protoc_and_python_runtime(self, protoc: str, runtime: str, fits: bool) -> None:
        assert runtime_fits(Version(protoc), Version(runtime)) is fits

    def test_release_is_what_languages_share(self) -> None:
        assert {release(Version(text)) for text in ("3.21.12", "21.12", "4.21.12")} == {(21, 12)}
        assert release(Version("3.12.4")) == (3, 12, 4)

    def test_output_of_protoc(self) -> None:
        assert parse_protoc("libprotoc 3.21.12\n") == Version("3.21.12")
        assert parse_protoc("libprotoc 25.0-rc2\n") == Version("25.0rc2")
        assert parse_protoc("protoc: error while loading shared libraries") is None

    def test_an_unpacked_protoc_gets_its_libraries(self, tmp_path: Path) -> None:
        files = {"/p/usr/bin/protoc*": "", "/p/usr/lib/": "", "/q/bin/protoc*": "", "/q/include/": ""}
        commands = "$ env LD_LIBRARY_PATH=/p/usr/lib /p/usr/bin/protoc --version\nlibprotoc 3.21.12\n$ /q/bin/protoc --version\n? 127\n! broken\n"
        found, failed = probe_protocs(small_machine(tmp_path, files, commands=commands), DEBIAN, ("/p", "/q"))
        assert [(one.path, str(one.version), one.via) for one in found] == [("/p/usr/bin/protoc", "3.21.12", "--prefix /p")]
        assert [(one.where, one.outcome) for one in failed] == [("/q/bin/protoc", "exit 127: broken")]


def library(name: str, version: str, via: str = "x") -> Library:
    return Library(via=via, evidence=f"/usr/include/{name}.h", name=name, version=Version(version))


def protoc(path: str, version: str) -> Program:
    return Program(via="PATH", name="protoc", path=path, version=Version(version))


def python(path: str, kind: PythonKind, **changes: Any) -> Python:
    return Python(via="PATH", executable=path, version=Version("3.9"), kind=kind, **changes)


class TestMixtures:
    def test_conda_protoc_first(self) -> None:
        tools = [protoc("/c/bin/protoc", "3.5.1"), protoc("/usr/bin/protoc", "3.12.4")]
        (finding,) = protoc_findings([library("protobuf", "3.12.4")], tools)
        assert (finding.id, finding.severity) == ("protoc-mismatch", "note")
        assert "/usr/bin/protoc" in finding.remedies[0].text
        (finding,) = protoc_findings([library("protobuf", "3.12.4")], tools[:1])
        assert finding.severity == "problem"
        assert list(protoc_findings([library("protobuf", "3.12.4")], tools[1:])) == []
        assert list(protoc_findings([], tools)) == []

    def test_python_runtime(self) -> None:
        tools = [protoc("/usr/bin/protoc", "3.12.4")]
        libraries = [library("protobuf", "3.12.4")]
        pythons = [
            python("/usr/bin/python3", PythonKind.SYSTEM, protobuf=Version("3.12.4")),
            python("/v/bin/python", PythonKind.VENV, protobuf=Version("4.25")),
            python("/own/bin/python", PythonKind.VENV, protobuf=Version("4.25"), own=True),
            python("/n/bin/python", PythonKind.VENV),
        ]
        (finding,) = runtime_findings(tools, pythons, libraries)
        assert finding.affects == "/v/bin/python"
        assert finding.remedies[0].commands == ("/v/bin/python -m pip install 'protobuf>=3,<3.21'",)

    def test_conda_first_with_the_systems_libraries(self) -> None:
        conda = python("/c/bin/python3", PythonKind.CONDA)
        system = python("/usr/bin/python3", PythonKind.SYSTEM)
        (finding,) = conda_findings({"PATH": "/c/bin"}, [library("boost", "1.74.0")], [conda, system])
        assert finding.id == "conda-first"
        assert list(conda_findings({}, [library("boost", "1.74.0")], [system, conda])) == []
        assert list(conda_findings({}, [library("boost", "1.74.0", "env CONDA_PREFIX")], [conda])) == []

    def test_variables_that_lead_into_conda(self) -> None:
        env = {"CONDA_PREFIX": "/c", "LD_LIBRARY_PATH": "/x:/c/lib", "LIBRARY_PATH": "/opt/miniconda3/lib", "CPATH": "/x/include"}
        ids = {finding.evidence[0].where: finding.id for finding in environment_findings(env)}
        assert ids == {
            "env LD_LIBRARY_PATH": "conda-in-environment",
            "env LIBRARY_PATH": "conda-in-environment",
            "env CPATH": "search-path-in-environment",
        }
        assert list(environment_findings({"CONDA_PREFIX": "/c", "LD_LIBRARY_PATH": "/cuda/lib64"})) == []
