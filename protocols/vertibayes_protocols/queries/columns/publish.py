"""Noisy tables that sites publish (VDPNB: Huai et al. 2015, section 5.4; `scoring`).

    analyst -> P_k    Publish: the schema, who holds what, n_j of each class, eps
    P_k               n_ij + noise, clipped to 0 .. n_j, of its own attributes i; charges its budget
    P_k -> analyst    its tables, one after the other, flat

Security: none beyond the noise; what is published is the site's own noisy release. Noise protects
the training records. It does nothing for n_j, which is public. Neighbours differ in whether a
training record's value is known to its site, which changes one count of a table by one; two
different values of it are two such steps, 2 eps (see `RecordNoise`). Tables are of all records:
what a site refuses over some records, as the counts of classes are not theirs, would tell the class
of each.
Leakage: the noisy tables, to the analyst. Cost: 1 round after the query's, 8 bytes a cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.noise import DiscreteLaplace, Noise, no_noise
from vertibayes_mpc.rounds import Expect, Message, Program, exchange, send
from vertibayes_protocols.budget import Cost
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.effects import Effects, RecordStatistics
from vertibayes_protocols.effects import Noise as NoiseEffect
from vertibayes_protocols.ledger import Fact, RevealedTable
from vertibayes_protocols.promise import Promise
from vertibayes_protocols.queries.columns.split import (
    Split,
    Table,
    check_people,
    count_tables,
    flat,
    read_tables,
    records_of,
)
from vertibayes_protocols.query import At, Give, Query
from vertibayes_protocols.roles import AnalystRole, SiteRole
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.variables import Rows

ACCOUNTINGS = ("whole", "count")


@dataclass(frozen=True)
class RecordNoise:
    """What the noise of published tables protects, and how much of it a site adds.

    A record is in one count of each feature's table, at the sites that hold them: by basic
    composition its eps is that of all tables together.
    """

    eps: float
    accounting: str = "whole"  # what `eps` is of

    def __post_init__(self) -> None:
        if self.accounting not in ACCOUNTINGS:
            expected = " or ".join(ACCOUNTINGS)
            raise ValueError(f"accounting {self.accounting}: it must be {expected}")
        _ = DiscreteLaplace(eps=self.eps)  # an eps out of range is refused here

    def of_a_table(self, schema: Schema) -> DiscreteLaplace:
        """Return the noise of each count of each table."""
        parts = len(schema.features) if self.accounting == "whole" else 1
        return DiscreteLaplace(eps=self.eps / parts)

    def promise(self, schema: Schema) -> Promise:
        """Return what is promised for the training records, at all sites together."""
        each = self.of_a_table(schema)
        eps = each.eps * len(schema.features)
        return Promise(
            eps=eps,
            delta=0.0,
            protects="attributes",
            mechanism="laplace",
            cost=Cost.of(eps),
            noise=f"each count has one copy of noise of its site alone, standard deviation "
            f"{math.sqrt(each.variance):.4g}",
            uncovered=("the class of each record, which all sites know",),
        )


@dataclass(frozen=True, slots=True)
class PublishedTables(Message):
    """One site's tables, flat: int64 of shape (cells,)."""

    kind: ClassVar[str] = "published tables"
    counts: NDArray[np.int64] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Publish(Query[dict[str, Table], DiscreteLaplace]):
    """Ask sites for noisy tables of their features by class."""

    kind: ClassVar[str] = "publish"
    split: Split  # who holds which features, and the counts of the classes
    eps: float  # of each count

    @classmethod
    def of(cls, split: Split, noise: RecordNoise) -> Self:
        """Return the query for tables with so much noise."""
        return cls(tuple(split.sites), split, noise.of_a_table(split.schema).eps)

    def matches(self, contract: Contract) -> None:
        """Refuse features that the contract does not have."""
        self.split.matches(contract)

    def plan(self, at: At) -> DiscreteLaplace:
        """Return the noise of each count."""
        self.split.check_party(at)
        return DiscreteLaplace(eps=self.eps)

    def effects(self, plan: DiscreteLaplace, at: At) -> Effects:
        """Return the effects: noisy tables of all features of a site leave."""
        split, target = self.split, self.split.target.name
        own = split.held(at.party)
        held = [(site, split.held(site)) for site in at.shown_by(split.sites)]
        noise = f"discrete Laplace noise, eps = {self.eps:.6g} a count"
        return Effects(
            asks=tuple(split.sites),
            columns=(target, *own),
            tables=(),
            counts=None,
            takes=(),
            number=None,
            leaves=RecordStatistics(NoiseEffect(Cost.of(plan.eps * len(own)), "laplace"), None),
            says=tuple(
                Fact(f"counts of {', '.join(names)} by {target}, with {noise}", site, (at.analyst,))
                for site, names in held
            ),
            opens=tuple(
                RevealedTable((name, target), split.cells(name), at.analyst, Rows(), noise)
                for _, names in held
                for name in names
            ),
        )

    def fits(self, site: SiteRole, plan: DiscreteLaplace) -> None:
        """Refuse a split of which the site has other people, states or counts of classes."""
        check_people(site, self.split)
        _ = self._counted(site)

    def _counted(self, site: SiteRole, noise: Noise = no_noise) -> dict[str, Table]:
        """Count a site's tables; confirm counts of classes only where exact tables are free too."""
        confirm = site.policy.free_tables
        return count_tables(self.split, site.party, records_of(site), noise, confirm=confirm)

    def run_site(self, site: SiteRole, plan: DiscreteLaplace, give: Give) -> Program[None]:
        """Count, add noise, and send the tables."""
        counts = flat(self._counted(site, plan), self.split.holders[site.party])
        yield from send({site.analyst: PublishedTables(counts)})

    def run_analyst(self, analyst: AnalystRole, plan: DiscreteLaplace) -> Program[dict[str, Table]]:
        """Receive the tables of all sites."""
        del analyst, plan
        split, tables = self.split, dict[str, Table]()
        cells = {site: sum(map(split.cells, split.holders[site])) for site in split.sites}
        expect = {site: Expect(PublishedTables, most + 64) for site, most in cells.items()}
        for site, message in (yield from exchange({}, expect)).items():
            tables |= read_tables(split, split.holders[site], message.counts, site)
        return tables
