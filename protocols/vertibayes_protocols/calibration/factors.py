"""The factors of a generative classifier: what each says of a record, as columns.

    log P(x, y) = sum over factors of  columns(x) . weights(statistics)[y]  + what y does not change

The statistics of a factor are sums over records, one row for each class: ``s(x, y)`` adds the
columns of x to the row of y. `weights` is the closed-form map theta of the statistics to parameters
(maximum likelihood), written as natural parameters, so that a posterior is one matrix product.

Local updates subtract as well as add, so that a count can fall to zero or below, and a variance
too. `weights` maps such statistics as if they were the least valid ones (`LEAST`); what travels and
is averaged stays as it is, because the equivalence of CRC and RC needs sums that nobody has bent.
What is the least depends on sums over the classes alone, which no update changes. It is 0 for
counts and variances to which theta adds something (`alpha`, `smoothing`): without calibration,
theta is scikit-learn's.

References
----------
.. [1] A. Pérez, C. Echegoyen, G. Santafé (2025). Decentralized Federated Learning of Probabilistic
   Generative Classifiers. Appendix A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable

Floats: TypeAlias = NDArray[np.float64]

LEAST = 1e-4  # of a count, as a share of its mean over the classes; of a variance, of that of all
TINY = 1e-12  # of all records: the count of a configuration that no record has


class Weights(NamedTuple):
    """Natural parameters, and how many statistics were not valid."""

    values: Floats
    repairs: NDArray[np.int64]  # counts, and variances, that were raised to the least valid ones


class Factor(Protocol):
    """One factor of P(x, y)."""

    @property
    def width(self) -> int:
        """The number of columns."""
        ...

    def columns(self, data: LocalData) -> Floats:
        """Return the columns of records: shape (n, width); zeros where a value is missing."""
        ...

    def uniform(self, classes: int, size: float) -> Floats:
        """Return the statistics of `size` records that prefer no class: shape (classes, width)."""
        ...

    def weights(self, statistics: Floats) -> Weights:
        """Return theta(s) as natural parameters, for statistics of shape (..., classes, width)."""
        ...


@dataclass(frozen=True)
class Prior:
    """P(y)."""

    width = 1

    def columns(self, data: LocalData) -> Floats:
        """Return ones."""
        return np.ones((data.records, 1))

    def uniform(self, classes: int, size: float) -> Floats:
        """Return as many records of each class."""
        return np.full((classes, 1), size / classes)

    def weights(self, statistics: Floats) -> Weights:
        """Return log P(y)."""
        counts, repairs = _positive(statistics)
        return Weights(np.log(counts) - np.log(counts.sum(axis=-2, keepdims=True)), repairs)


@dataclass(frozen=True)
class ClassGiven:
    """P(y | parents of the class)."""

    parents: tuple[Variable, ...]
    alpha: float = 0.0  # added to each count by theta; see `network_classifier`

    @property
    def width(self) -> int:
        """The number of configurations of the parents."""
        return prod(len(variable.states) for variable in self.parents)

    def columns(self, data: LocalData) -> Floats:
        """Return which configuration each record has."""
        return _indicators(self.parents, data)

    def uniform(self, classes: int, size: float) -> Floats:
        """Return as many records of each class and configuration."""
        return np.full((classes, self.width), size / (classes * self.width))

    def weights(self, statistics: Floats) -> Weights:
        """Return log P(y | configuration)."""
        counts, repairs = _positive(statistics, self.alpha)
        return Weights(np.log(counts) - np.log(counts.sum(axis=-2, keepdims=True)), repairs)


@dataclass(frozen=True)
class Categorical:
    """P(child | y, further parents)."""

    child: Variable
    parents: tuple[Variable, ...] = ()  # the parents beside the class
    alpha: float = 0.0  # added to each count by theta; see `network_classifier`

    @property
    def width(self) -> int:
        """The number of configurations of parents and child, the child's states last."""
        return prod(len(variable.states) for variable in (*self.parents, self.child))

    def columns(self, data: LocalData) -> Floats:
        """Return which configuration each record has."""
        return _indicators((*self.parents, self.child), data)

    def uniform(self, classes: int, size: float) -> Floats:
        """Return as many records of each class and configuration."""
        return np.full((classes, self.width), size / (classes * self.width))

    def weights(self, statistics: Floats) -> Weights:
        """Return log P(child | y, configuration of the parents)."""
        counts, repairs = _positive(statistics, self.alpha)
        tables = counts.reshape(*counts.shape[:-1], -1, len(self.child.states))
        logs = np.log(tables) - np.log(tables.sum(axis=-1, keepdims=True))
        return Weights(logs.reshape(counts.shape), repairs)


