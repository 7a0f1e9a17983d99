"""What GNU make reads from the rendered Makefile.config is what was planned."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caffeup.errors import CannotBuild
from caffeup.facts.load import load_facts
from caffeup.model.plan import ConfigLine, Plan, Request
from caffeup.plan.make import make_plan
from caffeup.render import comment, render_config, setting
from caffeup.source.inspect import SIGNATURE, inspect
from planvalues import cudnn, gcc, gpu, library, machine, plan, program, python, toolkit, tree, usual_libraries, value_of

MAKE = shutil.which("make") or ""
needs_make = pytest.mark.skipif(not MAKE, reason="no make here")
PLANS = {
    "cpu": plan(machine()),
    "gpu": plan(
        machine(gpu("NVIDIA H200", "9.0"), toolkits=(toolkit("13.0"),), **cudnn("9.14.0", "/home/a b/include", "/home/a b/lib"))
    ),
    "openpose": plan(machine(gpu("NVIDIA H200", "9.0"), toolkits=(toolkit("13.0"),)), tree(standard="c++11")),
    "odd places": plan(
        machine(
            compilers=(gcc("11.4.0", "/home/$USER/#1/g++"),),
            libraries=(
                *usual_libraries(glog=""),
                library("glog", "0.6.0", include_dirs=("/home/x y/$z#",), library_dirs=("/home/x y/'lib",)),
            ),
            programs=(program("make"), program("protoc", "3.5", "/opt/conda/bin/protoc"), program("protoc", "3.12.4")),
            pythons=(python(include='/home/"me"/include', numpy_include="/home/me\\/numpy"),),
        )
    ),
    "nothing found": plan(machine(libraries=(), compilers=(), programs=(), pythons=())),
}


def read_by_make(text: str, keys: tuple[str, ...], folder: Path) -> dict[str, str]:
    """The values of variables after make has read the file, through the environment so that no shell quoting is between."""
    (folder / "Makefile.config").write_text(text)
    lines = [
        "include Makefile.config",
        *(f"export ASKED_{at} := $({key.removeprefix('export ')})" for at, key in enumerate(keys)),
        "all:",
        "\t@env -0",
        "",
    ]
    (folder / "probe.mk").write_text("\n".join(lines))
    done = subprocess.run(
        [MAKE, "-s", "-f", "probe.mk"], cwd=folder, capture_output=True, env={"PATH": os.environ["PATH"]}, check=True
    )
    assert done.stderr == b""
    found = dict(entry.split("=", 1) for entry in done.stdout.decode().split("\0") if "=" in entry)
    return {key: found[f"ASKED_{at}"] for at, key in enumerate(keys)}


def with_lines(*lines: ConfigLine) -> Plan:
    return msgspec.structs.replace(PLANS["cpu"], config=lines)


@needs_make
@pytest.mark.parametrize("name", PLANS)
def test_make_reads_what_was_planned(name: str, tmp_path: Path) -> None:
    made = PLANS[name]
    keys = tuple(dict.fromkeys(line.key for line in made.config if not line.raw))
    told = read_by_make(render_config(made), keys, tmp_path)
    for key in keys:
        assert told[key].split() == list(value_of(made, key)), key


@needs_make
def test_the_path_that_make_gives_to_recipes(tmp_path: Path) -> None:
    told = read_by_make(render_config(PLANS["odd places"]), ("PATH",), tmp_path)
    assert told["PATH"] == f"{tmp_path}/.caffeup/bin:{os.environ['PATH']}"


@needs_make
def test_a_program_in_the_linked_folder_is_what_a_recipe_runs(tmp_path: Path) -> None:
    """Make may search for a simple command by itself; it must do so in the PATH that the file sets."""
    (tmp_path / "Makefile.config").write_text(render_config(PLANS["odd places"]))
    ours = tmp_path / ".caffeup" / "bin" / "protoc"
    ours.parent.mkdir(parents=True)
    ours.write_text("#!/bin/sh\necho ours\n")
    ours.chmod(0o755)
    (tmp_path / "Makefile").write_text("include Makefile.config\nall:\n\t@protoc --version\n\t@protoc --version; true\n")
    done = subprocess.run([MAKE, "-s"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "ours\nours\n"


WORDS = st.text(
    alphabet=st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp"))
    | st.sampled_from("$#\\%:=,()'\"`~*{}"),
    min_size=1,
    max_size=12,
)


@needs_make
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(WORDS, min_size=1, max_size=4))
def test_odd_words_reach_make_unchanged(words: list[str], tmp_path: Path) -> None:
    line = ConfigLine(key="INCLUDE_DIRS", value=tuple(words), because="test")
    after = ConfigLine(key="AFTER", value=("still-here",), because="a line after it")
    told = read_by_make(render_config(with_lines(line, after)), ("INCLUDE_DIRS", "AFTER"), tmp_path)
    assert told["INCLUDE_DIRS"] == " ".join(words)
    assert told["AFTER"] == "still-here"


@needs_make
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    because=st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=300)
    | st.text(alphabet="\n\r\\#$()%ab \t", max_size=60)
)
def test_no_reason_breaks_out_of_its_comment(because: str, tmp_path: Path) -> None:
    line = ConfigLine(key="ONE", value=("1",), because=because)
    text = render_config(with_lines(line, ConfigLine(key="TWO", value=("2",), because=because)))
    for one in text.splitlines():
        assert one == "" or one.startswith(("#", "ONE := 1", "TWO := 2"))
    assert read_by_make(text, ("ONE", "TWO"), tmp_path) == {"ONE": "1", "TWO": "2"}


@pytest.mark.parametrize("word", ["a\nb", "a\rb", "a\0b", "a b", "a\tb", "a\u2028b"])
def test_what_make_would_take_apart_is_refused(word: str) -> None:
    with pytest.raises(CannotBuild):
        setting(ConfigLine(key="KEY", value=(word,), because="x"))


@pytest.mark.parametrize("word", ["a\nb", "a\rb"])
def test_a_line_break_is_refused_in_make_references_too(word: str) -> None:
    with pytest.raises(CannotBuild):
        setting(ConfigLine(key="KEY", value=(word,), because="x", raw=True))


def test_settings_as_they_are_written() -> None:
    assert setting(ConfigLine(key="A", value=(), because="x")) == "A :="
    assert setting(ConfigLine(key="A", value=("x", "y"), because="x", operator="+=")) == "A += x y"
    assert setting(ConfigLine(key="W", value=("-w",), because="x", override=True)) == "override W := -w"
    assert setting(ConfigLine(key="L", value=("-Wl,-rpath,\\$ORIGIN/..",), because="x")) == "L := -Wl,-rpath,\\$$ORIGIN/.."
    assert setting(ConfigLine(key="P", value=("$(CURDIR)/x",), because="x", raw=True)) == "P := $(CURDIR)/x"


def test_comments_are_wrapped_and_end_where_they_end() -> None:
    assert comment("a\nb\r\nc\\") == ("# a b c\\ .",)
    assert all(len(one) <= 120 for one in comment("word " * 100))
    assert comment("") == ("#",)


@pytest.mark.parametrize("name", PLANS)
def test_the_same_plan_gives_the_same_bytes(name: str) -> None:
    text = render_config(PLANS[name])
    assert text == render_config(PLANS[name])
    assert text.encode().startswith(SIGNATURE)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert all(line == line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize("name", PLANS)
def test_no_home_is_in_the_settings(name: str) -> None:
    settings_only = [line for line in render_config(PLANS[name]).splitlines() if not line.startswith("#")]
    assert not any("/home/" in line for line in settings_only)


@pytest.mark.parametrize("name", PLANS)
def test_every_setting_has_its_reason_above(name: str) -> None:
    lines = render_config(PLANS[name]).splitlines()
    for before, line in zip(lines, lines[1:]):
        if line and not line.startswith("#"):
            assert before.startswith("# ")


@needs_make
def test_the_run_path_reaches_the_linker_as_origin(tmp_path: Path) -> None:
    """Through make and the shell, as Caffe's Makefile passes it."""
    (tmp_path / "Makefile.config").write_text(render_config(PLANS["gpu"]))
    echo = tmp_path / "say"
    echo.write_text('#!/bin/sh\nfor word in "$@"; do printf "%s\\n" "$word"; done\n')
    echo.chmod(0o755)
    (tmp_path / "Makefile").write_text(
        "include Makefile.config\nLDFLAGS += -lm\nPYTHON_LDFLAGS := $(LDFLAGS)\nall:\n\t@./say $(LDFLAGS)\n\t@./say $(PYTHON_LDFLAGS) 2>&1; true\n"
    )
    said = subprocess.run([MAKE, "-s"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said.count("-Wl,-rpath,$ORIGIN/../../.build_release/lib") == 2
    assert said.count("-Wl,-rpath,$ORIGIN/../../.caffeup/cuda/lib64") == 2
    assert said.count("-Wl,-rpath-link,.caffeup/cuda/lib64") == 2


@pytest.mark.skipif(not MAKE or not shutil.which("g++"), reason="no make or g++ here")
def test_a_linked_program_finds_a_library_beside_the_tree(tmp_path: Path) -> None:
    """A tree that moves keeps its run path: program, library and the library's own library, three folders."""
    outside = tmp_path / "outside"
    outside.mkdir()
    built = tmp_path / "caffe"
    for folder in (".build_release/lib", ".build_release/tools", ".build_release/examples/cpp", ".caffeup/deps"):
        (built / folder).mkdir(parents=True)
    (built / ".caffeup/deps/prefix0").symlink_to(outside)
    (outside / "inner.cpp").write_text("int inner() { return 7; }\n")
    (outside / "outer.cpp").write_text("int inner(); int outer() { return inner(); }\n")
    subprocess.run(["g++", "-shared", "-fPIC", "-o", "libinner.so", "inner.cpp"], cwd=outside, check=True)
    subprocess.run(["g++", "-shared", "-fPIC", "-o", "libouter.so", "outer.cpp", "-L.", "-linner"], cwd=outside, check=True)
    (built / "main.cpp").write_text("int outer(); int main() { return outer() - 7; }\n")
    found = library("glog", "0.6.0", prefix=str(outside), library_dirs=(str(outside),))
    made = plan(machine(libraries=(*usual_libraries(glog=""), found), prefixes=(str(outside),)))
    (built / "Makefile.config").write_text(render_config(made))
    rule = "\tg++ -o $@ main.cpp $(LDFLAGS) $(foreach dir,$(LIBRARY_DIRS),-L$(dir)) -louter\n"
    programs = ".build_release/tools/one .build_release/examples/cpp/two"
    (built / "Makefile").write_text(f"include Makefile.config\nall: {programs}\n{programs}:\n{rule}")
    subprocess.run([MAKE, "-s", "all"], cwd=built, check=True)
    moved = tmp_path / "moved"
    built.rename(moved)
    for name in programs.split():
        assert subprocess.run([str(moved / name)], env={"PATH": os.environ["PATH"]}, check=False).returncode == 0


TREES = tuple(path for path in os.environ.get("CAFFEUP_TREES", "").split(":") if path)


@needs_make
@pytest.mark.skipif(not TREES, reason="CAFFEUP_TREES names no trees")
@pytest.mark.parametrize("root", TREES or ("",))
@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_real_makefiles_take_it(root: str, kind: str, tmp_path: Path) -> None:
    """``make -n all`` of a real tree with the rendered file; nothing is compiled."""
    facts = load_facts()
    copy = tmp_path / "tree"
    shutil.copytree(root, copy, symlinks=True, ignore=shutil.ignore_patterns(".git", ".build*", "build", "Makefile.config"))
    found = inspect(copy, facts)
    h200 = machine(gpu("NVIDIA H200", "9.0"), toolkits=(toolkit("13.0"),), **cudnn("9.14.0"))
    here = h200 if kind == "gpu" else machine()
    made = make_plan(here, found, Request(), facts)
    if kind == "cpu" and not found.cpu_only:
        pytest.skip("it has no build without CUDA")
    assert not made.conflicts
    (copy / "Makefile.config").write_text(render_config(made))
    done = subprocess.run([MAKE, "-n", "all"], cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    compiles = [line for line in done.stdout.splitlines() if " -c -o " in line]
    assert compiles
    for line in compiles:
        words = line.split()
        assert "-I.caffeup/include" in words
        assert ("-DCPU_ONLY" in words) is (kind == "cpu")
        assert ("-DUSE_CUDNN" in words) is made.cudnn
    if kind == "gpu":
        nvcc = [line for line in done.stdout.splitlines() if line.startswith(".caffeup/cuda/bin/nvcc")]
        assert nvcc
        assert all("arch=compute_90,code=sm_90" in line for line in nvcc)
