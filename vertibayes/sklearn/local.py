"""The estimator from reports that people perturb themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from vertibayes.naive_bayes.local import learn_reports
from vertibayes.sklearn.base import NaiveBayesEstimator
from vertibayes_protocols.local_reports import Aggregator, Client, ReportPlan
from vertibayes_protocols.site.statistics import LocalData


@dataclass(eq=False, repr=False, kw_only=True)
class LocalNB(NaiveBayesEstimator):
    """Naive Bayes from reports that people perturb themselves, under local differential privacy.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy parameter of each person's report.
    bounds, categories, classes, alpha
        As of `FederatedNB`.
    reports : {"one", "all", "all_at_full_eps"}, default="one"
        Which questions a person answers; see `vertibayes_protocols.local_reports.ReportPlan`.
    oracle : {"auto", "de", "sue", "oue", "she", "the", "ss"}, default="auto"
        How categories are perturbed.
    bins : int or None, default=4
        Number of bins of equal width of each number; None fits Gaussians.
    approach : {1, 2, 3}, default=3
        How numbers are reported without bins.
    missing : bool, default=False
        Whether values may be missing, in `fit` and in `predict`: people then report that.

    Attributes
    ----------
    model_, columns_, classes_, n_features_in_, feature_names_in_
        As of `FederatedNB`.
    promise_ : Promise
        What a person who reports once is promised.
    plan_ : ReportPlan
        What people report.
    aggregator_ : Aggregator
        What was received.

    References
    ----------
    .. [1] E. Yilmaz, M. Al-Rubaie, J. M. Chang (2019). Locally Differentially Private Naive Bayes
       Classification.
    """

    reports: str = "one"
    oracle: str = "auto"
    bins: int | None = 4
    approach: int = 3
    missing: bool = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing
        return tags

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Have each person report a record, and fit to the reports.

        Parameters
        ----------
        X : DataFrame or array of shape (n, n_features)
            The features: one record per person.
        y : array of shape (n,)
            The classes.

        Raises
        ------
        ValueError
            As `FederatedNB.fit`; or if a value is missing and `missing` is False; or if there are
            so few people that nobody answers one of the questions.
        """
        return self._start(X, y, self.classes)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:  # noqa: N803
        """Add the reports of further people, each of whom reports once.

        Parameters
        ----------
        X : DataFrame or array of shape (n, n_features)
            One record for each new person.
        y : array of shape (n,)
            The classes.
        classes : sequence, optional
            At the first call, the classes, unless the parameter `classes` declares them.

        Raises
        ------
        ValueError
            As `fit`. The reports are kept if too few people have answered until now.
        """
        if not hasattr(self, "aggregator_"):
            return self._start(X, y, self.classes if classes is None else classes)
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes must be those of the first call, got {classes!r}")
        return self._report(self._more(X, y))

    def _start(self, X: Any, y: Any, classes: Any) -> Self:  # noqa: N803
        """Agree on what people report, and fit to the reports of the first people."""
        if self.epsilon is None:
            raise ValueError("epsilon must be a number above 0, got None: use FederatedNB(None)")
        data = self._read(X, y, classes, missing=self.missing)
        self.plan_ = ReportPlan(
            schema=self.columns_.schema,
            eps=self.epsilon,
            reports=self.reports,
            oracle=self.oracle,
            bins=self.bins if self.columns_.schema.numeric else None,
            approach=self.approach,
            missing=self.missing,
        )
        self.promise_ = self.plan_.promise.beside(*self._shown, "how many people report")
        self.aggregator_ = Aggregator(self.plan_)
        return self._report(data)

    def _report(self, data: LocalData) -> Self:
        """Add the reports of people, and fit to all reports."""
        self.aggregator_.update(Client(self.plan_).perturb_all(data))
        questions = self.aggregator_.tallies
        if unanswered := [name for name, tally in questions.items() if not tally.n]:
            raise ValueError(
                f"nobody has answered the question {unanswered[0]!r}: {self.aggregator_.people} "
                f"people answered one of {len(questions)} questions each; fit more people or fewer "
                "columns, or set reports='all'"
            )
        self.model_ = learn_reports(self.aggregator_, alpha=self.alpha)
        return self

    def _prepared(self, data: LocalData) -> LocalData:
        return self.plan_.prepare(data)
