"""Whole copies of noise on counts: discrete Laplace and Gaussian by OpenDP's samplers, diluted.

OpenDP draws by exact rational arithmetic, from the operating system's generator; it cannot be
seeded.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.extras import load
from vertibayes_mpc.randomness import Randomness, SystemRandomness

SCALES = Fraction(1, 2**9), 2**40  # of Delta / eps: above, sums of noise might leave 64 bits
EXPONENTS = 256  # tried in a Chernoff bound; each gives a valid bound


class Noise(Protocol):
    """Draws noise: from a number of counts to as many integers."""

    def __call__(self, count: int, /) -> NDArray[np.int64]:
        """Draw noise for `count` counts: shape (count,)."""
        ...


def no_noise(count: int, /) -> NDArray[np.int64]:
    """Return zeros of shape (count,), for whoever publishes exact counts."""
    return np.zeros(count, np.int64)


@dataclass(frozen=True, kw_only=True)
class IntegerNoise(ABC):
    """Noise made of copies, or shares, of the discrete Laplace distribution Geom(alpha).

    With Delta = 1 it protects a record; with the largest number of records of a party, the party. A
    ValueError or TypeError says which parameter is out of its range, or not an integer.
    """

    eps: float  # of one count; above 0
    Delta: int = 1  # the most by which a neighbour changes a count

    def __post_init__(self) -> None:
        if not (math.isfinite(self.eps) and self.eps > 0):
            raise ValueError(f"eps must be a finite number above 0, got {self.eps}")
        check_integer("Delta", self.Delta)
        if not SCALES[0] <= 1 / self.rate <= SCALES[1]:
            given = f"{self.Delta} / {self.eps}"
            raise ValueError(f"Delta / eps must be from 2**-9 to 2**40, got {given}")

    @cached_property
    def rate(self) -> Fraction:
        """The exponent eps / Delta = ln(alpha), exactly."""
        return Fraction(float(self.eps)) / int(self.Delta)

    @property
    def alpha(self) -> float:
        """The ratio exp(eps / Delta) of the masses of neighbouring integers."""
        return math.exp(self.rate)

    @property
    @abstractmethod
    def copies(self) -> float:
        """How many copies of Geom(alpha) a party adds, in expectation."""

    @property
    def variance(self) -> float:
        """The variance of a party's noise: `copies` times 2 alpha / (alpha - 1)^2."""
        return self.copies / (2 * math.sinh(self.rate / 2) ** 2)

    @abstractmethod
    def __call__(self, count: int, /) -> NDArray[np.int64]:
        """Draw a party's noise for `count` counts: shape (count,)."""

    @abstractmethod
    def log_moment(self, t: float) -> float:
        """Return ln E exp(t X) of a party's noise X, for 0 < t < `rate`."""

    def bound(self, parties: int, tail: float) -> int:
        """Return B with Pr[|X_1 + .. + X_parties| > B] <= tail per count, by Chernoff's bound."""
        check_integer("parties", parties)
        check_open_unit("tail", tail)
        excess = math.log(2) - math.log(tail)
        exponents = (float(self.rate) * i / EXPONENTS for i in range(1, EXPONENTS))
        least = min((parties * self.log_moment(t) + excess) / t for t in exponents)
        return math.ceil(least) + 1  # rounding is far below the slack of Chernoff's bound


def log_moment_of_a_copy(rate: float, t: float) -> float:
    """Return ln E exp(t X) for X of Geom(exp(rate)), 0 < t < rate."""
    tails = -math.expm1(t - rate), -math.expm1(-t - rate)
    return 2 * math.log(-math.expm1(-rate)) - math.log(tails[0]) - math.log(tails[1])


def check_integer(name: str, value: object) -> None:
    """Refuse a value that is not an integer of at least 1."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")


def check_open_unit(name: str, value: float) -> None:
    """Refuse a value that does not lie strictly between 0 and 1."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value}")


def checked_count(count: int) -> int:
    """Return a number of counts; refuse a negative one."""
    if count < 0:
        raise ValueError(f"the number of counts must be at least 0, got {count}")
    return operator.index(count)


