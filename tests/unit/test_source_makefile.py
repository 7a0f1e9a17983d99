"""What a Makefile says."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from caffeup.source.makefile import read_makefile

TINY = (Path(__file__).resolve().parents[1] / "trees/tiny/Makefile").read_text()
HEAD = "PROJECT := caffe\nCONFIG_FILE := Makefile.config\ninclude $(CONFIG_FILE)\n"


def test_tiny() -> None:
    made = read_makefile(TINY)
    assert made.reads_config
    assert {
        "CPU_ONLY",
        "BLAS",
        "CUDA_ARCH",
        "COMMON_FLAGS",
        "INCLUDE_DIRS",
        "BUILD_DIR",
        "DISTRIBUTE_DIR",
        "CUSTOM_CXX",
        "Q",
    } <= set(made.config_keys)
    assert not {"PROJECT", "CONFIG_FILE", "USE_OPENCV", "includedir", "library", "LIBRARIES", "RM", "OBJS"} & set(
        made.config_keys
    )
    assert {"WARNINGS", "LIBRARIES"} <= set(made.overridable)
    assert made.libraries == ("cudart", "m", "stdc++", "cudnn")
    assert (made.isystem, made.standard, made.cpu_only, made.one_test_binary, made.examples) == (False, "", True, True, True)
    assert made.build_dir == ""


def keys(body: str) -> set[str]:
    return set(read_makefile(HEAD + body).config_keys)


def test_what_is_read_before_it_is_set_is_a_key() -> None:
    assert keys("A ?= 1\nB += 1\nC := $(D)\nifeq ($(E), 1)\n\tF := 1\nendif\nifdef G\nendif\nG := $(F) $(C)\n") == {
        "A",
        "B",
        "D",
        "E",
        "G",
    }


def test_what_is_set_first_is_not() -> None:
    found = read_makefile(HEAD + "A := 1\nB = $(A)\nall:\n\techo $(B) $(C) $(@D) $< ${H}\n")
    assert set(found.config_keys) == {"C", "H"}
    assert found.overridable == ("A", "B")


def test_recipes_comments_and_continuations() -> None:
    assert keys("# $(NO)\nA := 1 \\\n  $(B)\nall: $(A)\n\techo X := $(C) # $(D)\nE := $(F)\n") == {"B", "C", "D", "F"}


def test_other_systems_are_left_out() -> None:
    body = "ifeq ($(UNAME), Linux)\n\tLIBRARIES += rt\nelse ifeq ($(OSX), 1)\n\tLIBRARIES += mac\n\tX := $(MACKEY)\nelse\n\tLIBRARIES += other\nendif\n"
    found = read_makefile(HEAD + body)
    assert found.libraries == ("rt", "other")
    assert "MACKEY" not in found.config_keys


def test_makefile_without_config() -> None:
    assert not read_makefile("all:\n\techo\n").reads_config
    assert read_makefile("include Makefile.config\n").reads_config
    assert not read_makefile("include rules.mk\n").reads_config


def test_standard_and_isystem() -> None:
    body = "COMMON_FLAGS += -std=c++11\nMATLAB_CXXFLAGS := -std=c++98\nCOMMON_FLAGS += $(foreach includedir,$(INCLUDE_DIRS),-isystem $(includedir))\n"
    found = read_makefile(HEAD + body)
    assert (found.standard, found.isystem) == ("c++11", True)


def test_build_dir_of_its_own() -> None:
    assert read_makefile(HEAD + "BUILD_DIR = temp\nLINK := $(BUILD_DIR)\n").build_dir == "temp"
    assert read_makefile(HEAD + "LINK := $(BUILD_DIR)\nBUILD_DIR := temp\n").build_dir == ""
    assert read_makefile(HEAD + "BUILD_DIR := $(OTHER)\n").build_dir == ""


def test_libraries_of_the_linker_flags() -> None:
    assert read_makefile(HEAD + "LDFLAGS += -lfoo -L/x $(foreach l,$(LIBRARIES),-l$(l))\n").libraries == ("foo",)


def test_windows_line_ends_change_nothing() -> None:
    assert read_makefile(TINY.replace("\n", "\r\n")) == read_makefile(TINY)


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    assert read_makefile(HEAD + text).reads_config


@given(
    st.lists(
        st.sampled_from(["ifeq (a,b)", "else", "endif", "else ifdef X", "A := $(B)", "\tx", "r: p", "\\", "define X", "$("]),
        max_size=12,
    )
)
def test_any_order_of_lines_is_read(lines: list[str]) -> None:
    read_makefile("\n".join(lines))
