"""The exact laws of sums of noise, on a window of integers: by recursion, without sampling."""

from __future__ import annotations

import math

import numpy as np
from scipy.signal import lfilter
from scipy.special import gammaln
from scipy.stats import binom, chisquare

DEPTH = 150  # the window ends where the mass is about exp(-150)


def window(rate):
    """Return the integers of the window, symmetric around 0."""
    reach = math.ceil(DEPTH / rate) + 1
    return np.arange(-reach, reach + 1)


def point(rate):
    """Return the law of 0."""
    return (window(rate) == 0).astype(float)


def add_copy(law, rate):
    """Return the law of a sum with one more copy of Geom(exp(rate)): a recursion each way."""
    p = math.exp(-rate)
    forward = lfilter([1 - p], [1, -p], law)
    return lfilter([1 - p], [1, -p], forward[::-1])[::-1]


def geometric_law(rate):
    """Return (alpha - 1) / (alpha + 1) alpha^-|k|, of definition 2."""
    alpha = math.exp(rate)
    return (alpha - 1) / (alpha + 1) * np.exp(-rate * np.abs(window(rate)))


def gaussian_law(scale):
    """Return the law with masses proportional to exp(-k^2 / (2 scale^2))."""
    reach = math.ceil(20 * scale) + 1  # the mass beyond is about exp(-200)
    masses = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * scale**2))
    return masses / masses.sum()


def diluted_law(rate, beta, honest):
    """Return (Pr[no copy], law of the sum given a copy at least) of `honest` parties' noise."""
    none = (1 - beta) ** honest
    numbers = binom.pmf(np.arange(honest + 1), honest, beta)
    law, total = point(rate), np.zeros(len(window(rate)))
    for copies in range(1, honest + 1):
        law = add_copy(law, rate)
        total += numbers[copies] * law
        if copies > honest * beta and numbers[copies] < 1e-30:
            break
    return none, total / (1 - none)


def polya_law(rate, parts):
    """Return the law of G - G' for G, G' of NB(parts, exp(-rate))."""
    k = np.arange(len(window(rate)) // 2 + 1)
    p = math.exp(-rate)
    logs = gammaln(parts + k) - gammaln(parts) - gammaln(k + 1) - rate * k
    one = (1 - p) ** parts * np.exp(logs)
    return np.convolve(one, one[::-1])


def shifted(law, by):
    """Return the law of the sum with a constant."""
    return np.roll(law, by)  # what is rolled over the edge is about exp(-150)


def delta_at(law, eps, Delta):
    """Return the smallest delta of (eps, delta)-privacy for counts that differ by Delta."""
    return float(np.maximum(law - math.exp(eps) * shifted(law, Delta), 0).sum())


def largest_ratio(law, Delta):
    """Return the largest ratio of masses of counts that differ by Delta, off the window's edges."""
    inside = slice(len(law) // 4, -(len(law) // 4))
    return float((law[inside] / shifted(law, Delta)[inside]).max())


def quantile(law, tail):
    """Return the least B with Pr[|X| > B] <= tail."""
    values = np.abs(window_of(law))
    masses = np.bincount(values, law)
    beyond = masses[::-1].cumsum()[::-1]  # Pr[|X| >= B]
    return int(np.argmax(beyond <= tail)) - 1


def window_of(law):
    """Return the integers that a law's entries belong to."""
    return np.arange(len(law)) - len(law) // 2


def fit(draws, law, least=10):
    """Return the p-value of Pearson's chi-square test that `draws` have this law.

    Values expected fewer than `least` times are counted with the nearest that are not.
    """
    expected = law * len(draws) / law.sum()
    often = np.flatnonzero(expected >= least) - len(law) // 2
    values = np.clip(window_of(law), often[0], often[-1]) - often[0]
    found = np.clip(draws, often[0], often[-1]) - often[0]
    expected = np.bincount(values, expected)
    return chisquare(np.bincount(found, minlength=len(expected)), expected).pvalue