FEATURE = "contrib"  # of OpenDP, which its samplers need
SLACK = 1 + 2.0**-50  # more than the rounding of beta's logarithm and quotient


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplace(IntegerNoise):
    """One copy of Geom(alpha): Pr[X = k] = (alpha - 1) / (alpha + 1) alpha^-|k|."""

    @property
    def copies(self) -> float:
        """One."""
        return 1.0

    def __call__(self, count: int, /) -> NDArray[np.int64]:
        """Draw `count` copies."""
        return _drawn("laplace", _scale(self.rate), count)

    def log_moment(self, t: float) -> float:
        """Return ln E exp(t X), for 0 < t < `rate`."""
        return log_moment_of_a_copy(float(self.rate), t)


@dataclass(frozen=True, kw_only=True)
class DilutedGeometric(IntegerNoise):
    """The beta-diluted Geom(alpha): a copy with probability beta, else 0.

    >>> noise = DilutedGeometric(eps=0.5, delta=1e-5, gamma=0.5, n=100)
    >>> round(noise.beta, 4), round(100 * noise.copies, 1)
    (0.2303, 23.0)
    """

    delta: float  # the probability that the honest parties add no noise; between 0 and 1
    gamma: float  # the least share of honest parties; gamma n is at least 1, a party
    n: int  # the number of parties; where it changes, a lower bound that the party knows
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


GAUSSIAN_SCALES = 2.0**-2, 2.0**40  # of the scale: above, sums of noise might leave 64 bits
ABOVE = 1 + 2.0**-50  # more than the rounding of the scale


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussian:
    """Integers X with Pr[X = k] proportional to exp(-k^2 / (2 scale^2)).

    A count with this noise is rho-zCDP for scale^2 = Delta^2 / (2 rho), and rho adds up over counts
    (Canonne, Kamath, Steinke 2020, Theorem 4). Errors are as of `IntegerNoise`.

    >>> round(DiscreteGaussian(rho=0.02, Delta=3).scale, 9)
    15.0
    """

    rho: float  # of zero-concentrated differential privacy, of one count; above 0
    Delta: int = 1  # the most by which a neighbour changes the count

    def __post_init__(self) -> None:
        if not (math.isfinite(self.rho) and self.rho > 0):
            raise ValueError(f"rho must be a finite number above 0, got {self.rho}")
        check_integer("Delta", self.Delta)
        if not GAUSSIAN_SCALES[0] <= self.scale <= GAUSSIAN_SCALES[1]:
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
        """Draw `count` copies: shape (count,)."""
        return _drawn("gaussian", self.scale, count)

    def bound(self, parties: int, tail: float) -> int:
        """Return B as `IntegerNoise.bound`: the noise is sub-Gaussian with parameter `scale`."""
        check_integer("parties", parties)
        check_open_unit("tail", tail)
        return math.ceil(self.scale * math.sqrt(2 * parties * (math.log(2) - math.log(tail)))) + 1


def _drawn(kind: str, scale: float, count: int) -> NDArray[np.int64]:
    count = checked_count(count)
    return np.array(measurement(kind, scale)([0] * count) if count else [], np.int64)


@cache
def measurement(kind: str, scale: float) -> Any:
    """Return OpenDP's sampler of "laplace" or "gaussian" noise for vectors of integers.

    The import takes a tenth of a second, and happens at the first draw. OpenDP requires a global
    consent, which is withdrawn afterwards unless the program had given it before.
    """
    measurements, mod = load("opendp.measurements", "noise"), load("opendp.mod", "noise")
    consented = FEATURE in mod.GLOBAL_FEATURES
    mod.enable_features(FEATURE)
    domains, metrics = load("opendp.domains", "noise"), load("opendp.metrics", "noise")
    try:
        vectors = domains.vector_domain(domains.atom_domain(T="i64"))
        if kind == "laplace":
            return measurements.make_laplace(vectors, metrics.l1_distance(T="i64"), scale=scale)
        return measurements.make_gaussian(vectors, metrics.l2_distance(T="f64"), scale=scale)
    finally:
        if not consented:
            mod.disable_features(FEATURE)
