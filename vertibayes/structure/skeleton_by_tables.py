"""The skeleton of a structure by few tests of independence, over tables.

The tests are those of PC (`structure.skeleton`), given up to two variables. Whoever sees tables can
tell most of them in advance. By the chain rule of mutual information

    I(x; y | z) = I(x; y) - I(x; z) + I(x; z | y) >= I(x; y) - min(I(x; z), I(y; z)),

and so given one variable more. The tables of a level therefore bound the tests of the next. A test
whose bound exceeds its threshold is not made. Of each pair, the tests whose bounds are furthest
below their thresholds are asked for, at most `MOST_TESTS` a level, so that the number of tables
grows with the pairs and not with the sets of their neighbours. A table also decides the tests of
the other pairs in it. All tests of a level are one call.

Where cells are missing, tables count different records, and the bounds hold approximately.

References
----------
Colombo and Maathuis (2014), Order-independent constraint-based causal structure learning,
algorithm 4.1. https://jmlr.org/papers/v15/colombo14a.html
Cover and Thomas (2006), Elements of information theory, theorem 2.5.2: the chain rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.structure.chi_square import half_quantile
from vertibayes.structure.graphs import Mask, elements, mask_of
from vertibayes.structure.search_space import SearchSpace
from vertibayes.structure.skeleton import ALPHA, LEVELS, RECORDS_PER_CELL
from vertibayes.structure.table_sums import DECIMALS, TableSums

MOST_TESTS = 8  # of a pair that are asked for at each level

Ask: TypeAlias = Callable[[Iterable[Mask]], None]
Numbers: TypeAlias = NDArray[np.intp]
Nats: TypeAlias = NDArray[np.float64]


class Tests(NamedTuple):
    """Tests of several pairs, each given as many variables."""

    x: Numbers  # shape (tests,), less than y
    y: Numbers
    given: Numbers  # shape (tests, variables given), ascending

    def chosen(self, which: Numbers | NDArray[np.bool_]) -> Tests:
        """Return some of the tests."""
        return Tests(self.x[which], self.y[which], self.given[which])

    @property
    def members(self) -> Numbers:
        """The variables of each test's table, ascending: shape (tests, variables)."""
        return np.sort(np.column_stack(self), axis=1)


class SkeletonByTables:
    """The pairs that no test has separated so far, and what separates the others."""

    def __init__(self, space: SearchSpace, sums: TableSums, ask: Ask) -> None:
        self._space, self._sums, self._ask = space, sums, ask
        self._lengths = np.array(space.lengths, float)
        self._most_cells = space.search.records / RECORDS_PER_CELL
        allowed, required = _matrix(space.allowed), _matrix(space.required)
        self._edge = allowed | allowed.T
        self._open = np.triu(self._edge & ~(required | required.T))  # those that tests may separate
        self._pairs = np.full(self._edge.shape, np.inf)  # information; infinite if not known
        self._strength = np.full(self._edge.shape, np.inf)  # the least excess of a test of a pair
        self.separators: dict[tuple[int, int], Mask] = {}

    def strongest(self, most: int) -> list[Mask]:
        """Return at most `most` neighbours of each variable: those of the strongest edges."""
        strength = np.where(self._edge, self._strength, -np.inf)
        order = np.argsort(-strength, axis=1, kind="stable")[:, :most]
        sets = [row[self._edge[v, row]].tolist() for v, row in enumerate(order)]
        return [mask_of(row) for row in sets]

    @property
    def neighbours(self) -> list[Mask]:
        """The neighbours of each variable."""
        return [mask_of(np.flatnonzero(row).tolist()) for row in self._edge]

    def find(self, levels: int = LEVELS) -> None:
        """Make the tests of all levels."""
        tests, values = self._made(*self._given_none())
        self._pairs[tests.x, tests.y] = self._pairs[tests.y, tests.x] = values
        self._separate(tests, values)
        if levels > 0:
            tests, values = self._made(*self._given_one())
            self._separate(tests, values)
        if levels > 1:
            known = _Known(self._pairs, tests, values)
            self._separate(*self._made(*self._given_two(known)))

    def _given_none(self) -> tuple[Tests, Nats]:
        """Return the tests of pairs, and a bound of each."""
        x, y = np.nonzero(self._open)
        return Tests(x, y, np.empty((x.size, 0), np.intp)), np.zeros(x.size)

    def _given_one(self) -> tuple[Tests, Nats]:
        """Return the tests of neighbours given a neighbour of either."""
        x, y = np.nonzero(self._open & np.isfinite(self._pairs))
        near = self._edge[x] | self._edge[y]
        near[np.arange(x.size), x] = near[np.arange(x.size), y] = False
        row, z = np.nonzero(near)
        bounds = self._pairs[x, y, None] - np.minimum(self._pairs[x], self._pairs[y])
        return Tests(x[row], y[row], z[:, None]), bounds[row, z]

    def _given_two(self, known: _Known) -> tuple[Tests, Nats]:
        """Return the tests of neighbours given two neighbours of either."""
        rows = [np.empty((0, 4), np.intp)]
        for x, y in np.argwhere(self._open & np.isfinite(self._pairs)).tolist():
            sets = {
                given
                for one in (x, y)
                for given in combinations(np.flatnonzero(self._edge[one]).tolist(), 2)
                if x not in given and y not in given
            }
            rows += [np.array([(x, y, *given) for given in sorted(sets)], np.intp).reshape(-1, 4)]
        x, y, a, b = np.concatenate(rows).T
        bounds = np.maximum(known.bound(x, y, a, b), known.bound(x, y, b, a))
        return Tests(x, y, np.column_stack([a, b])), bounds

    def _made(self, tests: Tests, bounds: Nats) -> tuple[Tests, Nats]:
        """Ask for the tables of promising tests; return all tests in them, and the information."""
        excess = np.round(bounds - self._thresholds(tests), DECIMALS)
        cells = self._lengths[tests.members].prod(axis=1)
        possible = (excess <= 0) & (cells <= self._most_cells)
        tests = tests.chosen(possible)
        tables = np.unique(tests.chosen(_lowest(tests, excess[possible])).members, axis=0)
        tables = tables[[self._space.fits(x, mask_of(rest)) for x, *rest in tables.tolist()]]
        self._ask(map(mask_of, tables.tolist()))
        tests = _tests_in(tables)
        rows = zip(tests.x.tolist(), tests.y.tolist(), tests.given.tolist(), strict=True)
        information = self._sums.information
        return tests, np.array([information(1 << x, 1 << y, mask_of(z)) for x, y, z in rows])

    def _separate(self, tests: Tests, values: Nats) -> None:
        """Remove the edges of independent pairs: of several tests, the clearest separates one."""
        x, y, given = tests
        near_x, near_y = (self._edge[one[:, None], given].all(axis=1) for one in (x, y))
        excess = np.round(values - self._thresholds(tests), DECIMALS)
        made = np.flatnonzero(self._open[x, y] & (near_x | near_y))
        np.minimum.at(self._strength, (x[made], y[made]), excess[made])
        np.minimum.at(self._strength, (y[made], x[made]), excess[made])
        found = made[excess[made] <= 0]
        for test in found[np.argsort(-excess[found], kind="stable")].tolist():  # the clearest last
            self.separators[int(x[test]), int(y[test])] = mask_of(given[test].tolist())
        x, y = x[found], y[found]
        self._open[x, y] = self._edge[x, y] = self._edge[y, x] = False

    def _thresholds(self, tests: Tests) -> Nats:
        """Return half of what G2 exceeds with the probability `ALPHA` under independence."""
        x, y, given = (self._lengths[part] for part in tests)
        degrees, place = np.unique((x - 1) * (y - 1) * given.prod(axis=1), return_inverse=True)
        half: Nats = np.array([half_quantile(int(d), ALPHA) for d in degrees]) / 1e6
        return half[place]


