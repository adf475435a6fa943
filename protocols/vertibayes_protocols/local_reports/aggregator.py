"""The aggregator's part: reports stream in, and add up to what naive Bayes learns from.

The aggregator is not trusted with any record. Nobody protects the model from people who lie: a
person moves an estimate by as much as the report can weigh, which grows with the noise.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.local_reports.plan import ReportPlan
from vertibayes_protocols.local_reports.questions import CodeQuestion, Question
from vertibayes_protocols.local_reports.reports import Reports
from vertibayes_protocols.local_reports.tallies import QuestionTally, tally_of

Floats: TypeAlias = NDArray[np.float64]

NEGATIVE = ("zero", "one", "keep")


class EstimatedSums(NamedTuple):
    """Sums over all people who reported, estimated from those who answered one question.

    Parameters
    ----------
    values : ndarray of shape of the question, dtype float64
        Unbiased. Counts; sums of numbers in units of 2^-11 of half the range of their bounds; or
        sums of squares of these.
    errors : ndarray of the same shape, dtype float64
        The standard errors: of the noise, and of the choice of the people who answered.
    """

    values: Floats
    errors: Floats

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return confidence intervals of the sums, by the normal distribution.

        Raises
        ------
        ValueError
            If `level` does not lie between 0 and 1.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level}")
        reach = NormalDist().inv_cdf((1 + level) / 2) * self.errors
        return self.values - reach, self.values + reach


class Aggregator:
    """Adds up reports of one plan, and estimates.

    Parameters
    ----------
    plan : ReportPlan
        What people report.

    Examples
    --------
    >>> from vertibayes_protocols.local_reports import Client
    >>> from vertibayes_protocols.schema import Schema
    >>> from vertibayes_protocols.variables import Variable
    >>> schema = Schema(Variable("ill", ("no", "yes")), {})
    >>> plan = ReportPlan(schema=schema, eps=20.0)
    >>> aggregator = Aggregator(plan)
    >>> for value in ("yes", "yes", "no"):
    ...     aggregator.update(Client(plan).perturb({"ill": value}))
    >>> aggregator.people, aggregator.sums().round().tolist()
    (3, [1.0, 2.0])
    """

    def __init__(self, plan: ReportPlan) -> None:
        self.plan = plan
        self.tallies = {question.name: tally_of(question) for question in plan.questions}

    @property
    def people(self) -> int:
        """How many people reported."""
        answers = [tally.n for tally in self.tallies.values()]
        return sum(answers) if self.plan.reports == "one" else answers[0]

    def update(self, reports: Reports) -> None:
        """Add reports; if one is refused, none is added.

        Parameters
        ----------
        reports : Reports
            From anybody.

        Raises
        ------
        ValueError
            If a question is not of the plan, an answer is one that the question cannot have, or
            people do not answer all questions where they have to.
        """
        answers = reports.answers
        if unknown := [name for name in answers if name not in self.tallies]:
            raise ValueError(f"the plan has no question {unknown[0]!r}")
        fresh = Aggregator(self.plan)
        for name, rows in answers.items():
            fresh.tallies[name].update(rows)
        numbers = {tally.n for tally in fresh.tallies.values()}
        if self.plan.reports != "one" and len(numbers) > 1:
            raise ValueError(
                f"each person answers all questions: expected equally many answers, got {numbers}"
            )
        self.merge(fresh)

    def merge(self, other: Self) -> None:
        """Add the reports of another aggregator, which does not change.

        Raises
        ------
        ValueError
            If the plans differ.
        """
        if other.plan != self.plan:
            raise ValueError("the aggregators have different plans: only equal plans add up")
        for name, tally in self.tallies.items():
            tally.merge(other.tallies[name])

    def estimates(self, negative: str = "keep") -> dict[str, EstimatedSums]:
        """Estimate the sums of each question over all people who reported.

        Parameters
        ----------
        negative : {"keep", "zero", "one"}, default="keep"
            What becomes of counts below zero: they stay, and estimates are unbiased; they become
            zero; or they become one person among those who answered, as in the paper.

        Returns
        -------
        estimates : dict of str to EstimatedSums
            By the name of the question. Counts of complete records alone.

        Raises
        ------
        ValueError
            If nobody has answered one of the questions.
        """
        return {
            q.name: EstimatedSums(self._values(q, negative), self._errors(q))
            for q in self.plan.questions
        }

    def sums(self, negative: str = "zero") -> Floats:
        """Return all estimates in the order of `Schema.measure` of the plan's `model_schema`.

        Parameters
        ----------
        negative : {"zero", "one", "keep"}, default="zero"
            As of `estimates`.

        Returns
        -------
        sums : ndarray, dtype float64
            What ``NaiveBayes(plan.model_schema).fit_sums`` takes.

        Raises
        ------
        ValueError
            If nobody has answered one of the questions.
        """
        return self._flat([self._values(question, negative) for question in self.plan.questions])

    def errors(self) -> Floats:
        """Return the standard errors of all estimates, in the order of `sums`.

        Returns
        -------
        errors : ndarray, dtype float64

        Raises
        ------
        ValueError
            If nobody has answered one of the questions.
        """
        return self._flat([self._errors(question) for question in self.plan.questions])

    def _flat(self, arrays: list[Floats]) -> Floats:
        """Order the questions' arrays as a schema does: a number's sums, then its squares."""
        counts = len(self.plan.model_schema.variables)
        numbers = (len(arrays) - counts) // 2
        powers = arrays[counts:][:numbers], arrays[counts:][numbers:]
        columns = [np.concatenate(power) for power in powers if power]  # (columns, classes)
        moments = np.stack(columns, axis=1) if columns else np.zeros(0)
        return np.concatenate([a.reshape(-1) for a in (*arrays[:counts], moments)])

    def _answered(self, question: Question) -> tuple[QuestionTally, float]:
        """Return the tally of a question, and the share of all people who answered it."""
        tally = self.tallies[question.name]
        if not tally.n:
            raise ValueError(
                f"nobody has answered the question {question.name!r}: collect more reports"
            )
        return tally, tally.n / self.people

    def _values(self, question: Question, negative: str) -> Floats:
        if negative not in NEGATIVE:
            raise ValueError(f"negative must be one of {NEGATIVE}, got {negative!r}")
        tally, share = self._answered(question)
        values = tally.estimate()
        if isinstance(question, CodeQuestion) and negative != "keep":
            values = np.where(values < 0, float(negative == "one"), values)
        return np.asarray(values / share)

    def _errors(self, question: Question) -> Floats:
        tally, share = self._answered(question)
        chosen = tally.n * tally.spread() * (1 - share)
        return np.asarray(np.sqrt(tally.noise() + chosen) / share)