@dataclass(frozen=True)
class Gaussian:
    """The normal density of a number given y."""

    numeric: Numeric  # the column and its bounds; numbers beyond a bound count as the bound
    # Numbers are measured as ``z = (x - centre) / spread``: the same at all nodes.
    centre: float
    spread: float
    smoothing: float = 0.0

    width = 3  # how many numbers are known, their sum and the sum of their squares

    def columns(self, data: LocalData) -> Floats:
        """Return 1, z and z**2."""
        if self.numeric.name not in data.numbers:
            raise DataError(f"column of numbers not found: {self.numeric.name!r}")
        values = data.numbers[self.numeric.name]
        known = ~np.isnan(values)
        within = np.clip(values, self.numeric.low, self.numeric.high)
        z = np.where(known, (within - self.centre) / self.spread, 0.0)
        return np.stack([known, z, z * z], axis=1)

    def uniform(self, classes: int, size: float) -> Floats:
        """Return moments of mean 0 and variance 1, in units of `spread`."""
        return np.tile(np.array([1.0, 0.0, 1.0]) * size / classes, (classes, 1))

    def weights(self, statistics: Floats) -> Weights:
        """Return log N(z; mean, variance) as the weights of 1, z and z**2."""
        mean, variance, repairs = self.moments(statistics)
        constant = -0.5 * (np.log(2 * np.pi * variance) + mean**2 / variance)
        return Weights(np.stack([constant, mean / variance, -0.5 / variance], axis=-1), repairs)

    def moments(self, statistics: Floats) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """Return mean and variance of z in each class, each (..., classes), and the repairs."""
        counts, of_counts = _positive(statistics[..., :1])
        count, total, squares = counts[..., 0], statistics[..., 1], statistics[..., 2]
        mean = total / count
        variance = squares / count - mean**2
        least = 0.0 if self.smoothing else _least(statistics, statistics[..., 2])[..., None]
        repairs = of_counts + (variance < least).sum(axis=-1)
        return mean, np.maximum(variance, least) + self.smoothing, repairs


