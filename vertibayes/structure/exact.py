"""Exact search: the structure of highest BIC, by dynamic programming over sets of variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from vertibayes.counting.counter import Counter, Table, portions
from vertibayes.dag import Structure
from vertibayes.structure.bic import added_parameters, bic_penalty
from vertibayes.structure.graphs import Mask, Parents, mask_of
from vertibayes.structure.search import Progress, Search, TimeIsUp
from vertibayes.structure.search_space import SearchSpace
from vertibayes.table_scores import n_log_n
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
    families = exact_widest(search)
    lengths, space = search.lengths, SearchSpace(search)
    bests = [_BestParents.of(space, child) for child in range(space.size)]
    done = 0
    for portion in portions(lengths, families):
        progress("exact", done, len(families))
        tables = counter.tables(portion, missing=search.missing, rows=search.rows)
        for family, table in zip(portion, tables, strict=True):
            for axis in range(len(family.members)):
                _score(space, bests, family, table, axis)
        done += len(portion)
    progress("exact", done, len(families))
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
    space: SearchSpace, bests: Sequence[_BestParents], family: Family, table: Table, axis: int
) -> None:
    """Score one member of a table as the child of the others."""
    search, others = space.search, list(family.members)
    child = search.names.index(others.pop(axis))
    parents, best = mask_of(map(search.names.index, others)), bests[child]
    if best.may(parents):
        gain = _information(table, axis) if others else 0.0
        added = added_parameters(search, space.family(child, parents))
        best.scores[parents] = round(gain * 10**6) - bic_penalty(added, search.records)


def _information(table: Table, axis: int) -> float:
    """Return LL(child | others) - LL(child) over the records of a table, in nats."""
    others = tuple(other for other in range(table.ndim) if other != axis)
    alone, columns = table.sum(axis=others), table.sum(axis=axis)
    return n_log_n(table) - n_log_n(columns) - n_log_n(alone) + n_log_n(table.sum())


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
