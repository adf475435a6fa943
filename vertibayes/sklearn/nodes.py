"""Estimators over nodes that hold different records and add noise: federated, and by gossip.

All nodes are in this process, for research and for data that lie in one place. Between machines,
sites answer queries (`vertibayes_protocols.queries`), and each site has a budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state, check_scalar, column_or_1d
from sklearn.utils.validation import check_is_fitted

from vertibayes.naive_bayes.base import FLOOR, Statistics
from vertibayes.naive_bayes.federated import (
    about_zero,
    aggregate,
    exact_updates,
    local_updates,
    promised,
)
from vertibayes.naive_bayes.gossip import gossip, models_of
from vertibayes.sklearn.base import NaiveBayesEstimator
from vertibayes_protocols.accounting import Accounting, Privacy
from vertibayes_protocols.gossip import ADDS_UP_TO
from vertibayes_protocols.promise import LOCAL, Promise
from vertibayes_protocols.site.statistics import LocalData


@dataclass(eq=False, repr=False, kw_only=True)
class _OverNodes(NaiveBayesEstimator):
    """Local updates of nodes that hold different records."""

    nodes: int = 10
    noise: str = "laplace"
    delta: float = 1e-5
    sensitivity: str = "declared"
    floor: float = FLOOR
    random_state: Any = None

    def _update(self, X: Any, y: Any, groups: Any) -> np.random.Generator:  # noqa: N803
        """Compute the nodes' updates and their promise; return a generator for what follows."""
        state = check_random_state(self.random_state).randint(2**31 - 1)
        dealing, following = np.random.default_rng(state).spawn(2)
        data = self._read(X, y, self.classes)
        if self.epsilon is not None and self.sensitivity == "paper":
            schema, (data,) = about_zero(self.columns_.schema, [data])
            self.columns_ = replace(self.columns_, schema=schema)
        held = self._dealt(data, dealing) if groups is None else _grouped(data, groups)
        self.updates_, self._fitted_with = self._updates(held), self._asked
        if groups is not None:
            self._shown += ("which nodes there are",)
        self.promise_ = self._promised(len(held))
        return following

    def _dealt(self, data: LocalData, generator: np.random.Generator) -> list[LocalData]:
        """Deal records to nodes, each by itself: no record decides where others go."""
        check_scalar(self.nodes, "nodes", Integral, min_val=1)
        places = generator.integers(self.nodes, size=data.records)
        return [data.rows(np.flatnonzero(places == node)) for node in range(self.nodes)]

    def _updates(self, held: Sequence[LocalData]) -> Statistics:
        """Return the updates of nodes; of shares of noise, the sum, as each has too little."""
        schema = self.columns_.schema
        if self.epsilon is None:
            return exact_updates(schema, held)
        updates = local_updates(schema, held, self._privacy, sensitivity=self.sensitivity)
        return updates if self._privacy.is_local else updates.sum(axis=0, keepdims=True)

    def _promised(self, nodes: int) -> Promise | None:
        if self.epsilon is None:
            return None
        schema, kind = self.columns_.schema, self.sensitivity
        promise = promised(schema, self._privacy, nodes, sensitivity=kind)
        return None if promise is None else promise.beside(*self._shown)

    @property
    def _asked(self) -> dict[str, Any]:
        """What the promise of all updates depends on."""
        names = "epsilon", "noise", "delta", "sensitivity"
        return {name: getattr(self, name) for name in names}

    @property
    def _privacy(self) -> Privacy:
        assert self.epsilon is not None, "without noise there is no privacy to describe"
        return Privacy(eps=self.epsilon, noise=self.noise, delta=self.delta)

    @property
    def _smoothing(self) -> dict[str, Any]:
        """The arguments of the fit that depend on the noise: each row of the updates has a copy."""
        if self.epsilon is None or self.sensitivity == "paper":
            return {"alpha": self.alpha, "floor": 0.0 if self.epsilon is None else self.floor}
        errors = Accounting(self.columns_.schema, self._privacy).errors(len(self.updates_))
        return {"alpha": self.alpha, "floor": self.floor, "errors": errors}


