"""Estimators: naive Bayes over nodes that add noise, by gossip, and from local reports.

Each is fitted in this process, for research and for data that lie in one place. Between machines,
sites answer queries (`protocols.queries`), each with a budget of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from protocols.accounting import LOCAL, Privacy
from protocols.local_reports import Aggregator, Client, ReportPlan
from protocols.promise import Promise
from protocols.site.statistics import LocalData
from vertibayes.naive_bayes.base import Floats, NaiveBayes, log_proba
from vertibayes.naive_bayes.federated import (
    FLOOR,
    aggregate,
    deal_records,
    exact_updates,
    local_updates,
    promised,
)
from vertibayes.naive_bayes.gossip import gossip, models_of
from vertibayes.naive_bayes.local import learn_reports
from vertibayes.sklearn.columns import Bounds, Categories, Columns

PRIVATE = "the number of records at each node and which classes there are"


class _NaiveBayes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What all estimators here have in common: columns, prediction, scikit-learn's attributes."""

    classes_: NDArray[Any]
    model_: NaiveBayes
    promise_: Promise | None
    epsilon: float | None
    bounds: Bounds
    categories: Categories

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = tags.input_tags.string = True
        if self.epsilon is not None:  # noise comes from the operating system
            tags.non_deterministic = tags.classifier_tags.poor_score = True
        return tags

    def predict_log_proba(self, X: Any) -> Floats:  # noqa: N803
        """Return ``log P(y | x)``: shape (n, n_classes), in nats; missing values tell nothing.

        Parameters
        ----------
        X : DataFrame or array of shape (n, n_features)
            Records with the columns of `fit`.

        Raises
        ------
        ValueError
            If the columns are others, or a category was never declared.
        """
        check_is_fitted(self)
        data = self._prepared(self.columns_.records(_frame(self, X, reset=False)))
        joint = self.model_.predict_joint_log_proba(data)
        largest = joint.max(axis=1, keepdims=True)
        joint = np.where(np.isneginf(largest), self.model_.class_log_prior_, joint)
        return log_proba(joint)

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Return ``P(y | x)``: shape (n, n_classes); as `predict_log_proba`."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the most probable classes: shape (n,); as `predict_log_proba`."""
        places = self.predict_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[places])

    def _prepared(self, data: LocalData) -> LocalData:
        """Return records as the model needs them."""
        return data

    def _read(self, X: Any, y: Any, *, missing: bool = False) -> LocalData:  # noqa: N803
        """Learn what the columns are, and return the records."""
        frame = _frame(self, X, reset=True)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        if len(y) != len(frame):
            raise ValueError(f"y must have one class per record, got {len(y)} for {len(frame)}")
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class, {self.classes_[0]!r}: it must have two or more")
        self.columns_ = Columns.of(
            frame,
            list(self.classes_),
            bounds=self.bounds,
            categories=self.categories,
            private=self.epsilon is not None,
            missing=missing,
        )
        return self.columns_.records(frame, y)


