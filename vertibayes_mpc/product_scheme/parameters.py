"""What all parties know of a product: the group, the study, the bounds; and the dealer's keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from vertibayes_mpc.aggregation import Expected, Keys, full_domain_hash
from vertibayes_mpc.integers import uniform_below
from vertibayes_mpc.randomness import Randomness, label
from vertibayes_mpc.rounds import Party

MODP_PRIMES = {
    2048: int(
        "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22"
        "514A08798E3404DDEF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6"
        "F44C42E9A637ED6B0BFF5CB6F406B7EDEE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3D"
        "C2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F83655D23DCA3AD961C62F356208552BB"
        "9ED529077096966D670C354E4ABC9804F1746C08CA18217C32905E462E36CE3BE39E772C180E8603"
        "9B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF6955817183995497CEA956AE515D2261898FA0510"
        "15728E5A8AACAA68FFFFFFFFFFFFFFFF",
        16,
    ),
    3072: int(
        "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22"
        "514A08798E3404DDEF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6"
        "F44C42E9A637ED6B0BFF5CB6F406B7EDEE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3D"
        "C2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F83655D23DCA3AD961C62F356208552BB"
        "9ED529077096966D670C354E4ABC9804F1746C08CA18217C32905E462E36CE3BE39E772C180E8603"
        "9B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF6955817183995497CEA956AE515D2261898FA0510"
        "15728E5A8AAAC42DAD33170D04507A33A85521ABDF1CBA64ECFB850458DBEF0A8AEA71575D060C7D"
        "B3970F85A6E1E4C7ABF5AE8CDB0933D71E8C94E04A25619DCEE3D2261AD2EE6BF12FFA06D98A0864"
        "D87602733EC86A64521F2B18177B200CBBE117577A615D6C770988C0BAD946E208E24FA074E5AB31"
        "43DB5BFCE0FD108E4B82D120A93AD2CAFFFFFFFFFFFFFFFF",
        16,
    ),
}


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
        if self.highest < 1 or self.largest > (self.prime - 1) // 2:
            counts = f"{self.most} counts from 1 to {self.highest}"
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
    """Deal keys whose sum is zero modulo q. A dealer that keeps them reads every count."""
    names, order = sorted(set(parties)), parameters.order
    if not 2 <= len(names) <= parameters.most:
        raise ValueError(f"there must be from 2 to {parameters.most} parties, got {len(names)}")
    keys = {party: uniform_below(order, randomness) for party in names}
    return Keys(-sum(keys.values()) % order, keys)