@dataclass(eq=False, repr=False, kw_only=True)
class FederatedNB(_OverNodes):
    """Naive Bayes from the noisy statistics of nodes that hold different records.

    Parameters
    ----------
    epsilon : float or None, default=1.0
        Privacy budget of each node's records; None is exact, and not private.
    bounds : (float, float) or dict, optional
        Declared bounds of all numbers, or of each column of numbers. Numbers are clipped to them.
    categories : dict, optional
        Declared values of each categorical column whose dtype does not declare them.
    classes : sequence, optional
        Declared classes. If None, they are those of `y`, and `promise_` says that this is shown.
    alpha : float, default=1.0
        Added to each count of a categorical feature.
    nodes : int, default=10
        Number of nodes to which `fit` deals the records, unless it gets `groups`.
    noise : {"laplace", "gaussian", "polya"}, default="laplace"
        A whole copy of noise at each node; or shares of one copy over all nodes, which need a
        secure sum (`vertibayes_protocols.queries.Sums`) between machines.
    delta : float, default=1e-5
        Of Gaussian noise.
    sensitivity : {"declared", "paper"}, default="declared"
        "paper" takes it from the records, as published. It is not private.
    floor : float, default=1e-6
        What smaller counts and variances are raised to, if there is noise.
    random_state : int, RandomState or None, default=None
        Deals the records to the nodes. Noise comes from the operating system. If you publish
        `updates_`, keep the number secret: the promise assumes that nobody knows who went where.

    Attributes
    ----------
    model_ : NaiveBayes
        The fitted model: `class_log_prior_`, `feature_log_prob_`, `theta_`, `var_`.
    updates_ : ndarray of shape (nodes, k), dtype int64
        The statistics of each node, with its noise. One row, the sum, if nodes add shares.
    promise_ : Promise or None
        What the noise promises; None without noise, or if the noise is not private.
    columns_ : Columns
        The columns as features.
    classes_, n_features_in_, feature_names_in_
        As scikit-learn's estimators.

    References
    ----------
    .. [1] L. Giaretta, T. Marchioro, E. Markatos, S. Girdzijauskas (2023). Towards a Realistic
       Decentralized Naive Bayes with Differential Privacy. Algorithms 2 and 3.

    Examples
    --------
    >>> X, y = [[20.0], [31.0], [64.0], [70.0]] * 25, ["well", "well", "ill", "ill"] * 25
    >>> model = FederatedNB(epsilon=100.0, nodes=2, bounds=(0, 100), classes=["ill", "well"])
    >>> model.fit(X, y).predict([[25.0], [66.0]]).tolist()
    ['well', 'ill']
    """

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:  # noqa: N803
        """Fit to records.

        Parameters
        ----------
        X : DataFrame or array of shape (n, n_features)
            The features; the columns of an array are named x0, x1 and so on.
        y : array of shape (n,)
            The classes.
        groups : array of shape (n,), optional
            Which node holds each record, the nodes in sorted order; if None, each record is dealt
            to a random node.

        Raises
        ------
        ValueError
            If a column has no declared bounds or values, a value was never declared, or a parameter
            is out of its range.
        """
        self._update(X, y, groups)
        return self._aggregated()

    def add_node(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Add the noisy update of a new node: its records alone spend their epsilon.

        Parameters
        ----------
        X : DataFrame or array of shape (n, n_features)
            The records of the new node, which no earlier node holds.
        y : array of shape (n,)
            Their classes.

        Raises
        ------
        ValueError
            If nodes add shares of noise, if epsilon, noise, delta or sensitivity has changed since
            `fit`, or as `fit`.
        """
        check_is_fitted(self, "model_")
        if changed := [name for name, old in self._fitted_with.items() if old != self._asked[name]]:
            name = changed[0]  # the promise is of all updates, the old ones included
            raise ValueError(
                f"{name} must be that of fit, {self._fitted_with[name]!r}, to add a node; got "
                f"{self._asked[name]!r}"
            )
        if self.epsilon is not None and not self._privacy.is_local:
            raise ValueError(
                f"noise must be {' or '.join(LOCAL)} to add a node, got {self.noise!r}: the update "
                "of a single node has only a share of this noise"
            )
        self.updates_ = np.vstack([self.updates_, self._updates([self._more(X, y)])])
        self.promise_ = self._promised(len(self.updates_))
        return self._aggregated()

    def _aggregated(self) -> Self:
        schema = self.columns_.schema
        self.model_ = aggregate(schema, self.updates_, **self._smoothing)
        return self


@dataclass(eq=False, repr=False, kw_only=True)
class GossipNB(_OverNodes):
    """Naive Bayes by gossip among nodes, without an aggregator: the model of one of the nodes.

    Parameters
    ----------
    epsilon, bounds, categories, classes, alpha, nodes, delta, sensitivity, floor
        As of `FederatedNB`.
    noise : {"laplace", "gaussian"}, default="laplace"
        A whole copy of noise at each node.
    random_state : int, RandomState or None, default=None
        Deals the records and draws who sends to whom; as of `FederatedNB`.
    iterations : int, default=50
        How often each node sends its estimate to a random peer.
    neighbours : networkx.Graph or sequence of sequence of int, optional
        Who may send to whom; everybody to everybody if None.
    node : int, default=0
        Whose model `predict` uses.
    adds_up_to : int, default=100
        Up to which an estimate's weight adds up; then it grows by 1 in each iteration. 1 is
        Algorithm 4 of [1]_ as printed, which needs about twice as many iterations.

    Attributes
    ----------
    models_ : list of NaiveBayes
        The model of each node.
    model_, updates_, promise_, columns_, classes_, n_features_in_, feature_names_in_
        As of `FederatedNB`.

    References
    ----------
    .. [1] L. Giaretta, T. Marchioro, E. Markatos, S. Girdzijauskas (2023). Towards a Realistic
       Decentralized Naive Bayes with Differential Privacy. Algorithms 4 and 5.
    """

    iterations: int = 50
    neighbours: Any = None
    node: int = 0
    adds_up_to: int = ADDS_UP_TO

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:  # noqa: N803
        """Fit to records; as `FederatedNB.fit`."""
        if self.epsilon is not None and not self._privacy.is_local:
            raise ValueError(
                f"noise must be {' or '.join(LOCAL)} (each estimate may become known), got "
                f"{self.noise!r}"
            )
        for name in ("iterations", "adds_up_to"):
            check_scalar(getattr(self, name), name, Integral, min_val=1)
        generator = self._update(X, y, groups)
        check_scalar(self.node, "node", Integral, min_val=0, max_val=len(self.updates_) - 1)
        options = {"neighbours": self.neighbours, "adds_up_to": self.adds_up_to}
        *_, last = gossip(self.updates_, self.iterations, generator, **options)
        schema = self.columns_.schema
        self.models_ = models_of(schema, last.estimates, **self._smoothing)
        self.model_ = self.models_[self.node]
        return self


def _grouped(data: LocalData, groups: Any) -> list[LocalData]:
    """Return the records of each node, the nodes in sorted order."""
    groups = column_or_1d(groups)
    if len(groups) != data.records or pd.isna(groups).any():
        raise ValueError(
            f"groups must be one node for each of the {data.records} records, got {len(groups)}"
            f"{' with missing values' if pd.isna(groups).any() else ''}"
        )
    return [data.rows(np.flatnonzero(groups == group)) for group in np.unique(groups)]
