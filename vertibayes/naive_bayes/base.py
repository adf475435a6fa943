"""Naive Bayes from additive statistics, whoever has added them up.

What a class says of each feature is counted (categorical features) or measured by its first two
moments (numbers); sums of these over records, parties or batches are all that a model needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.counting import Counter
from vertibayes.dag import Structure
from vertibayes.network import Network
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import (
    GRID_BITS,
    HALF_BITS,
    Counts,
    LocalData,
    apart,
    exact_sum,
)
from vertibayes_protocols.variables import Variable

Floats: TypeAlias = NDArray[np.float64]
Statistics: TypeAlias = NDArray[Any]  # integers, or float64 where sums are estimated

FLOOR = 1e-6  # of counts and variances with noise, as in Giaretta et al. (2023)
LEAST_VARIANCE = 1e-6  # of numbers whose half range is 1; more harms where bounds are wide
EVEN = 1 / 3  # the variance of numbers that are spread evenly there


def log_proba(joint: Floats) -> Floats:
    """Return ``ln P(y | x)`` from ``ln P(x, y)``: shape (n, classes)."""
    scaled = joint - joint.max(axis=1, keepdims=True)
    return np.asarray(scaled - np.log(np.exp(scaled).sum(axis=1, keepdims=True)))


class NaiveBayes:
    """Naive Bayes classifier for categorical features and numbers.

    Parameters
    ----------
    schema : Schema
        The class and the features.
    alpha : float, default=1.0
        Added to each count of a categorical feature.
    floor : float, default=0.0
        What a smaller count of a class or a feature is raised to; and, as a share of the square of
        half the range, what a smaller variance of a number is raised to. Noise can leave counts
        and variances below zero: Giaretta et al. (2023) take 1e-6. Variances are raised to 1e-6 in
        any case: a class of equal numbers would rule out all others.

    Attributes
    ----------
    sums_ : ndarray, dtype int64 or float64
        The statistics that the model is of; further ones can be added. Of dtype object, with exact
        integers, if one exceeds int64.
    classes_ : ndarray of shape (n_classes,), dtype str
    class_count_ : ndarray of shape (n_classes,)
    class_log_prior_ : ndarray of shape (n_classes,)
        ``log P(y)``, in nats; minus infinity for a class without records.
    feature_log_prob_ : dict of str to ndarray of shape (n_classes, n_states)
        ``log P(x | y)`` of each categorical feature, in nats, as scikit-learn's CategoricalNB.
    theta_, var_ : dict of str to ndarray of shape (n_classes,)
        Mean and variance of each number within each class, in its own unit.
    cov_ : ndarray of shape (n_classes, n_numbers, n_numbers) or None
        All covariances of the numbers within each class, in the order of the schema, of a model
        that calibration has made so: quadratic discriminant analysis. A record in which a number
        is missing is then predicted without the numbers.
    swamped_ : tuple of str
        The numbers whose variance in some class is below its standard error under the noise.

    Raises
    ------
    ValueError
        If `alpha` or `floor` is negative or not finite.
    """

    cov_: Floats | None = None

    def __init__(self, schema: Schema, *, alpha: float = 1.0, floor: float = 0.0) -> None:
        for name, value in (("alpha", alpha), ("floor", floor)):
            if not 0 <= value < np.inf:
                raise ValueError(f"{name} = {value}: it must be a finite number of at least 0")
        self.schema, self.alpha, self.floor = schema, alpha, floor
        self.classes_ = np.array(schema.target.states)

    def fit_sums(self, sums: Statistics, errors: Floats | None = None) -> Self:
        """Fit to sums of `Schema.measure`, noisy or not: smaller counts than `floor` become it.

        Parameters
        ----------
        sums : ndarray of shape (k,), dtype int64 or float64
            The statistics; of dtype object if an integer exceeds int64.
        errors : ndarray of shape (k,), dtype float64, optional
            The standard error of each sum under its noise. A variance of numbers below its own
            standard error is raised to it, though not above that of numbers that are spread evenly:
            noise often carries variances to zero or below, and a class with a variance near zero
            rules out, or takes, almost every record.

        Raises
        ------
        ValueError
            If there are too few or too many sums, one is not finite, or no class has a record left.
        """
        numbers = sums.astype(np.float64) if sums.dtype == object else sums
        if not np.isfinite(numbers).all():
            raise ValueError("the sums must be finite numbers, got nan or infinity")
        arrays = apart(self.schema.statistics, self.schema.variables, numbers)
        classes, *tables = (np.maximum(table, self.floor).astype(float) for table in arrays[0])
        if not classes.sum():
            raise ValueError("no class has a record: there is nothing to learn, or noise alone")
        self.sums_ = sums.copy()
        self.class_count_ = classes
        with np.errstate(divide="ignore"):
            self.class_log_prior_ = np.log(classes) - np.log(classes.sum())
        named = zip(self.schema.categorical, tables, strict=True)
        self.feature_log_prob_ = {name: self._log_prob(table) for name, table in named}
        uncertain = np.zeros(len(sums)) if errors is None else errors
        moments = [apart(self.schema.statistics, self.schema.variables, uncertain), arrays]
        self._fit_moments(*(found[1] if self.schema.numeric else [] for found in moments))
        return self

    def add_sums(self, sums: Statistics) -> Self:
        """Add the sums of further records: the model of all at once."""
        return self.fit_sums(exact_sum([self.sums_, sums]) if hasattr(self, "sums_") else sums)

    def fit(self, data: LocalData) -> Self:
        """Fit to records that are at hand."""
        return self.fit_sums(self.schema.measure(data))

    def fit_counter(self, counter: Counter) -> Self:
        """Fit categorical features to a counter's tables: one call.

        Raises
        ------
        ValueError
            If a feature is a number, or a variable is unknown.
        """
        if self.schema.numeric:
            raise ValueError(f"{self.schema.numeric[0]} is a number: a counter has tables alone")
        (counts,) = self.schema.statistics
        assert isinstance(counts, Counts)  # no numbers
        tables = counter.tables(counts.families)
        return self.fit_sums(np.concatenate([table.reshape(-1) for table in tables]))

    def _log_prob(self, table: Floats) -> Floats:
        """Return log P(state | class), shape (classes, states); uniform where nothing is."""
        counts = table.T + self.alpha
        totals = counts.sum(axis=1, keepdims=True)
        even = np.full_like(counts, 1 / counts.shape[1])
        share = np.divide(counts, totals, out=even, where=totals > 0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(share))

    def _fit_moments(self, errors: Sequence[Floats], moments: Sequence[Statistics]) -> None:
        self.theta_: dict[str, Floats] = {}
        self.var_: dict[str, Floats] = {}
        self.swamped_: tuple[str, ...] = ()
        columns = zip(self.schema.numerics.items(), moments, errors, strict=True)
        for (name, numeric), sums, of_sums in columns:
            centred = self.schema.centred
            mean, variance = self._centred(sums, of_sums) if centred else self._uncentred(sums)
            self.swamped_ += (name,) if centred and self._is_swamped(sums, of_sums) else ()
            half = numeric.high - numeric.middle
            self.theta_[name] = numeric.middle + mean * half
            self.var_[name] = np.maximum(variance, self.floor) * half**2

    def _uncentred(self, sums: Statistics) -> tuple[Floats, Floats]:
        """Return mean and variance of `Moments`, with the bounds at -1 and 1."""
        count, total, squares = sums
        known = np.where(count > 0, count, 1)  # estimates of gossip may be below 1
        mean = np.where(count > 0, total / known, 2.0 ** (GRID_BITS - 1))
        spread = np.where(count > 0, squares / known - mean**2, 4.0**GRID_BITS / 12)
        half = 2.0 ** (GRID_BITS - 1)
        return mean / half - 1, np.maximum(spread / half**2, LEAST_VARIANCE)

    def _centred(self, sums: Statistics, errors: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of centred `Moments`, with the bounds at -1 and 1.

        Noise can carry a mean beyond the bounds, or a variance beyond that of the bounds: both are
        cut to what numbers between the bounds can have. A class without records is spread evenly.
        """
        mean, variance, error = self._moments(sums, errors)
        least = np.clip(error, LEAST_VARIANCE, EVEN)
        there = self.class_count_ > 0.5
        spread = np.where(there, np.clip(variance, least, 1.0), EVEN)
        return np.where(there, mean, 0.0), spread

    def _is_swamped(self, sums: Statistics, errors: Floats) -> bool:
        """Whether a variance is below its standard error."""
        _, variance, error = self._moments(sums, errors)
        return bool((variance < error).any())

    def _moments(self, sums: Statistics, errors: Floats) -> tuple[Floats, Floats, Floats]:
        """Return mean, variance, and the standard error of the variance under the noise."""
        known = np.maximum(self.class_count_, 1.0)
        places = 2.0 ** (HALF_BITS * np.arange(1, 3))[:, None]
        total, squares = np.asarray(sums) / places / known
        of_total, of_squares = errors / places / known
        mean = np.clip(total, -1.0, 1.0)
        return mean, squares - mean**2, np.hypot(of_squares, 2 * mean * of_total)

    def predict_joint_log_proba(self, data: LocalData) -> Floats:
        """Return ``log P(x, y)`` of each record: shape (n, n_classes), missing values left out.

        Raises
        ------
        ValueError
            If the model is not fitted, or the data do not have a feature in the model's states.
        """
        if not hasattr(self, "class_log_prior_"):
            raise ValueError("not fitted: call fit, fit_sums or fit_counter first")
        total = np.tile(self.class_log_prior_, (data.records, 1))
        for name, log_prob in self.feature_log_prob_.items():
            self._check(data, name)
            padded = np.vstack([log_prob.T, np.zeros(len(self.classes_))])
            total += padded[np.asarray(data.codes[name], np.intp)]
        for name in self.theta_:
            self._check(data, name)
        if self.cov_ is not None:
            return total + self._joint_density(data, self.cov_)
        for name, theta in self.theta_.items():
            values = data.numbers[name][:, None]
            variance = self.var_[name]
            density = -0.5 * (np.log(2 * np.pi * variance) + (values - theta) ** 2 / variance)
            total += np.where(np.isnan(values), 0.0, density)
        return total

    def _joint_density(self, data: LocalData, covariances: Floats) -> Floats:
        """Return the log density of all numbers in each class; 0 where a number is missing."""
        numbers = np.stack([data.numbers[name] for name in self.theta_], axis=1)
        apart = numbers[:, None] - np.stack([*self.theta_.values()], axis=1)
        distance = np.einsum("nci,cij,ncj->nc", apart, np.linalg.inv(covariances), apart)
        constant = np.linalg.slogdet(2 * np.pi * covariances).logabsdet
        return np.where(np.isnan(distance), 0.0, -0.5 * (constant + distance))

    def predict_log_proba(self, data: LocalData) -> Floats:
        """Return ``log P(y | x)`` of each record: shape (n, n_classes).

        A record that is impossible in every class has the prior.
        """
        joint = self.predict_joint_log_proba(data)
        largest = joint.max(axis=1, keepdims=True)
        return log_proba(np.where(np.isneginf(largest), self.class_log_prior_, joint))

    def predict_proba(self, data: LocalData) -> Floats:
        """Return ``P(y | x)`` of each record: shape (n, n_classes)."""
        return np.asarray(np.exp(self.predict_log_proba(data)))

    def predict(self, data: LocalData) -> NDArray[np.str_]:
        """Return the most probable class, the first of equals: shape (n,)."""
        best: NDArray[np.str_] = self.classes_[self.predict_log_proba(data).argmax(axis=1)]
        return best

    def score(self, data: LocalData) -> float:
        """Return the share of records with a known class that are classified rightly.

        Raises
        ------
        ValueError
            If no record has a known class, or as `predict_joint_log_proba`.
        """
        classes = data.codes[self.schema.target.name]
        known = classes < len(self.classes_)
        if not known.any():
            raise ValueError("no record has a known class")
        right = self.predict(data)[known] == self.classes_[classes[known]]
        return float(right.mean())

    def _check(self, data: LocalData, name: str) -> None:
        own, feature = data.variables.get(name), self.schema.features[name]
        if own is not None and isinstance(feature, Variable):
            fits = own.states == feature.states
        else:
            fits = own is not None or name in data.numerics
        if not fits:
            raise ValueError(f"the data have no feature {name!r} in the model's states")

    def to_network(self) -> Network:
        """Return the model as a Bayesian network, the class the parent of all: for BIF and others.

        Raises
        ------
        ValueError
            If a feature is a number.
        """
        if self.schema.numeric:
            raise ValueError(f"{self.schema.numeric[0]} is a number: networks here are discrete")
        target = self.schema.target.name
        cpts = {n: np.exp(table.T) for n, table in self.feature_log_prob_.items()}
        cpts[target] = np.exp(self.class_log_prior_)
        cpts = {name: cpt / cpt.sum(axis=0) for name, cpt in cpts.items()}
        variables = {n: Variable(n, v.states) for n, v in self.schema.variables.items()}
        return Network(self.structure, variables, cpts)

    @property
    def structure(self) -> Structure:
        """The class as the only parent of all features, numbers too."""
        target = self.schema.target.name
        return Structure({target: (), **dict.fromkeys(self.schema.features, (target,))})
