"""What a search typically asks for, call by call: `vertibayes.forecast` makes a cost of it.

Nothing of the data is known before the first call, which has all pairs. Its tables say which pairs
depend; how many tables a search asks for after it is proportional to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, islice
from math import ceil, comb, log, prod

import numpy as np

from vertibayes.counting.counter import Table
from vertibayes.structure.search import Asks, Pairs, Search
from vertibayes_protocols.variables import Family

NEIGHBOURS = 12  # of a variable, while it is not known which pairs depend


def dependent_pairs(
    families: Sequence[Family], tables: Sequence[Table], records: int
) -> list[tuple[str, str]]:
    """Return the pairs whose dependence BIC pays for.

    Examples
    --------
    >>> dependent_pairs([Family("x", ("y",))], [np.array([[20, 0], [0, 20]])], 40)
    [('y', 'x')]
    """
    pairs = []
    for family, table in zip(families, tables, strict=True):
        counts = table.astype(float)
        expected = np.outer(counts.sum(1), counts.sum(0)) / max(counts.sum(), 1.0)
        seen = counts > 0
        gain = (counts[seen] * np.log(counts[seen] / expected[seen])).sum()
        parameters = (counts.shape[0] - 1) * (counts.shape[1] - 1)
        if gain > parameters * log(max(records, 1)) / 2:
            pairs.append((family.parents[0], family.child))
    return pairs


def by_neighbours(shares: Mapping[int, float], calls: int) -> Asks:
    """Return what a search asks that begins with all pairs, and makes `calls` further calls.

    `shares` has, for each number of variables of a table, for which share of the sets of a variable
    and its neighbours (those whose pair depends) the search asks for the table, if all variables
    are neighbours. With fewer neighbours, more sets of four and more variables are separated
    before. Tables with more cells than records have no evidence, and are not asked for.
    """

    def asks(search: Search, pairs: Pairs | None) -> list[list[Family]]:
        names = search.names
        first = (Family(b, (a,)) for a, b in combinations(names, 2))
        near = _neighbours(names, pairs)
        later = [
            family
            for variables, share in shares.items()
            if variables - 1 <= search.max_parents
            for family in _wider(search, near, variables, share)
        ]
        size = max(-(-len(later) // calls), 1)
        further = [later[at : at + size] for at in range(0, len(later), size)]
        return [[family for family in first if search.fits(family)], *further]

    return asks


def _neighbours(names: Sequence[str], pairs: Pairs | None) -> dict[str, list[str]]:
    """Return the neighbours of each variable: those that follow it, if no pairs are known."""
    if pairs is None:
        ahead = range(1, min(NEIGHBOURS // 2, (len(names) - 1) // 2) + 1)
        pairs = [
            (name, names[(at + step) % len(names)])
            for at, name in enumerate(names)
            for step in ahead
        ]
    near: dict[str, list[str]] = {name: [] for name in names}
    for a, b in pairs:
        near[a].append(b)
        near[b].append(a)
    return near


def _wider(
    search: Search, near: Mapping[str, Sequence[str]], variables: int, share: float
) -> list[Family]:
    """Return families of `variables` members: each child and some of its neighbours."""
    families: dict[frozenset[str], Family] = {}
    density = sum(map(len, near.values())) / max(len(near) * (len(near) - 1), 1)
    share *= density ** (1.5 * (variables - 3))
    for child, neighbours in near.items():
        sets = combinations(sorted(neighbours), variables - 1)
        for parents in islice(sets, ceil(share * comb(len(neighbours), variables - 1))):
            first, *others = sorted((child, *parents[:-1]))  # tables share products of these
            family = Family(first, (*others, parents[-1]))
            cells = prod(search.lengths[name] for name in family.members)
            if cells <= search.records and search.fits(family):
                families.setdefault(frozenset(family.members), family)
    return [*families.values()]
