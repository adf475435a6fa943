"""Exact samplers: coins of rational and exponential probability, logarithmic and Poisson numbers.

There is no floating point: comparisons of integers decide, on draws that are 2^-128 from uniform.

References
----------
.. [1] C. Canonne, G. Kamath, T. Steinke (2020). The Discrete Gaussian for Differential Privacy.
   Algorithm 1: Bernoulli(exp(-x)).
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from vertibayes_mpc.integers import STATISTICAL_BITS, uniform_below
from vertibayes_mpc.randomness import Randomness

DIGITS = Context(prec=80, Emin=MIN_EMIN, Emax=MAX_EMAX)  # 2^-128 is 4e-39


def bernoulli(numerator: int, denominator: int, randomness: Randomness) -> bool:
    """Return True with probability ``numerator / denominator``."""
    return uniform_below(denominator, randomness) < numerator


def bernoulli_exp(numerator: int, denominator: int, randomness: Randomness) -> bool:
    """Return True with probability ``exp(-numerator / denominator)`` ([1]_)."""
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
    """Draw a Poisson number, by inversion of 128 bits in decimals of 80 digits.

    Each step of the distribution function is off by 2^-128 at most.
    """
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
