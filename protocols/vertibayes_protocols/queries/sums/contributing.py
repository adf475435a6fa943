"""What a site does for any query of statistics: checks its own records, and counts them."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.queries.sums.terms import (
    Terms,
    Values,
    check_records,
    count_query,
    data_pert,
)
from vertibayes_protocols.roles import SiteRole
from vertibayes_protocols.schema import Declared
from vertibayes_protocols.site.statistics import LocalData


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
