"""Intervals of standardized risks: the delta method on the counts, which are multinomial.

The variance of a risk is the gradient of the g-formula by the counts, times the variance of a
count: its own, and that of a rule's error. Each share within a stratum has one half added to both
of its counts, so that a stratum of few records is not taken as certain; and as its variance is an
estimate, the quantile is Student's, with the degrees of freedom of Satterthwaite. Risks have
Wilson's interval for as many records as give their variance, differences are normal, and ratios are
normal in their logarithm.

References
----------
Satterthwaite, F. E. (1946). An approximate distribution of estimates of variance components.
Biometrics Bulletin 2, 110-114. doi:10.2307/3002019
Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference. Journal
of the American Statistical Association 22, 209-212. doi:10.2307/2276774
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.inference.algebra import Array

Interval: TypeAlias = tuple[float, float]
Cells: TypeAlias = NDArray[Any]

LEVEL = 0.95


class Spread(NamedTuple):
    """How far chance moves the risks: axis 0 has the states of the outcome, the others exposures.

    A combination of risks is weights by exposure.
    """

    covariances: Array
    shares: Array  # the risks, of the shares with one half added
    fourths: Array  # of each risk: the squared variance of each stratum over its records, summed

    def risk(self, outcome: int, exposure: int, risk: float) -> Interval:
        """Return the interval of a risk."""
        share = self.shares[outcome, exposure]
        variance = self.covariances[outcome, exposure, exposure]
        return wilson(
            risk, float(share * (1 - share) / variance), self._quantile(outcome, {exposure: 1.0})
        )

    def reach(self, outcome: int, weights: Mapping[int, float]) -> float:
        """Return by how much the interval of a combination exceeds its estimate, either way."""
        variance = self._variance(outcome, weights)
        return self._quantile(outcome, weights) * sqrt(variance) if variance > 0 else 0.0

    def _variance(self, outcome: int, weights: Mapping[int, float]) -> float:
        if not weights:
            return 0.0
        by = np.array(list(weights.values()))
        return float(by @ self.covariances[outcome][np.ix_([*weights], [*weights])] @ by)

    def _quantile(self, outcome: int, weights: Mapping[int, float]) -> float:
        from scipy.special import stdtrit

        fourth = sum(weight**4 * self.fourths[outcome, x] for x, weight in weights.items())
        freedom = self._variance(outcome, weights) ** 2 / fourth
        return float(stdtrit(max(freedom, 1.0), (1 + LEVEL) / 2))

    def of_equal(self, exposures: int) -> Spread:
        """Return the spread of as many exposures, whose risks are one number."""
        squares = self.covariances.repeat(exposures, axis=1).repeat(exposures, axis=2)
        return Spread(squares, *(part.repeat(exposures, axis=1) for part in self[1:]))


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


def wilson(share: float, records: float, quantile: float) -> Interval:
    """Return Wilson's interval of a share of so many records.

    >>> [round(end, 4) for end in wilson(0.25, 100, 1.96)]
    [0.1755, 0.343]
    """
    square = quantile**2 / records
    middle = (share + square / 2) / (1 + square)
    reach = sqrt(share * (1 - share) * square + square**2 / 4) / (1 + square)
    return max(middle - reach, 0.0), min(middle + reach, 1.0)
