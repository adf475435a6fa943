"""Shamir's secret sharing over the field of the smallest prime above 2^256 (Shamir 1979).

    dealer -> x    f(x) = secret + c_1 x + .. + c_(t-1) x^(t-1), the c_i uniform
    t holders      secret = f(0), by interpolation

Security: perfect. Fewer than t shares are uniform whatever the secret is; a secret of 32 bytes, a
key or a seed, is one element of the field. Shares are not checked: a wrong share gives a wrong
secret, so whoever recovers it must be able to recognize a wrong one.
Leakage: nothing.
Cost: one field element of 33 bytes a share.

>>> from vertibayes_mpc.randomness import SystemRandomness
>>> shares = split(42, 2, [1, 2, 3], SystemRandomness())
>>> recover({1: shares[1], 3: shares[3]})
42
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vertibayes_mpc.integers import uniform_below
from vertibayes_mpc.randomness import Randomness

PRIME = 2**256 + 297
SHARE_BYTES = 33


def split(
    secret: int, threshold: int, places: Sequence[int], randomness: Randomness
) -> dict[int, int]:
    """Split a secret into shares; any `threshold` of them give it back."""
    if not 0 <= secret < PRIME:
        raise ValueError("the secret must be an element of the field, from 0 to PRIME - 1")
    if not 1 <= threshold <= len(places):
        shares = f"{len(places)} (the number of shares)"
        raise ValueError(f"threshold must be from 1 to {shares}, got {threshold}")
    _check(places)
    drawn = [uniform_below(PRIME, randomness) for _ in range(threshold - 1)]
    return {place: _evaluate((*reversed(drawn), secret), place) for place in places}


def recover(shares: Mapping[int, int]) -> int:
    """Return the secret from shares by place: at least as many as the threshold."""
    if not shares or not all(0 <= share < PRIME for share in shares.values()):
        raise ValueError("there must be at least one share, each from 0 to PRIME - 1")
    _check(list(shares))
    return sum(share * _weight(place, shares) for place, share in shares.items()) % PRIME


def _check(places: Sequence[int]) -> None:
    if len(set(places)) != len(places) or not all(0 < place < PRIME for place in places):
        raise ValueError("places must be distinct and from 1 to PRIME - 1; the secret is at 0")


def _evaluate(coefficients: Sequence[int], place: int) -> int:
    """Evaluate a polynomial, highest coefficient first; places are small, so reduce only once."""
    total = 0
    for coefficient in coefficients:
        total = total * place + coefficient
    return total % PRIME


def _weight(place: int, places: Mapping[int, int]) -> int:
    """Return the Lagrange coefficient of a place at 0."""
    above, below = 1, 1
    for other in places:
        if other != place:
            above, below = above * other, below * (other - place)
    return above * pow(below, -1, PRIME) % PRIME
