"""VDPNB: naive Bayes of records whose attributes lie at several sites.

    Public    all            schema, who holds what, n_j of each class, alpha
    Train     P_k            n_ij + noise, clipped to 0 .. n_j: once, of its own attributes i
    Set-up    dealer         keys of sum zero; products alone: P_k -> all, the totals of its tables
    Batch t   P_k -> aggregator   v_k(x, j) encrypted, for each record x and class j
              aggregator          opens v_1 .. v_K added up, or multiplied: ln P(x | c_j) and, with
                             the public prior, ln P(x, c_j)

v_k is the sum over the site's attributes of ln P(a_i | c_j), fixed-point (`Logarithms`, by the
additive scheme: the default); or the product of its smoothed counts (`Products`, as published).
See `vertibayes.naive_bayes.scores` for both. A site without a value of a record adds nothing of it.

Each site counts by a class column that all know, as the paper has it. Where one site alone knows
the class, `NaiveBayes.fit_counter` over a federation opens the tables to the analyst, exact and
without noise; `tables_of` takes a site's part of such a model, to predict with it: which then tells
the site how the classes lie in its own features.

Security: that of the scheme: the aggregator and any of the sites, together, learn the sums, or
products, over the others and no more of a batch. No site sees another's message. Leakage: to the
aggregator, ln P(x | c_j) of each record and class, by either variant: not the class alone. To 32
bits a sum of logarithms tells a product of small counts, and often its factors; to fewer bits,
less. Scores of chosen records open the tables: of a record, and of those that differ from it in one
value, a feature with r states shows r ratios, which with their sum of one are the column of its
CPT, and times the public n_j + r alpha its counts: 1 + sum of (r_i - 1) records tell all tables (a
test does so). An aggregator that knows the tables, which the published noisy model also tells it,
reads a record's values off its scores wherever no other values have them. Noise protects the
training records, however many scores are asked: it is drawn once, scores are computed from the
noisy tables, and chosen records open no more than these. It does nothing for the records that are
predicted, and nothing for n_j, which is public. Neighbours differ in whether a training record's
value is known to its site, which changes one count of a table by one; two different values of it
are two such steps, 2 eps (see `RecordNoise`). Cost: 1 round a batch; records x classes values from
each site.

References
----------
M. Huai, L. Huang, W. Yang, L. Li, M. Qi: Privacy-preserving naive Bayes classification (2015),
section 5.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc.noise import DiscreteLaplace, Noise, no_noise
from mpc.randomness import Randomness, SystemRandomness
from mpc.rounds import Party, Program
from protocols.site.statistics import LocalData, apart
from protocols.transports.local import LocalTransport
from vertibayes.naive_bayes.base import Floats, NaiveBayes, Schema
from vertibayes.naive_bayes.scores import (
    Products,
    Split,
    Table,
    Tables,
    Variant,
    check_features,
    smoothed_totals,
)

AGGREGATOR: Party = "aggregator"
ACCOUNTINGS = ("whole", "count")


@dataclass(frozen=True)
class RecordNoise:
    """What noise protects of a training record, and how much of it a site adds.

    A record is in one count of each feature's table, at the sites that hold them: by basic
    composition its eps is that of all tables together.

    Parameters
    ----------
    eps : float
        Of a whole record (accounting "whole"), or of each of its counts ("count", as published).
    accounting : {"whole", "count"}, default="whole"

    Raises
    ------
    ValueError
        If `eps` is not a finite number above 0, or there is no such accounting.
    """

    eps: float
    accounting: str = "whole"

    def __post_init__(self) -> None:
        if self.accounting not in ACCOUNTINGS:
            raise ValueError(f"accounting {self.accounting}: one of {', '.join(ACCOUNTINGS)}")
        _ = DiscreteLaplace(eps=self.eps)  # an eps out of range is refused here

    def of_a_table(self, schema: Schema) -> DiscreteLaplace:
        """Return the noise of each count of each table."""
        parts = len(schema.features) if self.accounting == "whole" else 1
        return DiscreteLaplace(eps=self.eps / parts)

    def promise(self, schema: Schema) -> dict[str, Any]:
        """Return what is promised, as JSON data."""
        each = self.of_a_table(schema).eps
        return {
            "protects": "the attributes of one training record; not its class, nor the counts of "
            "classes, which are public",
            "neighbours": "data sets that differ in whether one record's attributes are known; "
            "two different values of an attribute are twice as far apart",
            "accounting": self.accounting,
            "eps_of_a_count": each,
            "eps_of_a_record": each * len(schema.features),
            "delta": 0.0,
            "noise": "discrete Laplace of sensitivity 1, a whole copy by each site alone",
            "sentence": f"The model is ({each * len(schema.features):.4g}, 0)-differentially "
            "private for the attributes of one training record, known or not (twice that for "
            "other values of them); classes are public.",
        }


def count_tables(
    split: Split, site: Party, data: LocalData, noise: Noise = no_noise
) -> dict[str, Table]:
    """Count a site's features by class: its tables, drawn once and kept.

    Parameters
    ----------
    split : Split
    site : Party
    data : LocalData
        The site's features and the class column.
    noise : callable, default=no_noise
        Added to each count: see `RecordNoise.of_a_table`.

    Returns
    -------
    tables : dict of str to ndarray of shape (states, classes), dtype int64
        From 0 to n_j, which is public: noise beyond tells nothing.

    Raises
    ------
    ValueError
        If the data lack a feature or the class, have other states, or other counts of classes than
        the public ones.
    """
    part = Schema(split.schema.target, {n: split.schema.features[n] for n in split.holders[site]})
    check_features(part.variables, data)
    arrays = apart(part.statistics, part.variables, part.measure(data))
    classes, *tables = arrays[0]
    if tuple(classes.tolist()) != tuple(split.class_counts):
        raise ValueError(f"{site}: its records have other counts of classes than the public ones")
    drawn = noise(sum(table.size for table in tables))
    ends = np.cumsum([table.size for table in tables])[:-1]
    pairs = zip(part.categorical, tables, np.split(drawn, ends), strict=True)
    most = np.array(split.class_counts)
    return {n: np.clip(table + extra.reshape(table.shape), 0, most) for n, table, extra in pairs}


def tables_of(model: NaiveBayes, names: Sequence[str]) -> dict[str, Table]:
    """Return the counts of some features of a fitted model, to predict with at their site."""
    arrays = apart(model.schema.statistics, model.schema.variables, model.sums_)
    found = dict(zip(model.schema.categorical, arrays[0][1:], strict=True))
    return {name: np.maximum(found[name], 0) for name in names}


def model_of(split: Split, tables: Tables) -> NaiveBayes:
    """Return the model of all sites' tables, if they are published."""
    flat = [tables[name].reshape(-1) for name in split.schema.categorical]
    sums = np.concatenate([np.array(split.class_counts, np.int64), *flat])
    return NaiveBayes(split.schema, alpha=split.alpha).fit_sums(sums)


