"""The product, its sub-protocols, and the programs of a party, the receiver and the dealer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import combinations
from typing import TypeAlias

import numpy as np

from vertibayes_mpc.errors import DealReusedError
from vertibayes_mpc.labelled import Labelled, expected, labelled_elements, receive
from vertibayes_mpc.randomness import Stream, label
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import Party, Program, exchange, send
from vertibayes_mpc.sharing import open_sum, send_share

Factor: TypeAlias = tuple[Party, ...]  # one party, with its data; several, with a product of masks


@cache
def subprotocols(parties: int) -> int:
    """Return T(n), the number of sub-protocols of a scalar product, including the whole.

    >>> [subprotocols(parties) for parties in (2, 3, 4, 5, 6)]
    [1, 4, 29, 336, 5687]
    """
    if parties < 2:
        raise ValueError(f"a scalar product must have at least 2 parties, got {parties}")
    sizes = range(2, parties)
    return 1 + sum(math.comb(parties, k) * subprotocols(parties - k + 1) for k in sizes)


@dataclass(frozen=True)
class Product:
    """Scalar products to be computed together, once, by two parties or more."""

    study: bytes  # named in every label
    id: bytes  # names these products, and no others in the study
    ring: Ring  # of the results; for counts it must exceed the number of records
    parties: tuple[Party, ...]  # who holds a factor, in order; at least 2
    count: int  # q, the number of products
    records: int  # m, the length of each vector
    dealer: Party = "dealer"  # shares a key with each party and holds no factor

    def __post_init__(self) -> None:
        if len(self.parties) < 2 or len(set(self.parties)) < len(self.parties):
            raise ValueError(f"there must be at least 2 parties, each once, got {self.parties}")
        if self.dealer in self.parties:
            raise ValueError(f"{self.dealer} is the dealer and cannot hold a factor")
        if min(self.shape) < 0:
            raise ValueError(f"count and records must not be negative, got {self.shape}")

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (q, m) of each party's vectors."""
        return self.count, self.records

    @cached_property
    def label(self) -> bytes:
        """A digest of the product: part of every label."""
        names = [party.encode() for party in (self.dealer, *self.parties)]
        return label("product", self.study, self.id, self.ring.bits, *self.shape, *names)

    @property
    def top(self) -> Subprotocol:
        """The protocol itself: each party with its data."""
        return Subprotocol(self, tuple((party,) for party in self.parties), 1, self.label)

    def split(self, key: Stream) -> Elements:
        """Return a party's part of the correction: shape (q,)."""
        return key.elements(self.ring, label("split", self.label), (self.count,))


@dataclass(frozen=True)
class Subprotocol:
    """A scalar product within the recursion, taken `times` times.

    Each party is in one of the factors: alone with its data, or with others; the factor is then the
    product of their masks one level above. No two sub-protocols have the same label.
    """

    product: Product
    factors: tuple[Factor, ...]
    times: int
    label: bytes

    def below(self) -> Iterator[tuple[Subprotocol, tuple[Factor, ...]]]:
        """Yield the sub-protocols of this one, each with the factors whose masks it multiplies."""
        for k in range(2, len(self.factors)):
            for merged in combinations(self.factors, k):
                rest = tuple(f for f in self.factors if f not in merged)
                union = tuple(party for factor in merged for party in factor)
                names = [party.encode() for party in sorted(union)]
                digest = label("subproduct", self.label, *names)
                factors, times = (*rest, union), self.times * (k - 1)
                yield Subprotocol(self.product, factors, times, digest), merged

    @property
    def lead(self) -> Factor:
        """The factor that is multiplied unmasked: the first that one party holds, if any."""
        return next((f for f in self.factors if len(f) == 1), self.factors[0])

    def factor_of(self, party: Party) -> Factor:
        """Return the factor that a party has a part in."""
        return next(factor for factor in self.factors if party in factor)

    def sent_to(self, party: Party) -> tuple[list[Factor], list[Factor]]:
        """Return the factors that other parties send to a party, and those of the dealer."""
        others = [factor for factor in self.factors if party not in factor]
        return [f for f in others if len(f) == 1], [f for f in others if len(f) > 1]

    def mask(self, key: Stream) -> Elements:
        """Return a party's mask, for the factor that it has a part in: shape (q, m)."""
        return key.elements(self.product.ring, self.label, self.product.shape)

    def total(self, factors: list[Elements]) -> Elements:
        """Multiply factors of shape (q, m) record by record, add up, take it `times`: (q,)."""
        ring = self.product.ring
        product = math.prod(factors[1:], start=factors[0])
        times = ring.dtype.type(self.times % 2**ring.bits)
        return ring.reduce(ring.row_sums(ring.reduce(product)) * times)


class MaskedFactor(Labelled, kind="masked_factor"):
    """A party's vectors under its masks: shape (q, m)."""


class MaskedMasks(Labelled, kind="masked_masks"):
    """Products of masks under new masks, from the dealer: shape (factors, q, m)."""


class ProductCorrection(Labelled, kind="product_correction"):
    """The first party's part of the products of all masks, from the dealer: shape (q,)."""


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
        yield from send_share(share, product.ring, receiver)
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
        message = MaskedFactor(ring.pack(masked), sub.label)
        outbox = {peer: message for peer in sub.product.parties if peer != party}
    shapes: dict[Party, tuple[int, ...]] = {peer: sub.product.shape for (peer,) in singles}
    kinds: dict[Party, type[Labelled]] = dict.fromkeys(shapes, MaskedFactor)
    if joint:
        shapes[dealer], kinds[dealer] = (len(joint), *sub.product.shape), MaskedMasks
    expect = {p: expected(kind, ring, math.prod(shapes[p])) for p, kind in kinds.items()}
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
    yield from send({lead: ProductCorrection(product.ring.pack(total), product.label)})


def _deal(
    keys: Mapping[Party, Stream], sub: Subprotocol, products: Mapping[Factor, Elements]
) -> Program[Elements]:
    """Deal for a sub-protocol and those below; return the dealer's part of its result."""
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
            values = sub.product.ring.pack(np.stack([masked[f] for f in joint]))
            outbox[party] = MaskedMasks(values, sub.label)
    if outbox:
        yield from send(outbox)
