"""What an analyst asks of sites that hold different records, and the models of the answers.

    learn_sums      `Sums`       one noisy sum over all sites                       HDPNB, federated
    learn_updates   `Updates`    each site's noisy statistics                       federated
    learn_gossip    `Updates`    each site's estimate after some iterations         gossip
    learn_people    `Report`     each person's perturbed report                     local

Every function works on any session: of parties in this process, or between machines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

import numpy as np

from vertibayes.naive_bayes.base import FLOOR, Floats, NaiveBayes
from vertibayes.naive_bayes.local import learn_reports
from vertibayes_protocols.local_reports import ReportPlan
from vertibayes_protocols.promise import Promise, SumPromise
from vertibayes_protocols.queries import ReleasedUpdates, Report, Updates
from vertibayes_protocols.queries.sums.members import Members
from vertibayes_protocols.queries.sums.sums import ReleasedSums, Sums
from vertibayes_protocols.queries.sums.terms import Terms, Values
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.session import Session
from vertibayes_protocols.site.statistics import exact_sum


class Release(NamedTuple):
    """What the analyst has of one release."""

    model: NaiveBayes
    sums: Values  # of this release, as they were released: not clamped
    parties: tuple[str, ...]  # whose counts are in them
    promise: SumPromise | None  # of the noise; None without


def learn_sums(
    session: Session,
    terms: Terms,
    members: Members,
    absent: Collection[str] = (),
    *,
    alpha: float = 1.0,
    before: Values | None = None,
) -> Release:
    """Ask for one release, and fit a model to its sums."""
    released = session.ask(Sums.of(session.role, terms, members, absent))
    return release_of(terms, released, alpha=alpha, before=before)


def release_of(
    terms: Terms, released: ReleasedSums, *, alpha: float = 1.0, before: Values | None = None
) -> Release:
    """Fit a model to released sums."""
    sums = released.sums if before is None else exact_sum([before, released.sums])
    copies = released.promise.copies if released.promise else 0.0
    model = NaiveBayes(_schema(terms), alpha=alpha).fit_sums(sums, _errors(terms, copies))
    return Release(model, *released)


def learn_updates(
    session: Session,
    terms: Terms,
    sites: Iterable[str],
    absent: Collection[str] = (),
    *,
    alpha: float = 1.0,
    floor: float = FLOOR,
) -> Release:
    """Ask each site for its noisy statistics, and fit a model to their sum."""
    gossip = session.ask(Updates.of(session.role, terms, sites, 1, absent))
    sums = np.sum(list(gossip.updates.values()), axis=0)
    model = NaiveBayes(_schema(terms), alpha=alpha, floor=floor)
    model.fit_sums(sums, _errors(terms, len(gossip.updates)))
    return Release(model, sums, tuple(sorted(gossip.updates)), gossip.promise)


class GossipModels(NamedTuple):
    """What the analyst has of sites that gossiped."""

    models: dict[str, NaiveBayes]  # the model of each site that was there in the last iteration
    released: ReleasedUpdates  # the updates, and who sent to whom


def learn_gossip(
    session: Session,
    terms: Terms,
    sites: Iterable[str],
    iterations: int,
    absent: Collection[str] = (),
    *,
    alpha: float = 1.0,
    floor: float = FLOOR,
) -> GossipModels:
    """Have sites gossip, and fit a model to each site's last estimate.

    An estimate is of the mean update. It is taken times the number of sites that sent an update, so
    that `alpha` and `floor` mean the same as in `learn_updates`.
    """
    gossip = session.ask(Updates.of(session.role, terms, sites, iterations, absent))
    count, schema = len(gossip.updates), _schema(terms)
    errors = _errors(terms, count)
    models = {
        site: NaiveBayes(schema, alpha=alpha, floor=floor).fit_sums(estimate * count, errors)
        for site, estimate in gossip.estimates.items()
    }
    return GossipModels(models, gossip)


class ReportModel(NamedTuple):
    """What the analyst has of people's reports."""

    model: NaiveBayes  # of ``plan.model_schema``: it predicts what ``plan.prepare`` returns
    people: int  # how many people reported
    promise: Promise  # what each person is promised


def learn_people(
    session: Session,
    plan: ReportPlan,
    sites: Iterable[str],
    most_records: int,
    *,
    alpha: float = 1.0,
) -> ReportModel:
    """Ask sites for reports of their people, and fit a model to the estimates."""
    query = Report(tuple(sorted(sites)), plan, most_records)
    aggregator = session.ask(query)
    return ReportModel(learn_reports(aggregator, alpha=alpha), aggregator.people, query.promise)


def _errors(terms: Terms, copies: float) -> Floats | None:
    """Return the standard errors of sums with so many copies of noise; None without noise."""
    return None if terms.accounting is None else terms.accounting.errors(copies)


def _schema(terms: Terms) -> Schema:
    assert isinstance(terms.schema, Schema)  # naive Bayes is of a class and features
    return terms.schema
