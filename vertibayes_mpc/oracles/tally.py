"""The aggregator's side of an oracle: sums of reports that stream in, and what they estimate."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.oracles.oracle import FrequencyOracle, Reports


class Tally:
    """What the reports of one oracle add up to.

    Parameters
    ----------
    oracle : FrequencyOracle
        The oracle of all reports.

    Attributes
    ----------
    oracle : FrequencyOracle
        The oracle of all reports.
    n : int
        The number of reports.
    support : ndarray of shape (domain,), dtype int64
        How many reports support each value.

    Examples
    --------
    >>> from vertibayes_mpc.oracles import DirectEncoding
    >>> tally = Tally(DirectEncoding(eps=1.0, domain=2))
    >>> tally.update(np.array([0, 0, 0, 1], np.uint32))
    >>> tally.n, tally.estimate().round(2).tolist()
    (4, [4.16, -0.16])
    """

    def __init__(self, oracle: FrequencyOracle) -> None:
        self.oracle = oracle
        self.n = 0
        self.support = np.zeros(oracle.domain, np.int64)

    def update(self, reports: Reports) -> None:
        """Add reports; if one is refused (a ValueError), none is added."""
        self.support += self.oracle.support(reports)
        self.n += len(reports)

    def merge(self, other: Tally) -> None:
        """Add the reports of another tally; raise a ValueError if it is of another oracle."""
        if other.oracle != self.oracle:
            raise ValueError(f"tallies must have one oracle, got {self.oracle} and {other.oracle}")
        self.support += other.support
        self.n += other.n

    def estimate(self) -> NDArray[np.float64]:
        """Estimate how many of the people hold each value: shape (domain,)."""
        return self.oracle.estimate(self.support, self.n)

    def interval(self, level: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return low and high ends, shape (domain,), of confidence intervals of the true counts.

        An interval has all counts c between 0 and n with (estimate - c)^2 <= z^2 variance(c), for
        the quantile z of the normal distribution: a score interval (Wilson 1927). It contains the
        count of one value with the probability `level`, between 0 and 1. It accounts for the noise
        alone, and not for the choice of the people who report.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level}")
        z2 = NormalDist().inv_cdf((1 + level) / 2) ** 2
        rare = self.oracle.variance(self.n)
        slope = self.oracle.variance(0, 1.0)  # the variance of a count c is rare + slope c
        estimate = self.estimate()
        reach = np.sqrt(np.maximum(z2 * (rare + slope * estimate + z2 * slope**2 / 4), 0))
        centre = estimate + z2 * slope / 2
        return np.clip(centre - reach, 0, self.n), np.clip(centre + reach, 0, self.n)
