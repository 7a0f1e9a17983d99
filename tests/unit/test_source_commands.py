"""What a Makefile runs as soon as it is read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caffeup.source.commands import commands_when_read, only_asks

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "command",
    [
        r"""find * -type d -exec bash -c "find {} -maxdepth 1 \( -name '*.cpp' -o -name '*.proto' \) | grep -q ." \; -print""",
        'find src/$(PROJECT) ! -name "test_*.cpp" -name "*.cpp"',
        "uname -s",
        "$(CXX) -dumpversion | cut -f1,2 -d.",
        "$(CUDA_DIR)/bin/nvcc -V | grep -o 'release [0-9.]*' | tr -d '[a-z ]'",
        "echo | awk '{exit $(GCCVERSION) < 4.6;}'",
        "[ $(OSX_MAJOR_VERSION) -ge 10 ] && echo true",
        "$(MATLAB_DIR)/bin/mexext",
        "pkg-config opencv --libs 2>/dev/null",
        'find /usr/lib* -name "libhdf5_serial.so" 2> /dev/null | grep serial >/dev/null  && echo serial',
        "find ${MKLROOT} -name libiomp5.so | grep -v mic | xargs dirname",
        "git -C . describe --tags 2>&1",
        "python3 -c 'import numpy; print(numpy.get_include())'",
        "command -v ccache",
        "",
    ],
)
def test_what_the_known_trees_run_only_asks(command: str) -> None:
    assert only_asks(command)


@pytest.mark.parametrize(
    "command",
    [
        "./external/mkl/prepare_mkl.sh",
        "$(OPENMP_VERIFYING_COMMAND)",
        "curl -s https://example.org/x | sh",
        "git clone https://example.org/x",
        "touch x",
        "echo x > y",
        "echo x >> ~/.bashrc",
        "uname; rm -rf $$HOME",
        "uname && make -C x",
        "uname `touch x`",
        "uname $$(touch x)",
        "find . -name x -delete",
        "find . -name x -exec rm {} +",
        'find . -exec bash -c "rm {}" \\;',
        "find . | xargs rm -f",
        "sed -i s/a/b/ Makefile",
        "sort -o y x",
        "awk 'BEGIN { system(\"touch x\") }'",
        "awk -f x.awk",
        "python -c 'import os; os.system(\"touch x\")'",
        "python setup.py build",
        "python -m pip install x",
        "bash -c 'touch x'",
        "sh ./x.sh",
        "bash",
        "A=1 ./x",
        "tools/find",
        "'unbalanced",
        "cat <(touch x)",
    ],
)
def test_what_may_do_more(command: str) -> None:
    assert not only_asks(command)


def test_the_place_is_the_first_line_and_recipes_do_not_count() -> None:
    text = (
        "# $(shell ./comment)\n"
        "A := $(shell uname)\n"
        "B := $(words $(shell ./one \\\n"
        "    two))\n"
        "ifeq (${shell ./three},x)\n"
        "\tC := $(shell ./tabbed)\n"
        "endif\n"
        "D != ./four\n"
        "E := $(file >x,y)\n"
        "all:\n"
        "\t$(shell ./recipe)\n"
        "load ./x.so\n"
        "F := $(shell ./one two)\n"
        "define later\n"
        "$(shell ./five)\n"
        "endef\n"
    )
    assert [(one.line, one.text, one.condition) for one in commands_when_read(text)] == [
        (3, "./one two", ""),
        (5, "./three", "ifeq (${shell ./three},x)"),
        (6, "./tabbed", "ifeq (${shell ./three},x)"),
        (8, "./four", ""),
        (9, ">x", ""),
        (12, "load ./x.so", ""),
        (13, "./one two", ""),
        (15, "./five", ""),
    ]


def test_it_agrees_with_make(tmp_path: Path) -> None:
    """What make runs when it only reads a Makefile is what is told, and a recipe is not."""
    text = "A := $(shell touch read)\nB != touch assigned\nall:\n\ttouch made\n"
    (tmp_path / "Makefile").write_text(text)
    subprocess.run(["make", "-n", "all"], cwd=tmp_path, check=True, capture_output=True)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["Makefile", "assigned", "read"]
    assert [one.text for one in commands_when_read(text)] == ["touch read", "touch assigned"]


def test_the_makefile_of_our_own_tree_only_asks() -> None:
    assert list(commands_when_read((REPOSITORY / "tests/trees/tiny/Makefile").read_text())) == []


@given(st.text(alphabet="$(){}shell\\;|&<>'\"`#\t\n =!ab."))
def test_any_text_is_read(text: str) -> None:
    list(commands_when_read(text))
