"""A bench as one page of HTML that needs nothing else."""

from __future__ import annotations

import os

from caffeup.bench.page import fastest, parts
from caffeup.bench.words import runs_words
from caffeup.bundle import bundled
from caffeup.disk import as_path, write_atomically
from caffeup.errors import UsageError
from caffeup.model.bench import BenchReport
from caffeup.net.text import printable


def render_page(report: BenchReport) -> str:
    """The page; whatever stands in a name is shown and never obeyed."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415  # only where a page is wanted

    environment = Environment(
        loader=FileSystemLoader(bundled("templates")),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_shown,
    )
    runs = runs_words(report)
    net = report.net or "a net made for this"
    return environment.get_template("report.html.j2").render(
        title=f"{report.name or 'A net'} on {report.device}",
        sentence=fastest(report),
        intro=f"{net}, phase {report.phase}, by caffe time of {report.tree}; milliseconds a pass, {runs}",
        parts=parts(report),
        disturbed=report.disturbed,
        left_out=report.left_out,
        machine=report.machine,
        decisions=report.decisions,
    )


def _shown(value: object) -> object:
    """Text without control characters, and without what is no text in UTF-8."""
    if type(value) is not str:
        return value
    return printable(value.encode("utf-8", "replace").decode("utf-8"), 2000)


def require_writable(name: str) -> None:
    """Raise ``UsageError`` before anything is measured where the page could not be written."""
    path = as_path(name)
    if path.is_dir() or not path.absolute().parent.is_dir() or not os.access(path.absolute().parent, os.W_OK):
        raise UsageError(f"{printable(name, 400)} cannot be written.", advice="Name a file in a folder that is there.")


def write_page(report: BenchReport, name: str) -> None:
    """Write it; what is there is replaced."""
    write_atomically(as_path(name), render_page(report))
