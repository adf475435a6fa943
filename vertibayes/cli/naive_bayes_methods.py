"""The methods of ``vertibayes nb``: parties hold attributes of all records, or records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple

import numpy as np

from protocols.federation import ANALYST, federate
from protocols.ledger import Ledger
from protocols.promise import Promise
from protocols.queries.publish import Publish, RecordNoise
from protocols.queries.scores import WAYS
from protocols.queries.scoring import Floats, Split, check_products
from protocols.queries.terms import Terms
from protocols.schema import Schema
from protocols.session import Traffic
from protocols.site.data import SiteData
from protocols.site.statistics import LocalData, apart
from protocols.variables import Rows, Variable
from vertibayes.cli.naive_bayes_request import Request
from vertibayes.counting.secure import SecureCounter
from vertibayes.naive_bayes.base import NaiveBayes, log_proba
from vertibayes.naive_bayes.distributed import HDPNB, OWN_RULES
from vertibayes.naive_bayes.vertical import (
    model_of,
    predict_joint_log_proba,
    tables_of,
)
from vertibayes.report.disclosure import disclosure
from vertibayes.splitting import deal_columns

ALL_SITES = "all sites"


class SpentError(ValueError):
    """No model was learned, but something was revealed.

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
    promise : Promise or None
        Of the noise; None without.
    ledger : Ledger
    sites : mapping of str to sequence of str
        Who holds which columns; nothing where parties hold records.
    holders : mapping of str to str, optional
        Of each column, for the drawing.
    bytes : dict of str to int
        By sender.
    rounds : int
    log_proba : ndarray of shape (n, n_classes), optional
        Of the tested records.
    predicted_by : str
        How these were predicted.
    test_seconds, seconds : float
        What the test took, and everything.
    records : int or None
        How many it was learned from; None where nobody knows.
    predictions : list of tuple
        For each record predicted over the sites: its place, its class, each class's probability.
    warnings : list of str
        What the user should know.
    """

    model: NaiveBayes
    promise: Promise | None
    ledger: Ledger
    sites: Mapping[str, Sequence[str]] = field(default_factory=dict)
    holders: Mapping[str, str] | None = None
    bytes: dict[str, int] = field(default_factory=dict)
    rounds: int = 0
    log_proba: Floats | None = None
    predicted_by: str = "the model"
    test_seconds: float = 0.0
    seconds: float = 0.0
    records: int | None = None
    predictions: list[tuple[object, ...]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, traffic: Traffic) -> None:
        """Add what travelled in a session."""
        self.rounds += traffic.rounds
        for (sender, _), count in traffic.bytes_sent.items():
            self.bytes[sender] = self.bytes.get(sender, 0) + count


class Columns(NamedTuple):
    """Records split by column: the features of each site, and all records."""

    schema: Schema
    holders: Mapping[str, Sequence[str]]
    records: LocalData


# ---- parties that hold attributes ----------------------------------------------------------------


def learn_vertical(
    request: Request, schema: Schema, training: LocalData, tested: LocalData | None, seed: int
) -> Learned:
    """Deal the columns to sites, learn by VDPNB, and predict the tested records over the sites.

    Without noise one site holds the class, and a counter reveals the tables. With noise
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
            f"--parties must be between 2 and {features} (the number of features), got "
            f"{request.parties}: each site holds at least one"
        )
    columns = Columns(schema, deal_columns(list(schema.features), request.parties, seed), training)
    counts = np.bincount(training.codes[schema.target.name], minlength=len(schema.target.states))
    known = tuple(counts[: len(schema.target.states)].tolist())
    split = Split(schema, columns.holders, known, request.alpha)
    if tested is not None and request.via == "product":
        check_products(split)
    learned = (
        _revealed(columns, split) if request.noise == "none" else _noisy(request, columns, split)
    )
    if tested is not None:
        _test(learned, columns, split, tested, request)
    return learned


