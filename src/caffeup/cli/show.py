"""Values as text for people: pure functions from a value to lines."""

from __future__ import annotations

import shlex
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Optional

from caffeup.app.words import graphics_line, plan_in_short, size, system_line, tests_in_short
from caffeup.cli.called import as_typed, prompted
from caffeup.model.finding import Confidence, Finding, Severity
from caffeup.model.machine import Machine
from caffeup.model.outcome import Check, PatchEntry, PatchState, Report, TestReport
from caffeup.model.plan import Plan
from caffeup.model.tree import Tree

__all__ = ["size"]  # for the commands, which take all words for people from here

WIDEST = 110
_NARROW = 30
"""A last column with less room than this stands below the others."""
_LONG = ("build", "test", "pycaffe", "distribute", "verify")
"""Stages that are not gone through again for nothing."""
_MARKS = {Severity.OK: "ok", Severity.NOTE: "note", Severity.WARNING: "warning", Severity.PROBLEM: "problem"}


def duration(seconds: float) -> str:
    """``4.2 s``, ``3 min 05 s``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def width() -> int:
    """Columns to fill: those of the terminal, as far as people like to read."""
    return min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST)


def table(
    rows: Iterable[Sequence[str]],
    *,
    indent: int = 2,
    wrap_last: bool = True,
    cut_last: bool = False,
    like: Sequence[Sequence[str]] = (),
) -> Iterator[str]:
    """Rows in columns; the last column is wrapped under itself (or cut), or stands below where the terminal is narrow.

    The columns are as wide as those of a table of the rows ``like``.
    """
    lines = [tuple(as_typed(cell) for cell in row) for row in rows]
    if not lines:
        return
    widths = [min(max(len(row[i]) for row in like or lines), 44) for i in range(len(lines[0]) - 1)]
    start = indent + sum(widths) + 2 * len(widths)
    below = width() - start < _NARROW and bool(widths)
    for row in lines:
        head = " " * indent + "".join(f"{cell:<{room}}  " for cell, room in zip(row, widths))
        under = indent + 4 if below else start
        body = _fill(row[-1], under, most=1 if cut_last else None) if wrap_last else [" " * under + row[-1]]
        if below:
            yield from [head.rstrip()] if len(head.rstrip()) <= width() else _fill(" ".join(head.split()), indent)
            yield from body
        else:
            yield (head + (body[0].strip() if body else "")).rstrip()
            yield from body[1:]


def _fill(text: str, start: int, *, most: Optional[int] = None) -> list[str]:
    room = max(width(), start + _NARROW)
    margin = " " * start
    wrapper = textwrap.TextWrapper(
        room,
        initial_indent=margin,
        subsequent_indent=margin,
        break_on_hyphens=False,
        break_long_words=False,
        max_lines=most,
        placeholder=" …",
    )
    return wrapper.wrap(text)


def fitted(line: str, under: int) -> list[str]:
    """The line, broken between words where it is wider than the terminal; a command stays whole, to be copied."""
    if len(line) <= width() or line.lstrip().startswith(("$ ", "as root: ")):
        return [line]
    margin = " " * min(under, width() // 2)
    return textwrap.wrap(line, width(), subsequent_indent=margin, break_on_hyphens=False, break_long_words=False)


def paragraphs(text: str, *, on_terminal: bool) -> Iterator[str]:
    """Lines of an answer, for a terminal broken between words under their own indent."""
    for line in as_typed(text).splitlines():
        yield from fitted(line, len(line) - len(line.lstrip()) + 2) if on_terminal else [line]


def _wrapped(label: str, text: str) -> Iterator[str]:
    yield from textwrap.wrap(
        as_typed(text),
        width(),
        initial_indent=f"    {label}",
        subsequent_indent=" " * (4 + len(label)),
        break_on_hyphens=False,
        break_long_words=False,
    )


def finding(one: Finding) -> Iterator[str]:
    """A finding: what, why, what was seen, what mends it."""
    yield from fitted(f"{_MARKS[one.severity]}: {as_typed(one.title)}  [{one.id}]", 4)
    if one.why:
        yield from _wrapped("why   ", one.why)
    for seen in one.evidence:
        yield from fitted(f"    seen  {seen}", 10)
    if one.confidence is not Confidence.CERTAIN:
        yield from _wrapped(
            "sure  ", f"{one.confidence}: {one.confidence_because}" if one.confidence_because else str(one.confidence)
        )
    for remedy in one.remedies:
        yield from _wrapped("mend  ", remedy.text)
        for command in remedy.commands:
            yield f"          {prompted(command)}"


def findings(many: Iterable[Finding]) -> Iterator[str]:
    """Findings, worst first."""
    order = list(Severity)
    for one in sorted(many, key=lambda f: -order.index(f.severity)):
        yield from finding(one)


def examined(many: Iterable[Finding]) -> Iterator[str]:
    """The doctor's findings: what is not right first, each whole; what is right in a line each; and the count of both."""
    every = tuple(many)
    right = [one for one in every if one.severity is Severity.OK]
    yield from findings(one for one in every if one.severity is not Severity.OK)
    for one in right:
        yield f"ok: {one.title}  [{one.id}]"
        for seen in one.evidence:
            yield from fitted(f"    seen  {seen}", 10)
    worst = [s for s in (Severity.PROBLEM, Severity.WARNING, Severity.NOTE) if any(one.severity is s for one in every)]
    counts = [f"{(n := sum(one.severity is s for one in every))} {s}{'' if n == 1 else 's'}" for s in worst]
    yield ", ".join([*counts, f"{len(right)} ok"])