class Site:
    """A site: its tables, its key, and the times at which it has answered.

    Parameters
    ----------
    variant : Variant
    party : Party
    tables : mapping of str to ndarray of shape (states, classes), dtype int64
        Of `count_tables` or `tables_of`.
    key : int
        Of `variant.deal`.
    last_time : int
        The highest time that this key was ever used at, `NEVER` for a new key. Whoever runs
        `answer` stores `last_time` before the message leaves.

    Raises
    ------
    ValueError
        If the tables are not those of the site's features.
    """

    def __init__(
        self, variant: Variant, party: Party, tables: Tables, key: int, *, last_time: int
    ) -> None:
        held, classes = variant.split.holders[party], len(variant.split.class_counts)
        variables = variant.split.schema.variables
        if set(held) != set(tables):
            raise ValueError(f"{party}: tables of {', '.join(held)} are wanted")
        for name in held:
            if tables[name].shape != (len(variables[name].states), classes):
                raise ValueError(f"{party}: the table of {name} has another shape than its states")
        self.variant, self.party, self._tables = variant, party, dict(tables)
        self._encryptor = variant.encryptor(party, key, last_time)

    def __repr__(self) -> str:
        return f"Site({self.party!r}, last_time={self.last_time})"

    @property
    def last_time(self) -> int:
        """The highest time used: to be stored."""
        return self._encryptor.times.last

    def answer(
        self, records: LocalData, time: int, aggregator: Party = AGGREGATOR
    ) -> Program[None]:
        """Send the aggregator this site's part of the scores of a batch: a site's program.

        Parameters
        ----------
        records : LocalData
            The site's features of the batch's records, in the order that all sites have.
        time : int
            Higher than all before.
        aggregator : Party

        Raises
        ------
        ValueError
            If the records lack a feature or have other states; the time is not used up then.
        DealReusedError
            If the time, or a higher one, was used before.
        """
        variables = self.variant.split.schema.variables
        check_features({name: variables[name] for name in self._tables}, records)
        values = self.variant.values(self._tables, records)
        yield from self.variant.contribute(self._encryptor, values, time, aggregator)


