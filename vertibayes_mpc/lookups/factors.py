"""A site's shares of the factors of a lookup, from its shares of one-hot vectors.

The masked count m = c + r is public; the dealer knows r = (i, j), and the sites hold shares E, F of
the one-hot vectors of i and j. The digits of c = m - r are ``m_h - i`` and ``m_l - j``, or, if
j > m_l, ``m_h - i - 1`` and ``m_l - j + low``: a borrow. So f~(c) is a sum of products of

    X_k = sum_h E[m_h - h] left[h, k]         and with left[h - 1, k], for a borrow
    Y_k = sum_l F[m_l - l] right[l, k]        over l <= m_l; over l > m_l, for a borrow

Of the two halves of Y one is zero: the borrow is resolved, though nobody knows it.
"""

from __future__ import annotations

import numpy as np

from vertibayes_mpc.lookups.plan import LookupPlan, Slice
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.unit_vectors import turned

CHUNK = 1024  # lookups whose one-hot vectors are turned at a time: they stay in a cache


def factors(
    plan: LookupPlan,
    part: Slice,
    one_hots: tuple[Elements, Elements],
    masked: Elements,
    bits: int | None = None,
) -> Elements:
    """Return this site's shares of all factors of a slice: X, then Y; (2 * plan.width, counts).

    `one_hots` are the shares E and F, of shapes (counts, high) and (counts, low); `masked` is m.
    With 1 for `bits`, the one-hot vectors are bits, and shares of 1 or -1.
    """
    ring, terms = plan.ring, plan.width // 2
    high, low = plan.digits(masked)
    shares = np.empty((2 * plan.width, part.counts), ring.dtype)
    digits = np.arange(plan.low)
    for function, piece in plan.pieces(part):
        lefts = ring.reduce(function.lefts.astype(ring.dtype))
        rights = ring.reduce(function.rights.astype(ring.dtype))
        for start in range(piece.start, piece.stop, CHUNK):
            at = slice(start, min(start + CHUNK, piece.stop))
            shares[: plan.width, at] = ring.dot(lefts, turned(one_hots[0][at], high[at]), bits=bits)
            ones = turned(one_hots[1][at], low[at])
            stays = digits <= low[at, None]
            y = shares[plan.width :, at]
            y[:terms] = ring.dot(rights, ones * stays, bits=bits)
            y[terms:] = ring.dot(rights, ones * ~stays, bits=bits)
    return shares
