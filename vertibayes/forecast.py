"""What a run will cost, before anything is asked: from public sizes alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from protocols.queries.costs import Cost, Costs
from protocols.queries.ways import Group, Load, batches, choose_ways, grouped
from protocols.roles import Study
from protocols.variables import Family
from vertibayes.report.words import counted, size

QUERY_ROUNDS = 3  # ask, answer, go


@dataclass(frozen=True)
class Forecast:
    """What a run costs, about: which tables a learner asks for depends on what it finds.

    Attributes
    ----------
    tables : int
    shuffled : int
        How many of them are counted by shuffle.
    queries : int
    rounds : int
    bytes : int
        Sent, on all links.
    seconds : float
        Of all parties' work, on one core of a machine like the one of `docs/results.md`.
    memory : int
        Bytes that the largest query takes at one party.
    """

    tables: int = 0
    shuffled: int = 0
    queries: int = 0
    rounds: int = 0
    bytes: int = 0
    seconds: float = 0.0
    memory: int = 0

    def plus(self, other: Forecast) -> Forecast:
        """Return both, one after the other."""
        return Forecast(
            self.tables + other.tables,
            self.shuffled + other.shuffled,
            self.queries + other.queries,
            self.rounds + other.rounds,
            self.bytes + other.bytes,
            self.seconds + other.seconds,
            max(self.memory, other.memory),
        )

    def sentence(self) -> str:
        """Return what `learn` prints."""
        return (
            f"about {counted(self.tables, 'table')}, {size(self.bytes)}, "
            f"{counted(self.rounds, 'round')}, {self.seconds:.1f} s of work for the tables, "
            f"and {size(self.memory)} of memory at each party"
        )


def forecast(study: Study, families: Sequence[Family], *, missing: bool = False) -> Forecast:
    """Forecast what a study's commitment, and tables over all its records, cost.

    Parameters
    ----------
    study : Study
    families : sequence of Family
        The widest that a learner may ask for (`structure.k2.widest_families`).
    missing : bool
        Whether a missing value is a state.

    Raises
    ------
    ValueError
        If a table takes more memory than a query may.
    """
    costs = Costs(study, study.records, missing)
    rounds = QUERY_ROUNDS + 2 + costs.blocks
    total = Forecast(queries=1, rounds=rounds, bytes=costs.commitment_bytes)
    for batch in batches(costs, families):
        total = total.plus(_query(costs, grouped(batch)))
    return total


def _query(costs: Costs, groups: Sequence[Group]) -> Forecast:
    """Forecast one query."""
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
    rounds = QUERY_ROUNDS + extended * costs.blocks + 2 * bool(taken.rows) + chain
    seconds = cost.picoseconds / 1e12
    return Forecast(taken.tables, shuffled, 1, rounds, cost.bytes, seconds, taken.memory(costs))
