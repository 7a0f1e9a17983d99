"""One wording for what gcc, clang, nvcc, the linkers and make say, in English and Chinese.

``clean`` makes a line safe to show. ``canonical`` then rewrites it into the words of English gcc and GNU ld with
straight quotes, so that a symptom is written once.
"""

from __future__ import annotations

import re

from caffeup.diagnose.languages import english

WIDTH = 4096
"""Characters of a line that are looked at."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])?|\x9b[0-?]*[ -/]*[@-~]")
_QUOTES = re.compile("[‘’‚‛`´“”„「」]|« ?| ?»|»(?=\\S)|(?<=\\S)«")

_STAMP = re.compile(
    r"^(?:(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z| ?[+-]\d\d:?\d\d)?\]?"
    r"|\[?\d\d:\d\d:\d\d(?:\.\d+)?\]|#\d+ \d+\.\d+|>) +)+"
)
"""What build servers, container builders and mail put before each line."""

_CHINESE = re.compile(r"[\u4e00-\u9fff：]")
_FROM_CHINESE: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        ("：", ": "),
        (r"致命错误: *", "fatal error: "),
        (r"(?:编译器内部|内部编译器)错误: *", "internal compiler error: "),
        (r"永久错误: *", "error: "),
        (r"错误: *", "error: "),
        (r"警告: *", "warning: "),
        (r"(?:附注|备注|注意|注): *", "note: "),
        (r"\b行 *(\d+): ", r"line \1: "),
        (r"错误 (\d+)\s*$", r"Error \1"),
        (r"没有那个文件或目录|没有该文件或目录", "No such file or directory"),
        (r" *在此作用域中尚未声明", " was not declared in this scope"),
        (r" *(?:尚未声明|未声明\(在此函数内第一次使用\)|未声明)", " was not declared in this scope"),
        (r"('[^']+') *的实参不依赖(?:于)?模板参数，所以 *'[^']+' *的声明必须可用", r"\1 was not declared in this scope"),
        (r"('[^']+') *不是命名空间 *('[^']+') *中的一个类型名", r"\1 in namespace \2 does not name a type"),
        (r"('[^']+') *不是一个类型名", r"\1 does not name a type"),
        (r"('[^']+') *不是 *('[^']+') *的成员", r"\1 is not a member of \2"),
        (r"('[^']+') *没有名为 *('[^']+') *的成员", r"\1 has no member named \2"),
        (r"(?:传递给|提供给|给)函数 *('.+') *的(?:实参|参数)太少", r"too few arguments to function \1"),
        (r"(?:对|调用) *('.+') *的调用没有匹配的函数", r"no matching function for call to \1"),
        (r"没有与? *('.+') *(?:的)?调用(?:相)?匹配的函数", r"no matching function for call to \1"),
        (r"对 *('.+') *未定义的引用", r"undefined reference to \1"),
        (r"(?:未定义的引用|未定义引用) *", "undefined reference to "),
        (r"找不到 *-l", "cannot find -l"),
        (r"隐藏符号 *('.+')(?: *(?:没有|未)(?:被)?定义)?", r"hidden symbol \1 isn't defined"),
        (r"编译中断。?", "compilation terminated."),
        (r"没有规则可(?:以?制作|制作|创建)目标 *", "No rule to make target "),
        (r"命令未找到|未找到命令|找不到命令|未找到(?=$)", "command not found"),
        (r"设备上没有空间|设备没有空间", "No space left on device"),
        (r"已杀死|已终止进程|被杀死", "Killed"),
        (r"段错误|段错误 *\(核心已转储\)", "Segmentation fault"),
        (r"(?:装入|加载)共享库时出错: *", "error while loading shared libraries: "),
        (r"无法打开共享(?:对象|目标)文件|无法打开共享对象文件", "cannot open shared object file"),
        (r"无法分配内存|不能分配内存", "Cannot allocate memory"),
    )
)

_HEADER = r"(?P<name>[\w./+-]+\.(?:h|hpp|hh|hxx|cuh|inc|inl))"
# (a word that must be there, pattern, canonical words); tried in order, each at most once.
_WORDINGS: tuple[tuple[str, re.Pattern[str], str], ...] = tuple(
    (literal, re.compile(pattern), words)
    for literal, pattern, words in (
        ("catastrophic error", r"catastrophic error", "fatal error"),
        ("error #", r"\berror #\d+(?:-D)?:", "error:"),
        ("error C", r"\berror C\d+:", "error:"),
        ("file not found", rf"error: '{_HEADER}' file not found", r"error: \g<name>: No such file or directory"),
        (
            "cannot open source file",
            rf"error: cannot open source file [\"']{_HEADER}[\"']",
            r"error: \g<name>: No such file or directory",
        ),
        (
            "Cannot open include file",
            rf"error: Cannot open include file: '{_HEADER}'",
            r"error: \g<name>: No such file or directory",
        ),
        ("No such file", rf"(?<!fatal )error: {_HEADER}: No such file", r"fatal error: \g<name>: No such file"),
        ("is undefined", r'identifier "([^"]+)" is undefined', r"'\1' was not declared in this scope"),
        ("use of undeclared identifier", r"use of undeclared identifier '([^']+)'", r"'\1' was not declared in this scope"),
        (
            "no arguments to",
            r"there are no arguments to '([^']+)' that depend on a template parameter",
            r"'\1' was not declared in this scope",
        ),
        ("has not been declared", r"'([^']+)' has not been declared", r"'\1' was not declared in this scope"),
        ("undeclared", r"'([^']+)' undeclared", r"'\1' was not declared in this scope"),
        (
            " in namespace '",
            r"no (?:member|type|template) named '([^']+)' in namespace '([^']+)'",
            r"'\1' is not a member of '\2'",
        ),
        ('namespace "', r'namespace "([^"]+)" has no (?:actual )?member "([^"]+)"', r"'\2' is not a member of '\1'"),
        ("no member named", r"error: no member named '([^']+)' in '([^']+)'", r"error: '\2' has no member named '\1'"),
        ('has no member "', r'(?:class|struct|enum) "([^"]+)" has no member "([^"]+)"', r"'\1' has no member named '\2'"),
        ("has no member", r"'(?:const |volatile |struct |class )+([^']+)' has no member", r"'\1' has no member"),
        ("too few arguments in function call", "too few arguments in function call", "too few arguments to function call"),
        ("no matching member function", "no matching member function for call to", "no matching function for call to"),
        (
            "no instance of overloaded function",
            r'no instance of (?:overloaded )?function "([^"]+)" matches',
            r"no matching function for call to '\1' matches",
        ),
        ("error: undefined symbol: ", r"error: undefined symbol: (.+)", r"error: undefined reference to '\1'"),
        ("unable to find library", r"unable to find library -l", "cannot find -l"),
        ("library not found for", r"library (?:'?)not found for -l", "cannot find -l"),
        ("library not found: ", r"library not found: (?=\w)", "cannot find -l"),
        ("ld: library '", r"ld: library '([^']+)' not found", r"ld: cannot find -l\1"),
    )
)


def clean(line: str) -> str:
    """The line without escape sequences, control characters and invisible marks, and not wider than ``WIDTH``."""
    if len(line) > 2 * WIDTH:
        line = line[: 2 * WIDTH]
    if not line.isprintable():
        line = _ESCAPES.sub("", line)
        line = "".join(char if char.isprintable() else " " if char.isspace() else "" for char in line)
    return line[:WIDTH].rstrip()


def canonical(line: str) -> str:
    """A clean line in the words of English gcc and GNU ld, with straight single quotes where a name is quoted."""
    said = line.replace("`", "'") if line.isascii() else _QUOTES.sub("'", line)
    if said[:1] in "[#>0123456789":
        said = _STAMP.sub("", said)
    if not said.isascii() and _CHINESE.search(said):
        for pattern, words in _FROM_CHINESE:
            said = pattern.sub(words, said)
    said = english(said)
    for literal, pattern, words in _WORDINGS:
        if literal in said:
            said = pattern.sub(words, said, count=1)
    return said
