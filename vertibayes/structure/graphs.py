"""Sets of numbered variables as bit masks, and directed graphs as a set of parents for each.

Variables are numbered by name (`SearchSpace`), so that whatever comes first does so by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

Mask: TypeAlias = int  # bit i is the variable i
Parents: TypeAlias = list[Mask]  # of each variable: a directed graph
Order: TypeAlias = list[int]


def elements(mask: Mask) -> Iterator[int]:
    """Return the variables of a set, in order.

    Examples
    --------
    >>> list(elements(0b1101))
    [0, 2, 3]
    """
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def mask_of(variables: Iterable[int]) -> Mask:
    """Return the set of variables, the inverse of `elements`."""
    return sum(1 << v for v in set(variables))


def topological(parents: Sequence[Mask]) -> Order:
    """Return the variables with parents first; of several that are next, in order.

    In a graph with a cycle, the variables of the cycle and those below it are left out.
    """
    order: Order = []
    placed = 0
    while ready := [v for v, p in enumerate(parents) if not (p & ~placed or placed >> v & 1)]:
        order += ready
        placed |= mask_of(ready)
    return order


def ancestors(parents: Sequence[Mask]) -> list[Mask]:
    """Return for each variable of a graph without cycles the set of those above it."""
    above = [0] * len(parents)
    for child in topological(parents):
        for parent in elements(parents[child]):
            above[child] |= above[parent] | 1 << parent
    return above


def neighbours_of(parents: Sequence[Mask]) -> list[Mask]:
    """Return the neighbours of each variable: the graph without directions."""
    near = list(parents)
    for child, own in enumerate(parents):
        for parent in elements(own):
            near[parent] |= 1 << child
    return near


def moved(order: Order, v: int, place: int) -> Order:
    """Return an order with a variable at a place among the others."""
    rest = [w for w in order if w != v]
    return [*rest[:place], v, *rest[place:]]
