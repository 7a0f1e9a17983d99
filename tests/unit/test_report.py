"""The page of a bench: complete in itself, and nothing in a name becomes a part of it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from caffeup.app.bench_page import render_page, require_writable, write_page
from caffeup.bench.page import LAYERS, fastest, parts, percent
from caffeup.errors import UsageError
from caffeup.model.bench import BenchReport, GpuDuring, LayerTime, Row, Told
from caffeup.model.finding import Finding, Remedy, Severity

HOSTILE = "</b><script>alert('x')</script>\"'><img src=http://example.org/x>\x1b[31m\udcff"


def row(variant: str, total: float, *, batch: int = 1, name: str = "conv", many: int = 3) -> Row:
    layers = tuple(LayerTime(name=f"{name}{i}", forward=total / many, backward=total / many) for i in range(many))
    gpu = GpuDuring(clock_mhz=1755, clock_lowest_mhz=1740, clock_max_mhz=1980, temperature=41, power_watts=212.4)
    return Row(
        variant=variant,
        title=f"{variant} title",
        batch=batch,
        forward=total,
        backward=total,
        ratio=0.5,
        gpu=gpu,
        memory_bytes=812 << 20,
        memory_of="process",
        layers=layers,
    )


def report(*rows: Row, **more: object) -> BenchReport:
    return BenchReport(tree="/home/me/caffe", net="net.prototxt", name="Net", device="GPU", rows=rows, **more)  # type: ignore[arg-type]


class Reader(HTMLParser):
    """Tags, with those that are left open; and what would be fetched."""

    VOID = frozenset({"meta", "br", "rect"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in {"src", "href", "srcset", "data", "action"}]
        self.wrong += [name for name, _ in attrs if name.startswith("on")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"/{tag}")


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    return reader


def test_it_is_whole_and_needs_nothing_else() -> None:
    text = render_page(report(row("group", 10.0), row("depthwise", 1.0)))
    page = read(text)
    assert page.open == []
    assert page.wrong == []
    assert page.links == []
    assert "script" not in page.tags
    assert "url(" not in text
    assert "@import" not in text
    assert "default-src 'none'" in text


def test_what_stands_in_it() -> None:
    text = render_page(
        report(
            row("group", 10.0),
            Row(
                variant="cudnn",
                title="by cuDNN",
                batch=1,
                failed="no memory",
                findings=(
                    Finding(
                        id="x",
                        severity=Severity.PROBLEM,
                        title="14880 handles",
                        why="Three for each group.",
                        remedies=(Remedy(text="Convert it.", commands=("caffeup net convert x",)),),
                    ),
                ),
            ),
            row("depthwise", 1.0),
            machine=(Told(title="system", value="debian 12"),),
            decisions=(Told(title="blas", value="open", because="it is here"),),
            left_out=(Told(title="other", value="another way", because="not here"),),
            disturbed=("process 7 of me",),
            depthwise=("conv1",),
        )
    )
    words = "failed: no memory|14880 handles|caffeup net convert x|debian 12|it is here|not here|process 7 of me|812 MiB|1755 (lowest 1740)"
    for word in words.split("|"):
        assert word in text, word
    assert "At batch 1 depthwise is fastest, 10 times as fast as group." in text
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_whatever_stands_in_a_name_is_shown_and_not_obeyed() -> None:
    text = render_page(
        BenchReport(
            tree=HOSTILE,
            net=HOSTILE,
            name=HOSTILE,
            device=HOSTILE,
            rows=(row(HOSTILE, 1.0, name=HOSTILE), Row(variant="b", title=HOSTILE, batch=1, failed=HOSTILE)),
            machine=(Told(title=HOSTILE, value=HOSTILE),),
            decisions=(Told(title=HOSTILE, value=HOSTILE, because=HOSTILE),),
            left_out=(Told(title=HOSTILE, value=HOSTILE, because=HOSTILE),),
            disturbed=(HOSTILE,),
        )
    )
    page = read(text)
    assert {"script", "img"} & set(page.tags) == set()
    assert page.wrong == []
    assert page.links == []
    assert re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text) is None
    text.encode("utf-8")


def test_bars_are_parts_of_the_longest() -> None:
    (part,) = parts(report(row("group", 10.0), row("depthwise", 1.0)))
    assert [(bar.forward, bar.backward) for bar in part.whole] == [(50.0, 50.0), (5.0, 5.0)]
    assert [bar.forward for bar in part.layers[0].bars] == [50.0, 5.0]
    assert percent(0.0, 10.0) == 0.0
    assert percent(1e-9, 10.0) > 0
    assert percent(1.0, 0.0) == 0.0


def test_of_many_layers_the_slowest_and_the_sum_of_the_rest() -> None:
    (part,) = parts(report(row("group", 100.0, many=LAYERS + 20)))
    assert len(part.layers) == LAYERS
    assert part.rest.startswith("The other 20 layers together: group 40.00 + 40.00 ms.")


def test_each_batch_size_is_a_part() -> None:
    assert [part.batch for part in parts(report(row("group", 1.0), row("group", 9.0, batch=32)))] == [1, 32]


def test_where_all_failed_nothing_is_fastest() -> None:
    failed = report(Row(variant="a", title="a", batch=1, failed="no"))
    assert fastest(failed) is None
    assert read(render_page(failed)).open == []


def test_writing(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("old")
    write_page(report(row("group", 1.0)), str(page))
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    require_writable(str(page))
    for name in (tmp_path, tmp_path / "no" / "page.html"):
        with pytest.raises(UsageError, match="cannot be written"):
            require_writable(str(name))
