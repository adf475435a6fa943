"""Whole copies of discrete Laplace and Gaussian noise, by OpenDP's samplers; diluted copies."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.extras import load
from vertibayes_mpc.noise.integer_noise import (
    IntegerNoise,
    check_integer,
    check_open_unit,
    checked_count,
    log_moment_of_a_copy,
)
from vertibayes_mpc.randomness import Randomness, SystemRandomness

FEATURE = "contrib"  # of OpenDP, which its samplers need
SLACK = 1 + 2.0**-50  # more than the rounding of beta's logarithm and quotient


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplace(IntegerNoise):
    """One copy of Geom(alpha): Pr[X = k] = (alpha - 1) / (alpha + 1) alpha^-|k|.

    Notes
    -----
    OpenDP draws by exact rational arithmetic, from the operating system's generator; it cannot be
    seeded. Its scale is the smallest float that is not below Delta / eps.
    """

    @property
    def copies(self) -> float:
        """One."""
        return 1.0

    def __call__(self, count: int, /) -> NDArray[np.int64]:
        """Draw `count` copies: shape (count,), dtype int64."""
        count = checked_count(count)
        if not count:
            return np.zeros(0, np.int64)
        return np.array(measurement("laplace", _scale(self.rate))([0] * count), np.int64)

    def log_moment(self, t: float) -> float:
        """Return ln E exp(t X), for 0 < t < `rate`."""
        return log_moment_of_a_copy(float(self.rate), t)


@dataclass(frozen=True, kw_only=True)
class DilutedGeometric(IntegerNoise):
    """The beta-diluted Geom(alpha): a copy with probability beta, else 0.

    Parameters
    ----------
    eps, Delta
        As of `IntegerNoise`.
    delta : float
        The probability that the honest parties add no noise; between 0 and 1.
    gamma : float
        The least share of honest parties; above 0, at most 1.
    n : int
        The number of parties; where it changes, a lower bound that the party knows.
    randomness : Randomness, optional
        Where the coins come from; OpenDP draws the copies.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or gamma n is below 1: no party would be honest.
    TypeError
        If `n` or `Delta` is not an integer.

    Examples
    --------
    >>> noise = DilutedGeometric(eps=0.5, delta=1e-5, gamma=0.5, n=100)
    >>> round(noise.beta, 4), round(100 * noise.copies, 1)
    (0.2303, 23.0)
    """

    delta: float
    gamma: float
    n: int
    randomness: Randomness = field(default_factory=SystemRandomness, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_open_unit("delta", self.delta)
        check_integer("n", self.n)
        if not 0 < self.gamma <= 1:
            raise ValueError(f"gamma must be above 0 and at most 1, got {self.gamma}")
        if self.gamma * self.n * SLACK < 1:
            raise ValueError(f"gamma n must be at least 1 (a party), got {self.gamma} * {self.n}")

    @property
    def beta(self) -> float:
        """The probability of a copy, min(ln(1/delta) / (gamma n), 1); rounded up."""
        return min(-math.log(self.delta) / (self.gamma * self.n) * SLACK, 1.0)

    @property
    def copies(self) -> float:
        """The probability of a copy, beta."""
        return self.beta

    def __call__(self, count: int, /) -> NDArray[np.int64]:
        """Draw a party's noise for `count` counts: shape (count,), dtype int64."""
        count = checked_count(count)
        noise = np.zeros(count, np.int64)
        heads = self._heads(count)
        noise[heads] = DiscreteLaplace(eps=self.eps, Delta=self.Delta)(int(heads.sum()))
        return noise

    def _heads(self, count: int) -> NDArray[np.bool_]:
        """Toss coins; each is heads with probability beta, rounded up to a multiple of 2^-64."""
        draws = np.frombuffer(self.randomness.bytes(8 * count), "<u8")
        return draws <= np.uint64(self.last_heads)

    @property
    def last_heads(self) -> int:
        """The largest of the 64-bit draws that is heads."""
        return math.ceil(Fraction(self.beta) * 2**64) - 1

    def log_moment(self, t: float) -> float:
        """Return ln E exp(t X), for 0 < t < `rate`."""
        return math.log1p(self.beta * math.expm1(log_moment_of_a_copy(float(self.rate), t)))


