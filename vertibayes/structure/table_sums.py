"""Sums of n ln n over the counts of tables and of their margins: all that scores and tests need.

The log-likelihood of a child given its parents is such a sum of their table less that of the
parents' margin; mutual information and BIC are differences of these. Sets of variables are bit
masks. What is known depends on what was asked for here, and never on what the counter could answer
without asking: a search takes the same path over every counter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from vertibayes.counting.counter import Counter, Table, portions
from vertibayes.structure.graphs import Mask, elements
from vertibayes.structure.search import Search
from vertibayes_protocols.variables import Family

DECIMALS = 6  # of nats: differences of sums are rounded to these before they are compared


class TableSums:
    """The sums of the tables that were asked for.

    If families drop records, those with a missing value, then a table's margins are over its own
    records, and belong to this table alone. Otherwise they are those of all tables, and every set
    within a set that was asked for is known.
    """

    def __init__(self, search: Search, counter: Counter) -> None:
        self._search, self._counter = search, counter
        self._lengths = [search.lengths[name] for name in search.names]
        self._own_records = search.drops_records
        self._sums: dict[tuple[Mask, Mask], float] = {}

    def knows(self, table: Mask) -> bool:
        """Whether the sums of a set of variables are known, with those of its margins."""
        return (table if self._own_records else 0, table) in self._sums

    def of(self, table: Mask, margin: Mask) -> float:
        """Return the sum over a margin of a table, in nats."""
        return self._sums[table if self._own_records else 0, margin]

    def information(self, a: Mask, b: Mask, given: Mask = 0) -> float:
        """Return the number of records times the information between two sets given a third.

        It is half of G2, and the gain in likelihood of either set if the other predicts it too.
        """
        whole, sums = a | b | given, self.of
        gained = sums(whole, whole) - sums(whole, a | given)
        return gained - sums(whole, b | given) + sums(whole, given)

    def entropy(self, variable: int) -> float:
        """Return the number of records times the entropy of a variable: the most that one gains."""
        alone = 1 << variable
        return self.of(alone, 0) - self.of(alone, alone)

    def ask(self, tables: Iterable[Mask]) -> None:
        """Ask for what is not known of some sets of variables, in one call."""
        search, lengths = self._search, self._lengths
        asked = {
            Family(search.names[axes[0]], tuple(search.names[v] for v in axes[1:])): axes
            for table in dict.fromkeys(tables)
            if not self.knows(table)
            for axes in [sorted(elements(table), key=lengths.__getitem__)]
        }
        for portion in portions(search.lengths, list(asked)):  # one, unless the tables are large
            counted = self._counter.tables(portion, missing=search.missing, rows=search.rows)
            by_shape: dict[tuple[int, ...], list[tuple[list[int], Table]]] = {}
            for family, table in zip(portion, counted, strict=True):
                by_shape.setdefault(table.shape, []).append((asked[family], table))
            for same in by_shape.values():
                self._take([axes for axes, _ in same], np.stack([table for _, table in same]))

    def _take(self, sets: Sequence[Sequence[int]], tables: Table) -> None:
        """Add up tables of one shape, stacked, and those of their margins that are not known."""
        size = len(sets[0])
        margins = {(1 << size) - 1: tables}
        members = [[1 << v for v in axes] for axes in sets]
        wholes = [sum(bits) if self._own_records else 0 for bits in members]
        for kept in range((1 << size) - 1, -1, -1):
            chosen = [axis for axis in range(size) if kept >> axis & 1]
            keys = [
                (whole, sum([bits[axis] for axis in chosen]))
                for whole, bits in zip(wholes, members, strict=True)
            ]
            if all(key in self._sums for key in keys):
                continue
            values = _n_log_n(_margin(margins, kept, size))
            self._sums.update(zip(keys, values, strict=True))


def _margin(margins: dict[int, Table], kept: int, size: int) -> Table:
    """Return a margin of stacked tables: the axes whose bit is set in `kept`."""
    if kept not in margins:
        axis = next(axis for axis in range(size) if not kept >> axis & 1)
        before = (kept & ((1 << axis) - 1)).bit_count()  # the axes before it that are kept
        margins[kept] = _margin(margins, kept | 1 << axis, size).sum(axis=1 + before)
    return margins[kept]


def _n_log_n(tables: Table) -> list[float]:
    """Return the sum of n ln n over each of several tables; a count of 0 adds nothing."""
    flat = tables.reshape(len(tables), -1)
    sums: list[float] = (flat * np.log(np.maximum(flat, 1))).sum(axis=1).tolist()
    return sums
