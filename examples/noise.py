"""Ten parties publish a sum with noise, added in one of three ways.

One trusted party adds the noise, or each party adds a diluted copy, or each party adds a share of
one copy.

    python examples/noise.py
"""

from __future__ import annotations

import math

import numpy as np

from vertibayes_mpc.noise import DilutedGeometric, DiscreteLaplace, IntegerNoise, PolyaShare

PARTIES, COUNTS, EPS = 10, 2000, 0.5


def compare() -> dict[str, float]:
    """Draw the noise of many sums in each way; return its standard deviation."""
    ways: dict[str, tuple[IntegerNoise, int]] = {
        "one trusted party": (DiscreteLaplace(eps=EPS), 1),
        "half of ten may lie": (
            DilutedGeometric(eps=EPS, delta=1e-5, gamma=0.5, n=PARTIES),
            PARTIES,
        ),
        "shares of ten": (PolyaShare(eps=EPS, n=PARTIES), PARTIES),
        "shares, five may leak": (PolyaShare(eps=EPS, n=PARTIES // 2), PARTIES),
    }
    deviations = {}
    for name, (noise, parties) in ways.items():
        total = np.sum([noise(COUNTS) for _ in range(parties)], axis=0)
        deviations[name] = float(total.std())
        expected = math.sqrt(parties * noise.variance)
        within = noise.bound(parties, tail=2**-40)
        print(f"{name:21} sd {total.std():5.2f}, {expected:5.2f} expected; at most {within}")
    return deviations


if __name__ == "__main__":
    compare()
