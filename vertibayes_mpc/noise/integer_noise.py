"""What all noise on counts has in common: its parameters, and a bound on its sums."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

SCALES = Fraction(1, 2**9), 2**40  # of Delta / eps: above, sums of noise might leave 64 bits
EXPONENTS = 256  # tried in a Chernoff bound; each gives a valid bound


class Noise(Protocol):
    """Draws noise: from a number of counts to as many integers."""

    def __call__(self, count: int, /) -> NDArray[np.int64]:
        """Draw noise for `count` counts: shape (count,), dtype int64."""
        ...


def no_noise(count: int, /) -> NDArray[np.int64]:
    """Return noise for whoever publishes exact counts: zeros of shape (count,), dtype int64."""
    return np.zeros(count, np.int64)


@dataclass(frozen=True, kw_only=True)
class IntegerNoise(ABC):
    """Noise made of copies, or shares, of the discrete Laplace distribution Geom(alpha).

    Parameters
    ----------
    eps : float
        The privacy parameter of one count; above 0.
    Delta : int, default=1
        The most by which a neighbour changes a count: 1 protects a record, the largest number of
        records of a party protects the party.

    Raises
    ------
    ValueError
        If `eps` or `Delta` is out of its range.
    TypeError
        If `Delta` is not an integer.
    """

    eps: float
    Delta: int = 1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.eps) and self.eps > 0):
            raise ValueError(f"eps must be a finite number above 0, got {self.eps}")
        check_integer("Delta", self.Delta)
        if not SCALES[0] <= 1 / self.rate <= SCALES[1]:
            given = f"{self.Delta} / {self.eps}"
            raise ValueError(f"Delta / eps must be from 2**-9 to 2**40, got {given}")

    @property
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
        """Draw a party's noise for `count` counts: shape (count,), dtype int64."""

    @abstractmethod
    def log_moment(self, t: float) -> float:
        """Return ln E exp(t X) of a party's noise X, for 0 < t < `rate`."""

    def bound(self, parties: int, tail: float) -> int:
        """Return B with Pr[|X_1 + .. + X_parties| > B] <= tail, by Chernoff's bound: for slots.

        Of q counts, one is larger with at most q times this probability. Raise a ValueError if
        `parties` is below 1 or `tail` not between 0 and 1.
        """
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
