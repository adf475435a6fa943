"""Place the boxes and paths of a graph from the sizes of its nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import NamedTuple, TypeAlias

from vertibayes.drawing.layout.coordinates import place
from vertibayes.drawing.layout.crossings import order_layers
from vertibayes.drawing.layout.layers import Arc, Layered, connected_parts, layer

GAP, BEND_GAP = 18.0, 9.0  # between boxes, and beside a bend
LEAST_ROOM, MOST_ROOM = 34.0, 96.0  # between layers
PORTS = 9.0  # between the ends of edges at a box
PART_GAP = 34.0  # between parts that are not connected
ASPECT, LEAST_WIDTH = 1.7, 640.0  # target ratio of width to height, and smallest target width

Point: TypeAlias = tuple[float, float]


class Size(NamedTuple):
    """The size of a box."""

    width: float
    height: float


class Layout(NamedTuple):
    """The places of nodes and edges in a rectangle that begins at (0, 0)."""

    centres: list[Point]  # of each node's box
    # The points of each edge from the parent's box to the child's: straight lines through layers
    # join points 1 and 2, 3 and 4 and so on; curves join the lines.
    paths: dict[Arc, list[Point]]
    size: Size


def lay_out(sizes: Sequence[Size], arcs: Sequence[Arc]) -> Layout:
    """Lay out a directed acyclic graph, whose nodes are numbered from 0, from its boxes' sizes."""
    widest = _target_width(sizes)
    parts = []
    for members in connected_parts(len(sizes), arcs):
        number = {node: place for place, node in enumerate(members)}
        inside = [(number[p], number[c]) for p, c in arcs if p in number]
        parts.append((members, _lay_out_part([sizes[node] for node in members], inside, widest)))
    return _packed(len(sizes), parts, widest)


def _target_width(sizes: Sequence[Size]) -> float:
    """Return a width at which boxes in layers have about the target ratio."""
    area = sum((size.width + GAP) * (size.height + 1.5 * LEAST_ROOM) for size in sizes)
    widest = max((size.width for size in sizes), default=0.0)
    return max(LEAST_WIDTH, widest, sqrt(ASPECT * area))


def _lay_out_part(sizes: Sequence[Size], arcs: Sequence[Arc], widest: float) -> Layout:
    """Lay out a connected graph."""
    graph = layer(len(sizes), arcs, lambda node: sizes[node].width + GAP, widest)
    layers = order_layers(graph)

    def apart(one: int, other: int) -> float:
        halves = sum(sizes[item].width / 2 for item in (one, other) if item < graph.nodes)
        return halves + (GAP if max(one, other) < graph.nodes else BEND_GAP)

    x = place(graph, layers, apart)
    left = min(at - (sizes[item].width / 2 if item < graph.nodes else 0) for item, at in x.items())
    x = {item: at - left for item, at in x.items()}
    bands = _bands(graph, layers, sizes, x)
    level = {item: at for at, items in enumerate(layers) for item in items}
    centres = [(x[n], sum(bands[level[n]]) / 2) for n in range(graph.nodes)]
    ports = _ports(graph, sizes, x)
    paths = {
        arc: _path(chain, bands, level, sizes, x, ports) for arc, chain in graph.chains.items()
    }
    right = max(at + (sizes[item].width / 2 if item < graph.nodes else 0) for item, at in x.items())
    return Layout(centres, paths, Size(right, bands[-1][1]))


def _bands(
    graph: Layered, layers: Sequence[Sequence[int]], sizes: Sequence[Size], x: Mapping[int, float]
) -> list[tuple[float, float]]:
    """Return the top and bottom of each layer; more and longer slanting edges need more room."""
    bands, top = [], 0.0
    for items in layers:
        height = max(sizes[item].height for item in items if item < graph.nodes)
        bands.append((top, top + height))
        reach = [abs(x[item] - x[below]) for item in items for below in graph.down[item]]
        slanting = [length for length in reach if length > PORTS]
        room = LEAST_ROOM + 1.2 * len(slanting) + max(slanting, default=0.0) / 16
        top += height + min(room, MOST_ROOM)
    return bands


def _ports(
    graph: Layered, sizes: Sequence[Size], x: Mapping[int, float]
) -> dict[tuple[int, int], float]:
    """Return the place at an item's box where the segment to each neighbour ends."""
    ports = {(one, other): x[one] for one in x for other in (*graph.up[one], *graph.down[one])}
    for near in (graph.up, graph.down):
        for node in range(graph.nodes):
            others = sorted(near[node], key=lambda item: x[item])
            step = min(PORTS, (sizes[node].width - 16) / max(len(others) - 1, 1))
            for rank, other in enumerate(others):
                ports[node, other] += (rank - (len(others) - 1) / 2) * step
    for near in (graph.up, graph.down):
        for node in range(graph.nodes):
            if len(near[node]) == 1:  # a small shift of the end avoids a small bend in the edge
                (other,) = near[node]
                if abs(ports[other, node] - x[node]) < sizes[node].width / 4:
                    ports[node, other] = ports[other, node]
    return ports


def _path(
    chain: Sequence[int],
    bands: Sequence[tuple[float, float]],
    level: Mapping[int, int],
    sizes: Sequence[Size],
    x: Mapping[int, float],
    ports: Mapping[tuple[int, int], float],
) -> list[Point]:
    parent, child = chain[0], chain[-1]
    start, end = ports[parent, chain[1]], ports[child, chain[-2]]
    (top, bottom), (low, lowest) = bands[level[parent]], bands[level[child]]
    path = [(start, (top + bottom + sizes[parent].height) / 2), (start, bottom)]
    for bend in chain[1:-1]:
        path += [(x[bend], y) for y in bands[level[bend]]]
    return [*path, (end, low), (end, (low + lowest - sizes[child].height) / 2)]


def _packed(nodes: int, parts: Sequence[tuple[list[int], Layout]], widest: float) -> Layout:
    """Put parts beside each other in rows, with nodes without edges closer together."""
    centres: list[Point] = [(0.0, 0.0)] * nodes
    paths: dict[Arc, list[Point]] = {}
    right, y, x, row_height = 0.0, 0.0, 0.0, 0.0
    widest = max([widest, *(layout.size.width for _, layout in parts)])
    for members, layout in parts:
        gap = PART_GAP if layout.paths else GAP
        if x and x + layout.size.width > widest:
            x, y, row_height = 0.0, y + row_height + gap, 0.0
        for node, (at, height) in zip(members, layout.centres, strict=True):
            centres[node] = (x + at, y + height)
        for (parent, child), points in layout.paths.items():
            moved = [(x + at, y + height) for at, height in points]
            paths[members[parent], members[child]] = moved
        right, row_height = max(right, x + layout.size.width), max(row_height, layout.size.height)
        x += layout.size.width + gap
    return Layout(centres, paths, Size(right, y + row_height))
