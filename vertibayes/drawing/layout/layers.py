"""Assign the nodes of a directed acyclic graph to layers: parents above children, edges short."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple, TypeAlias

Arc: TypeAlias = tuple[int, int]  # parent, child


class Layered(NamedTuple):
    """A graph whose edges lead from each layer to the next; long edges bend in each layer."""

    layers: list[list[int]]  # the items of each layer from the top
    nodes: int  # the number of nodes; items below this number are nodes
    # The neighbours of each item in the layers above and below.
    up: list[list[int]]
    down: list[list[int]]
    chains: dict[Arc, list[int]]  # the items of each edge, from parent to child


def layer(nodes: int, arcs: Sequence[Arc], width: Callable[[int], float], widest: float) -> Layered:
    """Put the nodes of a connected graph into layers that are not much wider than allowed."""
    level = _longest_paths(nodes, arcs)
    while _shift_a_part(level, arcs) or _shift_nodes(level, arcs):
        pass
    level = _broken(level, arcs, width, widest)
    return _with_bends(level, arcs)


def _longest_paths(nodes: int, arcs: Sequence[Arc]) -> list[int]:
    level = [0] * nodes
    for _ in range(nodes):
        late = [(parent, child) for parent, child in arcs if level[child] <= level[parent]]
        if not late:
            break
        for parent, child in late:
            level[child] = max(level[child], level[parent] + 1)
    return level


def _shift_a_part(level: list[int], arcs: Sequence[Arc]) -> bool:
    """Shift a part that edges of length 1 join, if the edges that leave the part become shorter.

    All outgoing edges of the part are longer than 1. A part may be a whole branch of the graph.
    """
    part = _joined(len(level), [arc for arc in arcs if level[arc[1]] - level[arc[0]] == 1])
    pull = [0] * len(level)
    room: dict[int, int] = {}
    for parent, child in arcs:
        if part[parent] != part[child]:
            pull[part[parent]] += 1
            pull[part[child]] -= 1
            slack = level[child] - level[parent] - 1
            room[part[parent]] = min(slack, room.get(part[parent], slack))
    for one in sorted(set(part)):
        if pull[one] > 0:
            for node in range(len(level)):
                level[node] += room[one] if part[node] == one else 0
            return True
    return False


def _shift_nodes(level: list[int], arcs: Sequence[Arc]) -> bool:
    """Shift each node as far as possible to the side on which it has more edges."""
    above: list[list[int]] = [[] for _ in level]
    below: list[list[int]] = [[] for _ in level]
    for parent, child in arcs:
        above[child].append(parent)
        below[parent].append(child)
    before = list(level)
    for node in range(len(level)):
        if len(below[node]) > len(above[node]):
            level[node] = min(level[child] for child in below[node]) - 1
        elif len(above[node]) > len(below[node]):
            level[node] = max(level[parent] for parent in above[node]) + 1
    return level != before


def _joined(nodes: int, arcs: Sequence[Arc]) -> list[int]:
    """Return, for each node, the lowest node of its connected part."""
    part = list(range(nodes))

    def root(node: int) -> int:
        while part[node] != node:
            part[node] = part[part[node]]
            node = part[node]
        return node

    for one, other in arcs:
        low, high = sorted((root(one), root(other)))
        part[high] = low
    return [root(node) for node in range(nodes)]


def _broken(
    level: list[int], arcs: Sequence[Arc], width: Callable[[int], float], widest: float
) -> list[int]:
    """Break wide layers into rows; nodes with more parents than children go to the upper rows."""
    lean = [0] * len(level)
    for parent, child in arcs:
        lean[parent] += 1
        lean[child] -= 1
    broken, row = [0] * len(level), 0
    for one in sorted(set(level)):
        members = sorted((n for n in range(len(level)) if level[n] == one), key=lambda n: lean[n])
        total = sum(map(width, members))
        rows = max(1, round(total / widest))
        filled = 0.0
        for _, alike in groupby(members, key=lambda n: lean[n]):
            nodes = list(alike)
            first, filled = int(filled * rows / total), filled + sum(map(width, nodes))
            last = max(first, min(round(filled * rows / total), rows) - 1)
            for place, node in enumerate(nodes):  # row by row in turn: edges pass between boxes
                broken[node] = row + first + place % (last - first + 1)
        row = max(broken[node] for node in members) + 1
    number = {one: place for place, one in enumerate(sorted(set(broken)))}  # without empty rows
    return [number[one] for one in broken]


def _with_bends(level: list[int], arcs: Sequence[Arc]) -> Layered:
    layers: list[list[int]] = [[] for _ in range(max(level) + 1)]
    for node, at in enumerate(level):
        layers[at].append(node)
    items = len(level)
    chains: dict[Arc, list[int]] = {}
    for parent, child in arcs:
        bends = []
        for at in range(level[parent] + 1, level[child]):
            layers[at].append(items)
            bends.append(items)
            items += 1
        chains[parent, child] = [parent, *bends, child]
    up: list[list[int]] = [[] for _ in range(items)]
    down: list[list[int]] = [[] for _ in range(items)]
    for chain in chains.values():
        for above, below in pairwise(chain):
            down[above].append(below)
            up[below].append(above)
    return Layered(layers, len(level), up, down, chains)


def connected_parts(nodes: int, arcs: Sequence[Arc]) -> list[list[int]]:
    """Return the nodes of each connected part, the largest first."""
    part = _joined(nodes, arcs)
    members: dict[int, list[int]] = {}
    for node in range(nodes):
        members.setdefault(part[node], []).append(node)
    return sorted(members.values(), key=lambda nodes: (-len(nodes), nodes[0]))