def _scale(rate: Fraction) -> float:
    """Return the smallest float that is not below 1 / rate: at least the promised noise."""
    scale = float(1 / rate)
    return scale if Fraction(scale) * rate >= 1 else math.nextafter(scale, math.inf)


SCALES = 2.0**-2, 2.0**40  # of the scale: above, sums of noise might leave 64 bits
ABOVE = 1 + 2.0**-50  # more than the rounding of the scale


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussian:
    """Integers X with Pr[X = k] proportional to exp(-k^2 / (2 scale^2)).

    Parameters
    ----------
    rho : float
        Of zero-concentrated differential privacy (zCDP), of one count; above 0.
    Delta : int, default=1
        The most by which a neighbour changes the count.

    Raises
    ------
    ValueError
        If `rho` or `Delta` is out of its range.
    TypeError
        If `Delta` is not an integer.

    Notes
    -----
    A count with this noise is rho-zCDP for scale^2 = Delta^2 / (2 rho), and rho adds up over counts
    (Canonne, Kamath, Steinke 2020, Theorem 4).

    Examples
    --------
    >>> round(DiscreteGaussian(rho=0.02, Delta=3).scale, 9)
    15.0
    """

    rho: float
    Delta: int = 1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.rho) and self.rho > 0):
            raise ValueError(f"rho must be a finite number above 0, got {self.rho}")
        check_integer("Delta", self.Delta)
        if not SCALES[0] <= self.scale <= SCALES[1]:
            given = f"{self.Delta} / sqrt(2 * {self.rho})"
            raise ValueError(f"Delta / sqrt(2 rho) must be from 2**-2 to 2**40, got {given}")

    @property
    def scale(self) -> float:
        """The scale, Delta / sqrt(2 rho), rounded up: at least the promised noise."""
        return int(self.Delta) / math.sqrt(2 * self.rho) * ABOVE

    @property
    def copies(self) -> float:
        """One."""
        return 1.0

    @property
    def variance(self) -> float:
        """An upper bound of the variance, close from a scale of 1: the square of the scale."""
        return self.scale**2

    def __call__(self, count: int, /) -> NDArray[np.int64]:
        """Draw `count` copies: shape (count,), dtype int64."""
        count = checked_count(count)
        if not count:
            return np.zeros(0, np.int64)
        return np.array(measurement("gaussian", self.scale)([0] * count), np.int64)

    def bound(self, parties: int, tail: float) -> int:
        """Return a bound of the sum of so many copies, which is larger with a chance of `tail`.

        The distribution is sub-Gaussian with the parameter `scale`. Raise a ValueError if `parties`
        is below 1 or `tail` not between 0 and 1.
        """
        check_integer("parties", parties)
        check_open_unit("tail", tail)
        return math.ceil(self.scale * math.sqrt(2 * parties * (math.log(2) - math.log(tail)))) + 1


@cache
def measurement(kind: str, scale: float) -> Any:
    """Return OpenDP's sampler of "laplace" or "gaussian" noise for vectors of integers.

    The import takes a tenth of a second, and happens at the first draw. OpenDP requires a global
    consent, which is withdrawn afterwards unless the program had given it before.
    """
    measurements, mod = load("opendp.measurements", "noise"), load("opendp.mod", "noise")
    consented = FEATURE in mod.GLOBAL_FEATURES
    mod.enable_features(FEATURE)
    try:
        return _made(measurements, kind, scale)
    finally:
        if not consented:
            mod.disable_features(FEATURE)


def _made(measurements: Any, kind: str, scale: float) -> Any:
    domains, metrics = load("opendp.domains", "noise"), load("opendp.metrics", "noise")
    vectors = domains.vector_domain(domains.atom_domain(T="i64"))
    if kind == "laplace":
        return measurements.make_laplace(vectors, metrics.l1_distance(T="i64"), scale=scale)
    return measurements.make_gaussian(vectors, metrics.l2_distance(T="f64"), scale=scale)
