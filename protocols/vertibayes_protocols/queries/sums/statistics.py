"""What queries for statistics of records have in common: their fields, checks and effects."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeVar

from vertibayes_mpc.aggregation import MOST_TIME
from vertibayes_mpc.rounds import Party
from vertibayes_protocols import wire
from vertibayes_protocols.accounting import OPENDP
from vertibayes_protocols.effects import Effects, Noise, Number, RecordStatistics
from vertibayes_protocols.ledger import Fact, RevealedTable
from vertibayes_protocols.promise import SumPromise
from vertibayes_protocols.queries.sums.terms import Terms
from vertibayes_protocols.query import At, Query
from vertibayes_protocols.site.statistics import Moments
from vertibayes_protocols.variables import Rows

R_co = TypeVar("R_co", covariant=True)
P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class StatisticsQuery(Query[R_co, P]):
    """Ask sites that hold different records for statistics; `parties` are those that are asked."""

    number: int = field(metadata=wire.FREE)
    analyst: bytes = field(metadata=wire.FREE)  # the analyst's public key
    terms: Terms  # what is counted, and with which noise

    def check_asked(self, at: At, asked: Collection[Party]) -> None:
        """Refuse a query at a site that it does not ask, with a ValueError."""
        if at.party != at.analyst and at.party not in asked:
            raise ValueError("it is not among the members that are asked")

    def effects_of(
        self,
        at: At,
        promise: SumPromise | None,
        shown: str,
        about: Sequence[Party],
        dishonest: float | None = None,
    ) -> Effects:
        """Return the effects: columns, numbers, noise, and what is shown of whose records."""
        schema, counts = self.terms.schema, self.terms.families
        moments = [s for s in schema.statistics if isinstance(s, Moments)]
        numbers = ", ".join(name for statistic in moments for name in statistic.columns)
        what = shown.format(f"counts and moments of {numbers}" if numbers else "counts")
        sentence = "without noise" if promise is None else promise.sentence
        said = f"{what}, number {self.number}: {sentence}"
        sizes = {name: len(variable.states) for name, variable in schema.variables.items()}
        rule = "" if promise is None else "counts with noise"
        tables = tuple(
            RevealedTable(members, prod(sizes[n] for n in members), at.analyst, Rows(), rule)
            for members in (family.members for family in counts)
        )
        return Effects(
            asks=self.parties,
            columns=(*schema.variables, *schema.numerics),
            tables=(*((len(f.members), 0) for f in counts), (0, self.terms.counts)),
            counts=None,
            takes=(),
            number=Number(self.number, self.analyst),
            leaves=RecordStatistics(None if promise is None else _noise(promise), dishonest),
            says=tuple(Fact(said, party, (at.analyst,)) for party in about),
            opens=tables * len(about),
        )


def _noise(promise: SumPromise) -> Noise:
    return Noise(promise.cost, promise.mechanism if promise.mechanism in OPENDP else "")


def check_numbered(number: int, analyst: bytes) -> None:
    """Refuse a number that is out of its range, or is of no analyst, with a ValueError."""
    if not analyst:  # otherwise it would be a number of a study
        raise ValueError("the query must have the public key of its analyst")
    if not 0 <= number <= MOST_TIME:
        raise ValueError(f"sum number {number}: it must be from 0 to 2**62")
