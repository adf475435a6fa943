"""BIC of families, which are asked for in batches: what searches by tables have in common.

Which scores are known depends on what was asked for here, and never on what the
counter could answer without asking: a search takes the same path over every counter.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import NamedTuple

import numpy as np

from vertibayes.counting.counter import Counter, Table, portions
from vertibayes.dag import Structure
from vertibayes.structure.graphs import Mask, Parents, elements
from vertibayes.structure.search import Search
from vertibayes.structure.search_space import SearchSpace
from vertibayes.table_scores import n_log_n, nats_per_parameter
from vertibayes_protocols.variables import Family

DECIMALS = 6  # of nats: gains are rounded to these before they are compared


class Wanted(NamedTuple):
    """A family to ask for; families that differ only in `last` share work in a federation."""

    child: int
    others: Mask  # the parents except the last
    last: Mask = 0  # one parent, or none

    @property
    def parents(self) -> Mask:
        """All parents."""
        return self.others | self.last


class FamilyScores:
    """The BIC of families relative to that of their child alone (`structure.bic`), in nats."""

    def __init__(self, search: Search, counter: Counter) -> None:
        self.space, self._counter = SearchSpace(search), counter
        self.search, self.variables = search, len(search.names)
        self.required, self.allowed = self.space.required, self.space.allowed
        self._axes = search.lengths
        self._penalty = nats_per_parameter(search.records)
        self._scores: dict[tuple[int, Mask], float] = {}
        self._highest: dict[int, float] = {}  # likelihood of a child relative to it alone

    def ask(self, wanted: Iterable[Wanted]) -> None:
        """Ask for what is not known of some families, in one call."""
        children = [Wanted(c, 0) for c in range(self.variables) if c not in self._highest]
        by_table: dict[Mask, list[Wanted]] = {}
        for one in dict.fromkeys((*children, *wanted)):
            if not self.knows(one.child, one.parents):
                by_table.setdefault(one.parents | 1 << one.child, []).append(one)
        asked = [self._family(same[0]) for same in by_table.values()]
        same_tables = iter(by_table.values())
        search = self.search
        for portion in portions(self._axes, asked):  # one, unless the tables are large
            tables = self._counter.tables(portion, missing=search.missing, rows=search.rows)
            for family, table in zip(portion, tables, strict=True):
                for one in next(same_tables):
                    axis = family.members.index(search.names[one.child])
                    self._take(one.child, one.parents, table, axis)

    def knows(self, child: int, parents: Mask) -> bool:
        """Whether the score of a family was asked for."""
        return (child, parents) in self._scores

    def score(self, child: int, parents: Mask) -> float:
        """Return the BIC of a family that was asked for, less that of its child alone.

        With missing values, both are over the records of the family's own table.
        """
        return self._scores[child, parents]

    def knows_dag(self, dag: Parents) -> bool:
        """Whether the scores of all families of a structure were asked for."""
        return all((c, p) in self._scores for c, p in enumerate(dag))

    def total(self, dag: Parents) -> float:
        """Return the BIC of a structure, less that of the structure without edges."""
        return round(sum(self.score(c, p) for c, p in enumerate(dag)), DECIMALS)

    def candidates(self, child: int, parents: Mask, among: Mask = -1) -> list[int]:
        """Return the further parents with which the score of a family could rise.

        Not those that are not allowed, or whose table does not fit. A likelihood cannot exceed that
        of a child that its parents determine: not those whose penalty takes more than that either.
        """
        if parents.bit_count() >= self.search.max_parents:
            return []
        score = self._scores.get((child, parents), -np.inf)
        room = self._highest.get(child, np.inf) - score
        cells = self._joint_states(parents)
        return [
            x
            for x in elements(self.allowed[child] & among & ~parents)
            if room > self._penalty_of(child, cells * self.space.lengths[x])
            and self.space.fits(child, parents | 1 << x)
        ]

    def moves(self, child: int, parents: Mask, among: Mask = -1) -> list[Wanted]:
        """Return the family, those with one parent more, and those with any of its parents."""
        wanted = [Wanted(child, parents, 1 << x) for x in self.candidates(child, parents, among)]
        kept, rest = self.required[child], parents & ~self.required[child]
        part = rest
        while True:  # all subsets of the parents that are not required
            wanted.append(Wanted(child, kept | part))
            if not part:
                return wanted
            part = (part - 1) & rest

    def know_all(self, wanted: Iterable[Wanted]) -> bool:
        """Whether the scores of all families were asked for."""
        return all((one.child, one.parents) in self._scores for one in wanted)

    def structure(self, dag: Parents) -> Structure:
        """Return a structure by names."""
        return self.space.structure(dag)

    def _family(self, wanted: Wanted) -> Family:
        named = self.space.named
        return Family(self.search.names[wanted.child], named(wanted.others) + named(wanted.last))

    def _joint_states(self, variables: Mask) -> int:
        return prod(self.space.lengths[v] for v in elements(variables))

    def _penalty_of(self, child: int, configurations: int) -> float:
        return self._penalty * (self.space.lengths[child] - 1) * (configurations - 1)

    def _take(self, child: int, parents: Mask, table: Table, axis: int) -> None:
        """Score a family by its table."""
        by_child = np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1)
        own = by_child.sum(axis=1)
        of_child = n_log_n(own) - n_log_n(own.sum())
        gain = n_log_n(by_child) - n_log_n(by_child.sum(axis=0)) - of_child
        if not parents:
            gain, self._highest[child] = 0.0, -of_child
        penalty = self._penalty_of(child, self._joint_states(parents))
        self._scores[child, parents] = gain - penalty
