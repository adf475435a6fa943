"""The dealer's program: products of masks under new masks, and the correction.

The dealer holds no data and receives none. Its messages are functions of the streams that it
shares with the parties, under labels that follow from the product: the same for the same product.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from vertibayes_mpc.randomness import Stream
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Party, Program, send
from vertibayes_mpc.scalar_product.messages import MaskedMasks, ProductCorrection
from vertibayes_mpc.scalar_product.product import Factor, Product, Subprotocol


def deal_product(keys: Mapping[Party, Stream], product: Product) -> Program[None]:
    """Deal for a scalar product and all sub-protocols; expect nothing.

    Parameters
    ----------
    keys : mapping of Party to Stream
        The keys that the dealer shares with each party.
    product : Product
        What the parties compute.
    """
    total = yield from _run(keys, product.top, {})
    lead, *others = product.parties
    for party in others:
        total = total - product.split(keys[party])
    yield from send({lead: ProductCorrection(product.ring.reduce(total), product.label)})


def _run(
    keys: Mapping[Party, Stream], sub: Subprotocol, products: Mapping[Factor, Elements]
) -> Program[Elements]:
    """Deal for a sub-protocol and those below it; return the dealer's part of its result.

    `products` are those factors that are products of masks.
    """
    zero = np.zeros(sub.product.shape, sub.product.ring.dtype)
    masks = {f: sum((sub.mask(keys[p]) for p in f), start=zero) for f in sub.factors}
    masked = {f: product + masks[f] for f, product in products.items()}
    yield from _send(sub, masked)
    part = (len(sub.factors) - 1) * sub.total(list(masks.values()))
    if sub.lead in products:
        others = [masked[f] for f in sub.factors if f != sub.lead]
        part = part + sub.total([products[sub.lead], *others])
    for below, merged in sub.below():
        union = below.factors[-1]
        kept = {f: product for f, product in products.items() if f in below.factors}
        joint = math.prod((masks[f] for f in merged[1:]), start=masks[merged[0]])
        part = part + (yield from _run(keys, below, {**kept, union: joint}))
    return part


def _send(sub: Subprotocol, masked: Mapping[Factor, Elements]) -> Program[None]:
    """Send each masked product of masks to the parties that have no part in it."""
    outbox: dict[Party, MaskedMasks] = {}
    for party in sub.product.parties:
        _, joint = sub.sent_to(party)
        if joint:
            values = sub.product.ring.reduce(np.stack([masked[f] for f in joint]))
            outbox[party] = MaskedMasks(values, sub.label)
    if outbox:
        yield from send(outbox)
