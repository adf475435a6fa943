"""How large scores can be, and with how many bits they are compared.

Values of candidates are compared modulo 2^b as `value 2^f`:

    b = 1 + bits(span) + f              a sign, the largest difference of two values, fraction

Fewer bits send fewer bytes. The lookups' approximation needs more fraction bits the more records
are counted: `f >= 12 + bits(n)` keeps the error of a logarithm near 5e-5 nats or below. f fills the
smallest ring that has as many for values that differ by 16 n nats, so that all choices over as many
records have one f, and shares of sums serve later choices too; values that differ by more take a
larger ring.

Everything is computed in integers, so that all parties agree on it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from vertibayes_mpc.ring import Ring

RINGS = tuple(Ring(bits) for bits in (40, 48, 56, 64))  # elements of 64 bits in memory
LEAST_FRACTION_BITS, MOST_FRACTION_BITS = 12, 36
USUAL_SPAN = 16  # nats of a record
MOST_MILLIONTHS = 10**15  # of a constant: 10^9 nats
LOOKUP_ERROR_BITS = 10  # an approximate logarithm is at most 2^-10 nats from the logarithm


class Precision(NamedTuple):
    """The ring in which values are compared, and how many of its bits are behind the point."""

    ring: Ring
    fraction_bits: int

    @classmethod
    def of(cls, span: int, records: int) -> Precision:
        """Return the precision of values; the largest ring with fewer bits if none suffices."""
        usual, taken = (1 + nats.bit_length() for nats in (USUAL_SPAN * records, span))
        ring = _ring_of(usual + LEAST_FRACTION_BITS + records.bit_length())
        bits = min(ring.bits - usual, MOST_FRACTION_BITS)
        bits -= bits % 2  # even: fewer functions to compute and keep
        ring = _ring_of(bits + max(usual, taken))
        bits = min(ring.bits - taken, bits)
        if bits < LEAST_FRACTION_BITS:
            raise ValueError(
                f"values of candidates may differ by {span:,} nats, which leaves too little "
                "precision to compare them: choose with fewer scores in a candidate"
            )
        return cls(ring, bits)


def _ring_of(bits: int) -> Ring:
    return next((ring for ring in RINGS if ring.bits >= bits), RINGS[-1])


def in_units(millionths: int, fraction_bits: int) -> int:
    """Return a number of millionths in units of ``2**-fraction_bits``, rounded to nearest.

    >>> in_units(-1_500_000, 12)
    -6144
    """
    return ((millionths << fraction_bits + 1) + 10**6) // (2 * 10**6)


@lru_cache(maxsize=1024)
def likelihood_bound(records: int, states: int) -> int:
    """Return a number B of nats: the largest log-likelihood of a family lies between -B and 0.

    A child of r states that has the same distribution in each column has at least -n ln r.
    """
    return -(-records * log_bound(states) // 10)


@lru_cache(maxsize=1024)
def score_bound(records: int, states: int, columns: int) -> int:
    """Return a number B of nats: the K2 score of a family lies between -B and 0.

    The score is the logarithm of the probability of the child's values, one record after the other,
    when each state is drawn with a chance of (its count so far + 1) / (the column's so far + r).
    So it is not above 0. Each of the n factors is at least 1 / (n + r - 1): it is not below
    -n ln(n + r - 1).

    The probability of a column's N values is also 1 / (C(N + r - 1, r - 1) M), with M the number of
    orders of its values. The first factor is at most (N + 1)^(r - 1); the product of all columns is
    largest when all N are n / J. The product of all M is at most r^n. So the score is not below
    -J (r - 1) ln(n / J + 1) - n ln r.
    """
    one = records * log_bound(records + states - 1)
    other = columns * (states - 1) * log_bound(-(-records // columns) + 1)
    return -(-min(one, other + records * log_bound(states)) // 10)


@lru_cache(maxsize=1024)
def log_bound(number: int) -> int:
    """Return the natural logarithm of a number of at least 1 in tenths of nats, rounded up.

    >>> log_bound(1), log_bound(2), log_bound(1000)
    (0, 7, 70)
    """
    e, tenths, bound = 27182, 0, number**10  # e is above 2.7182
    while e**tenths < bound * 10 ** (4 * tenths):
        tenths += 1
    return tenths
