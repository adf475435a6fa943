"""Order the items of each layer so that few edges cross."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence

import numpy as np

from vertibayes.drawing.layout.layers import Layered

MOST_SWEEPS = 24
PATIENCE = 6  # sweeps without improvement
STARTS, MOST_VISITS = 16, 1200  # initial orders, and items that they visit per sweep in all


def order_layers(graph: Layered) -> list[list[int]]:
    """Return the ordered layers: the best result of several initial orders."""
    items = len(graph.up)
    starts = max(1, min(STARTS, MOST_VISITS // items))
    generator = np.random.default_rng(0)
    best, fewest = graph.layers, count_crossings(graph, graph.layers)
    for start in range(starts):
        rank = _walk(graph) if start == 0 else generator.permutation(items).tolist()
        layers = [sorted(layer, key=rank.__getitem__) for layer in graph.layers]
        layers, crossings = _improved(graph, layers)
        if crossings < fewest:
            best, fewest = layers, crossings
        if fewest == 0:
            break
    return best


def count_crossings(graph: Layered, layers: Sequence[Sequence[int]]) -> int:
    """Return how many pairs of edges between neighbouring layers cross."""
    place = _places(layers)
    total = 0
    for layer in layers:
        seen: list[int] = []
        for item in layer:
            ends = sorted(place[below] for below in graph.down[item])
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _places(layers: Sequence[Sequence[int]]) -> dict[int, int]:
    return {item: place for layer in layers for place, item in enumerate(layer)}


def _walk(graph: Layered) -> list[int]:
    """Return the place of each item in a depth-first walk, which keeps branches together."""
    rank = [-1] * len(graph.up)
    stack, count = [item for layer in reversed(graph.layers) for item in layer], 0
    while stack:
        item = stack.pop()
        if rank[item] < 0:
            rank[item] = count
            count += 1
            near = [*graph.down[item][::-1], *graph.up[item][::-1]]
            stack += [other for other in near if rank[other] < 0]
    return rank


def _improved(graph: Layered, layers: list[list[int]]) -> tuple[list[list[int]], int]:
    """Sort each layer by its neighbours, and swap items, until crossings no longer decrease."""
    best, fewest, idle = layers, count_crossings(graph, layers), 0
    for sweep in range(MOST_SWEEPS):
        downwards = sweep % 2 == 0
        layers = [list(layer) for layer in layers]
        near = graph.up if downwards else graph.down
        for at in range(1, len(layers)) if downwards else range(len(layers) - 2, -1, -1):
            place = _places([layers[at - 1 if downwards else at + 1]])
            layers[at] = _by_means(layers[at], near, place)
        _swap(graph, layers)
        crossings = count_crossings(graph, layers)
        idle += 1
        if crossings < fewest:
            best, fewest, idle = layers, crossings, 0
        if idle == PATIENCE or fewest == 0:
            break
    return best, fewest


def _by_means(layer: list[int], near: list[list[int]], place: dict[int, int]) -> list[int]:
    """Sort a layer by the mean place of each item's neighbours; items without neighbours stay."""
    mean = {
        item: sum(place[other] for other in near[item]) / len(near[item])
        for item in layer
        if near[item]
    }
    movable = iter(sorted(mean, key=mean.__getitem__))
    return [next(movable) if item in mean else item for item in layer]


def _swap(graph: Layered, layers: list[list[int]]) -> None:
    """Swap neighbours in their layer while that removes crossings."""
    place = _places(layers)
    for _ in range(PATIENCE):
        swapped = False
        for layer in layers:
            for left in range(len(layer) - 1):
                one, other = layer[left], layer[left + 1]
                if _gain(graph, place, one, other) > 0:
                    layer[left], layer[left + 1] = other, one
                    place[one], place[other] = place[other], place[one]
                    swapped = True
        if not swapped:
            break


def _gain(graph: Layered, place: dict[int, int], one: int, other: int) -> int:
    """Return the number of crossings that a swap of two neighbours removes."""
    gain = 0
    for near in (graph.up, graph.down):
        for a in near[one]:
            for b in near[other]:
                gain += (place[a] > place[b]) - (place[a] < place[b])
    return gain
