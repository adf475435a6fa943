"""What all parties know of a product: the group, the study, the bounds; and the dealer's keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from vertibayes_mpc.aggregation import Expected, Keys, full_domain_hash
from vertibayes_mpc.integers import uniform_below
from vertibayes_mpc.product_scheme.modp import MODP_PRIMES
from vertibayes_mpc.randomness import Randomness, label
from vertibayes_mpc.rounds import Party


@dataclass(frozen=True)
class Parameters:
    """The public parameters of products.

    Parameters
    ----------
    bits : int
        The length of the safe prime: 2048 or 3072 (RFC 3526).
    study : bytes
        Names what the products are for: part of every hash.
    most : int
        The largest number of parties of a product.
    highest : int
        The largest count; the smallest is 1.

    Raises
    ------
    ValueError
        If `bits` is another number, or the product could exceed (p - 1) / 2: its square would then
        have a smaller root.
    """

    bits: int
    study: bytes
    most: int
    highest: int

    primes: ClassVar[Mapping[int, int]] = MODP_PRIMES

    def __post_init__(self) -> None:
        if self.bits not in self.primes:
            raise ValueError(f"bits must be one of {sorted(self.primes)}, got {self.bits}")
        # The length is compared first: the power of a number of many digits takes hours.
        is_long = (self.highest.bit_length() - 1) * self.most >= self.bits
        if self.highest < 1 or is_long or self.largest > (self.prime - 1) // 2:
            length = self.highest.bit_length()
            highest = self.highest if length <= self.bits else f"2**{length - 1} or more"
            counts = f"{self.most} counts from 1 to {highest}"
            raise ValueError(
                f"products of {counts} must be at most (p - 1) / 2 of {self.bits} bits"
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
        """A digest of the parameters: part of every hash and every message."""
        return label("product scheme", self.prime, self.most, self.highest, self.study)

    def base(self, time: int, place: int) -> int:
        """Return H(t): the square that hides the count at one place, at one time."""
        return full_domain_hash(self.prime, self.label, time, place) ** 2 % self.prime

    def expected(self, time: int, count: int) -> Expected:
        """Return what a message of `count` counts must be."""
        return Expected(self.label, time, count, count, self.prime)


def deal_keys(parameters: Parameters, parties: Iterable[Party], randomness: Randomness) -> Keys:
    """Deal keys whose sum is zero modulo q. A dealer that keeps them reads every count.

    Parameters
    ----------
    parameters, parties, randomness
        As of `vertibayes_mpc.additive_scheme.deal_keys`.
    """
    names, order = sorted(set(parties)), parameters.order
    if not 2 <= len(names) <= parameters.most:
        raise ValueError(f"there must be from 2 to {parameters.most} parties, got {len(names)}")
    keys = {party: uniform_below(order, randomness) for party in names}
    return Keys(-sum(keys.values()) % order, keys)
