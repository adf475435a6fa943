"""Lookups of two sites: one-hot vectors as bits, and a sign that only the dealer knows.

P and Q hold shares of counts c, and of the bits of two one-hot vectors for each count: E_P xor E_Q
= e_i and F_P xor F_Q = e_j. r = (i, j) is the mask of c. As integers, E_P - E_Q is e_i or -e_i: the
sign is P's bit at i. So one-hot vectors take bits in place of words, and all that is computed from
them has a sign, s, the product of the signs of e_i and e_j.

    Deal      dealer -> Q      E_Q = E_P xor e_i,  F_Q = F_P xor e_j
                               t_Q = <x_P, y_Q> + <x_Q, y_P> - t_P
                               s_Q = s - s_P,  q_Q = s (p_P + p_Q) - q_P
    Rotate    P <-> Q          c + r                            r_P, r_Q: m = c + r modulo high low
    Factors   P <-> Q          X + x, Y + y                     X, Y: `rounds`; Q's are negated
    Product   P <-> Q          (X_P + X_Q + x_Q) Y_P - x_P (Y_Q + y_Q) + t_P - p_P;  Q likewise
    Output    s_P w + q_P      w = s f~(c) - p: the sum of the products

Everything with the index P or Q alone is a stream of that site and the dealer.

Security: honest-but-curious. What one of the sites receives is uniform: m because of the other's r,
the factors because of x and y, the product because of p; and the dealer's message because of P's
streams. The dealer receives nothing. The dealer and one site know the counts.
Leakage: the functions and the number of counts.
Cost: (high + low) / 8 + 24 bytes dealt for each count, 64 terms + 20 bytes sent if the ring of
results has 64 bits and that of counts 16; 3 rounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.labelled import packed, size_of, unpacked
from vertibayes_mpc.lookups.plan import LookupPlan, Masks, Slice
from vertibayes_mpc.lookups.rounds import Lookup, Step, factors
from vertibayes_mpc.ring import Elements, Packed
from vertibayes_mpc.rounds import Party


class Bits(NamedTuple):
    """What the dealer hands a site: packed bits of E and F, and shares of t, s and q."""

    high: Elements
    low: Elements
    cross: Elements
    sign: Elements
    signed: Elements


def drawn(masks: Masks) -> Bits:
    """Return P's streams: what the dealer makes Q's share from."""
    plan, count = masks.plan, masks.part.counts
    return Bits(
        masks.elements("high bits", plan.bits(plan.high, count)),
        masks.elements("low bits", plan.bits(plan.low, count)),
        *(masks.words(purpose) for purpose in ("cross", "sign", "signed")),
    )


def deal(first: Masks, second: Masks) -> Packed:
    """Return the dealer's message to the second site, from the streams of both."""
    plan, ring, own = first.plan, first.plan.ring, drawn(first)
    high, low = plan.digits(plan.counts.reduce(first.rotation() + second.rotation()))
    negative = _bit_at(own.high, high) ^ _bit_at(own.low, low)
    sign = ring.reduce(ring.dtype.type(1) - negative.astype(ring.dtype) - negative)
    cross = ring.column_dots(first.left(), second.right())
    cross = cross + ring.column_dots(second.left(), first.right())
    product = first.words("product") + second.words("product")
    dealt = Bits(
        own.high ^ _one_hot(high, own.high),
        own.low ^ _one_hot(low, own.low),
        cross - own.cross,
        sign - own.sign,
        ring.column_dots(sign[None], product[None]) - own.signed,
    )
    return packed(plan.dealt(first.part), dealt)


def look_up(
    plan: LookupPlan, part: Slice, masks: Masks, me: Party, dealer: Party, counts: Elements
) -> Lookup:
    """Return this site's shares of the values, from its shares of the counts."""
    ring, (first, second) = plan.ring, plan.batches[part.batch].holders
    peer = second if me == first else first
    ours = plan.counts.reduce(counts + masks.rotation())
    sizes = {peer: size_of(plan.rotated(part))}
    if me == second:
        sizes[dealer] = size_of(plan.dealt(part))
    inbox = yield Step({peer: packed(plan.rotated(part), [ours])}, sizes)
    own = drawn(masks) if me == first else Bits(*unpacked(plan.dealt(part), inbox[dealer], dealer))
    (theirs,) = unpacked(plan.rotated(part), inbox[peer], peer)
    one_hots = _unpacked_bits(own.high, plan.high), _unpacked_bits(own.low, plan.low)
    shares = factors(plan, part, one_hots, ours + theirs, bits=1)
    if me == second:
        np.negative(shares, out=shares)
    x, y = masks.left(), masks.right()
    sent = packed(plan.factors(part), [shares + np.concatenate([x, y])])
    inbox = yield Step({peer: sent}, {peer: size_of(plan.factors(part))})
    (masked,) = unpacked(plan.factors(part), inbox[peer], peer)
    left, right = np.split(masked, 2)
    product = ring.column_dots(shares[: plan.width] + left, shares[plan.width :])
    product = product - ring.column_dots(x, right) + own.cross - masks.words("product")
    sent = packed(plan.product(part), [product])
    inbox = yield Step({peer: sent}, {peer: size_of(plan.product(part))})
    (other,) = unpacked(plan.product(part), inbox[peer], peer)
    return ring.reduce(ring.column_dots((product + other)[None], own.sign[None]) + own.signed)


def _one_hot(places: NDArray[np.int64], like: Elements) -> NDArray[np.uint8]:
    """Return one-hot vectors as packed bits, the first bit the lowest: the shape of `like`."""
    bits = np.zeros(like.shape, np.uint8)
    bits[np.arange(len(places)), places >> 3] = np.left_shift(1, places & 7).astype(np.uint8)
    return bits


def _bit_at(bits: Elements, places: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return one packed bit of each row."""
    chosen = bits[np.arange(len(places)), places >> 3].astype(np.int64)
    return np.asarray(chosen >> (places & 7) & 1).astype(np.uint8)


def _unpacked_bits(bits: Elements, size: int) -> NDArray[np.uint8]:
    """Return packed bits, one in an element: shape (counts, size)."""
    return np.unpackbits(bits.astype(np.uint8), axis=1, count=size, bitorder="little")
