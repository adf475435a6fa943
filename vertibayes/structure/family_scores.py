"""BIC of families from the sums of tables: what searches by tables have in common."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, prod

from vertibayes.counting.counter import Counter
from vertibayes.dag import Structure
from vertibayes.structure.graphs import Mask, Parents, elements
from vertibayes.structure.search import Search
from vertibayes.structure.search_space import SearchSpace
from vertibayes.structure.table_sums import DECIMALS, TableSums
from vertibayes.table_scores import nats_per_parameter


class FamilyScores:
    """The BIC of families relative to that of their child alone (`structure.bic`), in nats."""

    def __init__(self, search: Search, counter: Counter) -> None:
        self.space, self.sums = SearchSpace(search), TableSums(search, counter)
        self.search, self.variables = search, len(search.names)
        self.required, self.allowed = self.space.required, self.space.allowed
        self._penalty = nats_per_parameter(search.records)
        self._scores: dict[tuple[int, Mask], float] = {}

    def ask(self, tables: Iterable[Mask]) -> None:
        """Ask for what is not known of some tables, in one call; for the variables alone too."""
        self.sums.ask((*(1 << v for v in range(self.variables)), *tables))

    def score(self, child: int, parents: Mask) -> float:
        """Return the BIC of a family whose table was asked for, less that of its child alone.

        With missing values, both are over the records of the family's own table.
        """
        if (child, parents) not in self._scores:
            gain = self.sums.information(1 << child, parents)
            penalty = self._penalty_of(child, self._joint_states(parents))
            self._scores[child, parents] = gain - penalty
        return self._scores[child, parents]

    def knows_dag(self, dag: Parents) -> bool:
        """Whether the tables of all families of a structure are known."""
        return self.know_all(p | 1 << c for c, p in enumerate(dag))

    def total(self, dag: Parents) -> float:
        """Return the BIC of a structure, less that of the structure without edges."""
        return round(sum(self.score(c, p) for c, p in enumerate(dag)), DECIMALS)

    def candidates(self, child: int, parents: Mask, among: Mask = -1) -> list[int]:
        """Return the further parents with which the score of a family could rise.

        They are allowed, and the family's table with them fits. The gain in likelihood is at most
        the entropy of the child, which its parents then determine: a parent is left out if the
        score could not rise even then.
        """
        if parents.bit_count() >= self.search.max_parents:
            return []
        room = inf
        if self.sums.knows(1 << child) and self.sums.knows(parents | 1 << child):
            room = self.sums.entropy(child) - self.score(child, parents)
        cells = self._joint_states(parents)
        return [
            x
            for x in elements(self.allowed[child] & among & ~parents)
            if room > self._penalty_of(child, cells * self.space.lengths[x])
            and self.space.fits(child, parents | 1 << x)
        ]

    def moves(self, child: int, parents: Mask, among: Mask = -1) -> list[Mask]:
        """Return the tables of a family, and of those with one parent more and with fewer parents.

        Tables with fewer parents are margins of the family's own. If families drop records, they
        are not: then there is one for each subset of the parents that are not required.
        """
        whole = parents | 1 << child
        wanted = [whole | 1 << x for x in self.candidates(child, parents, among)]
        rest = part = parents & ~self.required[child] if self.search.drops_records else 0
        while True:
            wanted.append(whole & ~rest | part)
            if not part:
                return wanted
            part = (part - 1) & rest

    def know_all(self, tables: Iterable[Mask]) -> bool:
        """Whether the sums of all tables are known."""
        return all(map(self.sums.knows, tables))

    def structure(self, dag: Parents) -> Structure:
        """Return a structure by names."""
        return self.space.structure(dag)

    def _joint_states(self, variables: Mask) -> int:
        return prod(self.space.lengths[v] for v in elements(variables))

    def _penalty_of(self, child: int, configurations: int) -> float:
        return self._penalty * (self.space.lengths[child] - 1) * (configurations - 1)
