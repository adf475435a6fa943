"""Intervals of standardized risks: the delta method on the counts, which are multinomial.

The variance of a risk is the gradient of the g-formula by the counts, times the variance of a
count: its own, and that of a rule's error. Each share within a stratum has one half added to both
of its counts, so that a stratum of few records is not taken as certain; and as its variance is an
estimate, the quantile is Student's, with the degrees of freedom of Satterthwaite. Risks have
Wilson's interval for as many records as give their variance. The limits of a difference and of a
ratio follow from those of the two risks and their correlation (Zou and Donner), so that a risk of 0
has a difference and a ratio with limits.

References
----------
Satterthwaite, F. E. (1946). An approximate distribution of estimates of variance components.
Biometrics Bulletin 2, 110-114. doi:10.2307/3002019
Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference. Journal
of the American Statistical Association 22, 209-212. doi:10.2307/2276774
Zou, G. Y. and Donner, A. (2008). Construction of confidence limits about effect measures: a general
approach. Statistics in Medicine 27, 1693-1702. doi:10.1002/sim.3095
"""

from __future__ import annotations

from math import inf, prod, sqrt
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.inference.algebra import Array

Two: TypeAlias = tuple[float, float]
Cells: TypeAlias = NDArray[Any]

LEVEL = 0.95
NORMAL = 1.959963984540054  # standard deviations on each side of an interval of this level


class Interval(NamedTuple):
    """An interval of 95 %, or a range."""

    low: float
    high: float


class Spread(NamedTuple):
    """How far chance moves risks: axis 0 has the states of the outcome, the others exposures."""

    covariances: Array
    shares: Array  # the risks, of the shares with one half added
    fourths: Array  # of each risk: the squared variance of each stratum over its records, summed

    def risk(self, outcome: int, exposure: int, risk: float) -> Interval:
        """Return the interval of a risk."""
        from scipy.special import stdtrit

        share = self.shares[outcome, exposure]
        variance = self.covariances[outcome, exposure, exposure]
        freedom = variance**2 / self.fourths[outcome, exposure]
        quantile = float(stdtrit(max(freedom, 1.0), (1 + LEVEL) / 2))
        return wilson(risk, float(share * (1 - share) / variance), quantile)

    def pair(self, outcome: int, exposures: tuple[int, int], risks: Two) -> Pair | None:
        """Return two risks with their limits; None if chance cannot move them apart."""
        one, other = exposures
        covariance = self.covariances[outcome]
        variances = covariance[one, one], covariance[other, other]
        if one == other or covariance[one, other] >= max(variances):
            return None
        limits = self.risk(outcome, one, risks[0]), self.risk(outcome, other, risks[1])
        correlation = covariance[one, other] / sqrt(variances[0] * variances[1])
        return Pair(*risks, *limits, float(correlation))

    def of_equal(self, exposures: int) -> Spread:
        """Return the spread of as many exposures, whose risks are one number."""
        squares = self.covariances.repeat(exposures, axis=1).repeat(exposures, axis=2)
        return Spread(squares, *(part.repeat(exposures, axis=1) for part in self[1:]))


class Pair(NamedTuple):
    """Two risks, the interval of each, and their correlation."""

    one: float
    other: float
    of_one: Interval
    of_other: Interval
    correlation: float

    @property
    def difference(self) -> Interval:
        """The interval of the difference."""
        difference = self.one - self.other
        below, above = (_apart(*each, self.correlation) for each in self._distances)
        return Interval(max(difference - below, -1.0), min(difference + above, 1.0))

    @property
    def ratio(self) -> Interval:
        """The interval of the ratio, which may have no upper limit."""
        below, above = self._distances
        lowest = self._root(self.of_one.low, self.of_other.high, prod(below), -1)
        highest = self._root(self.of_one.high, self.of_other.low, prod(above), 1)
        return Interval(lowest, highest if self.of_other.low > 0 else inf)

    @property
    def _distances(self) -> tuple[Two, Two]:
        """How far the limits are from the risks: for the lower limits, and for the upper ones."""
        (low, high), (least, most) = self.of_one, self.of_other
        return (self.one - low, most - self.other), (high - self.one, self.other - least)

    def _root(self, limit: float, other_limit: float, distances: float, sign: int) -> float:
        """Return where the interval of one risk minus a multiple of the other reaches 0."""
        middle = self.one * self.other - self.correlation * distances
        product = limit * (2 * self.one - limit)
        divisor = other_limit * (2 * self.other - other_limit)
        root = sqrt(max(middle**2 - product * divisor, 0.0))
        return (middle + sign * root) / divisor if divisor else 0.0


def _apart(one: float, other: float, correlation: float) -> float:
    return sqrt(max(one**2 + other**2 - 2 * correlation * one * other, 0.0))


class Strata(NamedTuple):
    """The cells of strata that have every exposure."""

    cells: Cells  # of outcome, exposure and stratum
    exposed: Cells  # their sum over the outcome

    @property
    def weights(self) -> Array:
        """The share of each stratum."""
        return np.asarray(self.exposed.sum(axis=0) / self.exposed.sum())

    @property
    def risks(self) -> Array:
        """P(outcome | do(exposure)), a row for each exposure; nan for one without records."""
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = np.clip(self.cells / self.exposed, 0, 1)
        return np.asarray((shares @ self.weights).T)

    def spread(self, error: float) -> Spread:
        """Return the spread of the risks; each cell has an error of this variance besides."""
        with np.errstate(invalid="ignore", divide="ignore"):
            parts = [self._spread(cells, error) for cells in self.cells]
        return Spread(*(np.array(part) for part in zip(*parts, strict=True)))

    def _spread(self, cells: Cells, error: float) -> tuple[Array, Array, Array]:
        exposed, weights, total = self.exposed, self.weights, self.exposed.sum()
        shares = np.asarray((np.clip(cells, 0, exposed) + 0.5) / (exposed + 1.0))
        within = weights**2 * shares * (1 - shares) / exposed
        risks = np.asarray(shares @ weights)
        apart = np.asarray(shares - risks[:, None])
        covariance = np.asarray(np.diag(within.sum(axis=1)) + (apart * weights) @ apart.T / total)
        if error:
            covariance += self._of_error(shares, apart / total) * error
        return covariance, risks, np.asarray((within**2 / exposed).sum(axis=1))

    def _of_error(self, shares: Array, by_stratum: Array) -> Array:
        """Return the covariance that an error of variance 1 in each cell adds."""
        states, exposures = len(self.cells), len(self.exposed)
        own, place = self.weights / self.exposed, np.arange(exposures)
        # The gradient by the cells of the outcome's state, and by those of each other state.
        event, other = (np.repeat(by_stratum[:, None, :], exposures, axis=1) for _ in range(2))
        event[place, place] += own * (1 - shares)
        other[place, place] -= own * shares
        event, other = event.reshape(exposures, -1), other.reshape(exposures, -1)
        return np.asarray(event @ event.T + (states - 1) * other @ other.T)


def wilson(share: float, records: float, quantile: float = NORMAL) -> Interval:
    """Return Wilson's interval of a share of so many independent records.

    >>> [round(end, 4) for end in wilson(0.25, 100, 1.96)]
    [0.1755, 0.343]
    """
    square = quantile**2 / records
    middle = (share + square / 2) / (1 + square)
    reach = sqrt(share * (1 - share) * square + square**2 / 4) / (1 + square)
    return Interval(min(max(middle - reach, 0.0), share), max(min(middle + reach, 1.0), share))
