"""Horizontal places for the items of ordered layers: long edges straight, parents near children.

The method is that of U. Brandes and B. Köpf, "Fast and Simple Horizontal Coordinate Assignment"
(Graph Drawing 2001): items are aligned with the median of their neighbours above or below, leftmost
or rightmost, each alignment is compacted, and the four results are averaged. Compaction is that of
the dagre library: all blocks move left as far as possible, and then right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import TypeAlias

from vertibayes.drawing.layout.layers import Layered

Pair: TypeAlias = tuple[int, int]


def place(
    graph: Layered, layers: Sequence[Sequence[int]], apart: Callable[[int, int], float]
) -> dict[int, float]:
    """Return the centre of each item."""
    barred = _conflicts(graph, layers)
    layouts = []
    for flip in (False, True):  # rightmost alignments are leftmost ones of the mirror image
        rows = [layer[::-1] if flip else layer for layer in layers]
        for near, ordered in ((graph.up, rows), (graph.down, rows[::-1])):
            align = _aligned(ordered, near, barred)
            x = _compacted(ordered, align, apart)
            layouts.append({item: -at if flip else at for item, at in x.items()})
    return _averaged(layouts)


def _conflicts(graph: Layered, layers: Sequence[Sequence[int]]) -> set[Pair]:
    """Return the segments of other edges that cross a long edge between its bends."""
    barred: set[Pair] = set()
    for above, below in pairwise(layers):
        at = {item: place for place, item in enumerate(above)}
        segments = [
            (at[up], place, up, item) for place, item in enumerate(below) for up in graph.up[item]
        ]
        inner = [(a, b) for a, b, up, item in segments if min(up, item) >= graph.nodes]
        for a, b, up, item in segments:
            if min(up, item) < graph.nodes and any((a - c) * (b - d) < 0 for c, d in inner):
                barred.add((up, item))
    return barred


def _aligned(
    layers: Sequence[Sequence[int]], near: list[list[int]], barred: set[Pair]
) -> dict[int, int]:
    """Align items with a median neighbour in the previous layer; return each item's block."""
    root = {item: item for layer in layers for item in layer}
    taken: set[int] = set()
    for before, layer in pairwise(layers):
        at = {item: place for place, item in enumerate(before)}
        last = -1
        for item in layer:
            others = sorted((other for other in near[item]), key=at.__getitem__)
            middle = (len(others) - 1) // 2
            for other in others[middle : len(others) // 2 + 1]:
                free = other not in taken and at[other] > last
                if free and (item, other) not in barred and (other, item) not in barred:
                    root[item] = root[other]
                    taken.add(other)
                    last = at[other]
                    break
    return root


def _compacted(
    layers: Sequence[Sequence[int]], root: dict[int, int], apart: Callable[[int, int], float]
) -> dict[int, float]:
    """Place blocks as far left as possible, then each as far right as the next blocks allow."""
    left: dict[int, dict[int, float]] = {block: {} for block in root.values()}
    right: dict[int, dict[int, float]] = {block: {} for block in root.values()}
    for layer in layers:
        for one, other in pairwise(layer):
            a, b = root[one], root[other]
            gap = max(left[b].get(a, 0.0), apart(one, other))
            left[b][a] = right[a][b] = gap
    x: dict[int, float] = {}
    order = list(TopologicalSorter(left).static_order())
    for block in order:
        x[block] = max((x[a] + gap for a, gap in left[block].items()), default=0.0)
    for block in reversed(order):
        limit = min((x[b] - gap for b, gap in right[block].items()), default=x[block])
        x[block] = max(x[block], limit)
    return {item: x[block] for item, block in root.items()}


def _averaged(layouts: list[dict[int, float]]) -> dict[int, float]:
    """Align the layouts with the narrowest; return the mean of each item's two middle places."""
    widths = [max(x.values()) - min(x.values()) for x in layouts]
    narrow = layouts[widths.index(min(widths))]
    low, high = min(narrow.values()), max(narrow.values())
    shifted = []
    for place, x in enumerate(layouts):
        by = low - min(x.values()) if place < 2 else high - max(x.values())
        shifted.append({item: at + by for item, at in x.items()})
    return {item: sum(sorted(x[item] for x in shifted)[1:3]) / 2 for item in narrow}
