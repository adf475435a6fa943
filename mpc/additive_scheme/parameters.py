"""What all know of a sum: the modulus, the study and the bounds; and the dealer's set-up.

Dealer     draws p, q; N = pq; forgets p and q
           draws sk_1 .. sk_n in [0, 2^128 N^2); sk_0 = -(sk_1 + .. + sk_n), over the integers
-> P_k     N, sk_k                      -> aggregator    N, sk_0
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from mpc.additive_scheme.packing import Packing
from mpc.aggregation import Expected, full_domain_hash
from mpc.integers import STATISTICAL_BITS, powmod, rsa_primes, uniform_below
from mpc.randomness import Randomness, label
from mpc.rounds import Party


def draw_modulus(bits: int = 2048) -> int:
    """Draw a modulus N = pq and forget its factors: the dealer's part of the set-up.

    Whoever keeps p and q reads every count: C^lcm(p-1, q-1) leaves the plaintext and a multiple of
    the key, as the test of the prime variant shows. That they are forgotten is trust; a dealer
    that ends its process after set-up is the least to ask.

    Raises
    ------
    ValueError
        If `bits` is below 2048.
    """
    p, q = rsa_primes(bits)
    return p * q


@dataclass(frozen=True)
class Parameters:
    """The public parameters of sums.

    Parameters
    ----------
    modulus : int
        N, of `draw_modulus`.
    study : bytes
        Names what the sums are for: part of every hash.
    most : int
        How many parties contribute to a sum, at most.
    lowest, highest : int
        What one party's count may be, its noise included.

    Raises
    ------
    ValueError
        If N is too short, even or a prime, or the sums do not fit.
    """

    modulus: int = field(repr=False)
    study: bytes
    most: int
    lowest: int
    highest: int

    least_bits: ClassVar[int] = 2048

    def __post_init__(self) -> None:
        bits = self.modulus.bit_length()
        if bits < self.least_bits:
            raise ValueError(f"a modulus of {bits} bits: {self.least_bits} at least are wanted")
        if self.modulus % 2 == 0 or powmod(2, self.modulus - 1, self.modulus) == 1:
            raise ValueError("the modulus is even or a prime: a product of two primes is wanted")
        assert self.packing.slots  # bounds that do not fit are refused here

    @cached_property
    def square(self) -> int:
        """N^2: ciphertexts are residues modulo it."""
        return self.modulus**2

    @property
    def key_bound(self) -> int:
        """Keys are drawn below this: 2^128 N^2."""
        return self.square << STATISTICAL_BITS

    @cached_property
    def packing(self) -> Packing:
        """How counts lie in plaintexts below N."""
        bits = self.modulus.bit_length() - 1
        return Packing(self.lowest, self.highest, self.most, bits)

    @cached_property
    def label(self) -> bytes:
        """A digest of all of this: part of every hash and every message."""
        numbers = self.modulus, self.most, self.lowest, self.highest
        return label("additive scheme", *numbers, self.study)

    def base(self, time: int, packet: int, context: bytes = b"") -> int:
        """Return H(t): the base that hides one packet of one time.

        What parties were told differently, put into the context, gives them different bases: their
        ciphertexts then have no sum.
        """
        name = label("within", self.label, context) if context else self.label
        return full_domain_hash(self.square, name, time, packet)

    def expected(self, time: int, count: int) -> Expected:
        """Return what a message of so many counts must be."""
        return Expected(self.label, time, count, self.packing.packets(count), self.square)


@dataclass(frozen=True, slots=True)
class Keys:
    """The dealer's keys, zero in sum: each is handed to its owner alone, and forgotten."""

    aggregator: int = field(repr=False)
    parties: Mapping[Party, int] = field(repr=False)


def deal_keys(parameters: Parameters, parties: Iterable[Party], randomness: Randomness) -> Keys:
    """Deal keys whose sum is zero over the integers: the rest of the set-up.

    A dealer that keeps them reads every count.

    Raises
    ------
    ValueError
        If the parties are fewer than two, whose sum would be a count, or more than the most.
    """
    names = sorted(set(parties))
    if not 2 <= len(names) <= parameters.most:
        raise ValueError(f"{len(names)} parties: from 2 to {parameters.most} are wanted")
    keys = {party: uniform_below(parameters.key_bound, randomness) for party in names}
    return Keys(-sum(keys.values()), keys)
