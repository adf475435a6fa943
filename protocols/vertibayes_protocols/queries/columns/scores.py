"""Scores: predict records whose attributes lie at several sites (VDPNB; reference in `scoring`).

    analyst -> all            Scores: the schema, who holds what, n_j, alpha, which records
    analyst -> P_k            the model's tables of its own features
    dealer -> P_k, analyst    keys of sum zero, new for this query
    P_k -> analyst            v_k(x, j) encrypted, for each record x and class j
    analyst                   opens v_1 .. v_K added up, or multiplied: ln P(x | c_j), and with the
                              public prior ln P(x, c_j)

v_k is the sum over the site's attributes of ln P(a_i | c_j), fixed-point (`Logarithms`, by the
additive scheme: the default); or the product of its smoothed counts (`Products`, as published). A
site without a value of a record adds nothing of it.

Security: that of the scheme, with a dealer who works with nobody: the analyst and any of the sites,
together, learn the sums, or products, over the others and no more of a batch. No site sees the
message of another. The analyst chooses the tables, and so learns nothing of training records here.
Leakage: to the analyst, ln P(x | c_j) of each record and class: not the class alone. Who knows the
tables reads a record's values off its scores wherever no other values have them, and who chooses
them, always: a site takes the attributes of scored records for revealed, and its policy counts them
(`most_scores`). To a site, the tables of its own features by class: from an exact model, how the
classes lie in its features.
Cost: 2 rounds after the query's; records x classes values from each site.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange, send
from vertibayes_protocols import wire
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.effects import Effects, Scored
from vertibayes_protocols.ledger import Fact
from vertibayes_protocols.queries.columns.scoring import (
    FRACTION_BITS,
    Floats,
    Logarithms,
    Products,
    Variant,
    smoothed_totals,
)
from vertibayes_protocols.queries.columns.split import (
    Split,
    Tables,
    check_features,
    check_people,
    flat,
    read_tables,
    records_of,
)
from vertibayes_protocols.query import At, Give, Query
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.site.statistics import LocalData

STUDY_BYTES = 16
PRODUCT_BITS = 2048
MOST_KEY_BYTES = 4096
SCORED_VIA = {
    "additive": "sums of logarithms, by the additive scheme",
    "product": "products of counts, by the product scheme",
}


@dataclass(frozen=True, slots=True)
class SiteTables(Message):
    """The model's tables of one site's features, flat: int64 of shape (cells,)."""

    kind: ClassVar[str] = "site tables"
    counts: NDArray[np.int64] = field(repr=False)


@dataclass(frozen=True, slots=True)
class SchemeKey(Message):
    """A key of the scheme, for its owner alone: a signed integer, big-endian."""

    kind: ClassVar[str] = "scheme key"
    key: bytes = field(repr=False)

    @classmethod
    def of(cls, key: int) -> SchemeKey:
        """Return the message of a key."""
        return cls(key.to_bytes(key.bit_length() // 8 + 1, "big", signed=True))

    @property
    def integer(self) -> int:
        """The key."""
        return int.from_bytes(self.key, "big", signed=True)


@dataclass(frozen=True, slots=True)
class Scores(Query[Floats, Variant]):
    """Ask for ``ln P(x, c_j)`` of records: an ndarray of shape (records, classes), in nats."""

    kind: ClassVar[str] = "scores"
    is_dealt: ClassVar[bool] = True
    study: bytes = field(metadata=wire.FREE)  # random: names the batch in every hash
    split: Split  # who holds which features, counts of classes, what is added to each count
    via: str  # one of `SCORED_VIA`
    precision: int = field(metadata=wire.FREE)  # fractional bits of a logarithm; bits of the group
    totals: Mapping[str, tuple[int, ...]] = field(metadata=wire.FREE)  # products: T_ij of each
    first: int  # the records, by their places
    last: int
    # At the analyst: the model's tables of each feature, of shape (states, classes).
    tables: Tables = field(
        default_factory=dict, kw_only=True, repr=False, compare=False, metadata=wire.LOCAL
    )

    def __post_init__(self) -> None:
        if self.via not in SCORED_VIA:
            raise ValueError(f"via {self.via!r:.80}: it must be {' or '.join(SCORED_VIA)}")
        if not 0 <= self.first < self.last:
            raise ValueError(f"records {self.first} to {self.last}: there are no such records")

    @classmethod
    def of(
        cls,
        analyst: AnalystRole,
        split: Split,
        dealer: Party,
        tables: Tables,
        records: tuple[int, int],
        via: str = "additive",
    ) -> Self:
        """Return the query of one batch: the records from a place to another, by the tables."""
        totals, precision = dict[str, tuple[int, ...]](), FRACTION_BITS
        if via == "product":
            totals = {name: smoothed_totals(split, table) for name, table in tables.items()}
            precision = PRODUCT_BITS
        parties, study = (*split.sites, dealer), analyst.randomness.bytes(STUDY_BYTES)
        query = cls(parties, study, split, via, precision, totals, *records, tables=tables)
        _ = query.variant(analyst.modulus)  # what does not fit is refused here
        return query

    @property
    def records(self) -> int:
        """The number of records."""
        return self.last - self.first

    def variant(self, modulus: int) -> Variant:
        """Return the variant; ValueError if there is no such variant of this split."""
        if self.via == "additive":
            return Logarithms(self.split, self.study, modulus, self.precision)
        return Products(self.split, self.study, self.totals, self.precision)

    def matches(self, contract: Contract) -> None:
        """Refuse features that the contract does not have."""
        self.split.matches(contract)

    def plan(self, at: At) -> Variant:
        """Return the variant; ValueError if there is no such variant of this split."""
        self.split.check_party(at)
        return self.variant(at.modulus)

    def effects(self, plan: Variant, at: At) -> Effects:
        """Return the effects: scores of records leave, which tell the features' values."""
        split, target = self.split, self.split.target.name
        tables = [
            Fact(
                f"counts of {', '.join(split.holders[site])} by {target}, to predict with",
                "all records",
                (site,),
            )
            for site in split.sites
        ]
        shown = (
            f"log P(attributes | {target}) of {self.records} records, for each class, by "
            f"{SCORED_VIA[self.via]}; who knows the tables may read attributes off it"
        )
        return Effects(
            asks=(*split.sites, at.dealer),
            columns=split.held(at.party),
            tables=(),
            counts=None,
            takes=(),
            number=None,
            leaves=Scored(self.records, "scores"),
            says=(*tables, Fact(shown, ", ".join(split.sites), (at.analyst,))),
            opens=(),
        )

    def fits(self, site: SiteRole, plan: Variant) -> None:
        """Refuse other people, and records that the site does not have."""
        split = self.split
        check_people(site, split)
        features = {name: split.features[name] for name in split.holders[site.party]}
        check_features(features, self._chosen(site))

    def fits_dealer(self, dealer: DealerRole, plan: Variant) -> None:
        """Refuse sites that the dealer does not know."""
        if unknown := sorted(set(self.split.sites) - set(dealer.public_keys)):
            raise ValueError(f"it has no public key of the sites {', '.join(unknown)}")

    def _chosen(self, site: SiteRole) -> LocalData:
        """Return the site's records that are scored; ValueError if there are no such records."""
        if self.last > site.data.records:
            raise ValueError(
                f"records {self.first} to {self.last} of {site.data.records}: there are no such "
                "records"
            )
        return records_of(site).rows(np.arange(self.first, self.last))

    # ---- the programs ----------------------------------------------------------------------------

    def run_site(self, site: SiteRole, plan: Variant, give: Give) -> Program[None]:
        """Receive the tables of the site's features and a key, and send the encrypted values."""
        analyst, names = site.analyst, self.split.holders[site.party]
        cells = sum(map(self.split.cells, names))
        sent = (yield from exchange({}, {analyst: Expect(SiteTables, cells + 1)}))[analyst]
        tables = read_tables(self.split, names, sent.counts, analyst)
        key = yield from _key_of(site.dealer, {})
        values = plan.values(tables, self._chosen(site))
        yield from plan.contribute(site.party, key, values, analyst)

    def run_dealer(self, dealer: DealerRole, plan: Variant) -> Program[None]:
        """Deal the keys of one batch."""
        keys = plan.deal(dealer.randomness)
        outbox = {site: SchemeKey.of(key) for site, key in keys.parties.items()}
        yield from send({**outbox, dealer.analyst: SchemeKey.of(keys.aggregator)})

    def run_analyst(self, analyst: AnalystRole, plan: Variant) -> Program[Floats]:
        """Send each site its tables, and open the scores."""
        held = self.split.holders
        outbox = {site: SiteTables(flat(self.tables, held[site])) for site in self.split.sites}
        key = yield from _key_of(self.parties[-1], outbox)
        counts = np.array(self.split.class_counts, float)
        with np.errstate(divide="ignore"):
            prior = np.log(counts) - np.log(counts.sum())
        scores = yield from plan.open(key, self.records * len(counts))
        return np.asarray(scores.reshape(self.records, len(counts)) + prior)


def _key_of(dealer: Party, outbox: Mapping[Party, Message]) -> Program[int]:
    """Send messages, and receive the key that the dealer deals."""
    sent = (yield from exchange(outbox, {dealer: Expect(SchemeKey, MOST_KEY_BYTES)}))[dealer]
    return sent.integer
