"""Shares of discrete Laplace noise: what each of n parties adds so that the sum is one copy.

Geom(alpha) is infinitely divisible: it is the difference of two geometric numbers, each a sum of
Polya (negative binomial) numbers NB(1/n, p), p = 1/alpha, and a Polya number is a Poisson number of
logarithmic ones. So a party's noise for a whole vector is a list of *events*. Their number is
Poisson with the mean 2 count lambda / n, lambda = -ln(1 - p). Each event has a uniform place and
sign, and a size k with probability p^k / (k lambda). The events of n parties together are those of
one copy.

The samplers have no floating point: comparisons of integers decide, on draws that are 2^-128 from
uniform.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.integers import STATISTICAL_BITS, uniform_below
from vertibayes_mpc.noise.copies import (
    IntegerNoise,
    check_integer,
    checked_count,
    log_moment_of_a_copy,
)
from vertibayes_mpc.randomness import Randomness, SystemRandomness

DIGITS = Context(prec=80, Emin=MIN_EMIN, Emax=MAX_EMAX)  # 2^-128 is 4e-39


def bernoulli(numerator: int, denominator: int, randomness: Randomness) -> bool:
    """Return True with probability ``numerator / denominator``."""
    return uniform_below(denominator, randomness) < numerator


def bernoulli_exp(numerator: int, denominator: int, randomness: Randomness) -> bool:
    """Return True with probability ``exp(-numerator / denominator)``: Canonne et al., alg. 1."""
    while numerator > denominator:
        if not bernoulli_exp(1, 1, randomness):
            return False
        numerator -= denominator
    k = 1
    while bernoulli(numerator, denominator * k, randomness):
        k += 1
    return k % 2 == 1


def logarithmic(rate: Fraction, randomness: Randomness) -> int:
    """Draw k >= 1 with probability proportional to ``exp(-rate k) / k``.

    The method is rejection, in two or three trials whatever the rate. Let T = 2^J with rate (T - 1)
    >= 1. A proposal draws its block v with probability proportional to exp(-v). In block 0, k has
    the probability 2^-j / J, for 2^j <= k < 2^(j+1), j < J; in another, k - v T is uniform below T.
    The proposal is kept with exp(-rate (k - 1) + v) / k over J times this probability, by two coins
    whose probabilities are at most 1 by the choice of T.
    """
    a, b = rate.numerator, rate.denominator
    doublings = (-(-b // a)).bit_length()  # the least J with (2^J - 1) >= 1 / rate
    block = 1 << doublings
    while True:
        v = 0
        while bernoulli_exp(1, 1, randomness):
            v += 1
        if v:
            k = v * block + uniform_below(block, randomness)
            kept = bernoulli(block, k * doublings, randomness)
        else:
            start = 1 << uniform_below(doublings, randomness)
            k = start + uniform_below(start, randomness)
            kept = bernoulli(start, k, randomness)
        if kept and bernoulli_exp(a * (k - 1) - b * v, b, randomness):
            return k


def poisson(mean: Decimal, randomness: Randomness) -> int:
    """Draw a Poisson number by inversion of 128 bits: each step is off by 2^-128 at most."""
    with localcontext(DIGITS):
        draw = int.from_bytes(randomness.bytes(STATISTICAL_BITS // 8), "big")
        k, term = 0, _chance_of_none(mean) * 2**STATISTICAL_BITS
        below = term
        while below <= draw:
            k += 1
            term = term * mean / k
            below += term
    return k


@lru_cache(maxsize=256)
def _chance_of_none(mean: Decimal) -> Decimal:
    with localcontext(DIGITS):
        return (-mean).exp()


@dataclass(frozen=True, kw_only=True)
class PolyaShare(IntegerNoise):
    """A share of Geom(alpha): G - G', with G and G' of NB(1/n, 1/alpha).

    There is no floating point: sizes use rational arithmetic, the number of events the inversion of
    128 bits. For vectors of up to 100,000 counts, draws are at most 2^-100 from the distribution
    stated: each event takes about 20 draws that are 2^-128 from uniform, and moves one step of the
    inversion by 2^-128. So the guarantee has a delta of 2^-100, not of 0.

    `n` is the number of parties that are trusted to add their share and to keep it secret. If these
    are a part gamma of all, their shares are one copy, and all shares 1 / gamma copies.
    """

    n: int
    randomness: Randomness = field(default_factory=SystemRandomness, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("n", self.n)

    @property
    def copies(self) -> float:
        """The part 1 / n of a copy."""
        return 1 / self.n

    @property
    def events(self) -> Decimal:
        """The expected number of events of a count: -2 ln(1 - exp(-eps / Delta)) / n."""
        return _events(self.rate, int(self.n))

    def __call__(self, count: int, /) -> NDArray[np.int64]:
        """Draw a party's share of the noise of `count` counts."""
        count = checked_count(count)
        noise = np.zeros(count, np.int64)
        with localcontext(DIGITS):
            mean = self.events * count
        for _ in range(poisson(mean, self.randomness)):
            place, negative = divmod(uniform_below(2 * count, self.randomness), 2)
            size = logarithmic(self.rate, self.randomness)
            noise[place] += -size if negative else size
        return noise

    def log_moment(self, t: float) -> float:
        """Return ln E exp(t X), for 0 < t < `rate`."""
        return log_moment_of_a_copy(float(self.rate), t) / self.n


@lru_cache(maxsize=256)  # all parties of a process share the same few, and logarithms are slow
def _events(rate: Fraction, n: int) -> Decimal:
    with localcontext(DIGITS):
        ratio = (-Decimal(rate.numerator) / rate.denominator).exp()
        return -2 * (1 - ratio).ln() / n
