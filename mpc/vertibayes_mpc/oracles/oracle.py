"""What frequency oracles have in common: checks, blocks of people, and the algebra of pure ones."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vertibayes_mpc.oracles.draws import Draws
from vertibayes_mpc.randomness import Randomness

MOST_VALUES = 1 << 24
MOST_EPS = 64  # a probability below 2^-64 is rounded up to it: a larger eps would change nothing
CELLS = 1 << 20  # of a block of people, whose bits fit into a cache
_DIGITS = Context(prec=80)
_BELOW = 1 - Decimal(10) ** -70  # more than the rounding of an exponential of 80 digits

Reports = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class FrequencyOracle(ABC):
    """A way in which people report one of `domain` values each, under local privacy.

    A ValueError says that `eps` is not a finite number above 0, or so small that probabilities of
    64 bits cannot express it, or that `domain` is out of its range; a TypeError, that it is not an
    integer.
    """

    name: ClassVar[str]
    report_dtype: ClassVar[type[np.generic]]

    eps: float  # of one report; above 0
    domain: int  # the values are 0 to domain - 1; from 2 to 2^24

    def __post_init__(self) -> None:
        if not (math.isfinite(self.eps) and self.eps > 0):
            raise ValueError(f"eps must be a finite number above 0, got {self.eps}")
        if isinstance(self.domain, bool) or not isinstance(self.domain, int | np.integer):
            raise TypeError(f"domain must be an integer, got {self.domain!r}")
        if not 2 <= self.domain <= MOST_VALUES:
            raise ValueError(f"domain must be from 2 to {MOST_VALUES} values, got {self.domain}")

    @property
    @abstractmethod
    def report_shape(self) -> tuple[int, ...]:
        """The shape of one report."""

    @property
    def report_bytes(self) -> int:
        """The number of bytes of one report."""
        return math.prod(self.report_shape) * np.dtype(self.report_dtype).itemsize

    def perturb(self, values: ArrayLike, randomness: Randomness | None = None) -> Reports:
        """Perturb the value of each person, from 0 to ``domain - 1``: the client's part.

        Of values of shape (n,), or a single value, it returns an array of n reports, of
        `report_shape` and `report_dtype`. The key of the draws comes from `randomness`: the
        operating system's by default. A ValueError names the place of a value that is not in the
        domain.
        """
        held = self._checked_values(values)
        draws = Draws(randomness)
        reports = np.empty((len(held), *self.report_shape), self.report_dtype)
        people = max(CELLS // self.domain, 1)
        for start in range(0, len(held), people):
            block = slice(start, start + people)
            reports[block] = self._perturb(held[block], draws)
        return reports

    def support(self, reports: Reports) -> NDArray[np.int64]:
        """Return how many reports support each value, shape (domain,): the aggregator's part.

        A ValueError says that one is not what `perturb` returns: anybody may have made it.
        """
        given = np.asarray(reports)
        dtype = np.dtype(self.report_dtype)
        if given.dtype != dtype or given.ndim == 0 or given.shape[1:] != self.report_shape:
            shape = ", ".join(["n", *map(str, self.report_shape)])
            raise ValueError(
                f"reports must have dtype {dtype} and shape ({shape}), "
                f"got {given.dtype} and {given.shape}"
            )
        refused = np.flatnonzero(~self._well_formed(given))
        if len(refused):
            raise ValueError(
                f"{len(refused)} of {len(given)} reports are not reports of {self.name} over "
                f"{self.domain} values, the first at place {refused[0]}"
            )
        return self._support(given)

    @abstractmethod
    def estimate(self, support: ArrayLike, n: int) -> NDArray[np.float64]:
        """Estimate how many of the people hold each value: shape (domain,).

        `support` is that of all `n` reports. The estimates are unbiased; they may be negative, and
        need not add up to `n`.
        """

    @abstractmethod
    def variance(self, n: int, counts: ArrayLike = 0.0) -> Any:
        """Return the variance of estimates of some true counts, in their shape, among n people."""

    @abstractmethod
    def _perturb(self, values: NDArray[np.int64], draws: Draws) -> Reports:
        """Perturb the values of a block of people."""

    @abstractmethod
    def _well_formed(self, reports: Reports) -> NDArray[np.bool_]:
        """Return which reports `perturb` can return: shape (n,)."""

    @abstractmethod
    def _support(self, reports: Reports) -> NDArray[np.int64]:
        """Add up reports that are well formed."""

    def _checked_values(self, values: ArrayLike) -> NDArray[np.int64]:
        """Refuse values outside the domain, without showing them: they are secret."""
        held = np.atleast_1d(np.asarray(values))
        if held.ndim != 1 or (held.size and held.dtype.kind not in "iu"):
            raise ValueError(
                f"values must be integers in one dimension, got {held.dtype} in {held.ndim}"
            )
        outside = np.flatnonzero((held < 0) | (held >= self.domain))
        if len(outside):
            raise ValueError(
                f"values must be from 0 to {self.domain - 1}; the one at place {outside[0]} is not"
            )
        return held.astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class PureOracle(FrequencyOracle):
    """An oracle whose reports support the own value with probability p, each other with q."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._p <= self._q:
            raise ValueError(f"eps must be larger for probabilities of 64 bits, got {self.eps}")

    @property
    @abstractmethod
    def exact(self) -> tuple[Fraction, Fraction]:
        """The probabilities p and q with which reports are drawn, exactly."""

    @cached_property
    def _p(self) -> Fraction:
        return self.exact[0]

    @cached_property
    def _q(self) -> Fraction:
        return self.exact[1]

    @property
    def p(self) -> float:
        """The probability that a report supports the person's own value."""
        return float(self._p)

    @property
    def q(self) -> float:
        """The probability that a report supports a given other value."""
        return float(self._q)

    def estimate(self, support: ArrayLike, n: int) -> NDArray[np.float64]:
        """Estimate counts: (support - n q) / (p - q); Wang et al. (2017), section 3."""
        above = np.asarray(support, np.float64) - float(n * self._q)
        return np.asarray(above / float(self._p - self._q))

    def variance(self, n: int, counts: ArrayLike = 0.0) -> Any:
        """Return n q (1-q) / (p-q)^2 + counts (1-p-q) / (p-q); Wang et al. (2017), section 3."""
        p, q = self._p, self._q
        rare, slope = float(q * (1 - q) / (p - q) ** 2), float((1 - p - q) / (p - q))
        spread = n * rare + np.asarray(counts, np.float64) * slope
        return spread if spread.ndim else float(spread)


def exp_below(exponent: Fraction) -> Fraction:
    """Return a rational number just below e^exponent, by a part in 10^70."""
    with localcontext(_DIGITS):
        power = (Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
        return Fraction(power * _BELOW)  # p rises, q falls with it: a lower one is safe


def exact_eps(eps: float) -> Fraction:
    """Return `eps` as a fraction, at most 64."""
    return min(Fraction(float(eps)), Fraction(MOST_EPS))


class Tally:
    """What the reports of one oracle add up to.

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
        """Add the reports of another tally, of the same oracle."""
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
