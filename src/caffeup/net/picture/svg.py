"""A picture as SVG: one file without anything from outside, in the colours of the viewer's light or dark mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from caffeup.net.picture.boxes import Box, Picture
from caffeup.net.picture.layout import Layout, Size, lay_out

_LINE, _CHAR, _PAD = 15.0, 6.6, 12.0
_BOLD = 7.4
_LEAST = 96.0
_STYLE = """\
svg { background: #fff; color: #1c1f24 }
text { font: 11px system-ui, sans-serif; fill: currentColor; text-anchor: middle }
.name { font-weight: 600; font-size: 12px }
.shape { font: 10.5px ui-monospace, monospace; opacity: .75 }
.box { stroke: #0003; rx: 6px }
.line { fill: none; stroke: #7d8590; stroke-width: 1.3 }
.data { fill: #dfe7ef } .convolution { fill: #cfe3ff } .depthwise { fill: #cdeee0 } .product { fill: #e6dcff }
.pooling { fill: #ffe3c2 } .joining { fill: #fff3b8 } .prior { fill: #f0e4d8 } .result { fill: #ffd6d9 }
.loss { fill: #ffc9c9 } .other { fill: #ececec }
@media (prefers-color-scheme: dark) {
svg { background: #14171c; color: #e8eaed } .line { stroke: #8b949e } .box { stroke: #fff3 }
.data { fill: #33414f } .convolution { fill: #1d4275 } .depthwise { fill: #175741 } .product { fill: #453371 }
.pooling { fill: #70481a } .joining { fill: #5f5515 } .prior { fill: #57432f } .result { fill: #762f37 }
.loss { fill: #7d2b2b } .other { fill: #3a3d42 }
}
"""


def drawn(picture: Picture, title: str) -> Iterator[str]:
    """The lines of the file."""
    sizes = [_size(box) for box in picture.boxes]
    layout = lay_out(sizes, picture.edges)
    width, height = round(layout.width), round(layout.height)
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    yield f"<title>{escape(title)}</title>"
    yield f"<style>\n{_STYLE}</style>"
    yield '<defs><marker id="tip" markerWidth="7" markerHeight="7" refX="6" refY="3.5" orient="auto">'
    yield '<path d="M0,0.5 L6.5,3.5 L0,6.5 z" fill="#7d8590"/></marker></defs>'
    yield from (f'<path class="line" marker-end="url(#tip)" d="{_curve(line)}"/>' for line in layout.lines)
    yield from _boxes(picture, layout, sizes)
    yield "</svg>"


def _size(box: Box) -> Size:
    widest = max(len(box.name) * _BOLD, *(len(line) * _CHAR for line in box.lines))
    return Size(max(_LEAST, widest + 2 * _PAD), (1 + len(box.lines)) * _LINE + _PAD)


def _boxes(picture: Picture, layout: Layout, sizes: Sequence[Size]) -> Iterator[str]:
    for box, (x, y), size in zip(picture.boxes, layout.places, sizes):
        left, top = x - size.width / 2, y - size.height / 2
        yield f"<g><title>{escape(box.about)}</title>"
        place = f'x="{left:.1f}" y="{top:.1f}" width="{size.width:.1f}" height="{size.height:.1f}"'
        yield f'<rect class="box {box.kind}" {place} rx="6"/>'
        for number, line in enumerate((box.name, *box.lines)):
            kind = "name" if not number else "shape" if number == len(box.lines) and line[:1].isdigit() else "more"
            at = top + _PAD / 2 + (number + 0.75) * _LINE
            yield f'<text class="{kind}" x="{x:.1f}" y="{at:.1f}">{escape(line)}</text>'
        yield "</g>"


def _curve(points: Sequence[tuple[float, float]]) -> str:
    """Straight down where it stands above itself, and otherwise an S."""
    (x, y), *others = points
    parts = [f"M{x:.1f},{y:.1f}"]
    for to_x, to_y in others:
        if abs(to_x - x) < 0.5:
            parts.append(f"L{to_x:.1f},{to_y:.1f}")
        else:
            middle = (y + to_y) / 2
            parts.append(f"C{x:.1f},{middle:.1f} {to_x:.1f},{middle:.1f} {to_x:.1f},{to_y:.1f}")
        x, y = to_x, to_y
    return " ".join(parts)