class _Known:
    """What the tables of pairs and triples say of the information given two variables."""

    def __init__(self, pairs: Nats, tests: Tests, values: Nats) -> None:
        self._pairs = pairs
        keys = self._keys(tests.x, tests.y, tests.given[:, 0])
        order = np.argsort(keys)
        self._sorted = np.append(keys[order], len(pairs) ** 3)  # the last is no key
        self._values = np.append(values[order], np.inf)

    def bound(self, x: Numbers, y: Numbers, a: Numbers, b: Numbers) -> Nats:
        """Return the bound of I(x; y | a, b) by information given a.

        Where the table of x, y and a is not known, the bound of I(x; y | a) stands for it. Where
        another is not known, information without a does, and the bound is an estimate.
        """
        pairs = self._pairs
        own = self._given(x, y, a, pairs[x, y] - np.minimum(pairs[x, a], pairs[y, a]))
        of_x, of_y = (self._given(one, b, a, pairs[one, b]) for one in (x, y))
        bound: Nats = own - np.minimum(of_x, of_y)
        return bound

    def _given(self, x: Numbers, y: Numbers, z: Numbers, otherwise: Nats) -> Nats:
        keys = self._keys(x, y, z)
        at = np.searchsorted(self._sorted, keys)
        return np.where(self._sorted[at] == keys, self._values[at], otherwise)

    def _keys(self, x: Numbers, y: Numbers, z: Numbers) -> Numbers:
        size = len(self._pairs)
        return (np.minimum(x, y) * size + np.maximum(x, y)) * size + z


def _lowest(tests: Tests, excess: Nats) -> Numbers:
    """Return the `MOST_TESTS` of each pair whose bounds are lowest, the first of equals."""
    order = np.lexsort((excess, tests.y, tests.x))
    x, y = tests.x[order], tests.y[order]
    first = np.flatnonzero(np.append(True, (np.diff(x) != 0) | (np.diff(y) != 0)))[: x.size]
    rank = np.arange(x.size) - np.repeat(first, np.diff(np.append(first, x.size)))
    return order[rank < MOST_TESTS]


def _tests_in(tables: Numbers) -> Tests:
    """Return the tests of each pair in tables given the other variables."""
    size = tables.shape[1]
    parts = []
    for x, y in combinations(range(size), 2):
        rest = [v for v in range(size) if v not in (x, y)]
        parts.append((tables[:, x], tables[:, y], tables[:, rest]))
    return Tests(*map(np.concatenate, zip(*parts, strict=True)))


def _matrix(sets: Sequence[Mask]) -> NDArray[np.bool_]:
    """Return which variables are in the set of each: shape (variables, variables)."""
    matrix = np.zeros((len(sets), len(sets)), np.bool_)
    for row, members in zip(matrix, sets, strict=True):
        row[list(elements(members))] = True
    return matrix
