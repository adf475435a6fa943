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
    """What the analyst has of one release.

    Attributes
    ----------
    model : NaiveBayes
    sums : ndarray of shape (terms.counts,), dtype int64 or float64
        Of this release, as they were released: not clamped.
    parties : tuple of str
        Whose counts are in them.
    promise : SumPromise or None
        Of the noise; None without.
    """

    model: NaiveBayes
    sums: Values
    parties: tuple[str, ...]
    promise: SumPromise | None


def learn_sums(
    session: Session,
    terms: Terms,
    members: Members,
    absent: Collection[str] = (),
    *,
    alpha: float = 1.0,
    before: Values | None = None,
) -> Release:
    """Ask for one release, and fit a model to its sums.

    Parameters
    ----------
    session : Session
        With all members but the absent.
    terms : Terms
        Their schema is a `Schema`.
    members : Members
        Over whom to sum.
    absent : collection of str, default=()
        The members that are not there.
    alpha : float, default=1.0
        As of `NaiveBayes`.
    before : ndarray of shape (terms.counts,), dtype int64, optional
        Sums of other records, which these are added to.

    Raises
    ------
    QueryRefusedError
        If a site refuses: it names the site.
    ProtocolError, TransportError
        If a party fails on the way, or so many are missing that the promise does not hold.
    ValueError
        If no class has a record left.
    """
    released = session.ask(Sums.of(session.role, terms, members, absent))
    return release_of(terms, released, alpha=alpha, before=before)


def release_of(
    terms: Terms, released: ReleasedSums, *, alpha: float = 1.0, before: Values | None = None
) -> Release:
    """Fit a model to released sums.

    Parameters
    ----------
    terms : Terms
        What the sums are of.
    released : ReleasedSums
        The sums, and whose they are.
    alpha, before
        As of `learn_sums`.

    Raises
    ------
    ValueError
        If no class has a record left.
    """
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
    """Ask each site for its noisy statistics, and fit a model to their sum.

    Parameters
    ----------
    session : Session
        With all sites but the absent.
    terms : Terms
        With local noise.
    sites : iterable of str
        All sites.
    absent : collection of str, default=()
        The sites that are not there.
    alpha, floor : float
        As of `NaiveBayes`.

    Raises
    ------
    QueryRefusedError
        If a site refuses: it names the site.
    ProtocolError, TransportError
        If a site fails on the way, or more are missing than agreed.
    """
    gossip = session.ask(Updates.of(session.role, terms, sites, 1, absent))
    sums = np.sum(list(gossip.updates.values()), axis=0)
    model = NaiveBayes(_schema(terms), alpha=alpha, floor=floor)
    model.fit_sums(sums, _errors(terms, len(gossip.updates)))
    return Release(model, sums, tuple(sorted(gossip.updates)), gossip.promise)


class GossipModels(NamedTuple):
    """What the analyst has of sites that gossiped.

    Attributes
    ----------
    models : dict of str to NaiveBayes
        The model of each site that was there in the last iteration.
    released : ReleasedUpdates
        The updates, and who sent to whom.
    """

    models: dict[str, NaiveBayes]
    released: ReleasedUpdates


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

    Parameters
    ----------
    session, terms, sites, absent, alpha, floor
        As of `learn_updates`.
    iterations : int
        How often sites send their estimates.

    Raises
    ------
    QueryRefusedError, ProtocolError, TransportError
        As `learn_updates`.
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
    """What the analyst has of people's reports.

    Attributes
    ----------
    model : NaiveBayes
        Of ``plan.model_schema``: it predicts what ``plan.prepare`` returns.
    people : int
        How many people reported.
    promise : Promise
        What each person is promised.
    """

    model: NaiveBayes
    people: int
    promise: Promise


def learn_people(
    session: Session,
    plan: ReportPlan,
    sites: Iterable[str],
    most_records: int,
    *,
    alpha: float = 1.0,
) -> ReportModel:
    """Ask sites for reports of their people, and fit a model to the estimates.

    Parameters
    ----------
    session : Session
        With the sites.
    plan : ReportPlan
        What people report.
    sites : iterable of str
        Who is asked.
    most_records : int
        How many people a site has at most.
    alpha : float, default=1.0
        As of `NaiveBayes`.

    Raises
    ------
    QueryRefusedError
        If a site refuses: it names the site.
    ProtocolError, TransportError
        If a site fails on the way.
    ValueError
        If nobody has answered one of the questions.
    """
    query = Report(tuple(sorted(sites)), plan, most_records)
    aggregator = session.ask(query)
    return ReportModel(learn_reports(aggregator, alpha=alpha), aggregator.people, query.promise)


def _errors(terms: Terms, copies: float) -> Floats | None:
    """Return the standard errors of sums with so many copies of noise; None without noise."""
    return None if terms.accounting is None else terms.accounting.errors(copies)


def _schema(terms: Terms) -> Schema:
    assert isinstance(terms.schema, Schema)  # naive Bayes is of a class and features
    return terms.schema
