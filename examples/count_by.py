"""A registry, a hospital and a laboratory count one table by each way; print its cost.

python examples/count_by.py
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vertibayes import Family, SecureCounter, federate
from vertibayes_protocols.queries.tables.ways import WAYS
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable

PATIENTS = 200
STATES = {
    "treatment": ("none", "drug", "surgery"),
    "outcome": ("died", "survived"),
    "marker": ("low", "high"),
}
HELD_BY = {"treatment": "registry", "outcome": "hospital", "marker": "laboratory"}


def sites() -> dict[str, SiteData]:
    """Draw the columns of the sites: one each."""
    generator = np.random.default_rng(0)
    return {
        site: SiteData(
            {name: Variable(name, STATES[name])},
            {name: generator.integers(0, len(STATES[name]), PATIENTS).astype(np.uint8)},
        )
        for name, site in HELD_BY.items()
    }


def count() -> dict[str, NDArray[np.int64]]:
    """Count treatments by outcomes and markers; return the table by way of counting."""
    tables: dict[str, NDArray[np.int64]] = {}
    for way in WAYS:
        with federate(sites()) as federation:
            counter = SecureCounter.of(federation, count_by=way)
            before, rounds = federation.traffic.bytes, federation.traffic.rounds
            (tables[way],) = counter.tables([Family("treatment", ("outcome", "marker"))])
            sent = (federation.traffic.bytes - before) / 1e3
            rounds = federation.traffic.rounds - rounds
        equal = "equal" if (tables[way] == tables["masked-tables"]).all() else "DIFFERENT"
        print(f"{way}: {sent:,.0f} kB and {rounds} rounds for {tables[way].size} cells, {equal}")
    return tables


if __name__ == "__main__":
    count()
