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

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange, send
from vertibayes_protocols.effects import Effects, Noise, RecordStatistics
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.ledger import Fact
from vertibayes_protocols.local_reports import Aggregator, Client, ReportPlan, Reports
from vertibayes_protocols.local_reports.client import check_fits
from vertibayes_protocols.local_reports.questions import CodeQuestion, Question
from vertibayes_protocols.promise import Promise
from vertibayes_protocols.queries.sums.statistics import site_records
from vertibayes_protocols.query import At, Give, Query
from vertibayes_protocols.roles import AnalystRole, SiteRole
from vertibayes_protocols.site.statistics import LocalData

MOST_BINS = 1_000_000  # of all numbers: each bin has a name
PEOPLE = "how many people each site reports for"


@dataclass(frozen=True, slots=True)
class Perturbed(Message):
    """The answers of a site's people: for each question that somebody answers, one row each."""

    kind: ClassVar[str] = "perturbed reports"
    questions: tuple[str, ...]
    answers: tuple[NDArray[np.generic], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Report(Query[Aggregator, ReportPlan]):
    """Ask sites for reports of the people whose records they hold."""

    kind: ClassVar[str] = "report"
    asked: ReportPlan  # what people are asked: without a projection
    most_records: int  # how many people a site has at most

    def __post_init__(self) -> None:
        if self.asked.projection is not None:
            raise ValueError("sites report their own columns: use a plan without a projection")
        if (bins := (self.asked.bins or 0) * len(self.asked.schema.numerics)) > MOST_BINS:
            raise ValueError(
                f"all numbers together have {bins:,} bins, at most {MOST_BINS:,} are allowed"
            )
        if self.most_records < 1:
            raise ValueError(f"most_records must be at least 1, got {self.most_records}")

    @property
    def promise(self) -> Promise:
        """What each person is promised."""
        return self.asked.promise.beside(PEOPLE)

    def plan(self, at: At) -> ReportPlan:
        """Return what people are asked; a ValueError if the party is not asked."""
        if at.party not in (*self.parties, at.analyst):
            raise ValueError("it is not among the sites that are asked")
        return self.asked

    def effects(self, plan: ReportPlan, at: At) -> Effects:
        """Return the effects: a perturbed report of each person leaves."""
        schema, promise = plan.schema, self.promise
        columns = (*schema.variables, *schema.numerics)
        what = f"a perturbed report of each person about {', '.join(columns)}: {promise.sentence}"
        return Effects(
            asks=self.parties,
            columns=columns,
            tables=((2, sum(map(_cells, plan.questions))),),
            counts=None,
            takes=(),
            number=None,
            leaves=RecordStatistics(Noise(promise.cost, "laplace"), None),
            says=tuple(Fact(what, site, (at.analyst,)) for site in at.shown_by(self.parties)),
            opens=(),
        )

    def fits(self, site: SiteRole, plan: ReportPlan) -> None:
        """Refuse a plan that does not fit the site's records, or more records than agreed."""
        if sum(data.records for data in _records(site, plan)) > self.most_records:
            raise DataError(f"it has more records than the {self.most_records} agreed")

    def run_site(self, site: SiteRole, plan: ReportPlan, give: Give) -> Program[None]:
        """Perturb each record by itself, and send the answers."""
        client, answers = Client(plan, site.randomness), dict[str, list[NDArray[np.generic]]]()
        for data in _records(site, plan):
            for name, rows in client.perturb_all(data).answers.items():
                answers.setdefault(name, []).append(rows)
        joined = tuple(np.concatenate(rows) for rows in answers.values())
        yield from send({site.analyst: Perturbed(tuple(answers), joined)})

    def run_analyst(self, analyst: AnalystRole, plan: ReportPlan) -> Program[Aggregator]:
        """Count the answers of all sites."""
        sizes = [_cells(question) for question in plan.questions]
        each = max(sizes) if plan.reports == "one" else sum(sizes)
        names = sum(len(question.name) for question in plan.questions)
        expect = Expect(Perturbed, self.most_records * each + names + 64)
        messages = yield from exchange({}, dict.fromkeys(self.parties, expect))
        return _aggregated(plan, messages)


def _records(site: SiteRole, plan: ReportPlan) -> list[LocalData]:
    """Return the site's records, which must fit the plan."""
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


def _cells(question: Question) -> int:
    """Return how many numbers the largest answer to a question has."""
    if isinstance(question, CodeQuestion):
        return max(prod(question.oracle.report_shape), 1)
    return prod(question.shape)


def _aggregated(plan: ReportPlan, messages: Mapping[Party, Perturbed]) -> Aggregator:
    """Return the counts of all answers; blame a site for answers that no client makes."""
    aggregator = Aggregator(plan)
    for site, message in messages.items():
        try:
            answers = dict(zip(message.questions, message.answers, strict=True))
            if len(answers) < len(message.questions):
                raise ValueError("a question appears twice")
            aggregator.update(Reports(answers))
        except ValueError as error:
            raise MalformedMessageError(site, f"sent reports that do not fit: {error}") from None
    return aggregator
