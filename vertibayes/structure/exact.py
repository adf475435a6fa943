"""Exact search: the structure of highest BIC, by dynamic programming over sets of variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from vertibayes.counting.counter import Counter
from vertibayes.dag import Structure
from vertibayes.structure.bic import added_parameters, bic_penalty
from vertibayes.structure.graphs import Mask, Parents, elements, mask_of
from vertibayes.structure.search import Progress, Search, TimeIsUp
from vertibayes.structure.search_space import SearchSpace
from vertibayes.structure.table_sums import TableSums
from vertibayes_protocols.variables import Family

MOST_VARIABLES = 15

_Scores = NDArray[np.int64]  # in millionths of a nat, by the bit mask of a set of variables
_NONE = -(10**17)  # of what is not allowed: the sum of 15 is an int64


def exact_tables(
    search: Search, counter: Counter, progress: Progress, time_is_up: TimeIsUp
) -> Structure:
    """Find a structure of highest BIC among all that keep the constraints.

    All families are scored from the tables of all sets of at most `max_parents` + 1 variables,
    which are asked for in one call. For each set of variables the best last node and its best
    parents within the set are then computed. With missing cells the score of a family is
    relative to that of its child alone, over the records of the family's own table (`bic_gain`).
    Scores are compared in millionths of a nat. Of equal parents the fewest are taken, then the
    first by name; of equal structures the one whose last node is first by name.

    With d variables there are 2^d sets: 15 variables take about 10 MB for the scores, and with 4
    parents 4,943 tables. The tables are asked for in several calls if they are too large to be
    held in memory together.

    References
    ----------
    Silander and Myllymaki (2006), A simple approach for finding the globally optimal Bayesian
    network structure. https://arxiv.org/abs/1206.6875
    """
    del time_is_up
    space, sums = SearchSpace(search), TableSums(search, counter)
    bests = [_BestParents.of(space, child) for child in range(space.size)]
    sets = [mask_of(map(search.names.index, f.members)) for f in exact_widest(search)]
    progress("exact", 0, len(sets))
    sums.ask(sets)
    progress("exact", len(sets), len(sets))
    for members in sets:
        for node in elements(members):
            _score(space, bests[node], sums, node, members & ~(1 << node))
    for child, best in zip(search.names, bests, strict=True):
        if best.scores.max(initial=_NONE) == _NONE:
            raise ValueError(
                f"the table of {child} and its required parents is too large; require fewer edges"
            )
        best.spread(space.size)
    return space.structure(_best_dag(bests))


def exact_widest(search: Search) -> list[Family]:
    """Return a family for each set of up to `max_parents` + 1 variables, largest first."""
    if len(search.names) > MOST_VARIABLES:
        raise ValueError(
            f"exact takes at most {MOST_VARIABLES} variables, got {len(search.names)}: choose "
            "fewer variables, or another algorithm"
        )
    sizes = range(min(search.max_parents + 1, len(search.names)), 0, -1)
    sets = (members for size in sizes for members in combinations(search.names, size))
    families = (Family(members[0], members[1:]) for members in sets)
    return [family for family in families if search.fits(family)]


@dataclass
class _BestParents:
    """The best parents of a child within each set of variables."""

    allowed: Mask
    required: Mask
    scores: _Scores
    parents: NDArray[np.int64]  # bit masks

    @classmethod
    def of(cls, space: SearchSpace, child: int) -> _BestParents:
        """Return a child's parents before any family is scored."""
        sets = 1 << space.size
        scores = np.full(sets, _NONE, np.int64)
        parents = np.arange(sets, dtype=np.int64)
        return cls(space.allowed[child], space.required[child], scores, parents)

    def may(self, parents: Mask) -> bool:
        """Whether the constraints allow a set of parents."""
        return not parents & ~self.allowed and not self.required & ~parents

    def spread(self, variables: int) -> None:
        """Turn the score of each set of parents into the highest of its subsets' scores."""
        for bit in range(variables):
            shape = (-1, 2, 1 << bit)  # sets without and with the variable
            scores, parents = self.scores.reshape(shape), self.parents.reshape(shape)
            fewer = self._no_worse(scores, parents)
            scores[:, 1][fewer] = scores[:, 0][fewer]
            parents[:, 1][fewer] = parents[:, 0][fewer]

    @staticmethod
    def _no_worse(scores: _Scores, parents: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return where the best parents without a variable replace those that may have it."""
        ahead = scores[:, 0] > scores[:, 1]
        sizes = np.bitwise_count(parents)
        smaller = sizes[:, 0] < sizes[:, 1]
        first = (sizes[:, 0] == sizes[:, 1]) & (parents[:, 0] < parents[:, 1])
        tied = scores[:, 0] == scores[:, 1]
        result: NDArray[np.bool_] = ahead | tied & (smaller | first)
        return result


def _score(
    space: SearchSpace, best: _BestParents, sums: TableSums, child: int, parents: Mask
) -> None:
    """Score a family, if the constraints allow it."""
    if best.may(parents):
        gain = sums.information(1 << child, parents)
        added = added_parameters(space.search, space.family(child, parents))
        best.scores[parents] = round(gain * 10**6) - bic_penalty(added, space.search.records)


def _best_dag(bests: Sequence[_BestParents]) -> Parents:
    """Return the structure whose last nodes, set by set, have the highest total."""
    sets = 1 << len(bests)
    totals = np.full(sets, len(bests) * _NONE, np.int64)
    last = np.zeros(sets, np.int64)
    totals[0] = 0
    sizes = np.bitwise_count(np.arange(sets))
    for size in range(1, len(bests) + 1):
        of_size = np.flatnonzero(sizes == size)
        for node, best in enumerate(bests):
            with_node = of_size[of_size >> node & 1 == 1]
            before = with_node ^ (1 << node)
            reached = totals[before] + best.scores[before]
            better = reached > totals[with_node]
            totals[with_node[better]], last[with_node[better]] = reached[better], node
    left, dag = sets - 1, [0] * len(bests)
    while left:
        node = int(last[left])
        left ^= 1 << node
        dag[node] = int(bests[node].parents[left])
    return dag
