"""The noise of a sum of n parties at one draw: for studies of accuracy alone, not for release.

n parties that each add a copy with probability beta add K copies, K of Binomial(n, beta); a copy is
the difference of two geometric numbers, K copies the difference of two negative binomial ones; n
Polya shares of 1/n are one copy. `tests/vertibayes/test_hdpnb_noise.py` compares both with the
exact law and with the draws of the parties themselves.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.noise import DilutedGeometric, IntegerNoise


def noise_of_sum(
    noise: IntegerNoise, parties: int, count: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Draw what `parties` parties with this noise add to each of `count` sums.

    Parameters
    ----------
    noise : DilutedGeometric or PolyaShare
    parties : int
    count : int
    generator : numpy.random.Generator

    Returns
    -------
    noise : ndarray of shape (count,), dtype int64
    """
    if isinstance(noise, DilutedGeometric):
        copies = generator.binomial(parties, noise.beta, count).astype(float)
    else:
        copies = np.full(count, parties * noise.copies)
    drawn, none = np.maximum(copies, 1.0), copies == 0
    success = -math.expm1(-float(noise.rate))
    first, second = (generator.negative_binomial(drawn, success) for _ in range(2))
    return np.asarray(np.where(none, 0, first - second), np.int64)
