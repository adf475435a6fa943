"""Neighbours by choices: each variable grows a set of parents, and pairs are then separated.

    analyst -> sites    Choices     for each variable, which one it takes next (`grown`)
    sites -> analyst    winners
                        ...         until no variable takes another
    analyst -> sites    Choices     for each pair, which set of variables separates it (`separated`)
    sites -> analyst    winners

PC-stable's tests have two bits each, and there are hundreds. Here a variable's growth has a set for
each of its few steps, and a pair one set for all its tests: the winner is the test that speaks most
for independence, or none.

Leakage: what each variable takes, in order, and for each pair that has grown whether any test finds
it independent, and which does so most clearly; never how clearly.

References
----------
Growth: Margaritis and Thrun (1999), Bayesian network induction via local neighborhoods. Orientation
from separators: Spirtes, Glymour and Scheines (2000), Causation, prediction, and search, section
5.4.2; Meek (1995), rule 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import TypeAlias

from vertibayes.structure.bic import aic_gain
from vertibayes.structure.chi_square import half_quantile
from vertibayes.structure.graphs import Mask, elements, mask_of, neighbours_of
from vertibayes.structure.limited_choices import LimitedChoices
from vertibayes.structure.search_space import SearchSpace
from vertibayes.structure.skeleton import ALPHA, LEVELS, RECORDS_PER_CELL
from vertibayes_protocols.approval import Steps
from vertibayes_protocols.choices import Candidate, Constant, Score
from vertibayes_protocols.variables import Family

MOST_SEPARATORS = 100  # of a pair
MOST_TAKEN = 3  # by a variable: the tables of a fourth are half of all lookups

Separators: TypeAlias = Mapping[tuple[int, int], Mask]


def grown(space: SearchSpace, choices: LimitedChoices) -> Steps[list[Mask]]:
    """Let each variable take the others that predict it best, one a call, as long as AIC rises.

    AIC takes more than BIC does: what is no neighbour is separated later, and what is not taken is
    not considered. A variable may take its children too. It takes at most `MOST_TAKEN`, and as many
    as it may have parents.
    """
    taken, growing = list(space.required), list(range(space.size))
    while growing:
        sets = {c: [taken[c], *_with_one_more(space, c, taken[c])] for c in growing}
        sets = {c: own for c, own in sets.items() if len(own) > 1}
        candidates = [
            [aic_gain(space.search, [space.family(c, one)]) for one in own]
            for c, own in sets.items()
        ]
        winners = yield from choices.best(candidates)
        growing = [c for c, winner in zip(sets, winners, strict=True) if winner]
        for (child, own), winner in zip(sets.items(), winners, strict=True):
            taken[child] = own[winner]
        growing = [c for c in growing if taken[c].bit_count() < MOST_TAKEN]
    return taken


def separated(
    space: SearchSpace, choices: LimitedChoices, taken: Sequence[Mask]
) -> Steps[tuple[list[Mask], Separators]]:
    """Separate pairs of which one has taken the other, if a test finds them independent.

    The tests are those of `skeleton_steps`, given up to two variables that either has taken or that
    has taken either. A pair with a required edge is not separated.
    """
    near = neighbours_of(list(taken))
    tests = {pair: own for pair in _pairs(space, near) if (own := _tests(space, pair, near))}
    winners = yield from choices.best(
        [[(), *(_independence(space, pair, given) for given in own)] for pair, own in tests.items()]
    )
    separators = {
        pair: own[winner - 1]
        for (pair, own), winner in zip(tests.items(), winners, strict=True)
        if winner
    }
    for x, y in separators:
        near[x] &= ~(1 << y)
        near[y] &= ~(1 << x)
    return near, separators


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


def _with_one_more(space: SearchSpace, child: int, taken: Mask) -> list[Mask]:
    """Return what a variable would have with one more that may be its parent or its child."""
    others = (x for x in range(space.size) if x != child and not taken >> x & 1)
    either = (x for x in others if space.allowed[child] >> x & 1 or space.allowed[x] >> child & 1)
    return [taken | 1 << x for x in either if space.fits(child, taken | 1 << x)]


def _pairs(space: SearchSpace, near: Sequence[Mask]) -> Iterator[tuple[int, int]]:
    """Return the pairs of neighbours of which no edge is required."""
    for x, y in combinations(range(space.size), 2):
        if near[x] >> y & 1 and not (space.required[x] >> y & 1 or space.required[y] >> x & 1):
            yield x, y


def _tests(space: SearchSpace, pair: tuple[int, int], near: Sequence[Mask]) -> list[Mask]:
    """Return the variables on which the tests of a pair condition: few first, then by name."""
    x, y = pair
    tests: list[Mask] = []
    for level in range(min(LEVELS, space.search.max_parents - 1) + 1):
        around = (combinations(elements(near[v] & ~(1 << x | 1 << y)), level) for v in pair)
        for given in sorted({given for sets in around for given in sets}):
            cells = prod(space.lengths[v] for v in (*pair, *given))
            enough = cells * RECORDS_PER_CELL <= space.search.records
            if enough and space.fits(x, mask_of((*given, y))):
                tests.append(mask_of(given))
    return tests[:MOST_SEPARATORS]


def _independence(space: SearchSpace, pair: tuple[int, int], given: Mask) -> Candidate:
    """Return by how much a test stays below its threshold: above 0, it finds independence."""
    x, y = pair
    names = space.search.names
    degrees = (space.lengths[x] - 1) * (space.lengths[y] - 1)
    degrees *= prod(space.lengths[v] for v in elements(given))
    alone = space.family(x, given)
    return (
        Score(alone, within=(names[y],)),
        Score(Family(names[x], (*alone.parents, names[y])), sign=-1),
        Constant(half_quantile(degrees, ALPHA)),
    )


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