@dataclass(frozen=True)
class JointGaussian:
    """The joint normal density of several numbers given y, with all covariances of each class.

    With no other feature the classifier is quadratic discriminant analysis. A record in which one
    of the numbers is missing is left out of the statistics, and the numbers say nothing of it.
    """

    numbers: tuple[Gaussian, ...]  # how each number is measured

    @property
    def width(self) -> int:
        """How many records are known; the sums of the numbers, and of the products of two."""
        return 1 + len(self.numbers) + len(self.pairs[0])

    @property
    def pairs(self) -> NDArray[np.int64]:
        """The two numbers of each product: shape (2, number of products)."""
        return np.array(np.triu_indices(len(self.numbers)))

    def columns(self, data: LocalData) -> Floats:
        """Return 1, z and the products of each two numbers."""
        known, z, _ = np.stack([number.columns(data) for number in self.numbers]).transpose(2, 1, 0)
        complete = known.all(axis=1, keepdims=True)
        z = z * complete
        return np.hstack([complete, z, z[:, self.pairs].prod(axis=1)])

    def uniform(self, classes: int, size: float) -> Floats:
        """Return moments of mean 0, variance 1 and covariance 0, in units of the spreads."""
        row = np.concatenate([[1.0], np.zeros(len(self.numbers)), np.equal(*self.pairs)])
        return np.tile(row * size / classes, (classes, 1))

    def weights(self, statistics: Floats) -> Weights:
        """Return log N(z; mean, covariance) as the weights of 1, z and the products."""
        mean, variances, axes, repairs = self._axes(statistics)
        precision = (axes / variances[..., None, :]) @ np.swapaxes(axes, -1, -2)
        linear = (precision @ mean[..., None])[..., 0]
        constant = np.log(2 * np.pi * variances).sum(axis=-1) + (linear * mean).sum(axis=-1)
        products = np.where(np.equal(*self.pairs), -0.5, -1.0) * precision[..., *self.pairs]
        values = np.concatenate([-0.5 * constant[..., None], linear, products], axis=-1)
        return Weights(values, repairs)

    def moments(self, statistics: Floats) -> tuple[Floats, Floats]:
        """Return means of z, (..., classes, d), and covariances, (..., classes, d, d)."""
        mean, variances, axes, _ = self._axes(statistics)
        roots = axes * np.sqrt(variances)[..., None, :]
        found = roots @ np.swapaxes(roots, -1, -2)
        return mean, (found + np.swapaxes(found, -1, -2)) / 2  # symmetric to the last digit

    def _axes(self, statistics: Floats) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
        """Return means, variances along the principal axes, these axes, and the repairs."""
        count = len(self.numbers)
        counts, of_counts = _positive(statistics[..., :1])
        mean, products = np.split(statistics[..., 1:] / counts, [count], axis=-1)
        one, other = self.pairs
        squares = np.empty((*mean.shape, count))
        squares[..., one, other] = squares[..., other, one] = products
        variances, axes = np.linalg.eigh(squares - mean[..., :, None] * mean[..., None, :])
        own = statistics[..., 1 + count :][..., one == other].mean(axis=-1)
        least = _least(statistics, own)[..., None, None]
        repairs = of_counts + (variances < least).sum(axis=(-2, -1))
        return mean, np.maximum(variances, least), axes, repairs


def _positive(counts: Floats, alpha: float = 0.0) -> tuple[Floats, NDArray[np.int64]]:
    """Return counts of shape (..., classes, width) that are positive, and how many were not."""
    if alpha:
        return np.maximum(counts, 0.0) + alpha, (counts < 0).sum(axis=(-2, -1))
    share = counts.sum(axis=-2, keepdims=True) / counts.shape[-2]
    least = np.maximum(LEAST * share, TINY * share.sum(axis=-1, keepdims=True))
    raised = np.maximum(counts, np.maximum(least, np.finfo(float).tiny))
    repairs = ((counts < least) & (least > 0)).sum(axis=(-2, -1))
    return raised, np.asarray(repairs, np.int64)


def _least(statistics: Floats, squares: Floats) -> Floats:
    """Return the least variance, which follows from the mean of the squares of all classes."""
    mean = squares.sum(axis=-1) / np.maximum(statistics[..., 0].sum(axis=-1), TINY)
    return np.asarray(LEAST * np.maximum(mean, TINY))


def _indicators(variables: Sequence[Variable], data: LocalData) -> Floats:
    """Return one column for each configuration of variables; zeros where one is missing."""
    for variable in variables:
        own = data.variables.get(variable.name)
        if own is None or own.states != variable.states:
            raise DataError(f"the data do not have {variable.name!r} in the declared states")
    shape = tuple(len(variable.states) for variable in variables)
    codes = np.array([data.codes[variable.name] for variable in variables], np.int64)
    known = np.flatnonzero((codes < np.array(shape)[:, None]).all(axis=0))
    columns = np.zeros((data.records, prod(shape)))
    columns[known, np.ravel_multi_index(tuple(codes[:, known]), shape)] = 1.0
    return columns