def _revealed(columns: Columns, split: Split) -> Learned:
    """Reveal exact tables through a federation: the class is at one site."""
    target, first = split.schema.target.name, next(iter(columns.holders))
    sites = {s: [*held, target] if s == first else list(held) for s, held in split.holders.items()}
    data = {site: _site_data(columns.records, names) for site, names in sites.items()}
    with federate(data) as federation:
        counter = SecureCounter.of(federation, order=list(split.schema.variables))
        model = NaiveBayes(split.schema, alpha=split.alpha).fit_counter(counter)
        shown = disclosure(counter.opened, counter.records)
    holders = {name: site for site, names in sites.items() for name in names}
    learned = Learned(model, None, counter.ledger, sites, holders)
    learned.warnings += [shown.sentence()] if shown.cells else []
    learned.add(federation.traffic)
    return learned


def _site_data(records: LocalData, names: Iterable[str]) -> SiteData:
    columns = list(names)
    variables = {name: records.variables[name] for name in columns}
    codes = {n: records.codes[n].astype(np.uint16) for n in columns}
    return SiteData(variables, codes)


def _noisy(request: Request, columns: Columns, split: Split) -> Learned:
    """Have each site count, add noise and publish its tables: all sites know the class."""
    assert request.epsilon is not None  # the request was checked
    target, noise = split.schema.target.name, RecordNoise(request.epsilon, request.accounting)
    data = {
        site: _site_data(columns.records, (*held, target)) for site, held in split.holders.items()
    }
    with federate(data, policy=OWN_RULES) as federation:
        tables = federation.session.ask(Publish.of(split, noise))
        ledger = federation.session.role.ledger
    classes = f"the {target} of every record, which all sites know beforehand"
    ledger.note(classes, "the records", tuple(split.holders))
    ledger.note(f"the counts of each {target}", "the records", (*split.holders, ANALYST))
    holders = {n: site for site, names in split.holders.items() for n in names}
    model, promise = model_of(split, tables), noise.promise(split.schema)
    learned = Learned(model, promise, ledger, split.holders, {target: ALL_SITES, **holders})
    learned.add(federation.traffic)
    return learned


def _test(
    learned: Learned, columns: Columns, split: Split, tested: LocalData, request: Request
) -> None:
    """Predict the tested records over the sites."""
    start = perf_counter()
    tables = tables_of(learned.model, split.schema.categorical)
    variables = {name: Variable(name, v.states, True) for name, v in tested.variables.items()}
    records = LocalData(variables, tested.codes)  # some values may be missing here alone
    data = {site: _site_data(records, held) for site, held in columns.holders.items()}
    places = 0, tested.records
    with federate(data, policy=OWN_RULES) as federation:
        joint = predict_joint_log_proba(
            federation.session, federation.dealer, split, tables, places, request.via
        )
        learned.log_proba = log_proba(joint)
        learned.ledger.facts += federation.session.role.ledger.facts
        learned.add(federation.traffic)
    learned.test_seconds = perf_counter() - start
    learned.predicted_by = WAYS[request.via]


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
            f"--parties must be between 2 and {training.records} (the number of records), got "
            f"{request.parties}"
        )
    order = np.random.default_rng(seed).permutation(training.records)
    parts = enumerate(np.array_split(order, request.parties))
    parties = {f"party-{place + 1}": training.rows(rows) for place, rows in parts}
    most = max(data.records for data in parties.values())
    terms = Terms(schema, len(parties), most, request.privacy())
    study = HDPNB(terms, parties, via=request.via, alpha=request.alpha)
    ledger = study.federation.analyst.ledger
    try:
        study.round()
    except ValueError as error:  # noise has left no class: the sums were revealed all the same
        reason = (
            f"{error}; the budget of what was revealed is spent: use a larger --epsilon or more "
            "records"
        )
        raise SpentError(reason, ledger) from None
    promise = study.promise_
    if promise is not None:
        promise = promise.beside("the number of records", "the size of the largest party")
        ledger.note(promise.beyond, "all parties together", (ANALYST,))
    learned = Learned(study.model_, promise, ledger)
    learned.add(study.federation.traffic)
    if promise is None:
        tables, *_ = apart(schema.statistics, schema.variables, study.release_.sums)
        shown = disclosure([(Rows(), table) for table in tables], training.records)
        learned.warnings += [shown.sentence()] if shown.cells else []
    if tested is not None:
        learned.log_proba = learned.model.predict_log_proba(tested)
    return learned
