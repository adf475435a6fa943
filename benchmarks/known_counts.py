"""Which counts linear programs find in released tables.

Each cell has the interval of its released value. Tables that have variables in common have the same
margin over these, and each table has all records. A count is known if the least and the largest
value that the programs allow are the same integer. The true counts are one solution, so that a
solution in which a count is 1 larger or smaller shows that it is not known: programs over the sum
of many counts settle most of them, and each that is left has two programs of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array

from vertibayes_protocols.queries.releases.plan import function_of
from vertibayes_protocols.release import Rule

NEAR = 1e-6
SECONDS = 120.0  # of one program
Counts = NDArray[np.int64]


class CountTable(NamedTuple):
    """The exact counts of a table."""

    members: tuple[str, ...]  # the axes
    counts: Counts


class Known(NamedTuple):
    """Of the counts from 1 to fewest - 1 in released tables, each once."""

    small: int  # how many there are
    known: int  # how many of them the programs find
    unsolved: int  # of how many a program was not solved


def intervals(rule: Rule, counts: Counts, records: int) -> tuple[Counts, Counts]:
    """Return the least and the largest count that is released as each of some counts is."""
    function, every = function_of(rule, records), np.arange(records + 1)
    values = every if function is None else function(every)
    order = np.argsort(values, kind="stable")  # a cut is not monotone: 0 is for 0 to fewest - 1
    shown = values[counts]
    low = order[np.searchsorted(values[order], shown, "left")]
    return low, order[np.searchsorted(values[order], shown, "right") - 1]


class Programs:
    """The linear programs over the tables of one study or several, of the same records.

    With several rules, the tables are released by each of them; a count is small if one of the
    rules has a larger `fewest`.
    """

    def __init__(self, tables: Sequence[CountTable], rules: Sequence[Rule], records: int) -> None:
        self.tables = list({frozenset(table.members): table for table in tables}.values())
        self.records, self.fewest, self.unsolved = records, max(r.fewest for r in rules), 0
        sizes = [table.counts.size for table in self.tables]
        starts = np.cumsum([0, *sizes[:-1]])
        self.places = [
            start + np.arange(size).reshape(table.counts.shape)
            for start, size, table in zip(starts, sizes, self.tables, strict=True)
        ]
        self.truth = np.concatenate([table.counts.ravel() for table in self.tables])
        lows, highs = zip(*(intervals(rule, self.truth, records) for rule in rules), strict=True)
        self.low, self.high = np.maximum.reduce(lows), np.minimum.reduce(highs)
        self.matrix, self.totals = self._equations()
        assert not (self.matrix @ self.truth - self.totals).any()

    def known(self) -> Known:
        """Return how many small counts are known."""
        small = np.flatnonzero((self.truth > 0) & (self.truth < self.fewest))
        left = small
        while left.size:  # the sums of all that are left
            before, weights = left.size, np.isin(np.arange(self.truth.size), left)
            for sign in (1, -1):
                left = self._settled(left, sign * weights)
            if left.size > 0.9 * before:
                break
        known = [place for place in left if self._is_known(place)]
        return Known(len(small), len(known), self.unsolved)

    def _is_known(self, place: int) -> bool:
        weights = np.zeros(self.truth.size)
        weights[place] = 1
        one, unsolved = np.array([place]), self.unsolved
        is_left = self._settled(one, weights).size and self._settled(one, -weights).size
        self.unsolved = min(self.unsolved, unsolved + 1)
        return bool(is_left) and self.unsolved == unsolved

    def _settled(self, left: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the counts that are where they were in the program of the largest sum."""
        bounds = np.stack([self.low, self.high], axis=1)
        solved = linprog(
            -weights.astype(float),
            A_eq=self.matrix,
            b_eq=self.totals,
            bounds=bounds,
            method="highs",
            options={"time_limit": SECONDS},
        )
        if solved.status != 0:
            self.unsolved += 1
            return left
        return left[np.abs(solved.x[left] - self.truth[left]) < 1 - NEAR]

    def _equations(self) -> tuple[csr_array, Counts]:
        """Return the sums of the first table's cells, and of common margins, each compared once."""
        rows: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = [
            (places.ravel(), places[:0].ravel()) for places in self.places
        ]
        rows += self._margins()
        totals = np.zeros(len(rows), np.int64)
        totals[: len(self.places)] = self.records
        places = np.concatenate([np.concatenate(row) for row in rows])
        signs = np.concatenate([np.repeat([1.0, -1.0], [len(a), len(b)]) for a, b in rows])
        lines = np.repeat(np.arange(len(rows)), [len(a) + len(b) for a, b in rows])
        shape = len(rows), self.truth.size
        return coo_array((signs, (lines, places)), shape).tocsr(), totals

    def _margins(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        members = [frozenset(table.members) for table in self.tables]
        for common in {one & other for one, other in combinations(members, 2)} - {frozenset()}:
            having = [place for place, names in enumerate(members) if common <= names]
            for one, other in pairwise(having):
                yield from zip(self._cells(one, common), self._cells(other, common), strict=True)

    def _cells(self, table: int, common: frozenset[str]) -> NDArray[np.int64]:
        """Return the places of the cells of a table, in rows: one for each cell of a margin."""
        names = self.tables[table].members
        order = [names.index(name) for name in sorted(common)]
        order += [axis for axis, name in enumerate(names) if name not in common]
        kept = int(np.prod([self.places[table].shape[axis] for axis in order[: len(common)]]))
        return self.places[table].transpose(order).reshape(kept, -1)
