"""Forecast the cost of a run from public sizes, before any table is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from vertibayes.words import counted, size
from vertibayes_protocols.queries.tables.costs import Cost, Costs
from vertibayes_protocols.queries.tables.ways import Group, Load, batches, choose_ways, grouped
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Family

QUERY_ROUNDS = 3  # ask, answer, go
CALL_ROUNDS = 10  # of a further call of a search, about


@dataclass(frozen=True)
class Forecast:
    """The approximate cost of a run: the tables that a learner asks for depend on its results."""

    # The number of tables, and the number of those that are counted by shuffle.
    tables: int = 0
    shuffled: int = 0
    # The numbers of queries and of rounds.
    queries: int = 0
    rounds: int = 0
    bytes: int = 0  # the bytes sent on all links
    seconds: float = 0.0
    memory: int = 0  # the memory, in bytes, that the largest query takes at one party

    def plus(self, other: Forecast) -> Forecast:
        """Return the cost of two runs, one after the other."""
        sums = (getattr(self, f.name) + getattr(other, f.name) for f in fields(self))
        return replace(Forecast(*sums), memory=max(self.memory, other.memory))

    def in_calls(self, calls: int) -> Forecast:
        """Return the cost of the same tables if a search asks for them in several calls."""
        further = calls - 1
        rounds = self.rounds + further * CALL_ROUNDS
        return replace(self, queries=self.queries + further, rounds=rounds)

    def sentence(self) -> str:
        """Return the sentence that `learn` prints."""
        return (
            f"about {counted(self.tables, 'table')}, {size(self.bytes)}, "
            f"{counted(self.rounds, 'round')}, {self.seconds:.1f} s of work for the tables, "
            f"and {size(self.memory)} of memory at each party"
        )


def forecast(study: Study, families: Sequence[Family], *, missing: bool = False) -> Forecast:
    """Forecast the cost of a study's commitment, and of tables over all its records."""
    costs = Costs(study, study.records, missing)
    rounds = QUERY_ROUNDS + 2 + costs.blocks
    total = Forecast(queries=1, rounds=rounds, bytes=costs.commitment_bytes)
    for batch in batches(costs, families):
        total = total.plus(_query(costs, grouped(batch)))
    return total


def _query(costs: Costs, groups: Sequence[Group]) -> Forecast:
    """Forecast the cost of one query."""
    cost, taken, shuffled, extended, chain = Cost(), Load(), 0, 0, 0
    for group in groups:
        (ways, own), sizes = choose_ways(costs, group), costs.sizes(*group)
        if len(group.prefix) > 1 and not all(ways):
            cost += costs.extension(group.prefix)
            extended = max(extended, 2 * len(group.prefix) - 1)
        for table, way in zip(sizes, ways, strict=True):
            cost += costs.shuffle(table) if way else costs.products(table)
            chain = max(chain, (table.holders + 2 * table.missing) * way)
        shuffled += sum(ways)
        taken = taken.plus(own)
    rounds = QUERY_ROUNDS + extended * costs.blocks + 2 * bool(taken.columns.rows) + chain
    seconds = cost.picoseconds / 1e12
    return Forecast(taken.tables, shuffled, 1, rounds, cost.bytes, seconds, taken.memory(costs))
