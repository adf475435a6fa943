"""The options of naive Bayes, what it learns from a session of any place, and what a run has of it.

Sites that hold records of their own:

hdpnb, federated    `Sums`       shares of noise, or exact sums
federated           `Updates`    a whole copy of noise of each party
gossip              `Updates`    the same, passed on among the parties
ldp                 `Report`     each person's record is perturbed

Sites that hold columns of the same records (vdpnb):

without noise       a counter    one site holds the class, and exact tables are revealed
with noise          `Publish`    all sites know the class, and publish their noisy tables
predictions         `Scores`     over the sites
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from vertibayes.cli.outputs import (
    described_columns,
    models_of,
    write_counts,
    write_model,
    write_rows,
    write_text,
)
from vertibayes.cli.run import Run
from vertibayes.cli.tested import classes_of
from vertibayes.cli.texts import text
from vertibayes.counting.secure import SecureCounter
from vertibayes.drawing.svg import draw
from vertibayes.naive_bayes.base import Floats, NaiveBayes
from vertibayes.naive_bayes.releases import learn_gossip, learn_people, learn_sums, learn_updates
from vertibayes.naive_bayes.vertical import model_of, predict_joint_log_proba, tables_of
from vertibayes.report.counts import counts_of_classifier
from vertibayes.report.people import alignment_as_json, report_of_people
from vertibayes.validation.measures import auc
from vertibayes_protocols.accounting import OPENDP, Privacy
from vertibayes_protocols.alignment import AlignedPeople
from vertibayes_protocols.local_reports import ReportPlan
from vertibayes_protocols.promise import LOCAL, Promise
from vertibayes_protocols.queries.columns.publish import Publish, RecordNoise
from vertibayes_protocols.queries.columns.split import Split
from vertibayes_protocols.queries.sums.members import Members
from vertibayes_protocols.queries.sums.terms import Terms
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.session import Session, Traffic
from vertibayes_protocols.site.statistics import LocalData
from vertibayes_protocols.variables import Variable

BOTH = ("record", "party")
CHOICES = {  # of each method: what --noise, --via (the default first) and --protect may be
    "hdpnb": (("polya", "diluted", "none"), ("additive", "masked"), BOTH),
    "vdpnb": (("laplace", "none"), ("additive", "product"), ("record",)),
    "federated": (("polya", *LOCAL, "none"), ("masked", "additive"), BOTH),
    "gossip": (LOCAL, ("additive",), BOTH),
    "ldp": (("reports",), ("additive",), ("record",)),
}
OF_NOISE = {  # with which noise an option has an effect
    "accounting": ("polya", "diluted", "laplace"),
    "delta": ("diluted", "gaussian"),
    "gamma": ("polya", "diluted"),
    "protect": ("polya", "diluted", *LOCAL),
}
OWN = {  # the options that only one method has
    "iterations": "gossip",
    "reports": "ldp",
    "oracle": "ldp",
    "equal_bins": "ldp",
    "approach": "ldp",
}
ALL_SITES = "all sites"
SPENT = "the budget of what was revealed is spent: use a larger --epsilon or more records"


@dataclass(frozen=True)
class Request:
    """The options of ``vertibayes nb``; each is a setting of `vertibayes.settings`."""

    method: str
    target: str
    parties: int
    epsilon: float | None = None
    noise: str | None = None
    accounting: str = "whole"
    protect: str = "record"
    delta: float = 1e-5
    gamma: float = 1.0
    via: str = ""  # that of the method, if not given
    alpha: float = 1.0
    iterations: int = 50
    reports: str = "one"
    oracle: str = "auto"
    equal_bins: int = 4
    approach: int = 3

    def checked(self) -> Request:
        """Return the request with its noise and its way filled in; refuse what cannot be."""
        noises, ways, protected = CHOICES[self.method]
        noise = self.noise or noises[0]
        via = self.via or ways[0]
        given = ("noise", noise, noises), ("via", via, ways), ("protect", self.protect, protected)
        for option, value, known in given:
            if value not in known:
                has = " or ".join(known)
                if known == ("reports",):
                    has = "the noise of --oracle and --approach; leave out --noise"
                raise ValueError(f"--{option} {value}: {self.method} has {has}")
        self._check_noise(noise)
        for name, method in OWN.items():
            if self.method != method and getattr(self, name) != getattr(Request, name):
                option = name.replace("_", "-")
                raise ValueError(f"--{option} is an option of {method}, got --method {self.method}")
        if self.equal_bins == 1:
            raise ValueError("--equal-bins must be 0, or 2 and more, got 1")
        if self.equal_bins and self.approach != Request.approach:
            raise ValueError(
                f"--approach has an effect with --equal-bins 0 alone, got {self.equal_bins}"
            )
        return replace(self, noise=noise, via=via)

    @property
    def reveals_tables(self) -> bool:
        """Whether exact tables of columns at several sites are revealed, with noise filled in."""
        return self.method == "vdpnb" and self.noise == "none"

    def privacy(self) -> Privacy | None:
        """Return the noise of parties that hold records; None for exact sums."""
        if self.epsilon is None:
            return None
        return Privacy(
            eps=self.epsilon,
            accounting=self.accounting,
            protects=self.protect,
            noise=self.noise or "polya",
            delta=self.delta,
            gamma=self.gamma,
        )

    def _check_noise(self, noise: str) -> None:
        for name, noises in OF_NOISE.items():
            if getattr(self, name) != getattr(Request, name) and noise not in noises:
                if noise == "reports":
                    raise ValueError(f"--{name} has no effect with --method {self.method}")
                raise ValueError(
                    f"--{name} has an effect with --noise {' or '.join(noises)} alone, got {noise}"
                )
        if (noise == "none") != (self.epsilon is None):
            has_exact = "none" in CHOICES[self.method][0]
            also = ", or --noise none, and not both" if has_exact else ""
            raise ValueError(f"specify --epsilon E{also}")
        if noise in (*OPENDP, "reports") and find_spec("opendp") is None:
            raise ValueError(f"--noise {noise} is drawn by OpenDP: pip install 'vertibayes[noise]'")


@dataclass
class Learned:
    """A model, and what its training and its test have cost and revealed."""

    model: NaiveBayes
    promise: Promise | None  # of the noise; None without
    sites: Mapping[str, Sequence[str]] = field(default_factory=dict)  # who holds which columns
    holders: Mapping[str, str] | None = None  # of each column, for the drawing
    bytes: dict[str, int] = field(default_factory=dict)  # by sender
    rounds: int = 0
    log_proba: Floats | None = None  # of the tested records
    predicted_by: str = "the model"  # how these were predicted
    test_seconds: float = 0.0
    records: int | None = None  # how many it was learned from; None where nobody knows
    parties: tuple[str, ...] = ()  # who took part, where parties hold records
    models: Mapping[str, NaiveBayes] = field(default_factory=dict)
    prepare: Callable[[LocalData], LocalData] = lambda data: data
    predictions: list[tuple[object, ...]] = field(default_factory=list)
    people: AlignedPeople | None = None
    warnings: list[str] = field(default_factory=list)  # what the user should know

    def add(self, traffic: Traffic) -> None:
        """Add what travelled in a session."""
        self.rounds += traffic.rounds
        for (sender, _), count in traffic.bytes_sent.items():
            self.bytes[sender] = self.bytes.get(sender, 0) + count

    def promised_beside(self, *shown: str) -> None:
        """Note what is shown beside what the noise covers, if there is noise."""
        self.promise = None if self.promise is None else self.promise.beside(*shown)


# ---- sites that hold records ---------------------------------------------------------------------


class Holders(NamedTuple):
    """Who holds the records."""

    sites: Sequence[str]  # all parties
    most_records: int  # how many records a party has at most
    absent: Collection[str] = ()  # the parties that are not there
    # As of `Terms`.
    dishonest: float = 0.0
    dropouts: float = 0.0
    missing: bool = True  # whether values may be missing, which people then report


def learn_records(request: Request, session: Session, schema: Schema, holders: Holders) -> Learned:
    """Ask the parties as a request says, and return the model."""
    facts = len(session.role.ledger.facts)
    try:
        if request.method == "ldp":
            return _people(request, session, schema, holders)
        return _sums(request, session, schema, holders)
    except ValueError as error:
        if len(session.role.ledger.facts) == facts:
            raise
        raise ValueError(f"{error}; {SPENT}") from None  # noise has left no class


def _sums(request: Request, session: Session, schema: Schema, holders: Holders) -> Learned:
    sites, absent, alpha = holders.sites, holders.absent, request.alpha
    sizes = max(len(sites), 2), holders.most_records
    terms = Terms(schema, *sizes, request.privacy(), holders.dishonest, holders.dropouts)
    if request.method == "gossip":
        count = request.iterations
        models, gossip = learn_gossip(session, terms, sites, count, absent, alpha=alpha)
        first, parties = min(models), tuple(sorted(gossip.updates))
        by = f"the model of {first}"
        return Learned(
            models[first], gossip.promise, predicted_by=by, parties=parties, models=models
        )
    if terms.privacy is not None and terms.privacy.is_local:
        release = learn_updates(session, terms, sites, absent, alpha=alpha)
    else:
        members = Members(terms, sites, request.via)
        release = learn_sums(session, terms, members, absent, alpha=alpha)
    return Learned(release.model, release.promise, parties=release.parties)


def _people(request: Request, session: Session, schema: Schema, holders: Holders) -> Learned:
    assert request.epsilon is not None  # the request was checked
    plan = ReportPlan(
        schema=_missing(schema) if holders.missing else schema,
        eps=request.epsilon,
        reports=request.reports,
        oracle=request.oracle,
        bins=request.equal_bins or None if schema.numeric else None,
        approach=request.approach,
        missing=holders.missing,
    )
    present, most = sorted(set(holders.sites) - set(holders.absent)), holders.most_records
    model, people, promise = learn_people(session, plan, present, most, alpha=request.alpha)
    return Learned(model, promise, parties=tuple(present), records=people, prepare=plan.prepare)


def _missing(schema: Schema) -> Schema:
    """Return a schema whose values may be missing."""
    features = {
        name: replace(feature, missing=True) if isinstance(feature, Variable) else feature
        for name, feature in schema.features.items()
    }
    return replace(schema, target=replace(schema.target, missing=True), features=features)


# ---- sites that hold columns ---------------------------------------------------------------------


def reveal(
    request: Request,
    counter: SecureCounter,
    schema: Schema,
    sites: Mapping[str, Sequence[str]],
    holders: Mapping[str, str],
) -> Learned:
    """Reveal exact tables: the class is at one site."""
    model = NaiveBayes(schema, alpha=request.alpha).fit_counter(counter)
    records, people = counter.records, counter.open_study.people
    return Learned(model, None, sites, holders, records=records, people=people)


def publish(request: Request, session: Session, split: Split) -> Learned:
    """Have each site count, add noise and publish its tables: all sites know the class."""
    assert request.epsilon is not None  # the request was checked
    noise = RecordNoise(request.epsilon, request.accounting)
    model = model_of(split, session.ask(Publish.of(split, noise)))
    holders = {name: site for site, names in split.holders.items() for name in names}
    holders[split.schema.target.name] = ALL_SITES
    promise, records = noise.promise(split.schema), sum(split.class_counts)
    return Learned(model, promise, split.holders, holders, records=records)


def score(
    request: Request, session: Session, dealer: str, learned: Learned, split: Split, records: int
) -> Floats:
    """Return ``ln P(x, y)`` of the first records, over the sites."""
    start = perf_counter()
    tables = tables_of(learned.model, split.schema.categorical)
    places = 0, records
    joint = predict_joint_log_proba(session, dealer, split, tables, places, request.via)
    learned.test_seconds = perf_counter() - start
    return joint


# ---- the end of a run ----------------------------------------------------------------------------


def report(
    run: Run,
    request: Request,
    learned: Learned,
    tested: LocalData | None,
    seconds: float,
    about: Mapping[str, Any],
) -> None:
    """Write a run's results; `about` are entries of the summary that depend on the place."""
    model, assumed = learned.model, learned.promise
    if swamped := model.swamped_:
        learned.warnings.append(
            f"the noise is larger than the spread of {', '.join(swamped)} within a class, so that "
            "its variance is a guess: declare tighter bounds, or take more records or epsilon"
        )
    run.warn(learned.warnings)
    assert run.ledger is not None  # there was a session
    summary = {
        "method": request.method,
        "target": request.target,
        "records": learned.records,
        "parties": request.parties,
        "sites": {site: list(names) for site, names in learned.sites.items()},
        "variables": described_columns(model.schema),
        "left_out": {},
        "model": models_of(model),
        "promise": None if assumed is None else assumed.to_json(),
        "seconds": {"test": round(learned.test_seconds, 4), "total": round(seconds, 4)},
        "rounds": learned.rounds,
        "bytes": {"total": sum(learned.bytes.values()), "sent_by": dict(learned.bytes)},
        "opened": {"tables": len(run.ledger.tables), "cells": run.ledger.cells},
        "test": None if tested is None else _accuracy(learned, tested),
        **about,
    }
    people = []
    if learned.people is not None:
        summary["alignment"] = alignment_as_json(learned.people)
        people = report_of_people(summary["alignment"])
    kind = "exact" if assumed is None else "noise"
    kind = "estimated" if request.method in ("gossip", "ldp") else kind
    more = partial(_write, learned=learned, kind=kind)
    lines = text("nb.txt.j2", **summary, people=people).splitlines()
    run.finish("nb", summary, lines, partial(write_model, model=model), more)


