"""Estimates of the counts that the rule cut hides, from sums that are known.

Each released table has all records, and two tables that have variables in common have the same
margin over these variables. So the hidden counts of a table have a known sum, and the hidden counts
of a cell of a common margin differ by a known number between two tables. Whoever has the release
has these equations: estimates from them reveal nothing more, and CPTs from them are closer to those
of the exact tables (docs/results.md).

References
----------
Barak, Chaudhuri, Dwork, Kale, McSherry and Talwar (2007), "Privacy, accuracy, and consistency too:
a holistic solution to contingency table release", PODS.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import prod
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from vertibayes.counting.counter import Table
from vertibayes.counting.released import ReleasedCounter

Places: TypeAlias = NDArray[np.int64]
Equation: TypeAlias = tuple[Places, Places, int]  # unknowns added, unknowns subtracted, their sum

ROUNDS = 200
NEARLY = 0.01  # of a record: how far the sums of an estimate may be from the known sums
RIDGE = 1e-6  # equations follow from each other: it makes their matrix invertible


def with_estimates(counter: ReleasedCounter) -> ReleasedCounter:
    """Return a counter that has estimates, of float64, for the counts that a cut hides.

    Tables of another rule stay as they are, and so do tables that count different records.
    """
    request, variables = counter.request, counter.variables
    if request.rule.kind != "cut" or not _same_records(counter):
        return counter
    tables = cast("list[Table]", HiddenCounts(counter).estimate())  # learners take expected counts
    return ReleasedCounter(variables, counter.records, request, tables)


def _same_records(counter: ReleasedCounter) -> bool:
    """Whether each released table has all records."""
    names = {name for family in counter.request.families for name in family.members}
    return counter.request.missing or not any(counter.variables[n].missing for n in names)


class HiddenCounts:
    """The hidden counts of released tables, and the sums that are known of them.

    Examples
    --------
    >>> from vertibayes_protocols.release import FamilyTables, Rule
    >>> from vertibayes_protocols.variables import Family, Variable
    >>> variables = {name: Variable(name, ("no", "yes")) for name in ("a", "b")}
    >>> request = FamilyTables((Family("a"), Family("b", ("a",))), False, Rule("cut"))
    >>> tables = [np.array([40, 60]), np.array([[35, 30], [0, 30]])]
    >>> HiddenCounts(ReleasedCounter(variables, 100, request, tables)).estimate()[1].round(3)
    array([[35., 30.],
           [ 5., 30.]])
    """

    def __init__(self, counter: ReleasedCounter) -> None:
        request = counter.request
        if request.rule.kind != "cut":
            raise ValueError(f"the rule must be cut, got {request.rule.kind}")
        if not _same_records(counter):
            raise ValueError(
                "the tables count different records: values are missing; release tables in which a "
                "missing value is a state"
            )
        self._tables, self._members = counter.released, [f.members for f in request.families]
        self.most = request.rule.fewest - 1
        self.places, self.size = [], 0
        for table in self._tables:
            places = np.full(table.shape, -1)
            hidden = int((table == 0).sum())
            places[table == 0] = np.arange(self.size, self.size + hidden)
            self.places.append(places)
            self.size += hidden
        self._set_equations(list(self._equations(counter.records)))

    def estimate(self) -> list[NDArray[np.float64]]:
        """Return the tables with an estimate for each hidden count.

        The estimates start from hidden counts that are equal within a table. They go to the nearest
        numbers that have the known sums, then to the nearest within 0 and `most`, and so on
        (projections onto convex sets).
        """
        from scipy.sparse import eye_array
        from scipy.sparse.linalg import splu

        values = np.zeros(self.size)
        for places, total in zip(self.places, self.totals, strict=False):  # first the tables' sums
            hidden = places[places >= 0]
            values[hidden] = total / max(hidden.size, 1)
        equations = (self.matrix @ self.matrix.T + RIDGE * eye_array(len(self.totals))).tocsc()
        solver = splu(equations)
        for _ in range(ROUNDS):
            off = self.totals - self.matrix @ values
            if np.abs(off).max(initial=0.0) < NEARLY:
                break
            values = np.clip(values + self.matrix.T @ solver.solve(off), 0, self.most)
        else:  # far from convergence, a table may count more than all records
            self._scale_down(values)
        return [
            np.where(places >= 0, np.append(values, 0.0)[places], table)
            for places, table in zip(self.places, self._tables, strict=True)
        ]

    def _scale_down(self, values: NDArray[np.float64]) -> None:
        """Scale the estimates of tables whose estimates exceed their known sum."""
        for places, total in zip(self.places, self.totals, strict=False):
            hidden = places[places >= 0]
            if (estimated := values[hidden].sum()) > total:
                values[hidden] *= total / estimated

    def _set_equations(self, equations: Sequence[Equation]) -> None:
        from scipy.sparse import coo_array

        parts = [
            (row, places, sign)
            for row, (added, subtracted, _) in enumerate(equations)
            for places, sign in ((added, 1.0), (subtracted, -1.0))
        ]
        rows = np.concatenate([np.full(places.size, row) for row, places, _ in parts])
        columns = np.concatenate([places for _, places, _ in parts])
        signs = np.concatenate([np.full(places.size, sign) for _, places, sign in parts])
        shape = len(equations), self.size
        self.matrix = coo_array((signs, (rows, columns)), shape).tocsr()
        self.totals = np.array([total for *_, total in equations], float)

    def _equations(self, records: int) -> Iterator[Equation]:
        """Return the sums of the tables, in order, and the differences of common margins."""
        for places, table in zip(self.places, self._tables, strict=True):
            yield places[places >= 0], places[:0].ravel(), records - int(table.sum())
        for one, other in combinations(range(len(self._tables)), 2):
            common = sorted({*self._members[one]} & {*self._members[other]})
            if common:
                cells = zip(self._cells(one, common), self._cells(other, common), strict=True)
                for (ours, shown), (theirs, shows) in cells:
                    if ours.size or theirs.size:
                        yield ours, theirs, shows - shown

    def _cells(self, table: int, common: Sequence[str]) -> Iterator[tuple[Places, int]]:
        """Return the unknowns and the released sum of each cell of a margin."""
        members = self._members[table]
        order = [members.index(name) for name in common]
        kept = prod(self._tables[table].shape[axis] for axis in order)
        order += [axis for axis, name in enumerate(members) if name not in common]
        places = self.places[table].transpose(order).reshape(kept, -1)
        counts = self._tables[table].transpose(order).reshape(kept, -1).sum(axis=1)
        for of_cell, shown in zip(places, counts.tolist(), strict=True):
            yield of_cell[of_cell >= 0], shown