class FederatedNB(_NaiveBayes):
    """Naive Bayes from the noisy statistics of nodes that hold different records.

    Parameters
    ----------
    epsilon : float or None, default=1.0
        Privacy budget of each node's records; None is exact, and not private.
    nodes : int, default=10
        Number of nodes to which `fit` deals the records, unless it gets `groups`.
    bounds : (float, float) or dict, optional
        Declared bounds of all numbers, or of each column of numbers. Numbers are clipped to them.
    categories : dict, optional
        Declared values of each categorical column whose dtype does not declare them.
    noise : {"laplace", "gaussian", "polya"}, default="laplace"
        A whole copy of noise at each node; or shares of one copy over all nodes, which need a
        secure sum (`protocols.queries.Sums`) between machines.
    delta : float, default=1e-5
        Of Gaussian noise.
    sensitivity : {"declared", "paper"}, default="declared"
        "paper" takes it from the records, as published. It is not private.
    alpha : float, default=1.0
        Added to each count of a categorical feature.
    floor : float, default=1e-6
        What smaller counts and variances are raised to, if there is noise.
    random_state : int, RandomState or None, default=None
        Deals the records to the nodes. Noise comes from the operating system.

    Attributes
    ----------
    model_ : NaiveBayes
        The fitted model: `class_log_prior_`, `feature_log_prob_`, `theta_`, `var_`.
    updates_ : ndarray of shape (nodes, k)
        The statistics of each node, with its noise.
    promise_ : Promise or None
        What the noise promises; None without.
    classes_, n_features_in_, feature_names_in_
        As scikit-learn's estimators.

    References
    ----------
    .. [1] L. Giaretta, T. Marchioro, E. Markatos, S. Girdzijauskas (2023). Towards a Realistic
       Decentralized Naive Bayes with Differential Privacy. Algorithms 2 and 3.
    """

    def __init__(
        self,
        epsilon: float | None = 1.0,
        *,
        nodes: int = 10,
        bounds: Bounds = None,
        categories: Categories = None,
        noise: str = "laplace",
        delta: float = 1e-5,
        sensitivity: str = "declared",
        alpha: float = 1.0,
        floor: float = FLOOR,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.nodes = nodes
        self.bounds = bounds
        self.categories = categories
        self.noise = noise
        self.delta = delta
        self.sensitivity = sensitivity
        self.alpha = alpha
        self.floor = floor
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:  # noqa: N803
        """Fit to records.

        Parameters
        ----------
        X : DataFrame or array of shape (n, n_features)
            The features.
        y : array of shape (n,)
            The classes.
        groups : array of shape (n,), optional
            Which node holds each record; the records are dealt at random if None.

        Raises
        ------
        ValueError
            If a column has no declared bounds or values, a value was never declared, or a parameter
            is out of its range.
        """
        self._update(X, y, groups)
        floor = 0.0 if self.epsilon is None else self.floor
        schema = self.columns_.schema
        self.model_ = aggregate(schema, self.updates_, alpha=self.alpha, floor=floor)
        return self

    def _update(self, X: Any, y: Any, groups: Any) -> None:  # noqa: N803
        """Compute the nodes' local updates."""
        data, schema = self._read(X, y), self.columns_.schema
        held = _nodes(data, groups, self.nodes, check_random_state(self.random_state))
        self.promise_ = None
        if self.epsilon is None:
            self.updates_ = exact_updates(schema, held)
            return
        privacy = Privacy(eps=self.epsilon, noise=self.noise, delta=self.delta)
        kind = self.sensitivity
        self.updates_ = local_updates(schema, held, privacy, sensitivity=kind)
        promise = promised(schema, privacy, len(held), sensitivity=kind)
        self.promise_ = None if promise is None else promise.beside(PRIVATE)


class GossipNB(FederatedNB):
    """Naive Bayes by gossip among nodes, without an aggregator: the model of one of the nodes.

    Parameters
    ----------
    epsilon, nodes, bounds, categories, noise, delta, sensitivity, alpha, floor, random_state
        As of `FederatedNB`; the noise must be local: "laplace" or "gaussian".
    iterations : int, default=50
        How often each node sends its estimate to a random peer.
    neighbours : networkx.Graph or sequence of sequence of int, optional
        Who may send to whom; everybody to everybody if None.
    node : int, default=0
        Whose model `predict` uses.

    Attributes
    ----------
    models_ : list of NaiveBayes
        The model of each node.
    """

    def __init__(
        self,
        epsilon: float | None = 1.0,
        *,
        nodes: int = 10,
        bounds: Bounds = None,
        categories: Categories = None,
        noise: str = "laplace",
        delta: float = 1e-5,
        sensitivity: str = "declared",
        alpha: float = 1.0,
        floor: float = FLOOR,
        random_state: Any = None,
        iterations: int = 50,
        neighbours: Any = None,
        node: int = 0,
    ) -> None:
        super().__init__(
            epsilon,
            nodes=nodes,
            bounds=bounds,
            categories=categories,
            noise=noise,
            delta=delta,
            sensitivity=sensitivity,
            alpha=alpha,
            floor=floor,
            random_state=random_state,
        )
        self.iterations = iterations
        self.neighbours = neighbours
        self.node = node

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:  # noqa: N803
        """Fit to records; as `FederatedNB.fit`."""
        if self.epsilon is not None and self.noise not in LOCAL:
            raise ValueError(
                f"noise must be {' or '.join(LOCAL)} (each estimate may become known), got "
                f"{self.noise!r}"
            )
        if self.iterations < 1:
            raise ValueError(f"iterations must be at least 1, got {self.iterations}")
        self._update(X, y, groups)
        if not -len(self.updates_) <= self.node < len(self.updates_):
            raise ValueError(f"node must be below {len(self.updates_)}, got {self.node}")
        generator = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        *_, last = gossip(self.updates_, self.iterations, generator, neighbours=self.neighbours)
        schema = self.columns_.schema
        self.models_ = models_of(schema, last.estimates, alpha=self.alpha, floor=self.floor)
        self.model_ = self.models_[self.node]
        return self


class LocalNB(_NaiveBayes):
    """Naive Bayes from reports that people perturb themselves, under local differential privacy.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy parameter of each person's report.
    bounds, categories
        As of `FederatedNB`.
    reports : {"one", "all", "all_at_full_eps"}, default="one"
        Which questions a person answers; see `protocols.local_reports.ReportPlan`.
    oracle : {"auto", "de", "sue", "oue", "she", "the", "ss"}, default="auto"
        How categories are perturbed.
    bins : int or None, default=4
        Number of bins of equal width of each number; None fits Gaussians.
    approach : {1, 2, 3}, default=3
        How numbers are reported without bins.
    missing : bool, default=False
        Whether values may be missing: people then report that.
    alpha : float, default=1.0
        Added to each count of a categorical feature.

    Attributes
    ----------
    model_, promise_, classes_, n_features_in_, feature_names_in_
        As of `FederatedNB`.
    plan_ : ReportPlan
        What people report.
    aggregator_ : Aggregator
        What was received: further reports can be added.

    References
    ----------
    .. [1] E. Yilmaz, M. Al-Rubaie, J. M. Chang (2019). Locally Differentially Private Naive Bayes
       Classification.
    """

    epsilon: float

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Bounds = None,
        categories: Categories = None,
        reports: str = "one",
        oracle: str = "auto",
        bins: int | None = 4,
        approach: int = 3,
        missing: bool = False,
        alpha: float = 1.0,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.categories = categories
        self.reports = reports
        self.oracle = oracle
        self.bins = bins
        self.approach = approach
        self.missing = missing
        self.alpha = alpha

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing
        return tags

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Have each person report a record, and fit to the reports.

        Parameters
        ----------
        X : DataFrame or array of shape (n, n_features)
            The features.
        y : array of shape (n,)
            The classes.

        Raises
        ------
        ValueError
            As `FederatedNB.fit`; or if a value is missing and `missing` is False.
        """
        data = self._read(X, y, missing=self.missing)
        self.plan_ = ReportPlan(
            schema=self.columns_.schema,
            eps=self.epsilon,
            reports=self.reports,
            oracle=self.oracle,
            bins=self.bins if self.columns_.schema.numeric else None,
            approach=self.approach,
            missing=self.missing,
        )
        self.promise_ = self.plan_.promise
        self.aggregator_ = Aggregator(self.plan_)
        self.aggregator_.update(Client(self.plan_).perturb_all(data))
        self.model_ = learn_reports(self.aggregator_, alpha=self.alpha)
        return self

    def _prepared(self, data: LocalData) -> LocalData:
        return self.plan_.prepare(data)


def _frame(estimator: _NaiveBayes, X: Any, *, reset: bool) -> pd.DataFrame:  # noqa: N803
    """Return records as a data frame whose columns are those of `fit`."""
    if isinstance(X, pd.DataFrame):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if not len(X):
            raise ValueError("X must have one record or more, got 0")
        return X
    array = validate_data(estimator, X, reset=reset, dtype="numeric", ensure_all_finite="allow-nan")
    return pd.DataFrame(array, columns=[f"x{place}" for place in range(array.shape[1])])


def _nodes(
    data: LocalData, groups: Any, nodes: int, random: np.random.RandomState
) -> Sequence[LocalData]:
    """Return the records of each node."""
    if groups is not None:
        groups = np.asarray(groups)
        if groups.shape != (data.records,):
            raise ValueError(f"groups must be one node per record, got the shape {groups.shape}")
        return [data.rows(np.flatnonzero(groups == group)) for group in np.unique(groups)]
    if nodes < 1:
        raise ValueError(f"nodes must be at least 1, got {nodes}")
    generator = np.random.default_rng(random.randint(2**31))
    sizes = np.full(nodes, data.records // nodes)
    sizes[: data.records % nodes] += 1
    return deal_records(data, sizes, generator)
