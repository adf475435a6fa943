"""Naive Bayes from reports under local differential privacy (Yilmaz et al. 2019)."""

from __future__ import annotations

from vertibayes.naive_bayes.base import FLOOR, NaiveBayes
from vertibayes_protocols.local_reports import Aggregator


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
        Has received all reports.
    alpha, floor : float
        As of `NaiveBayes`.
    negative : {"zero", "one", "keep"}, default="zero"
        What becomes of negative counts; "one" is the paper's choice. See `Aggregator.estimates`.
    raised : bool, default=True
        Whether variances below their standard errors are raised: see `NaiveBayes.fit_sums`.

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
    errors = aggregator.errors() if raised and model.schema.numeric else None
    return model.fit_sums(aggregator.sums(negative), errors)
