"""Naive Bayes from reports under local differential privacy (Yilmaz et al. 2019)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from protocols.local_reports import Aggregator, Client, ReportPlan
from protocols.site.statistics import HALF_BITS, LocalData, apart
from vertibayes.naive_bayes.base import NaiveBayes

FLOOR = 1e-6  # no class and no variance is zero
EVEN = 1 / 3  # the variance of numbers that are spread evenly between -1 and 1


def learn_reports(
    aggregator: Aggregator,
    *,
    alpha: float = 1.0,
    floor: float = FLOOR,
    negative: str = "zero",
    raised: bool = True,
) -> NaiveBayes:
    """Learn from what an aggregator has received.

    Parameters
    ----------
    aggregator : Aggregator
    alpha, floor : float
        As of `NaiveBayes`.
    negative : {"zero", "one", "keep"}, default="zero"
        What becomes of negative counts; "one" is the paper's choice. See `Aggregator.estimates`.
    raised : bool, default=True
        Whether a variance that is smaller than its standard error is raised to the standard error,
        though not above the variance of an even spread. Noise often carries variances to zero or
        below, and a class with a variance near zero rules out, or takes, almost every record.

    Returns
    -------
    model : NaiveBayes
        Its features are those of ``aggregator.plan.model_schema``: predict what
        ``aggregator.plan.prepare(data)`` returns.

    Raises
    ------
    ValueError
        If nobody has answered one of the questions.

    References
    ----------
    .. [1] E. Yilmaz, M. Al-Rubaie, J. M. Chang (2019). Locally Differentially Private Naive Bayes
       Classification. Sections 3.1 and 3.2.
    """
    model = NaiveBayes(aggregator.plan.model_schema, alpha=alpha, floor=floor)
    sums = aggregator.sums(negative)
    if raised and model.schema.numeric:
        sums = _raised(model, sums, aggregator.errors())
    return model.fit_sums(sums)


def simulate_reports(plan: ReportPlan, data: LocalData) -> Aggregator:
    """Have each record's person report, and return the aggregator of these reports.

    Parameters
    ----------
    plan : ReportPlan
    data : LocalData
        One record per person, with the columns of ``plan.schema``.
    """
    aggregator = Aggregator(plan)
    aggregator.update(Client(plan).perturb_all(data))
    return aggregator


def _raised(
    model: NaiveBayes, sums: NDArray[np.float64], errors: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Raise sums of squares until no variance is below its standard error, or `EVEN`."""
    result, schema = sums.copy(), model.schema
    counts, moments = apart(schema.statistics, schema.variables, result)  # views
    uncertain = apart(schema.statistics, schema.variables, errors)[1]
    known = np.maximum(counts[0], 1.0)
    half = 2.0**HALF_BITS
    for (total, squares), (of_total, of_squares) in zip(moments, uncertain, strict=True):
        mean = np.clip(total / known / half, -1.0, 1.0)
        error = np.hypot(of_squares / half**2, 2 * mean * of_total / half) / known
        least = (mean**2 + np.minimum(error, EVEN)) * known * half**2
        squares[:] = np.maximum(squares, least)
    return result
