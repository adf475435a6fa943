"""How much Gaussian noise a release of tables needs: the exact curve of eps and delta, certified.

A record more or less changes one cell of each of T tables by 1. Each of h honest sites adds to each
cell a share of the noise, which has the discrete Gaussian law N(c^2): Pr[k] ~ exp(-k^2 / (2 c^2)).
With sigma^2 = h c^2 and tau(n, c) = 10 sum_{k=1}^{n-1} exp(-2 pi^2 c^2 k / (k + 1)):

    sum      of n shares: at each integer the mass of N(n c^2), up to a factor e^+-tau(n, c)   [2]_
    loss     of N(sigma^2) in T cells: L = (2 S + T) / (2 sigma^2), S the sum of the T noises  [1]_
    delta    e^(T t + u) E[1 - exp(eps - 2 T t - L)]+,  S of N(T sigma^2)
    rho      T (1 / sigma + 2 t)^2 / 2,  for composition with other releases
             with t = tau(h, c) and u = tau(T, sigma)

The first line holds from c = 1/2 on. By Poisson's summation, N(a^2) + N(b^2) has the masses of
N(a^2 + b^2) times a theta function, whose logarithm varies by less than 10 exp(-2 pi^2 a^2 b^2 /
(a^2 + b^2)). The shares are added one by one. This turns T cells of h shares each into T cells of
N(sigma^2), then S into N(T sigma^2). For T = h = 1 both factors are 1, and delta is exact: Theorem
7 of [1]_. For rho, two steps of tau-indistinguishability in each of T cells are added to one of
N(sigma^2), by the triangle inequality of Renyi divergences with which Bun and Steinke (2016) prove
privacy for groups.

The curve of the continuous Gaussian [3]_ is no bound for the discrete one: for
eps = 1, delta = 1e-6 and one table it gives a scale of 4.2247, at which the discrete Gaussian has a
delta of 1.02e-6. The scale here is 4.2308; by zCDP it is 5.35.

References
----------
.. [1] C. Canonne, G. Kamath, T. Steinke (2020). The Discrete Gaussian for Differential Privacy.
   Theorem 7. arXiv:2004.00010.
.. [2] P. Kairouz, Z. Liu, T. Steinke (2021). The Distributed Discrete Gaussian Mechanism for
   Federated Learning with Secure Aggregation. Theorem 1, Proposition 14. arXiv:2102.06387.
.. [3] B. Balle, Y.-X. Wang (2018). Improving the Gaussian Mechanism for Differential Privacy.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

SHARE, COPY, LARGEST = 0.5, 0.25, 2.0**40  # scales: the least of shares, and of one copy; the most
TERMS = 1 << 16  # of a sum over integers; wider ones are bounded block by block
ROUNDED = 1 + 1e-9  # more than the relative rounding error of delta
NEAR = 1 + 1e-6  # how near a scale is to one that is not certified
LARGE = 600.0  # an exponent


def excess(shares: int, scale: float) -> float:
    """Return tau: the largest log ratio of the masses of a sum of shares and of one Gaussian."""
    exponent = -2 * (math.pi * scale) ** 2
    return 10 * math.fsum(math.exp(exponent * k / (k + 1)) for k in range(1, shares))


def delta_of(eps: float, scale: float, tables: int, shares: int = 1, tail: float = 1e-30) -> float:
    """Return an upper bound of delta; integers that the sum leaves out have at most `tail` mass.

    A sum of too many terms is taken in blocks, each with its largest mass and loss.
    """
    variance = shares * scale**2
    apart, wide = tables * excess(shares, scale), math.sqrt(tables * variance)
    factor = math.exp(min(apart + excess(tables, math.sqrt(variance)), LARGE))
    eps, end = eps - 2 * apart, wide * math.sqrt(-2 * math.log(tail))
    start = math.floor(min(max(eps * variance - tables / 2, -end), end))  # below, the loss is < eps
    step = max(math.ceil((end - start) / TERMS), 1)
    first = np.arange(start, end, step)
    last = first + (step - 1)
    masses = np.exp(-((np.clip(0, first, last) / wide) ** 2) / 2)
    gains = -np.expm1(np.minimum(eps - (2 * last + tables) / (2 * variance), 0))
    total = max(wide * math.sqrt(2 * math.pi), 1 + 2 * math.exp(-1 / (2 * wide**2)))  # or more
    return factor * ROUNDED * (step * float(masses @ gains) / total + 2 * tail)


@lru_cache(maxsize=256)
def scale_of(eps: float, delta: float, tables: int, shares: int = 1) -> float:
    """Return the scale of a share: certified for eps and delta, as a slightly smaller one is not.

    Above `LARGEST`, no scale is certified.
    """
    low = high = COPY if tables == shares == 1 else SHARE
    tail = max(delta * 1e-9, math.ulp(0.0))
    while high <= LARGEST and delta_of(eps, high, tables, shares, tail) > delta:
        low, high = high, 2 * high
    while high > low * NEAR:
        middle = (low + high) / 2
        if delta_of(eps, middle, tables, shares, tail) > delta:
            low = middle
        else:
            high = middle
    return high


def rho_of_shares(scale: float, tables: int, shares: int = 1) -> float:
    """Return the rho of zero-concentrated differential privacy of all tables together."""
    sigma = math.sqrt(shares) * scale
    return tables * (1 / sigma + 2 * excess(shares, scale)) ** 2 / 2
