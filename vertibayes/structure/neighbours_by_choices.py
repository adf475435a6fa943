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
Margaritis and Thrun (1999), Bayesian network induction via local neighborhoods: growth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import prod

from vertibayes.structure.bic import aic_gain
from vertibayes.structure.chi_square import half_quantile
from vertibayes.structure.graphs import Mask, elements, mask_of, neighbours_of
from vertibayes.structure.limited_choices import LimitedChoices
from vertibayes.structure.order_by_colliders import Separators
from vertibayes.structure.search_space import SearchSpace
from vertibayes.structure.skeleton import ALPHA, LEVELS, RECORDS_PER_CELL
from vertibayes_protocols.approval import Steps
from vertibayes_protocols.choices import Candidate, Constant, Score
from vertibayes_protocols.variables import Family

MOST_SEPARATORS = 100  # of a pair
MOST_TAKEN = 3  # by a variable: the tables of a fourth are half of all lookups


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