def _accuracy(learned: Learned, tested: LocalData) -> dict[str, Any]:
    """Return how well the tested records were classified, beside the most frequent class."""
    model, target, proba = learned.model, learned.model.schema.target, learned.log_proba
    if proba is None:  # sites have not scored them
        proba = model.predict_log_proba(learned.prepare(tested))
    truth = classes_of(tested, target.name)
    scores = [each.score(learned.prepare(tested)) for each in learned.models.values()]
    quartiles = np.quantile(scores, [0.25, 0.5, 0.75]).tolist() if scores else []
    return {
        "records": tested.records,
        "predicted_by": learned.predicted_by,
        "accuracy": float((proba.argmax(axis=1) == truth).mean()),
        "accuracy_of_the_most_frequent_class": float((truth == model.class_count_.argmax()).mean()),
        "accuracy_of_all_parties": quartiles,
        "auc": auc(truth, np.exp(proba), target.states).auc,
    }


def _write(part: Path, learned: Learned, kind: str) -> None:
    """Write counts, which are of a kind as `counts.json` names it, drawing and predictions."""
    model = learned.model
    if not model.schema.numerics:
        write_counts(part, counts_of_classifier(model, kind))
    write_text(part / "structure.svg", draw(model.structure, learned.holders))
    if learned.predictions:
        header = "record", "class", *model.schema.target.states
        write_rows(part / "predictions.csv", [header, *learned.predictions])
