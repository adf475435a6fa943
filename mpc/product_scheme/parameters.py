"""What all know of a product: the group, the study and the bounds; and the dealer's keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from mpc.aggregation import Expected, full_domain_hash
from mpc.integers import uniform_below
from mpc.product_scheme.modp import MODP_PRIMES
from mpc.randomness import Randomness, label
from mpc.rounds import Party


@dataclass(frozen=True)
class Parameters:
    """The public parameters of products.

    Parameters
    ----------
    bits : int
        Of the safe prime: 2048 or 3072 (RFC 3526).
    study : bytes
        Names what the products are for: part of every hash.
    most : int
        How many parties contribute to a product, at most.
    highest : int
        No count is larger; counts are 1 at least.

    Raises
    ------
    ValueError
        If there is no such group, or the product could exceed (p - 1) / 2, where its square would
        have another root as small.
    """

    bits: int
    study: bytes
    most: int
    highest: int

    primes: ClassVar[Mapping[int, int]] = MODP_PRIMES

    def __post_init__(self) -> None:
        if self.bits not in self.primes:
            raise ValueError(f"no group of {self.bits} bits: {sorted(self.primes)} are there")
        if self.highest < 1 or self.largest > (self.prime - 1) // 2:
            raise ValueError(
                f"products of {self.most} counts from 1 to {self.highest}: "
                f"at most (p - 1) / 2 of {self.bits} bits is wanted"
            )

    @property
    def prime(self) -> int:
        """The safe prime p = 2q + 1."""
        return self.primes[self.bits]

    @property
    def order(self) -> int:
        """The prime q: how many squares there are."""
        return self.prime // 2

    @property
    def largest(self) -> int:
        """The largest product."""
        return int(self.highest**self.most)

    @cached_property
    def label(self) -> bytes:
        """A digest of all of this: part of every hash and every message."""
        return label("product scheme", self.prime, self.most, self.highest, self.study)

    def base(self, time: int, place: int) -> int:
        """Return H(t): the square that hides one count of one time."""
        return full_domain_hash(self.prime, self.label, time, place) ** 2 % self.prime

    def expected(self, time: int, count: int) -> Expected:
        """Return what a message of so many counts must be."""
        return Expected(self.label, time, count, count, self.prime)


@dataclass(frozen=True, slots=True)
class Keys:
    """The dealer's keys, zero in sum modulo q: each is handed to its owner alone, and forgotten."""

    aggregator: int = field(repr=False)
    parties: Mapping[Party, int] = field(repr=False)


def deal_keys(parameters: Parameters, parties: Iterable[Party], randomness: Randomness) -> Keys:
    """Deal keys whose sum is zero modulo q. A dealer that keeps them reads every count.

    Raises
    ------
    ValueError
        If the parties are fewer than two, whose product would be a count, or more than the most.
    """
    names, order = sorted(set(parties)), parameters.order
    if not 2 <= len(names) <= parameters.most:
        raise ValueError(f"{len(names)} parties: from 2 to {parameters.most} are wanted")
    keys = {party: uniform_below(order, randomness) for party in names}
    return Keys(-sum(keys.values()) % order, keys)
