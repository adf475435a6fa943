"""What many people's reports add up to, drawn at once from the law of their sum.

    de           of c people with a value, Binomial(c, d q) report a uniform one, the others theirs
    sue oue the  Binomial(c, p) + Binomial(n - c, q) for each value
    she          the difference of two negative binomial numbers with n, for each cell
    numbers      a number or a bit for each person: plans with numbers are of few people
    ss           reports of the oracle itself: their sum has no simpler law

The noise of these draws is for benchmarks alone: it protects nobody. That tallies have the law of
those of real reports is a test.
"""

from __future__ import annotations

from math import expm1

import numpy as np

from vertibayes_mpc.oracles import DirectEncoding, PureOracle, SubsetSelection, SummationHistogram
from vertibayes_mpc.oracles.summation import GRID
from vertibayes_mpc.randomness import SystemRandomness
from vertibayes_protocols.local_reports import Aggregator, ReportPlan
from vertibayes_protocols.local_reports.questions import HALF, CodeQuestion, LaplaceQuestion
from vertibayes_protocols.site.statistics import LocalData


class People:
    """Records that are reported on again and again: each question's inputs are prepared once."""

    def __init__(self, plan: ReportPlan, data: LocalData) -> None:
        prepared = plan.prepare(data)
        self.count = data.records
        self.inputs = {
            q.name: q.codes(prepared) if isinstance(q, CodeQuestion) else q.vectors(prepared)
            for q in plan.questions
        }
        self.totals = {name: _total(rows) for name, rows in self.inputs.items()}

    def part(self, places: np.ndarray) -> People:
        """Return some of the people."""
        people = object.__new__(People)
        people.count = len(places)
        people.inputs = {name: rows[places] for name, rows in self.inputs.items()}
        people.totals = {name: _total(rows) for name, rows in people.inputs.items()}
        return people


def _total(rows: np.ndarray) -> np.ndarray:
    return np.bincount(rows) if rows.ndim == 1 else rows.sum(axis=0)


def choose(questions: int, people: People, generator: np.random.Generator) -> list[np.ndarray]:
    """Draw a question for each person; return who answers each."""
    order = generator.integers(0, questions, people.count)
    return [np.flatnonzero(order == place) for place in range(questions)]


def collect(
    plan: ReportPlan, people: People, generator: np.random.Generator, who: list | None = None
) -> Aggregator:
    """Return an aggregator with all reports; `who` is of `choose`, where people report once."""
    aggregator = Aggregator(plan)
    for place, question in enumerate(plan.questions):
        tally = aggregator.tallies[question.name]
        rows = people.inputs[question.name]
        if who is None:
            total, n = people.totals[question.name], people.count
        else:
            rows = rows[who[place]]
            total, n = _total(rows), len(rows)
        if isinstance(question, CodeQuestion):
            oracle = question.oracle
            if isinstance(oracle, SubsetSelection):
                tally.update(oracle.perturb(rows, SystemRandomness()))
            else:
                counts = np.zeros(oracle.domain, np.int64)
                counts[: len(total)] = total
                tally.tally.support += support(oracle, counts, n, generator)
                tally.tally.n += n
        elif isinstance(question, LaplaceQuestion):
            draws = generator.geometric(-expm1(-float(question.noise.rate)), (2, *rows.shape))
            tally.update(np.clip(rows + draws[0] - draws[1], -question.largest, question.largest))
        else:
            entries = generator.integers(0, question.shape[1], n)
            share = question.step / HALF
            ones = generator.random(n) < (1 + share * rows[np.arange(n), entries]) / 2
            tally.update((2 * entries + ones).astype(np.uint32))
    return aggregator


def support(oracle, counts: np.ndarray, n: int, generator: np.random.Generator) -> np.ndarray:
    """Draw what n reports add up to, of which `counts` people hold each value."""
    if isinstance(oracle, SummationHistogram):
        return GRID * counts + laplace_sum(float(oracle.noise.rate), n, len(counts), generator)
    assert isinstance(oracle, PureOracle)
    if isinstance(oracle, DirectEncoding):
        lying = generator.binomial(counts, min(oracle.domain * oracle.q, 1.0))
        uniform = np.full(oracle.domain, 1 / oracle.domain)
        return counts - lying + generator.multinomial(lying.sum(), uniform)
    return generator.binomial(counts, oracle.p) + generator.binomial(n - counts, oracle.q)


def laplace_sum(rate: float, n: int, cells: int, generator: np.random.Generator) -> np.ndarray:
    """Draw sums of n discrete Laplace numbers: shape (cells,), dtype int64."""
    if not n:
        return np.zeros(cells, np.int64)
    draws = generator.negative_binomial(n, -expm1(-rate), (2, cells))
    return draws[0] - draws[1]
