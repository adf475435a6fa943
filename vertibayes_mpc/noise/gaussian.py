"""Whole copies of discrete Gaussian noise, by OpenDP's sampler."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.noise.integer_noise import (
    check_integer,
    check_open_unit,
    checked_count,
    measurement,
)

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

        The distribution is sub-Gaussian with the parameter `scale`.

        Raises
        ------
        ValueError
            If `parties` is below 1 or `tail` not between 0 and 1.
        """
        check_integer("parties", parties)
        check_open_unit("tail", tail)
        return math.ceil(self.scale * math.sqrt(2 * parties * (math.log(2) - math.log(tail)))) + 1
