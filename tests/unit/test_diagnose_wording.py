"""Every compiler's words become those of English gcc and GNU ld."""

from __future__ import annotations

import pytest

from caffeup.diagnose.wording import WIDTH, canonical, clean

UNDECLARED = "'X' was not declared in this scope"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a.cpp:1:2: error: ‘X’ was not declared in this scope", f"a.cpp:1:2: error: {UNDECLARED}"),
        ("a.cpp:1:2: error: ‘X’ has not been declared", f"a.cpp:1:2: error: {UNDECLARED}"),
        ("a.cpp:1:2: error: use of undeclared identifier 'X'", f"a.cpp:1:2: error: {UNDECLARED}"),
        ('a.cu(12): error: identifier "X" is undefined', f"a.cu(12): error: {UNDECLARED}"),
        ('a.cu(12): error #20: identifier "X" is undefined', f"a.cu(12): error: {UNDECLARED}"),
        ("a.cpp:1:2: 错误：‘X’在此作用域中尚未声明", f"a.cpp:1:2: error: {UNDECLARED}"),
        ("a.cpp:1:2: 错误：“X”未声明(在此函数内第一次使用)", f"a.cpp:1:2: error: {UNDECLARED}"),
        (
            "a.cpp:6:1: fatal error: hdf5.h: No such file or directory",
            "a.cpp:6:1: fatal error: hdf5.h: No such file or directory",
        ),
        ("a.cpp:6:1: error: hdf5.h: No such file or directory", "a.cpp:6:1: fatal error: hdf5.h: No such file or directory"),
        ("a.cpp:6:1: fatal error: 'hdf5.h' file not found", "a.cpp:6:1: fatal error: hdf5.h: No such file or directory"),
        (
            'a.hpp(4): catastrophic error: cannot open source file "hdf5.h"',
            "a.hpp(4): fatal error: hdf5.h: No such file or directory",
        ),
        ("a.cpp:6:1: 致命错误：hdf5.h：没有那个文件或目录", "a.cpp:6:1: fatal error: hdf5.h: No such file or directory"),
        ("x: error: ‘const struct P’ has no member named ‘m’", "x: error: 'P' has no member named 'm'"),
        ("x: error: no member named 'm' in 'P'", "x: error: 'P' has no member named 'm'"),
        ('x(1): error: class "P" has no member "m"', "x(1): error: 'P' has no member named 'm'"),
        ("x: 错误：‘struct P’没有名为‘m’的成员", "x: error: 'P' has no member named 'm'"),
        ("a.o: undefined reference to `f(int)'", "a.o: undefined reference to 'f(int)'"),
        ("ld.lld: error: undefined symbol: f(int)", "ld.lld: error: undefined reference to 'f(int)'"),
        ("a.o：对‘f(int)’未定义的引用", "a.o: undefined reference to 'f(int)'"),
        ("/usr/bin/ld: 找不到 -lfoo: 没有那个文件或目录", "/usr/bin/ld: cannot find -lfoo: No such file or directory"),
        ("ld.lld: error: unable to find library -lfoo", "ld.lld: error: cannot find -lfoo"),
        ("make: *** [Makefile:5：all] 错误 2", "make: *** [Makefile:5: all] Error 2"),
        ("2026-01-02T03:04:05.123Z a.cpp:1:2: error: x", "a.cpp:1:2: error: x"),
        ("#12 34.56 /bin/sh: 1: protoc: not found", "/bin/sh: 1: protoc: not found"),
        ("[12:34:56] a.cpp:1:2: error: x", "a.cpp:1:2: error: x"),
        ("[  FAILED  ] Some.Test", "[  FAILED  ] Some.Test"),
        ("", ""),
    ],
)
def test_canonical_words(line: str, said: str) -> None:
    assert canonical(line) == said


def test_escape_sequences_and_invisible_characters_go() -> None:
    assert clean("\x1b[01;31m\x1b[Kerror:\x1b[m\x1b[K a\x00b\u202ec\x1b]0;title\x07d") == "error: abcd"
    assert clean("\x1b]8;;https://example.org\x1b\\text\x1b]8;;\x1b\\") == "text"
    assert clean("an escape at the end \x1b") == "an escape at the end"


def test_a_line_is_not_wider_than_the_limit() -> None:
    assert len(clean("x" * 100_000)) == WIDTH
