"""An order of the variables that fits the arrows which tests imply.

References
----------
Spirtes, Glymour and Scheines (2000), Causation, prediction, and search, section 5.4.2; Meek (1995),
rule 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from vertibayes.structure.graphs import Mask, elements, mask_of
from vertibayes.structure.search_space import SearchSpace

Separators: TypeAlias = Mapping[tuple[int, int], Mask]  # of pairs that are separated


def order_by_colliders(
    space: SearchSpace,
    near: Sequence[Mask],
    separators: Separators,
    *,
    backwards: bool = False,
) -> list[int]:
    """Return an order that fits the arrows which separators imply, with required edges in order.

    Two separated variables point to each common neighbour that is not in their separator. From
    there arrows go on to neighbours that are not adjacent to where they come from. Next in the
    order is the variable to which the fewest variables that are still left point; of several one
    with many neighbours before it, and then the first by name, or the last.
    """
    arrows = _arrows(space, near, separators)
    pointing = [mask_of(x for x, z in arrows if z == v) for v in range(space.size)]
    order: list[int] = []
    placed = 0
    sign = -1 if backwards else 1

    def rank(v: int) -> tuple[int, int, int]:
        return (pointing[v] & ~placed).bit_count(), -(near[v] & placed).bit_count(), sign * v

    while len(order) < space.size:
        ready = (v for v in range(space.size) if not placed >> v & 1)
        order.append(min((v for v in ready if not space.required[v] & ~placed), key=rank))
        placed |= 1 << order[-1]
    return order


def _arrows(
    space: SearchSpace, near: Sequence[Mask], separators: Separators
) -> list[tuple[int, int]]:
    """Return the arrows that follow from separators and constraints, without contradictions."""
    pointed = {
        (v, z)
        for (x, y), given in separators.items()
        for z in elements(near[x] & near[y] & ~given)
        for v in (x, y)
    }
    pointed |= {
        (x, z)
        for z in range(space.size)
        for x in elements(near[z])
        if not space.allowed[x] >> z & 1
    }
    arrows = {(x, z): None for x, z in sorted(pointed) if (z, x) not in pointed}
    follow = list(arrows)
    for x, z in follow:  # which grows
        for w in elements(near[z] & ~near[x] & ~(1 << x)):
            if (z, w) not in arrows and (w, z) not in arrows:
                arrows[z, w] = None
                follow.append((z, w))
    return list(arrows)
