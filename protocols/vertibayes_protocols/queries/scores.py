"""Scores: predict records whose attributes lie at several sites (VDPNB).

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

References
----------
M. Huai, L. Huang, W. Yang, L. Li, M. Qi: Privacy-preserving naive Bayes classification (2015),
section 5.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.randomness import SystemRandomness
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange, send
from vertibayes_protocols.errors import QueryRefusedError, refusing
from vertibayes_protocols.ledger import Ledger
from vertibayes_protocols.queries.publish import (
    Described,
    cells_of,
    check_site,
    describe,
    read_tables,
    records_of,
    split_of,
)
from vertibayes_protocols.queries.scoring import (
    Floats,
    Logarithms,
    Products,
    Split,
    Table,
    Variant,
    check_features,
    smoothed_totals,
)
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.session import Conversation, Query
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
class Scores(Query[Floats]):
    """Ask for ``ln P(x, c_j)`` of records: an ndarray of shape (records, classes), in nats.

    Parameters
    ----------
    study : bytes
        Random: names the batch in every hash.
    target : str
    classes : tuple of str
        The class and its states.
    class_counts : ndarray, dtype int64
        n_j of each class: public.
    features : tuple
        Name, states and site of each feature.
    alpha : ndarray of shape (1,), dtype float64
        Added to each count.
    via : {"additive", "product"}
        The variant.
    precision : int
        Fractional bits of a logarithm, or bits of the group.
    totals : tuple of ndarray, dtype int64
        For products, T_ij of each feature.
    first, last : int
        The records, by their places.
    """

    kind: ClassVar[str] = "scores"
    study: bytes
    target: str
    classes: tuple[str, ...]
    class_counts: NDArray[np.int64]
    features: Described
    alpha: NDArray[np.float64]
    via: str
    precision: int
    totals: tuple[NDArray[np.int64], ...]
    first: int
    last: int

    @classmethod
    def of(
        cls,
        variant: Variant,
        dealer: Party,
        first: int,
        last: int,
    ) -> Scores:
        """Return the query; the analyst's program takes the tables from `AnalystRole.tables`.

        Parameters
        ----------
        variant : Logarithms or Products
            Of one batch.
        dealer : Party
            Who deals its keys.
        first, last : int
            As above.
        """
        split = variant.split
        described = describe(split)
        is_product = isinstance(variant, Products)
        totals = variant.totals if isinstance(variant, Products) else {}
        bits = variant.bits if isinstance(variant, Products) else variant.fraction_bits
        return cls(
            parties=(*split.sites, dealer),
            study=variant.study,
            target=split.schema.target.name,
            classes=split.schema.target.states,
            class_counts=np.array(split.class_counts, np.int64),
            features=described,
            alpha=np.array([split.alpha]),
            via="product" if is_product else "additive",
            precision=bits,
            totals=tuple(np.array(totals[name], np.int64) for name, *_ in described if totals),
            first=first,
            last=last,
        )

    def variant(self, modulus: int) -> Variant:
        """Return the variant; ValueError if there is no such variant of this split."""
        if self.alpha.shape != (1,):
            raise ValueError("alpha must be one number")
        split = split_of(
            self.target, self.classes, self.class_counts, self.features, float(self.alpha[0])
        )
        if self.via == "additive":
            return Logarithms(split, self.study, modulus, self.precision)
        if self.via != "product":
            raise ValueError(f"via {self.via!r}: it must be {' or '.join(SCORED_VIA)}")
        names = [name for name, *_ in self.features]
        if len(self.totals) != len(names) or any(t.ndim != 1 for t in self.totals):
            raise ValueError("the totals of each feature are expected")
        totals = {name: t.tolist() for name, t in zip(names, self.totals, strict=True)}
        return Products(split, self.study, totals, self.precision)


def variant_of(split: Split, tables: Mapping[str, Table], via: str, modulus: int) -> Variant:
    """Return a variant for one batch.

    Parameters
    ----------
    split : Split
        What all know.
    tables : mapping of str to ndarray of shape (states, classes), dtype int64
        The model's, of each feature.
    via : {"additive", "product"}
        Which variant.
    modulus : int
        N of the additive scheme.

    Raises
    ------
    ValueError
        If sums, or products, of such tables do not fit.
    """
    study = SystemRandomness().bytes(STUDY_BYTES)
    if via == "additive":
        return Logarithms(split, study, modulus)
    totals = {name: smoothed_totals(split, table) for name, table in tables.items()}
    return Products(split, study, totals, PRODUCT_BITS)


# ---- the dealer ----------------------------------------------------------------------------------


def _consider_at_dealer(dealer: DealerRole, query: Scores) -> None:
    with refusing(dealer.party):
        split = query.variant(dealer.modulus).split
    if query.parties != (*split.sites, dealer.party):
        raise QueryRefusedError(dealer.party, "the parties are not the sites and the dealer")
    if unknown := sorted(set(split.sites) - set(dealer.public_keys)):
        reason = f"it has no public key of the sites {', '.join(unknown)}"
        raise QueryRefusedError(dealer.party, reason)


def _dealer(dealer: DealerRole, query: Scores) -> Program[None]:
    keys = query.variant(dealer.modulus).deal(dealer.randomness)
    outbox = {site: SchemeKey.of(key) for site, key in keys.parties.items()}
    yield from send({**outbox, dealer.analyst: SchemeKey.of(keys.aggregator)})


# ---- the site ------------------------------------------------------------------------------------


def _consider_at_site(site: SiteRole, query: Scores) -> None:
    with refusing(site.party):
        split = query.variant(site.modulus).split
        records = _chosen(site, query)
        check_site(site, split)
        variables = split.schema.variables
        check_features({n: variables[n] for n in split.holders[site.party]}, records)
    if query.parties != (*split.sites, site.dealer):
        raise QueryRefusedError(site.party, "the parties are not the sites and the dealer")
    left = site.policy.most_scores - site.memory.scored
    if records.records > left:
        reason = (
            f"scores of {records.records} records: {max(left, 0)} are left of most_scores = "
            f"{site.policy.most_scores}"
        )
        raise QueryRefusedError(site.party, reason)


def _chosen(site: SiteRole, query: Scores) -> LocalData:
    """Return the site's records that are scored; ValueError if there are no such records."""
    first, last, count = query.first, query.last, site.data.records
    if not 0 <= first < last <= count:
        raise ValueError(f"records {first} to {last} of {count}: there are no such records")
    return records_of(site).rows(np.arange(first, last))