def machine(value: Machine) -> Iterator[str]:
    """Everything detected."""
    yield from fitted(f"system     {system_line(value)}", 11)
    yield from fitted(f"graphics   {graphics_line(value)}", 11)
    sections = (
        ("toolkits", [(f"CUDA {t.version}", t.root, t.via, _lacks(t.missing)) for t in value.toolkits]),
        ("cuDNN headers", [(str(h.version), h.directory, h.via, "") for h in value.cudnn_headers]),
        (
            "cuDNN libraries",
            [(str(c.version or "?"), c.file, c.via, "" if c.linkable else "not linkable") for c in value.cudnn_libraries],
        ),
        ("compilers", [(f"{c.kind} {c.version}", c.path, c.via, "" if c.works else "does not work") for c in value.compilers]),
        ("programs", [(p.name, p.path, str(p.version or ""), p.via) for p in value.programs]),
        ("libraries", [(lib.name, str(lib.version or "?"), lib.prefix, lib.via) for lib in value.libraries]),
        (
            "Pythons",
            [
                (str(p.version), p.executable, str(p.kind), _python(p.numpy is not None, p.boost_python, own=p.own))
                for p in value.pythons
            ],
        ),
    )
    for title, rows in sections:
        if rows:
            yield ""
            yield title
            yield from table(rows, wrap_last=False)
    if value.missing:
        yield ""
        yield "not found"
        yield from table([(m.what, "; ".join(f"{t.where}: {t.outcome}" for t in m.tried)) for m in value.missing])
    if value.findings:
        yield ""
        yield from findings(value.findings)


def _lacks(parts: Sequence[str]) -> str:
    return f"lacks {', '.join(parts)}" if parts else ""


def _python(numpy: bool, boost: str, *, own: bool) -> str:
    words = ["numpy" if numpy else "no numpy", boost or "no Boost.Python"]
    return ", ".join([*words, "caffeup's own"] if own else words)


def plan(value: Plan) -> Iterator[str]:
    """Every decision with its reason; then fixes, packages and conflicts."""
    yield from table([(d.key, d.value, d.because) for d in value.decisions])
    if value.fixes:
        yield ""
        yield "  what the tree needs to compile here"
        yield from table([(fix.id, fix.because) for fix in value.fixes], indent=4)
    if value.packages and not any(one.id.startswith("missing-") for one in value.notes):  # which name them, with the command
        yield ""
        yield f"  to be installed: {', '.join(value.packages)}"
    if value.notes:
        yield ""
        yield from findings(value.notes)
    if value.conflicts:
        yield ""
        yield from findings(value.conflicts)


def headed_plan(value: Plan, tree: Tree) -> Iterator[str]:
    """The plan under the line that ``up`` prints of it."""
    yield from fitted(f"{'plan':<13}{plan_in_short(value, tree)}", 13)
    yield from plan(value)


def patches(entries: Iterable[PatchEntry], *, files: bool = False, fitted: bool = True) -> Iterator[str]:
    """The patch list with states, a line an entry; with ``files``, the whole reason and each file under it.

    ``fitted`` is for a terminal: lines are cut or wrapped to its width. Otherwise nothing is.
    """
    many = tuple(entries)
    rows = [(e.id, str(e.state) + (f" by {e.by}" if e.by else ""), _what(e), e.because) for e in many]
    for entry, row in zip(many, rows):
        whole = files or entry.state in {PatchState.CONFLICTING, PatchState.EDITED}
        yield from table([row], like=rows, wrap_last=fitted, cut_last=not whole)
        if files:
            yield from (f"      {path}" for path in entry.files)
    if not many:
        yield "  nothing is applied here"


def _what(entry: PatchEntry) -> str:
    """``edit``, ``shim, 21 files``."""
    return entry.kind if len(entry.files) == 1 else f"{entry.kind}, {len(entry.files)} files"


def checks(many: Iterable[Check]) -> Iterator[str]:
    """Verify's table."""
    yield from table([("ok" if c.ok else "FAILED", c.name, c.result) for c in many])


def tests(value: TestReport) -> Iterator[str]:
    """One line, then what failed and is not known to, then the known ones by their reason."""
    yield tests_in_short(value)
    yield from table([(case.name, str(case.state), case.text) for case in value.unknown_failures], indent=2)
    reasons: dict[tuple[bool, str], list[str]] = {}
    for case in value.failures:
        if case.known:
            reasons.setdefault((case.state == "not-compiled", case.known), []).append(case.name)
    yield from table([(_counted(names, "file" if file else "test"), why) for (file, why), names in reasons.items()])


def _counted(names: Sequence[str], what: str) -> str:
    return f"1 {what}" if len(names) == 1 else f"{len(names)} {what}s"


def report(value: Report, *, told: bool = False) -> Iterator[str]:
    """The end of ``up``: stages and their times, tests, checks, where the binaries are and how to use them.

    ``told``: whoever reads it saw each stage when it ended, and is not told again.
    """
    if all(stage.state != "done" for stage in value.stages if stage.name in _LONG):
        yield "nothing to do: everything is as it was built"
        yield from () if told else ("",)
    if not told:
        yield "stages"
        rows = [(s.name, s.state, duration(s.seconds) if s.state == "done" else "", s.summary) for s in value.stages]
        yield from table(rows)
    if value.tests is not None and (value.tests.failures or not told):
        yield ""
        yield "tests"
        yield from (f"  {line}" for line in tests(value.tests))
    if value.checks:
        yield ""
        yield "verified"
        yield from checks(value.checks)
    yield ""
    yield "ready"
    yield from (f"  {path}" for path in value.binaries)
    yield "  in this shell:"
    yield f'    $ eval "$({as_typed("caffeup env " + shlex.quote(value.tree))})"'
    for name, setting in value.environment:
        yield f"    {name}={setting}"
