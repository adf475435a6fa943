"""The methods of ``vertibayes nb``: parties hold attributes of all records, or records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from mpc.additive_scheme import draw_modulus
from mpc.randomness import SystemRandomness
from mpc.rounds import Party
from protocols.federation import ANALYST, federate
from protocols.ledger import Ledger, OpenedTable
from protocols.session import Traffic
from protocols.site.data import SiteData
from protocols.site.statistics import LocalData, apart
from protocols.transports.local import EnvelopedPackets, LocalTransport
from protocols.variables import Rows
from vertibayes.naive_bayes.accounting import Privacy
from vertibayes.naive_bayes.base import Floats, NaiveBayes, Schema
from vertibayes.naive_bayes.distributed import HDPNB
from vertibayes.naive_bayes.parties import Terms
from vertibayes.naive_bayes.publication import collect_tables, publish_tables
from vertibayes.naive_bayes.scores import Logarithms, Products, Split, Tables, Variant
from vertibayes.naive_bayes.vertical import (
    AGGREGATOR,
    RecordNoise,
    Study,
    count_tables,
    model_of,
    products,
    tables_of,
)
from vertibayes.report.disclosure import disclosure
from vertibayes.secure_counter import SecureCounter
from vertibayes.splitting import deal_columns

if TYPE_CHECKING:
    from vertibayes.cli.naive_bayes import Request

ALL_SITES = "all sites"
STUDY_BYTES = 16
SESSION_BYTES = 16
PRODUCT_BITS = 2048
VariantOf: TypeAlias = Callable[[Mapping[Party, Tables]], Variant]
WAYS = {
    "additive": "sums of logarithms, by the additive scheme",
    "product": "products of counts, by the product scheme",
}


class SpentError(ValueError):
    """No model was learned, but something was opened.

    Parameters
    ----------
    reason : str
    ledger : Ledger
    """

    def __init__(self, reason: str, ledger: Ledger) -> None:
        super().__init__(reason)
        self.ledger = ledger


@dataclass
class Learned:
    """A model, and what its training and its test have cost and revealed.

    Attributes
    ----------
    model : NaiveBayes
    promise : mapping or None
        Of the noise; None without.
    ledger : Ledger
    bytes : dict of Party to int
        By sender.
    rounds : int
    sites : mapping of Party to sequence of str
        Who holds which columns; nothing where parties hold records.
    holders : mapping of str to Party, optional
        Of each column, for the drawing.
    log_proba : ndarray of shape (n, n_classes), optional
        Of the tested records.
    """

    model: NaiveBayes
    promise: Mapping[str, Any] | None
    ledger: Ledger
    bytes: dict[Party, int]
    rounds: int
    sites: Mapping[Party, Sequence[str]] = field(default_factory=dict)
    holders: Mapping[str, Party] | None = None
    log_proba: Floats | None = None
    predicted_by: str = "the model"
    test_seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)


class Columns(NamedTuple):
    """Records split by column: the features of each site, and all records."""

    schema: Schema
    holders: Mapping[Party, Sequence[str]]
    records: LocalData

    def of(self, site: Party, records: LocalData, *more: str) -> LocalData:
        """Return what a site has of records."""
        names = (*self.holders[site], *more)
        variables = {name: self.schema.variables[name] for name in names}
        return LocalData(variables, {name: records.codes[name] for name in names})


# ---- parties that hold attributes ----------------------------------------------------------------


def learn_vertical(
    request: Request, schema: Schema, training: LocalData, tested: LocalData | None, seed: int
) -> Learned:
    """Deal the columns to sites, learn by VDPNB, and predict the tested records over the sites.

    Without noise one site holds the class, and the tables are opened through a counter. With noise
    all sites know the class, and each publishes its noisy tables.

    Raises
    ------
    ValueError
        If there are fewer than two parties or more than features, or the target has records of one
        class.
    """
    features = len(schema.features)
    if not 2 <= request.parties <= features:
        raise ValueError(
            f"--parties {request.parties}: from 2 to {features}, the features, is wanted: each "
            "site holds one at least"
        )
    columns = Columns(schema, deal_columns(list(schema.features), request.parties, seed), training)
    counts = np.bincount(training.codes[schema.target.name], minlength=len(schema.target.states))
    known = tuple(counts[: len(schema.target.states)].tolist())
    split = Split(schema, columns.holders, known, request.alpha)
    variant_of = _variants(request, split) if tested is not None else None
    learned = (
        _opened(columns, split) if request.noise == "none" else _noisy(request, columns, split)
    )
    if tested is not None and variant_of is not None:
        _test(learned, columns, variant_of, tested, request)
    return learned


def _variants(request: Request, split: Split) -> VariantOf:
    """Return how the variant is made of tables; refuse what cannot fit before any is opened."""
    study = SystemRandomness().bytes(STUDY_BYTES)
    if request.via == "additive":
        variant = Logarithms(split, study, draw_modulus())
        return lambda _: variant
    classes = len(split.class_counts)
    largest = {name: (int(split.most_total(name)),) * classes for name in split.schema.features}
    _ = Products(split, study, largest)  # products that do not fit are refused here
    return lambda tables: products(split, tables, study, PRODUCT_BITS)


def _opened(columns: Columns, split: Split) -> Learned:
    """Open exact tables through a federation: the class is at one site."""
    target, first = split.schema.target.name, next(iter(columns.holders))
    sites = {s: [*held, target] if s == first else list(held) for s, held in split.holders.items()}
    data = {site: _site_data(columns.records, names) for site, names in sites.items()}
    with federate(data) as federation:
        counter = SecureCounter.of(federation, order=list(split.schema.variables))
        model = NaiveBayes(split.schema, alpha=split.alpha).fit_counter(counter)
        found = disclosure(counter.opened, counter.records)
        traffic, ledger = federation.traffic, counter.ledger
    holders = {name: site for site, names in sites.items() for name in names}
    warnings = [found.sentence()] if found.cells else []
    return Learned(
        model, None, ledger, _sent_by(traffic), traffic.rounds, sites, holders, warnings=warnings
    )


def _sent_by(traffic: Traffic) -> dict[Party, int]:
    """Return the bytes that each party sent."""
    sent: dict[Party, int] = {}
    for (sender, _), count in traffic.bytes_sent.items():
        sent[sender] = sent.get(sender, 0) + count
    return sent


def _site_data(records: LocalData, names: Iterable[str]) -> SiteData:
    columns = list(names)
    variables = {name: records.variables[name] for name in columns}
    codes = {n: records.codes[n].astype(np.uint16) for n in columns}
    return SiteData(variables, codes)


def _noisy(request: Request, columns: Columns, split: Split) -> Learned:
    """Have each site count, add noise and publish its tables: all sites know the class."""
    assert request.epsilon is not None  # the request was checked
    target, noise = split.schema.target.name, RecordNoise(request.epsilon, request.accounting)
    tables = {
        site: count_tables(
            split, site, columns.of(site, columns.records, target), noise.of_a_table(split.schema)
        )
        for site in split.holders
    }
    programs = {
        site: publish_tables(split, site, held, AGGREGATOR) for site, held in tables.items()
    }
    transport = LocalTransport(AGGREGATOR, programs)
    model = model_of(split, transport.run(collect_tables(split)))
    promise, ledger = noise.promise(split.schema), Ledger()
    classes = len(split.class_counts)
    told = f"the {target} of every record, which all sites know beforehand"
    ledger.note(told, "the records", tuple(split.holders))
    ledger.note(f"the counts of each {target}", "the records", (*split.holders, AGGREGATOR))
    for site, held in tables.items():
        each = f"discrete Laplace noise, eps = {promise['eps_of_a_count']:.6g} a count"
        ledger.note(f"counts of {', '.join(held)} by {target}, with {each}", site, (AGGREGATOR,))
        cells = [OpenedTable((n, target), t.shape[0] * classes, AGGREGATOR, Rows()) for n, t in
                 held.items()]  # fmt: skip
        ledger.tables.extend(cells)
    sent = {site: transport.traffic.bytes_sent[site, AGGREGATOR] for site in split.holders}
    holders = {n: site for site, names in split.holders.items() for n in names}
    return Learned(
        model, promise, ledger, sent, transport.traffic.rounds, split.holders,
        {target: ALL_SITES, **holders},
    )  # fmt: skip


def _test(
    learned: Learned, columns: Columns, variant_of: VariantOf, tested: LocalData, request: Request
) -> None:
    """Predict the tested records over the sites, and note what that reveals."""
    start = perf_counter()
    tables: dict[Party, Tables] = {
        site: tables_of(learned.model, held) for site, held in columns.holders.items()
    }
    study = Study(variant_of(tables), tables)
    records = {site: columns.of(site, tested) for site in columns.holders}
    learned.log_proba = study.predict_log_proba(records)
    learned.test_seconds = perf_counter() - start
    learned.predicted_by = WAYS[request.via]
    learned.rounds += 1
    for site, count in study.bytes.items():
        learned.bytes[site] = learned.bytes.get(site, 0) + count
    aggregator = AGGREGATOR
    if request.noise == "none":
        aggregator = ANALYST
        for site, held in columns.holders.items():
            told = f"counts of {', '.join(held)} by {request.target}, to predict with"
            learned.ledger.note(told, "all records", (site,))
    if request.via == "product":
        told = f"how many records have each attribute, by {request.target}"
        learned.ledger.note(told, ", ".join(columns.holders), (*columns.holders, aggregator))
    learned.ledger.note(
        f"log P(attributes | {request.target}) of {tested.records} tested records, for each class, "
        f"by {WAYS[request.via]}; who knows the tables may read attributes off it",
        ", ".join(columns.holders),
        (aggregator,),
    )


# ---- parties that hold records -------------------------------------------------------------------


def learn_horizontal(
    request: Request, schema: Schema, training: LocalData, tested: LocalData | None, seed: int
) -> Learned:
    """Deal the records to parties, learn by HDPNB, and predict the tested records by the model.

    Raises
    ------
    ValueError
        If there are fewer than two parties or more than records.
    """
    if not 2 <= request.parties <= training.records:
        raise ValueError(
            f"--parties {request.parties}: from 2 to {training.records}, the records, is wanted"
        )
    order = np.random.default_rng(seed).permutation(training.records)
    parts = enumerate(np.array_split(order, request.parties))
    parties = {f"party-{place + 1}": training.rows(rows) for place, rows in parts}
    study, traffic = _distributed(request, schema, parties)
    try:
        study.round()
    except ValueError as error:  # noise has left no class: the sums were opened all the same
        reason = f"{error}; what was opened is spent. A larger --epsilon or more records would do"
        raise SpentError(reason, _ledger_of(request, schema, study)) from None
    ledger = _ledger_of(request, schema, study)
    promise = study.promise_.to_json() if study.promise_ is not None else None
    learned = Learned(study.model_, promise, ledger, _sent_by(traffic), traffic.rounds)
    if promise is None:
        (tables,) = apart(schema.statistics, schema.variables, study.model_.sums_)
        found = disclosure([(Rows(), table) for table in tables], training.records)
        learned.warnings += [found.sentence()] if found.cells else []
    if tested is not None:
        learned.log_proba = learned.model.predict_log_proba(tested)
    return learned


def _ledger_of(request: Request, schema: Schema, study: HDPNB) -> Ledger:
    """Note what a release has revealed."""
    ledger = Ledger()
    promised = "" if study.promise_ is None else f". {study.promise_.sentence}"
    told = f"sums of all counts over {request.parties} parties{promised}"
    ledger.note(told, "all parties together", (AGGREGATOR,))
    for family in schema.statistics[0].families:  # type: ignore[union-attr]  # all categorical
        cells = int(np.prod([len(schema.variables[n].states) for n in family.members]))
        ledger.tables.append(OpenedTable(family.members, cells, AGGREGATOR, Rows()))
    return ledger


def _distributed(
    request: Request, schema: Schema, parties: Mapping[Party, LocalData]
) -> tuple[HDPNB, Traffic]:
    """Set up HDPNB over parties in this process, and the count of its messages."""
    privacy = None
    if request.epsilon is not None:
        privacy = Privacy(
            eps=request.epsilon,
            accounting="count" if request.accounting == "count" else "whole",
            protects="party" if request.protect == "party" else "record",
            noise="diluted" if request.noise == "diluted" else "polya",
            delta=request.delta,
            gamma=request.gamma,
        )
    most = max(data.records for data in parties.values())
    terms = Terms(schema, len(parties), most, privacy)
    traffic, session = Traffic(), SystemRandomness().bytes(SESSION_BYTES)
    study = HDPNB(
        terms,
        parties,
        via="masked" if request.via == "masked" else "additive",
        alpha=request.alpha,
        carrier=lambda: EnvelopedPackets(session, traffic),
    )
    return study, traffic
