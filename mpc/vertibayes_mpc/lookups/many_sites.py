"""Lookups of three sites and more: one-hot vectors as additive shares, a product with one word.

Sites h_1 .. h_k hold shares of counts c and of two one-hot vectors e_i, e_j for each count, modulo
the ring of results; r = (i, j) is the mask of c. Sums are revealed through the first site.

    Deal      dealer -> h_1    e_i - sum_{s > 1} E_s,  e_j - sum_{s > 1} F_s,
                               <x, y> - sum_{s > 1} z_s         x, y: the sums of all sites' masks
    Rotate    h_s -> h_1       c_s + r_s
              h_1 -> h_s       m, the sum, modulo high low
    Factors   h_s -> h_1       X_s + x_s, Y_s + y_s             X, Y: `rounds`
              h_1 -> h_s       the sums, X and Y
    Output    z_s - <x_s, Y> - <X, y_s>;       h_1 adds <X, Y>

E_s, F_s, z_s, r_s, x_s and y_s are streams of h_s and the dealer; those of h_1 are r_1, x_1, y_1.

Security: honest-but-curious. Against all sites except one, what this site sends is uniform because
of its r, x and y; if it is not the first, so is the dealer's message, because of its E, F and z.
The dealer receives nothing. The dealer and one site know the counts, from m and r.
Leakage: the functions and the number of counts.
Cost: 8 (high + low + 1) bytes dealt for each count, 2 (k - 1) (32 terms + 2) sent if the ring of
results has 64 bits and that of counts 16; 4 rounds.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import reduce

import numpy as np

from vertibayes_mpc.labelled import Layout, packed, size_of, unpacked
from vertibayes_mpc.lookups.plan import LookupPlan, Masks, Slice
from vertibayes_mpc.lookups.rounds import Lookup, Step, factors
from vertibayes_mpc.ring import Elements, Packed
from vertibayes_mpc.rounds import Party
from vertibayes_mpc.unit_vectors import unit_shares

DRAWN = "high", "low", "cross"  # E, F and z of a site that is not the first


def deal(masks: Sequence[Masks]) -> Packed:
    """Return the dealer's message to the first site, from the streams of all."""
    plan, ring, pieces = masks[0].plan, masks[0].plan.ring, masks[0].plan.dealt(masks[0].part)
    rotation = plan.counts.reduce(reduce(np.add, (each.rotation() for each in masks)))
    left = reduce(np.add, (each.left() for each in masks))
    right = reduce(np.add, (each.right() for each in masks))
    high, low = plan.digits(rotation)

    def theirs(at: int) -> Iterator[Elements]:
        return (each.elements(DRAWN[at], pieces[at]) for each in masks[1:])

    shares = [
        unit_shares(ring, plan.high, high, theirs(0)),
        unit_shares(ring, plan.low, low, theirs(1)),
        reduce(np.subtract, theirs(2), ring.column_dots(left, right)),
    ]
    return packed(pieces, shares)


def look_up(
    plan: LookupPlan, part: Slice, masks: Masks, me: Party, dealer: Party, counts: Elements
) -> Lookup:
    """Return this site's shares of the values, from its shares of the counts."""
    ring, holders = plan.ring, plan.batches[part.batch].holders
    is_first, pieces = me == holders[0], plan.dealt(part)
    dealt = {dealer: size_of(pieces)} if is_first else {}
    ours = counts + masks.rotation()
    rotated, inbox = yield from _revealed(plan.rotated(part), holders, me, ours, dealt)
    if is_first:
        high, low, result = unpacked(pieces, inbox[dealer], dealer)
    else:
        high, low, result = map(masks.elements, DRAWN, pieces)
    x, y = masks.left(), masks.right()
    shares = factors(plan, part, (high, low), rotated) + np.concatenate([x, y])
    revealed, _ = yield from _revealed(plan.factors(part), holders, me, shares, {})
    left, right = np.split(revealed, 2)
    result = result - ring.column_dots(x, right) - ring.column_dots(left, y)
    if is_first:
        result = result + ring.column_dots(left, right)
    return ring.reduce(result)


def _revealed(
    layout: Layout,
    holders: tuple[Party, ...],
    me: Party,
    share: Elements,
    dealt: Mapping[Party, int],
) -> Generator[Step, Mapping[Party, Packed], tuple[Elements, Mapping[Party, Packed]]]:
    """Reveal a sum to all sites through the first, in two rounds; return the first inbox too."""
    first, *others = holders
    (piece,) = layout
    if me != first:
        yield Step({first: packed(layout, [share])}, {})
        inbox = yield Step({}, {first: piece.size})
        return next(unpacked(layout, inbox[first], first)), inbox
    inbox = yield Step({}, {**dict.fromkeys(others, piece.size), **dealt})
    total = share.astype(piece.ring.dtype)
    for other in others:
        total += next(unpacked(layout, inbox[other], other))
    total = piece.ring.reduce(total)
    yield Step(dict.fromkeys(others, packed(layout, [total])), {})
    return total, inbox
