"""A party's program for a scalar product, and the receiver's."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mpc.errors import DealReusedError
from mpc.labelled import LABEL_BYTES, Labelled, labelled_elements
from mpc.randomness import Stream
from mpc.ring import Elements
from mpc.rounds import Expect, Message, Party, Program, Round
from mpc.scalar_product.messages import MaskedFactor, MaskedMasks, ProductCorrection
from mpc.scalar_product.product import Factor, Product, Subprotocol
from mpc.sharing import open_sum, send_share


@dataclass
class Multiplier:
    """A party, its key, and what it has used of it.

    Parameters
    ----------
    party : Party
    dealer_key : Stream
        Shared with the dealer.
    used : set of bytes, optional
        The names of the products whose masks were used; whoever keeps the key keeps these too.
    """

    party: Party
    dealer_key: Stream = field(repr=False)
    used: set[bytes] = field(default_factory=set, repr=False)


def scalar_product(
    own: Multiplier, product: Product, vectors: Elements, receiver: Party
) -> Program[Elements | None]:
    """Multiply with the other parties and the dealer, and open the results to the receiver.

    Parameters
    ----------
    own : Multiplier
    product : Product
    vectors : ndarray of shape (q, m), dtype `product.ring.dtype`
        This party's factor of each product.
    receiver : Party
        One of the parties, or another, who runs `receive_product`; never the dealer.

    Returns
    -------
    results : ndarray of shape (q,) or None
        The products modulo the ring's size, if this party is the receiver.

    Raises
    ------
    ValueError, TypeError
        If the vectors have another shape or type, the party is not one of the product, or the
        receiver is the dealer.
    DealReusedError
        If the masks of this product were used before.
    MalformedMessageError, UnexpectedMessageError
        If a message has a wrong shape, or is for another sub-protocol; it names the sender.
    """
    if receiver == product.dealer:
        raise ValueError(f"{receiver} deals the masks: what it opened would be the factors")
    share = yield from share_product(own, product, vectors)
    if own.party != receiver:
        yield from send_share(share, receiver)
        return None
    others = [party for party in product.parties if party != receiver]
    total = yield from open_sum(others, product.ring, product.count)
    return product.ring.reduce(total + share)


def receive_product(product: Product) -> Program[Elements]:
    """Open the results: the side of a receiver who holds no factor.

    Returns
    -------
    results : ndarray of shape (q,)

    Raises
    ------
    MalformedMessageError
        If a share has a wrong shape; it names the sender.
    """
    return (yield from open_sum(product.parties, product.ring, product.count))


def share_product(own: Multiplier, product: Product, vectors: Elements) -> Program[Elements]:
    """Multiply with the other parties and the dealer; as `scalar_product`, but open nothing.

    Whoever opens the shares later must not be the dealer.

    Returns
    -------
    share : ndarray of shape (q,)
        All parties' shares add up to the results, and all but one of them are uniform.
    """
    _check(own, product, vectors)
    own.used.add(product.name)
    total = yield from _run(own, product.top, product.ring.reduce(vectors))
    if own.party == product.parties[0]:
        part = yield from _correction(product)
    else:
        part = product.split(own.dealer_key)
    return product.ring.reduce(total + part)


def _check(own: Multiplier, product: Product, vectors: Elements) -> None:
    if own.party not in product.parties:
        raise ValueError(f"{own.party} is not one of the parties {product.parties}")
    if vectors.dtype != product.ring.dtype:
        raise TypeError(f"vectors of type {vectors.dtype}: {product.ring.dtype} is wanted")
    if vectors.shape != product.shape:
        raise ValueError(f"vectors of shape {vectors.shape}: {product.shape} is wanted")
    if product.name in own.used:
        raise DealReusedError(f"{own.party} has used the masks of product {product.id.hex()}")


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
    """Send one's masked factor to all others, if one is alone with it; return the others'."""
    ring, shape = sub.product.ring, sub.product.shape
    singles, joint = sub.sent_to(party)
    outbox: dict[Party, Message] = {}
    if sub.factor_of(party) == (party,):
        message = MaskedFactor(ring.reduce(masked), sub.name)
        outbox = {peer: message for peer in sub.product.parties if peer != party}
    cells = shape[0] * shape[1]
    factor = Expect(MaskedFactor, cells + LABEL_BYTES)
    expect: dict[Party, Expect[Labelled]] = {peer: factor for (peer,) in singles}
    if joint:
        expect[sub.product.dealer] = Expect(MaskedMasks, len(joint) * cells + LABEL_BYTES)
    inbox = yield Round(outbox, expect)
    found = [labelled_elements(inbox[peer], peer, ring, shape, sub.name) for (peer,) in singles]
    return found + _dealt(sub, joint, inbox.get(sub.product.dealer))


def _dealt(sub: Subprotocol, joint: list[Factor], message: Message | None) -> list[Elements]:
    """Return the masked products of masks that the dealer has sent."""
    if message is None:
        return []
    shape, dealer = (len(joint), *sub.product.shape), sub.product.dealer
    return list(labelled_elements(message, dealer, sub.product.ring, shape, sub.name))


def _correction(product: Product) -> Program[Elements]:
    dealer, shape = product.dealer, (product.count,)
    inbox = yield Round({}, {dealer: Expect(ProductCorrection, product.count + LABEL_BYTES)})
    return labelled_elements(inbox[dealer], dealer, product.ring, shape, product.name)