class Aggregator:
    """Who learns the scores: its key, and what all know.

    Parameters
    ----------
    variant : Variant
    key : int
        Of `variant.deal`.
    """

    def __init__(self, variant: Variant, key: int) -> None:
        self.variant, self._key = variant, key

    def classify(self, records: int, time: int) -> Program[Floats]:
        """Open a batch's scores: the aggregator's program.

        Returns
        -------
        joint : ndarray of shape (records, classes)
            ``ln P(x, c_j)``, in nats, to `variant.error` and rounding of floats; minus infinity for
            a class that no training record has.

        Raises
        ------
        ProtocolError
            As the scheme's; it names the sites.
        """
        counts = np.array(self.variant.split.class_counts, float)
        with np.errstate(divide="ignore"):
            prior = np.log(counts) - np.log(counts.sum())
        found = yield from self.variant.open(self._key, time, records * len(counts))
        return np.asarray(found.reshape(records, len(counts)) + prior)


class Study:
    """Sites and an aggregator in one process: batches of records, each at a time of its own.

    Parameters
    ----------
    variant : Variant
    tables : mapping of Party to mapping of str to ndarray
        Of each site.
    randomness : Randomness, optional
        Of the keys, which are new.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), dtype str
    time : int
        Of the last batch, the first is 0; a batch that fails uses up its time.
    bytes : dict of Party to int
        What each site has sent, envelopes included.

    Raises
    ------
    ValueError
        As `Site`.
    """

    def __init__(
        self,
        variant: Variant,
        tables: Mapping[Party, Tables],
        randomness: Randomness | None = None,
    ) -> None:
        dealt = variant.deal(randomness or SystemRandomness())
        self.aggregator = Aggregator(variant, dealt.aggregator)
        self.sites = {
            site: Site(variant, site, tables[site], key, last_time=variant.never)
            for site, key in dealt.parties.items()
        }
        self.classes_ = np.array(variant.split.schema.target.states)
        self.time = variant.never
        self.bytes = dict.fromkeys(self.sites, 0)

    def predict_joint_log_proba(self, records: Mapping[Party, LocalData]) -> Floats:
        """Return ``ln P(x, y)`` of a batch: shape (n, n_classes); see `Aggregator.classify`.

        Parameters
        ----------
        records : mapping of Party to LocalData
            What each site has of the same records, in one order.

        Raises
        ------
        ValueError
            If a site is lacking, or the sites have different numbers of records, or none.
        ProtocolError
            As the scheme's.
        """
        if set(records) != set(self.sites):
            raise ValueError(f"records of {', '.join(self.sites)} are wanted")
        counts = {site: data.records for site, data in records.items()}
        if len(set(counts.values())) > 1 or not min(counts.values()):
            told = ", ".join(f"{site} {count}" for site, count in counts.items())
            raise ValueError(f"equally many records at each site, one at least, are wanted: {told}")
        self.time += 1
        programs = {s: self.sites[s].answer(data, self.time) for s, data in records.items()}
        transport = LocalTransport(AGGREGATOR, programs)
        joint: Floats = transport.run(self.aggregator.classify(max(counts.values()), self.time))
        for site in self.sites:
            self.bytes[site] += transport.traffic.bytes_sent[site, AGGREGATOR]
        return joint

    def predict_log_proba(self, records: Mapping[Party, LocalData]) -> Floats:
        """Return ``ln P(y | x)`` of a batch: shape (n, n_classes)."""
        joint = self.predict_joint_log_proba(records)
        scaled = joint - joint.max(axis=1, keepdims=True)
        return np.asarray(scaled - np.log(np.exp(scaled).sum(axis=1, keepdims=True)))

    def predict(self, records: Mapping[Party, LocalData]) -> NDArray[np.str_]:
        """Return the most probable class, the first of equals, of each record: shape (n,)."""
        best: NDArray[np.str_] = self.classes_[self.predict_joint_log_proba(records).argmax(axis=1)]
        return best


def products(split: Split, tables: Mapping[Party, Tables], study: bytes, bits: int) -> Products:
    """Return the variant of products, with the totals that each site announces of its tables."""
    totals = {n: smoothed_totals(split, t) for held in tables.values() for n, t in held.items()}
    return Products(split, study, totals, bits)
