"""The manual page, from the commands themselves: ``python -m caffeup.cli.man >docs/caffeup.1``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import typer.main

from caffeup.cli import called
from caffeup.cli.main import app

_CODES = (
    (0, "done; diagnose: the log was read, whatever it says"),
    (1, "a problem was found, or nobody agreed"),
    (18, "the worst that doctor found is a warning"),
    (70, "a fault of caffeup itself"),
    (130, "interrupted"),
)


def page() -> str:
    """The page in the man macros; the same commands give the same bytes."""
    root = typer.main.get_command(app)
    lines = [
        '.\\" Written from the commands by caffeup.cli.man: do not edit.',
        ".TH CAFFEUP 1",
        ".SH NAME",
        "caffeup \\- from a bare Linux machine to a Caffe that works",
        ".SH SYNOPSIS",
        ".B caffeup",
        "[\\fIOPTION\\fR]... \\fICOMMAND\\fR [\\fIARGUMENT\\fR]...",
        ".SH DESCRIPTION",
        _text(root.help or ""),
        "Results go to standard output, with \\fB\\-\\-json\\fR as JSON; all else goes to standard error.",
        ".SH OPTIONS",
        *_options(root),
        ".SH COMMANDS",
    ]
    for name, command in _leaves(root):
        lines += [f".SS {_text(name)}", *_command(name, command)]
    lines += [".SH EXIT STATUS"]
    for code, said in _codes():
        lines += [".TP", f"\\fB{code}\\fR", _text(said)]
    lines += [".SH SEE ALSO", "The pages under docs/ of the source, and \\fBcaffeup explain\\fR, which works offline."]
    whole = "\n".join(lines) + "\n"
    return whole.replace(_escaped(f" {called.name()} "), " caffeup ").replace(_escaped(f"({called.name()} "), "(caffeup ")


def _leaves(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        words = f"{path} {name}".strip()
        if not hasattr(command, "commands") or getattr(command, "invoke_without_command", False):
            yield words, command
        if hasattr(command, "commands"):
            yield from _leaves(command, words)


def _command(name: str, command: Any) -> Iterator[str]:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    said = " ".join(f"\\fI{_escaped(_called(one))}\\fR" for one in arguments)
    yield f"\\fBcaffeup {_escaped(name)}\\fR [\\fIOPTION\\fR]... {said}".rstrip()
    yield ".PP"
    yield _text(command.help or "")
    for one in arguments:
        if one.help:
            yield from (".TP", f"\\fI{_escaped(_called(one))}\\fR", _text(one.help))
    yield from _options(command)


def _called(argument: Any) -> str:
    """As in a synopsis: what may be left out stands in brackets."""
    name = str(argument.metavar or argument.name.upper())
    return name if argument.required or name.startswith("[") else f"[{name}]"


def _options(command: Any) -> Iterator[str]:
    for one in command.params:
        if one.param_type_name != "option" or one.hidden:
            continue
        names = ", ".join(f"\\fB{_escaped(name)}\\fR" for name in (*one.opts, *one.secondary_opts))
        value = "" if one.is_flag else f" \\fI{_escaped(one.metavar or one.type.name.upper())}\\fR"
        yield from (".TP", f"{names}{value}", _text(one.help or ""))


def _codes() -> list[tuple[int, str]]:
    from caffeup import errors

    kinds = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.CaffeupError)]
    told = [(one.exit_code, (one.__doc__ or "").partition("\n")[0]) for one in kinds if one is not errors.CaffeupError]
    return sorted([*told, *_CODES])


def _text(text: str) -> str:
    """A paragraph or several; nothing in it is a request."""
    return "\n.PP\n".join(_escaped(" ".join(part.split())) for part in text.split("\n\n") if part.strip())


def _escaped(text: str) -> str:
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


if __name__ == "__main__":
    sys.stdout.write(page())
