"""``vertibayes nb --method vdpnb``: sites in this process hold columns of all records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np

from vertibayes.cli.naive_bayes_learned import Learned
from vertibayes.cli.naive_bayes_request import Request
from vertibayes.counting.secure import SecureCounter
from vertibayes.naive_bayes.base import NaiveBayes, log_proba
from vertibayes.naive_bayes.vertical import (
    model_of,
    predict_joint_log_proba,
    tables_of,
)
from vertibayes.report.disclosure import disclosure
from vertibayes.splitting import deal_columns
from vertibayes.structure.search import Progress
from vertibayes_protocols.federation import ANALYST, federate
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.queries.columns.publish import Publish, RecordNoise
from vertibayes_protocols.queries.columns.scores import SCORED_VIA
from vertibayes_protocols.queries.columns.scoring import check_products
from vertibayes_protocols.queries.columns.split import Split
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.statistics import LocalData
from vertibayes_protocols.variables import Variable

ALL_SITES = "all sites"


class Columns(NamedTuple):
    """Records split by column: the features of each site, and all records."""

    schema: Schema
    holders: Mapping[str, Sequence[str]]
    records: LocalData


def learn_vertical(
    request: Request,
    schema: Schema,
    training: LocalData,
    tested: LocalData | None,
    seed: int,
    progress: Progress,
) -> Learned:
    """Deal the columns to sites, learn by VDPNB, and predict the tested records over the sites.

    Without noise one site holds the class, and a counter reveals the tables. With noise
    all sites know the class, and each publishes its noisy tables.
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
    split = Split.of(schema, columns.holders, known, request.alpha)
    if tested is not None and request.via == "product":
        check_products(split)
    steps = 1 if tested is None else 2
    progress("learning", 0, steps)
    learned = (
        _revealed(columns, split) if request.noise == "none" else _noisy(request, columns, split)
    )
    if tested is not None:
        progress("prediction", 1, steps)
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
    with federate(data, policy=ALLOW_ALL) as federation:
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
    with federate(data, policy=ALLOW_ALL) as federation:
        joint = predict_joint_log_proba(
            federation.session, federation.dealer, split, tables, places, request.via
        )
        learned.log_proba = log_proba(joint)
        learned.ledger.facts += federation.session.role.ledger.facts
        learned.add(federation.traffic)
    learned.test_seconds = perf_counter() - start
    learned.predicted_by = SCORED_VIA[request.via]
