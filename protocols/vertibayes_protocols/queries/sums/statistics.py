"""What queries for statistics of records have in common: their fields, checks and effects."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeVar

import numpy as np

from vertibayes_mpc.aggregation import MOST_TIME
from vertibayes_mpc.rounds import Party
from vertibayes_protocols import wire
from vertibayes_protocols.accounting import OPENDP
from vertibayes_protocols.effects import Effects, Noise, Number, RecordStatistics
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.ledger import Fact, RevealedTable
from vertibayes_protocols.promise import SumPromise
from vertibayes_protocols.queries.sums.terms import (
    Terms,
    Values,
    check_records,
    count_query,
    data_pert,
)
from vertibayes_protocols.query import At, Query
from vertibayes_protocols.roles import SiteRole
from vertibayes_protocols.schema import Declared
from vertibayes_protocols.site.statistics import LocalData, Moments
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


def check_own_records(site: SiteRole, terms: Terms) -> None:
    """Refuse terms that a site's records do not fit: last, as the reasons tell of the data."""
    check_records("its data", terms, site_records(site, terms.schema))


def site_records(site: SiteRole, schema: Declared) -> list[LocalData]:
    """Return a site's records in the states and between the bounds that the analyst declares.

    The bounds limit what a record changes, so that those of the site's own file do not matter.
    """
    return [_recoded(batch, schema) for batch in site.batches]


def _recoded(data: LocalData, schema: Declared) -> LocalData:
    numerics = schema.numerics
    same = all(data.variables.get(name) == variable for name, variable in schema.variables.items())
    if same and all(data.numerics.get(name) == numeric for name, numeric in numerics.items()):
        return data
    codes = {}
    for name, variable in schema.variables.items():
        if name not in data.variables:
            raise DataError(_missing(name, data.numerics, "has numbers, and its states are asked"))
        own = data.variables[name].states
        unknown = sorted(set(own) - set(variable.states))
        if unknown:
            raise DataError(f"the column {name!r} has the state {unknown[0]!r}, not a declared one")
        places = [variable.states.index(state) for state in own]
        codes[name] = np.array([*places, len(variable.states)])[data.codes[name]]
    for name in numerics:
        if name not in data.numbers:
            raise DataError(_missing(name, data.variables, "has states, and its numbers are asked"))
    return LocalData(schema.variables, codes, numerics, {n: data.numbers[n] for n in numerics})


def _missing(name: str, others: Collection[str], what: str) -> str:
    return f"the column {name!r} {what} for" if name in others else f"it has no column {name!r}"


def noisy_statistics(site: SiteRole, terms: Terms, estimate: int) -> Values:
    """Return a site's own statistics, exact or with its noise for an estimate of the members."""
    counts = count_query("its data", terms, site_records(site, terms.schema))
    if terms.accounting is None:
        return counts
    return data_pert(counts, terms.accounting.noise_of_all(estimate, site.randomness))
