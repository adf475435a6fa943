"""The programs of a scalar product: of a party, of the receiver, and of the dealer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from vertibayes_mpc.errors import DealReusedError
from vertibayes_mpc.labelled import LABEL_BYTES, Labelled, labelled_elements, receive
from vertibayes_mpc.randomness import Stream
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Expect, Party, Program, exchange, send
from vertibayes_mpc.scalar_product.product import (
    Factor,
    MaskedFactor,
    MaskedMasks,
    Product,
    ProductCorrection,
    Subprotocol,
)
from vertibayes_mpc.sharing import open_sum, send_share


@dataclass
class Multiplier:
    """A party, its key, and the products for which it used the key."""

    party: Party
    dealer_key: Stream = field(repr=False)
    used: set[bytes] = field(default_factory=set, repr=False)  # labels; kept with the key


def scalar_product(
    own: Multiplier, product: Product, vectors: Elements, receiver: Party
) -> Program[Elements | None]:
    """Multiply with the other parties and the dealer, and reveal the results to the receiver.

    `vectors` are this party's factor of each product: shape (q, m), in the product's ring. The
    receiver is one of the parties, or another who runs `receive_product`; never the dealer. It
    receives the products, of shape (q,), and the others None. A ValueError or TypeError says that
    the vectors have another shape or type, or the party or the receiver cannot take part; a
    DealReusedError, that the masks of this product were used before. A MalformedMessageError or
    UnexpectedMessageError names the sender of a message of a wrong shape, or for another
    sub-protocol.
    """
    if receiver == product.dealer:
        raise ValueError(f"the receiver must not be the dealer, who knows the masks: {receiver}")
    share = yield from share_product(own, product, vectors)
    if own.party != receiver:
        yield from send_share(share, receiver)
        return None
    others = [party for party in product.parties if party != receiver]
    total = yield from open_sum(others, product.ring, product.count)
    return product.ring.reduce(total + share)


def receive_product(product: Product) -> Program[Elements]:
    """Add up the results, of shape (q,): the side of a receiver who does not hold a factor."""
    return (yield from open_sum(product.parties, product.ring, product.count))


def share_product(own: Multiplier, product: Product, vectors: Elements) -> Program[Elements]:
    """Multiply as `scalar_product`, and reveal nothing; return this party's share, of shape (q,).

    All parties' shares add up to the results; all shares except one are uniform. Whoever adds up
    the shares later must not be the dealer.
    """
    _check(own, product, vectors)
    own.used.add(product.label)
    total = yield from _run(own, product.top, product.ring.reduce(vectors))
    if own.party == product.parties[0]:
        kind, dealer, shape = ProductCorrection, product.dealer, (product.count,)
        part = yield from receive(kind, dealer, product.ring, shape, product.label)
    else:
        part = product.split(own.dealer_key)
    return product.ring.reduce(total + part)


def _check(own: Multiplier, product: Product, vectors: Elements) -> None:
    if own.party not in product.parties:
        raise ValueError(f"{own.party} is not one of the parties {product.parties}")
    if vectors.dtype != product.ring.dtype:
        raise TypeError(f"vectors must have the type {product.ring.dtype}, got {vectors.dtype}")
    if vectors.shape != product.shape:
        raise ValueError(f"vectors must have the shape {product.shape}, got {vectors.shape}")
    if product.label in own.used:
        raise DealReusedError(f"{own.party} already used the masks of product {product.id.hex()}")


def _run(own: Multiplier, sub: Subprotocol, vectors: Elements) -> Program[Elements]:
    """Take part in a sub-protocol and those below it; return this party's share of its result."""
    mask = sub.mask(own.dealer_key)
    factor = sub.factor_of(own.party)
    theirs = yield from _exchange(own.party, sub, vectors + mask)
    if factor != sub.lead:
        share = -sub.total([mask, *theirs])
    elif factor == (own.party,):
        share = sub.total([vectors, *theirs])
    else:  # the lead is a product of masks, and the dealer multiplies it
        share = np.zeros(sub.product.count, sub.product.ring.dtype)
    for below, _ in sub.below():
        share = share + (yield from _run(own, below, vectors))
    return share


def _exchange(party: Party, sub: Subprotocol, masked: Elements) -> Program[list[Elements]]:
    """Send a party's masked factor to all others, if it alone holds it; return theirs."""
    ring, dealer = sub.product.ring, sub.product.dealer
    singles, joint = sub.sent_to(party)
    outbox: dict[Party, MaskedFactor] = {}
    if sub.factor_of(party) == (party,):
        message = MaskedFactor(ring.reduce(masked), sub.label)
        outbox = {peer: message for peer in sub.product.parties if peer != party}
    shapes: dict[Party, tuple[int, ...]] = {peer: sub.product.shape for (peer,) in singles}
    kinds: dict[Party, type[Labelled]] = dict.fromkeys(shapes, MaskedFactor)
    if joint:
        shapes[dealer], kinds[dealer] = (len(joint), *sub.product.shape), MaskedMasks
    expect = {p: Expect(kind, math.prod(shapes[p]) + LABEL_BYTES) for p, kind in kinds.items()}
    received = yield from exchange(outbox, expect)
    factors: list[Elements] = []
    for sender, theirs in received.items():
        values = labelled_elements(theirs, sender, ring, shapes[sender], sub.label)
        factors += list(values) if sender == dealer else [values]
    return factors


def deal_product(keys: Mapping[Party, Stream], product: Product) -> Program[None]:
    """Deal for a scalar product and all sub-protocols; expect nothing."""
    total = yield from _deal(keys, product.top, {})
    lead, *others = product.parties
    for party in others:
        total = total - product.split(keys[party])
    yield from send({lead: ProductCorrection(product.ring.reduce(total), product.label)})


def _deal(
    keys: Mapping[Party, Stream], sub: Subprotocol, products: Mapping[Factor, Elements]
) -> Program[Elements]:
    """Deal for a sub-protocol and those below it; return the dealer's part of its result.

    `products` are those factors that are products of masks.
    """
    zero = np.zeros(sub.product.shape, sub.product.ring.dtype)
    masks = {f: sum((sub.mask(keys[p]) for p in f), start=zero) for f in sub.factors}
    masked = {f: product + masks[f] for f, product in products.items()}
    yield from _send_masked(sub, masked)
    part = (len(sub.factors) - 1) * sub.total(list(masks.values()))
    if sub.lead in products:
        others = [masked[f] for f in sub.factors if f != sub.lead]
        part = part + sub.total([products[sub.lead], *others])
    for below, merged in sub.below():
        union = below.factors[-1]
        kept = {f: product for f, product in products.items() if f in below.factors}
        joint = math.prod((masks[f] for f in merged[1:]), start=masks[merged[0]])
        part = part + (yield from _deal(keys, below, {**kept, union: joint}))
    return part


def _send_masked(sub: Subprotocol, masked: Mapping[Factor, Elements]) -> Program[None]:
    """Send each masked product of masks to the parties that have no part in it."""
    outbox: dict[Party, MaskedMasks] = {}
    for party in sub.product.parties:
        _, joint = sub.sent_to(party)
        if joint:
            values = sub.product.ring.reduce(np.stack([masked[f] for f in joint]))
            outbox[party] = MaskedMasks(values, sub.label)
    if outbox:
        yield from send(outbox)
