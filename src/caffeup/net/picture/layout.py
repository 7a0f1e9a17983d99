"""Where the boxes of a picture stand: ranks from top to bottom, few crossings, and lines as straight as may be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

GAP, LANE, ROOM = 28.0, 16.0, 44.0
"""Between boxes, between lines, and between ranks."""
_SWEEPS = 12
_MOST_BENDS = 60_000
"""Lines that go past many ranks bend at each; with more than so many bends the longest go straight."""


class Size(NamedTuple):
    """Of a box."""

    width: float
    height: float


class Layout(NamedTuple):
    """Places of the boxes' centres, and the points of each line."""

    places: tuple[tuple[float, float], ...]
    lines: tuple[tuple[tuple[float, float], ...], ...]
    width: float
    height: float


class _Graph:
    """Boxes and bends, each in its rank."""

    def __init__(self, sizes: Sequence[Size], edges: Sequence[tuple[int, int]]) -> None:
        self.rank = _ranks(len(sizes), edges)
        self.width = [size.width for size in sizes]
        self.above: list[list[int]] = [[] for _ in sizes]
        self.below: list[list[int]] = [[] for _ in sizes]
        self.paths: list[list[int]] = []
        room = _longest_span([self.rank[end] - self.rank[start] for start, end in edges])
        for start, end in edges:
            self.paths.append(self._path(start, end, room))
        self.rows: list[list[int]] = [[] for _ in range(max(self.rank, default=0) + 1)]
        for node, rank in enumerate(self.rank):
            self.rows[rank].append(node)

    def _path(self, start: int, end: int, room: int) -> list[int]:
        """The nodes of a line: a bend in each rank that it passes."""
        if self.rank[end] - self.rank[start] > room:
            return [start, end]
        path = [start]
        for rank in range(self.rank[start] + 1, self.rank[end]):
            self.rank.append(rank)
            self.width.append(LANE)
            self.above.append([])
            self.below.append([])
            path.append(len(self.rank) - 1)
        path.append(end)
        for upper, lower in zip(path, path[1:]):
            self.below[upper].append(lower)
            self.above[lower].append(upper)
        return path


def lay_out(sizes: Sequence[Size], edges: Sequence[tuple[int, int]]) -> Layout:
    """Edges lead from a box to one that comes later."""
    graph = _Graph(sizes, edges)
    _order(graph)
    across = _across(graph, len(sizes))
    heights = [max((sizes[node].height for node in row if node < len(sizes)), default=0.0) for row in graph.rows]
    down, at = [], ROOM / 2
    for height in heights:
        down.append(at + height / 2)
        at += height + ROOM
    left = min((across[node] - graph.width[node] / 2 for node in range(len(graph.rank))), default=0.0) - GAP
    places = [(across[node] - left, down[graph.rank[node]]) for node in range(len(graph.rank))]
    lines = tuple(tuple(_points(path, places, heights, graph, sizes)) for path in graph.paths)
    right = max((places[node][0] + graph.width[node] / 2 for node in range(len(places))), default=0.0) + GAP
    return Layout(tuple(places[: len(sizes)]), lines, right, at)


def _ranks(many: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """As far below the top as the longest way from there; what nothing leads to stands right above what it leads to."""
    rank = [0] * many
    above: list[list[int]] = [[] for _ in range(many)]
    below: list[list[int]] = [[] for _ in range(many)]
    for start, end in edges:
        above[end].append(start)
        below[start].append(end)
    for node in range(many):
        rank[node] = max((rank[one] + 1 for one in above[node]), default=0)
    for node in range(many):
        if not above[node] and below[node]:
            rank[node] = min(rank[one] for one in below[node]) - 1
    return rank


def _longest_span(spans: Iterable[int]) -> int:
    """Up to which length lines bend, so that there are not too many bends."""
    total, longest = 0, 1
    for span in sorted(spans):
        total += span
        if total > _MOST_BENDS:
            return longest
        longest = span
    return longest


def _order(graph: _Graph) -> None:
    """In each rank by the middle of the neighbours above and below, by turns."""
    place = [0.0] * len(graph.rank)
    for row in graph.rows:
        for index, node in enumerate(row):
            place[node] = float(index)
    for sweep in range(_SWEEPS):
        downward = sweep % 2 == 0
        near = graph.above if downward else graph.below
        for row in graph.rows if downward else reversed(graph.rows):
            wanted = {
                node: sum(place[one] for one in near[node]) / len(near[node]) if near[node] else place[node] for node in row
            }
            row.sort(key=lambda node: (wanted[node], place[node]))
            for index, node in enumerate(row):
                place[node] = index - (len(row) - 1) / 2


def _across(graph: _Graph, boxes: int) -> list[float]:
    """Each node as near to the middle of its neighbours as the order and the widths allow."""
    across = [0.0] * len(graph.rank)
    for row in graph.rows:
        offsets = _offsets(graph, row)
        for node, offset in zip(row, offsets):
            across[node] = offset - (offsets[-1] / 2 if offsets else 0.0)
    for sweep in range(_SWEEPS):
        downward = sweep % 2 == 0
        for row in graph.rows if downward else reversed(graph.rows):
            wanted, weights = [], []
            for node in row:
                near = graph.above[node] if downward else graph.below[node]
                near = near or (graph.below[node] if downward else graph.above[node])
                wanted.append(sum(across[one] for one in near) / len(near) if near else across[node])
                weights.append(8.0 if node >= boxes else 1.0)  # a line that bends is harder to follow than a box that moves
            offsets = _offsets(graph, row)
            fitted = _monotone([want - offset for want, offset in zip(wanted, offsets)], weights)
            for node, value, offset in zip(row, fitted, offsets):
                across[node] = value + offset
    return across


def _offsets(graph: _Graph, row: Sequence[int]) -> list[float]:
    """How far each stands from the first of its row at least."""
    result, at = [], 0.0
    for number, node in enumerate(row):
        if number:
            before = row[number - 1]
            both = (graph.width[before] + graph.width[node]) / 2
            at += both + (GAP if graph.width[before] > LANE or graph.width[node] > LANE else 0.0)
        result.append(at)
    return result


def _monotone(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The nearest values that do not fall: neighbours that would, share their mean."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights):
        block = (value, weight, 1)
        while blocks and blocks[-1][0] > block[0]:
            before = blocks.pop()
            total = before[1] + block[1]
            block = ((before[0] * before[1] + block[0] * block[1]) / total, total, before[2] + block[2])
        blocks.append(block)
    return [mean for mean, _, many in blocks for _ in range(many)]


def _points(
    path: Sequence[int], places: Sequence[tuple[float, float]], heights: Sequence[float], graph: _Graph, sizes: Sequence[Size]
) -> Iterable[tuple[float, float]]:
    """From the lower edge of a box to the upper edge of another; through a rank straight down."""
    for node in path:
        x, y = places[node]
        if node < len(sizes):
            half = sizes[node].height / 2
            yield x, y + half if node == path[0] else y - half
        else:
            half = heights[graph.rank[node]] / 2
            yield x, y - half
            yield x, y + half
