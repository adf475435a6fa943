"""What a site does for any query of statistics: checks, counts its records, notes what leaves.

Each check raises a `QueryRefusedError`, which names the site.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib.util import find_spec
from math import prod
from time import time_ns
from typing import Protocol

import numpy as np

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.accounting import OPENDP
from vertibayes_protocols.errors import DataError, QueryRefusedError, refusing
from vertibayes_protocols.ledger import Ledger, RevealedTable
from vertibayes_protocols.promise import Promise
from vertibayes_protocols.queries.statistics_query import StatisticsQuery
from vertibayes_protocols.queries.terms import Terms, Values, check_records, count_query, data_pert
from vertibayes_protocols.roles import SiteRole
from vertibayes_protocols.schema import Declared
from vertibayes_protocols.site.statistics import LocalData
from vertibayes_protocols.variables import Rows

CLOCKS = 3_600_000_000  # microseconds: how far clocks may differ

# ---- before a site agrees ------------------------------------------------------------------------


class Numbered(Protocol):
    """A query with a number: the keys of its sums are used once."""

    @property
    def number(self) -> int:
        """Above the numbers of all earlier queries of its analyst."""
        ...

    @property
    def analyst(self) -> bytes:
        """The public key of the analyst."""
        ...


def check_number(site: SiteRole, query: Numbered) -> None:
    """Refuse a number that was used, may have been used, or would leave none to be used.

    Numbers are the analyst's time, and each analyst has numbers of its own: its public key is in
    the digest that all labels of a sum have. A site that has lost its memory knows no number: those
    before it was started may be those of sums whose keys it would use again.
    """
    memory, number, now = site.memory, query.number, time_ns() // 1000
    reason = ""
    if query.analyst != site.analyst_key:
        reason = f"the query has another public key than the one pinned here for {site.analyst}"
    elif number <= (last := max(memory.last_sum(query.analyst), memory.began - CLOCKS)):
        reason = f"sum number {number} does not come after {last}: keys are used once"
    elif number > now + CLOCKS:
        reason = f"sum number {number} is a time in the future: no later sum could come after it"
    if reason:
        raise QueryRefusedError(site.party, reason)


def check_shown(site: SiteRole, query: StatisticsQuery[object], terms: Terms) -> None:
    """Refuse columns that a site does not show, and tables that are too wide or too large."""
    site.policy.check_shown(site.party, (*terms.schema.variables, *query.numerics))
    sizes = [(len(family), 0) for family in query.families]
    site.policy.check_tables(site.party, [*sizes, (0, terms.counts)])


def check_opendp(site: Party, noise: str) -> None:
    """Refuse noise that OpenDP draws where it is not installed."""
    if noise in OPENDP and find_spec("opendp") is None:
        raise QueryRefusedError(site, f"{noise} noise needs OpenDP, which is not installed")


def check_own_records(site: SiteRole, terms: Terms) -> None:
    """Refuse terms that a site's records do not fit: last, as the reasons tell of the data."""
    with refusing(site.party):
        check_records("its data", terms, site_records(site, terms.schema))


# ---- what it counts and notes --------------------------------------------------------------------


def site_records(site: SiteRole, schema: Declared) -> list[LocalData]:
    """Return a site's records in the states and between the bounds that the analyst declares.

    The bounds limit what a record changes, so that those of the site's own file do not matter.

    Raises
    ------
    DataError
        If a column is missing, has a state that is not declared, or has numbers in place of states.
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
    """Return a site's own statistics with its noise; exact ones without.

    Parameters
    ----------
    site : SiteRole
        Whose records are counted.
    terms : Terms
        What is counted.
    estimate : int
        What the site takes the number of members for.
    """
    counts = count_query("its data", terms, site_records(site, terms.schema))
    if terms.accounting is None:
        return counts
    return data_pert(counts, terms.accounting.noise_of_all(estimate, site.randomness))


def note_statistics(
    ledger: Ledger,
    query: StatisticsQuery[object],
    shown: str,
    promise: Promise | None,
    about: Party,
    analyst: Party,
) -> None:
    """Note what is shown, with which noise, and the tables among it.

    Parameters
    ----------
    ledger : Ledger
        The ledger.
    query : StatisticsQuery
        What is counted.
    shown : str
        What is shown, before "of counts": "sums".
    promise : Promise or None
        Of the noise.
    about, analyst : Party
        Whose records are counted, and who learns of them.
    """
    numbers = ", ".join(name for columns, *_ in query.moments for name in columns)
    kind = f"counts and moments of {numbers}" if numbers else "counts"
    noise = "without noise" if promise is None else promise.sentence
    ledger.note(shown.format(kind, query.number) + f": {noise}", about, (analyst,))
    sizes = {name: len(states) for name, states in query.variables}
    rule = "" if promise is None else "counts with noise"
    ledger.open(
        RevealedTable(family, prod(sizes[name] for name in family), analyst, Rows(), rule)
        for family in query.families
    )
