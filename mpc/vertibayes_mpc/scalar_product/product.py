"""What all parties know of a scalar product: its parties and shape, and its sub-protocols."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from typing import TypeAlias

from vertibayes_mpc.labelled import Labelled
from vertibayes_mpc.randomness import Stream, label
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import Party

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
    """Scalar products to be computed together, once.

    A ValueError says that there are fewer than 2 parties, one appears twice or is the dealer, or a
    size is negative.
    """

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