def _site(site: SiteRole, query: Scores) -> Program[None]:
    variant, records = query.variant(site.modulus), _chosen(site, query)
    split = variant.split
    names = split.holders[site.party]
    site.memory.score(records.records)
    _note(site.ledger, query, split, records.records, site.analyst)
    cells = sum(cells_of(split, name) for name in names)
    expect_tables = {site.analyst: Expect(SiteTables, cells + 1)}
    sent = (yield from exchange({}, expect_tables))[site.analyst]
    tables = read_tables(split, names, sent.counts, site.analyst)
    expect_key = {site.dealer: Expect(SchemeKey, MOST_KEY_BYTES)}
    key = (yield from exchange({}, expect_key))[site.dealer]
    values = variant.values(tables, records)
    yield from variant.contribute(site.party, key.integer, values, site.analyst)


def _note(ledger: Ledger, query: Scores, split: Split, records: int, analyst: Party) -> None:
    for site, held in split.holders.items():
        ledger.note(
            f"counts of {', '.join(held)} by {query.target}, to predict with",
            "all records",
            (site,),
        )
    ledger.note(
        f"log P(attributes | {query.target}) of {records} records, for each class, by "
        f"{SCORED_VIA[query.via]}; who knows the tables may read attributes off it",
        ", ".join(split.sites),
        (analyst,),
    )


# ---- the analyst ---------------------------------------------------------------------------------


def _analyst(analyst: AnalystRole, query: Scores) -> Program[Floats]:
    variant, records = query.variant(analyst.modulus), query.last - query.first
    split, dealer = variant.split, query.parties[-1]
    tables = analyst.tables
    outbox = {
        site: SiteTables(np.concatenate([tables[name].reshape(-1) for name in held]))
        for site, held in split.holders.items()
    }
    _note(analyst.ledger, query, split, records, analyst.party)
    key = (yield from exchange(outbox, {dealer: Expect(SchemeKey, MOST_KEY_BYTES)}))[dealer]
    counts = np.array(split.class_counts, float)
    with np.errstate(divide="ignore"):
        prior = np.log(counts) - np.log(counts.sum())
    scores = yield from variant.open(key.integer, records * len(counts))
    return np.asarray(scores.reshape(records, len(counts)) + prior)


SCORES = (
    Conversation(Scores, _analyst)
    .side(SiteRole, _consider_at_site, _site)
    .side(DealerRole, _consider_at_dealer, _dealer)
)
