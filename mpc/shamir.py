"""Shamir's secret sharing over the field of the smallest prime above 2^256.

    dealer -> x    f(x) = secret + c_1 x + .. + c_(t-1) x^(t-1), the c_i uniform
    t holders      secret = f(0), by interpolation

Security: perfect. Fewer than t shares are uniform whatever the secret; a secret of 32 bytes, a key
or a seed, is one element of the field. Shares are not checked: a wrong one gives a wrong secret, so
whoever recovers must be able to tell.
Leakage: nothing. Cost: one field element of 33 bytes a share.

References
----------
A. Shamir (1979), How to share a secret, Communications of the ACM 22(11).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mpc.integers import uniform_below
from mpc.randomness import Randomness

PRIME = 2**256 + 297
SHARE_BYTES = 33


def split(
    secret: int, threshold: int, places: Sequence[int], randomness: Randomness
) -> dict[int, int]:
    """Split a secret into shares, of which any `threshold` give it back.

    Parameters
    ----------
    secret : int
        From 0 to `PRIME` - 1.
    threshold : int
        t, from 1 to the number of places.
    places : sequence of int
        Where the polynomial is evaluated, one a holder: distinct, from 1 on.
    randomness : Randomness

    Returns
    -------
    shares : dict of int to int
        By place.

    Raises
    ------
    ValueError
        If the secret is no element, or threshold or places make no sense.
    """
    if not 0 <= secret < PRIME:
        raise ValueError("the secret is not an element of the field: 0 to PRIME - 1 is wanted")
    if not 1 <= threshold <= len(places):
        raise ValueError(f"threshold {threshold}: 1 to {len(places)}, the shares, is wanted")
    _check(places)
    drawn = [uniform_below(PRIME, randomness) for _ in range(threshold - 1)]
    return {place: _evaluate((*reversed(drawn), secret), place) for place in places}


def recover(shares: Mapping[int, int]) -> int:
    """Return the secret from shares by place: at least as many as the threshold.

    Raises
    ------
    ValueError
        If there is no share, or a place or share is outside the field.
    """
    if not shares or not all(0 <= share < PRIME for share in shares.values()):
        raise ValueError("shares from 0 to PRIME - 1 are wanted, at least one")
    _check(list(shares))
    return sum(share * _weight(place, shares) for place, share in shares.items()) % PRIME


def _check(places: Sequence[int]) -> None:
    if len(set(places)) != len(places) or not all(0 < place < PRIME for place in places):
        raise ValueError("a place twice, or outside 1 to PRIME - 1: the secret itself is at 0")


def _evaluate(coefficients: Sequence[int], place: int) -> int:
    """Evaluate a polynomial, highest coefficient first: places are small, so reduce but once."""
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
