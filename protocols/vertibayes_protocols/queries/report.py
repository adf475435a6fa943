"""Reports: sites perturb the record of each person whom they hold, and show nothing else of it.

    analyst -> sites    Report: the plan, which says what people are asked (`ReportPlan`)
    site                checks its budget, writes the cost down, perturbs each record by itself
    site -> analyst     Perturbed: the answers to each question, one row per answer
    analyst             counts the answers of all sites: an `Aggregator`

The site stands for the devices of its people: local differential privacy as Yilmaz et al. (2019)
have it. `Updates` and `Sums` need far less noise where people trust their site to count.

Security: each person's answers are (eps, 0)-private whatever the person's record is, against the
analyst and all sites, by the coins that are drawn for this person. Rows are in the order of the
site's records: whoever knows this order knows whose answer is whose, which eps allows for. A site
that lies shifts the estimates by as much as its people could, and nobody sees it.
Leakage: how many people each site reports for; their answers, to the analyst.
Cost: two rounds for query and answer, and one; bytes of an answer as of its oracle.

References
----------
E. Yilmaz, M. Al-Rubaie, J. M. Chang (2019). Locally Differentially Private Naive Bayes
Classification. Section 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange, send
from vertibayes_protocols.errors import DataError, QueryRefusedError, refusing
from vertibayes_protocols.ledger import Ledger
from vertibayes_protocols.local_reports import Aggregator, Client, ReportPlan, Reports
from vertibayes_protocols.local_reports.client import check_fits
from vertibayes_protocols.local_reports.questions import CodeQuestion, Question
from vertibayes_protocols.promise import Promise
from vertibayes_protocols.queries.statistics_query import bounds_of, check_opendp, numerics_of
from vertibayes_protocols.queries.sums.contributing import site_records
from vertibayes_protocols.roles import AnalystRole, SiteRole
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.session import Conversation, Query
from vertibayes_protocols.site.statistics import LocalData
from vertibayes_protocols.variables import Variable

PEOPLE = "how many people each site reports for"


@dataclass(frozen=True, slots=True)
class Perturbed(Message):
    """The answers of a site's people: for each question that somebody answers, one row each."""

    kind: ClassVar[str] = "perturbed reports"
    questions: tuple[str, ...]
    answers: tuple[NDArray[np.generic], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Report(Query[Aggregator]):
    """Ask sites for reports of the people whose records they hold.

    Parameters
    ----------
    target : str
        The class.
    variables : tuple
        Name and states of the class and of each categorical feature, and whether values may be
        missing.
    numerics : tuple of str
        The columns of numbers.
    bounds : ndarray of shape (len(numerics), 2), dtype float64
        The least and largest number of each.
    most_records : int
        How many people a site has at most.
    reports, oracle : str
        As of `ReportPlan`.
    shares : ndarray of shape (2,), dtype float64
        eps, and theta of the oracle "the": nan for the best.
    bins, approach : int
        As of `ReportPlan`; 0 bins for Gaussian features.
    missing : bool
        Whether numbers may be missing; if not, a missing number is the middle of its bounds.
    """

    kind: ClassVar[str] = "report"
    target: str
    variables: tuple[tuple[str, tuple[str, ...], bool], ...]
    numerics: tuple[str, ...]
    bounds: NDArray[np.float64]
    most_records: int
    reports: str
    oracle: str
    shares: NDArray[np.float64]
    bins: int
    approach: int
    missing: bool

    @classmethod
    def of(cls, plan: ReportPlan, sites: Iterable[Party], most_records: int) -> Report:
        """Return the query.

        Parameters
        ----------
        plan : ReportPlan
            What people are asked: without a projection.
        sites : iterable of Party
            Who is asked.
        most_records : int
            How many people a site has at most.

        Raises
        ------
        ValueError
            If the plan has a projection.
        """
        if plan.projection is not None:
            raise ValueError("sites report their own columns: use a plan without a projection")
        schema = plan.schema
        return cls(
            parties=tuple(sorted(sites)),
            target=schema.target.name,
            variables=tuple((v.name, v.states, v.missing) for v in schema.variables.values()),
            numerics=tuple(schema.numerics),
            bounds=bounds_of(schema.numerics),
            most_records=most_records,
            reports=plan.reports,
            oracle=plan.oracle,
            shares=np.array([plan.eps, np.nan if plan.theta is None else plan.theta]),
            bins=plan.bins or 0,
            approach=plan.approach,
            missing=plan.missing,
        )

    def plan(self) -> ReportPlan:
        """Return the plan.

        Raises
        ------
        ValueError
            If the query is not a plan.
        """
        if self.shares.shape != (2,):
            raise ValueError(f"shares must be eps and theta, got the shape {self.shares.shape}")
        if self.most_records < 1:
            raise ValueError(f"most_records must be at least 1, got {self.most_records}")
        variables = {name: Variable(name, states, m) for name, states, m in self.variables}
        features = variables | numerics_of(self.numerics, self.bounds)
        if len(features) < len(self.variables) + len(self.numerics):
            raise ValueError("a column is declared twice")
        if self.target not in variables:
            raise ValueError(f"the class {self.target!r} is not a declared variable")
        eps, theta = self.shares.tolist()
        target = variables[self.target]
        del features[self.target]
        return ReportPlan(
            schema=Schema(target, features),
            eps=eps,
            reports=self.reports,
            oracle=self.oracle,
            theta=None if np.isnan(theta) else theta,
            bins=self.bins or None,
            approach=self.approach,
            missing=self.missing,
        )

    @property
    def promise(self) -> Promise:
        """What each person is promised."""
        return self.plan().promise.beside(PEOPLE)


# ---- the site ------------------------------------------------------------------------------------


def _consider(site: SiteRole, query: Report) -> None:
    with refusing(site.party):
        plan = query.plan()
    if site.party not in query.parties:
        raise QueryRefusedError(site.party, "it is not among the sites that are asked")
    site.policy.check_shown(site.party, (*plan.schema.variables, *plan.schema.numerics))
    site.policy.check_tables(site.party, [(2, sum(map(_cells, plan.questions)))])
    site.policy.check_budget(site.party, site.memory.spent, plan.promise.cost)
    check_opendp(site.party, "laplace")
    # Last: the reasons tell of the data, and none may tell of a column that is not shown.
    with refusing(site.party):
        records = _records(site, plan)
        if sum(data.records for data in records) > query.most_records:
            raise DataError(f"it has more records than the {query.most_records} agreed")


def _records(site: SiteRole, plan: ReportPlan) -> list[LocalData]:
    records = [_known(plan, data) for data in site_records(site, plan.schema)]
    for data in records:
        check_fits(plan, data)
    return records


def _known(plan: ReportPlan, data: LocalData) -> LocalData:
    """Return records in which a missing number is the middle of its bounds, as in sums.

    A refusal would tell, at no cost, that somebody's number is missing: `Describe` does not.
    """
    if plan.missing:
        return data
    numbers = {
        name: np.where(np.isnan(values), data.numerics[name].middle, values)
        for name, values in data.numbers.items()
    }
    return replace(data, numbers=numbers)


def _site(site: SiteRole, query: Report) -> Program[None]:
    plan = query.plan()
    client, records = Client(plan, site.randomness), _records(site, plan)
    site.memory.charge(plan.promise.cost)
    _note(site.ledger, query, site.party, site.analyst)
    site.note_budget()
    answers: dict[str, list[NDArray[np.generic]]] = {}
    for data in records:
        for name, rows in client.perturb_all(data).answers.items():
            answers.setdefault(name, []).append(rows)
    joined = tuple(np.concatenate(rows) for rows in answers.values())
    yield from send({site.analyst: Perturbed(tuple(answers), joined)})


def _cells(question: Question) -> int:
    """Return how many numbers the largest answer to a question has."""
    if isinstance(question, CodeQuestion):
        return max(prod(question.oracle.report_shape), 1)
    return prod(question.shape)


def _note(ledger: Ledger, query: Report, about: Party, analyst: Party) -> None:
    columns = ", ".join((*(name for name, *_ in query.variables), *query.numerics))
    what = f"a perturbed report of each person about {columns}: {query.promise.sentence}"
    ledger.note(what, about, (analyst,))


# ---- the analyst ---------------------------------------------------------------------------------


def _analyst(analyst: AnalystRole, query: Report) -> Program[Aggregator]:
    plan = query.plan()
    sizes = [_cells(question) for question in plan.questions]
    each = max(sizes) if plan.reports == "one" else sum(sizes)
    names = sum(len(question.name) for question in plan.questions)
    expect = Expect(Perturbed, query.most_records * each + names + 64)
    messages = yield from exchange({}, dict.fromkeys(query.parties, expect))
    return _aggregated(analyst, query, plan, messages)


def _aggregated(
    analyst: AnalystRole, query: Report, plan: ReportPlan, messages: Mapping[Party, Perturbed]
) -> Aggregator:
    aggregator = Aggregator(plan)
    for site, message in messages.items():
        _note(analyst.ledger, query, site, analyst.party)
        try:
            answers = dict(zip(message.questions, message.answers, strict=True))
            if len(answers) < len(message.questions):
                raise ValueError("a question appears twice")
            aggregator.update(Reports(answers))
        except ValueError as error:
            raise MalformedMessageError(site, f"sent reports that do not fit: {error}") from None
    return aggregator


REPORT = Conversation(Report, _analyst).side(SiteRole, _consider, _site)
